"""Code generation: what an operation computes, as expressions that are printed for every compiler.

Nothing here touches a device. :mod:`~numr.codegen.expr` holds the expressions, :mod:`~numr.codegen.libm` the
transcendental functions as expressions over basic operations, :mod:`~numr.codegen.elementwise` the rows of the op
table and :mod:`~numr.codegen.reference` an evaluator over NumPy, which says what an expression means. Each language
has a printer, such as :mod:`~numr.codegen.wgsl`.
"""
