"""``Tensor``, its parts and the choke point that all operations pass."""
