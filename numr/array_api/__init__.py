"""The functions of the standard, one module for each of its pages, each written once for all runtimes.

What is here needs no runtime: a namespace such as :mod:`numr.cpu` re-exports it and adds the functions that it binds
to its own runtime (:class:`CreationFunctions`, :class:`Inspection`, :class:`FFTCreation`).
"""

from numr.array_api import (
    constants,
    data_type_functions,
    data_types,
    elementwise_functions,
    extras,
    following_functions,
    indexing_functions,
    linear_algebra_functions,
    manipulation_functions,
    searching_functions,
    set_functions,
    sorting_functions,
    statistical_functions,
    utility_functions,
    version,
)
from numr.array_api.constants import *
from numr.array_api.data_type_functions import *
from numr.array_api.data_types import *
from numr.array_api.elementwise_functions import *
from numr.array_api.extras import *
from numr.array_api.following_functions import *
from numr.array_api.indexing_functions import *
from numr.array_api.linear_algebra_functions import *
from numr.array_api.manipulation_functions import *
from numr.array_api.searching_functions import *
from numr.array_api.set_functions import *
from numr.array_api.sorting_functions import *
from numr.array_api.statistical_functions import *
from numr.array_api.utility_functions import *
from numr.array_api.version import *

__all__: list[str] = []
__all__ += constants.__all__
__all__ += data_type_functions.__all__
__all__ += data_types.__all__
__all__ += elementwise_functions.__all__
__all__ += extras.__all__
__all__ += following_functions.__all__
__all__ += indexing_functions.__all__
__all__ += linear_algebra_functions.__all__
__all__ += manipulation_functions.__all__
__all__ += searching_functions.__all__
__all__ += set_functions.__all__
__all__ += sorting_functions.__all__
__all__ += statistical_functions.__all__
__all__ += utility_functions.__all__
__all__ += version.__all__
