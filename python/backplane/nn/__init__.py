"""Neural networks: modules and layers under PyTorch's names, `functional` with the functions, `init` with first values, `utils`.

    layer = bp.nn.Linear(3, 4)
    y = layer(bp.ones((2, 3)))
"""

from . import functional as functional
from . import init as init
from . import utils as utils
from .._calls._ops import refuse_names as _refuse_names
from .modules._adaptive_softmax import *
from .modules._attention_layers import *
from .modules._containers import *
from .modules._convolution_layers import *
from .modules._lazy_layers import *
from .modules._linear_layers import *
from .modules._module import *
from .modules._module_state import *
from .modules._normalization_layers import *
from ._parameter import *
from .modules._recurrent_layers import *
from .modules._simple_layers import *
from .modules._synchronised_norm import *

__all__ = sorted(name for name in globals() if not name.startswith("_"))

TYPE_CHECKING = False
if not TYPE_CHECKING:  # to whom a name that is in no list is an error
    __getattr__ = _refuse_names(__name__)


del TYPE_CHECKING
