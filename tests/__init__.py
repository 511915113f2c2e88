"""Tests of numr."""

import os

# Software adapters of WebGPU compute in the calling thread then, which is quicker for small work. Read when a device
# is made.
os.environ.setdefault("LP_NUM_THREADS", "0")
