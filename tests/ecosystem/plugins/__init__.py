"""Pytest plugins that give the suites of other libraries a namespace of numr; each is loaded by ``python -m pytest -p``."""
