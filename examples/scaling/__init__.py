"""Jobs that do not fit into memory; docs/scaling.md explains them."""
