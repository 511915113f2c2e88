"""Fused kernels of the CPU runtime, compiled by LLVM through llvmlite.

``host`` finds llvmlite and what the processor has; ``arrays`` says what kernels are given, ``texts`` writes them and
``compiler`` makes functions of them; ``geometry`` decides how arrays are walked, and ``loops`` runs kernels on arrays,
over threads.
"""
