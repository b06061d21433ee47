"""Neural networks: `backplane.nn.functional` has the functions, under PyTorch's names."""

from . import functional
from .._ops import refuse_names as _refuse_names

__all__ = ["functional"]

TYPE_CHECKING = False
if not TYPE_CHECKING:  # to whom a name that is in no list is an error
    __getattr__ = _refuse_names(__name__)


del TYPE_CHECKING
