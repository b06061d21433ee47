"""The neural-network functions, with PyTorch's names, argument names and positional order.

    import backplane.nn.functional as F

    y = F.linear(x, weight, bias)

Where PyTorch says `dim` and `keepdim`, `axis` and `keepdims` are taken as well. What is computed is in the registry's ops; the
functions here only bring arguments into their form. Each theme has a file of its own beside this one.
"""

import inspect

from ._activation import *
from .._calls._ops import refuse_names as _refuse_names
from ._arguments import names_tensors
from ._attention import *
from ._class_loss import *
from ._convolution import *
from ._dropout import *
from ._fractional_pooling import *
from ._interpolation import *
from ._linear import *
from ._normalization import *
from ._pooling import *
from ._recurrent import *
from ._regression_loss import *
from ._sparse import *
from ._spatial import *

_functions = {}  # one for each function, also of two names
for _name, _value in list(globals().items()):
    if inspect.isfunction(_value) and _value not in (names_tensors, _refuse_names):
        globals()[_name] = _functions.setdefault(_value, names_tensors(_value))
        globals()[_name].__module__ = __name__  # where pickle finds it
del inspect, names_tensors, _functions, _name, _value

TYPE_CHECKING = False
if not TYPE_CHECKING:  # to whom a name that is in no list is an error
    __getattr__ = _refuse_names(__name__)
del TYPE_CHECKING
