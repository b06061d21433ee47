"""The transforms of bp.distributions under PyTorch's name for their module: invertible functions with the logarithm of their derivative.

    from backplane.distributions.transforms import ExpTransform
"""

from .._calls._ops import refuse_names as _refuse_names
from ._joined_transforms import *
from ._matrix_transforms import *
from ._transforms import *

__all__ = sorted(name for name in globals() if not name.startswith("_"))

TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _refuse_names(__name__)
del TYPE_CHECKING
