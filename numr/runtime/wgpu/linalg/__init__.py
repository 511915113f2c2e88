"""Kernels of linear algebra, and what drives them from the host; ``factorizations`` makes families of them.

``arithmetic`` has the numbers that kernels compute with, ``matrices`` what all of them share, ``products`` and ``blocks``
what is done to parts of matrices, ``scaling`` and ``rotations`` what some methods have in common. Each of the others
is a method: ``cholesky``, ``elimination``, ``orthogonal``, ``eigen``, ``singular``.
"""
