"""Speed of numr beside its peers, measured alternately in one run.

``python -m benchmarks`` runs all of it; docs/benchmarks.md says how to run and read it. Nothing here fails
because something was slow.
"""
