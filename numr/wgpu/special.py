"""Special functions on WebGPU: numr's own, by SciPy's names.

With ``SCIPY_ARRAY_API=1`` SciPy finds them here, and what uses them in ``scipy.special``, ``scipy.stats`` and
``scipy.integrate`` stays on the device.
"""

from numr.array_api.special import *
