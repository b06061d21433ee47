"""Probability distributions, under PyTorch's names: log_prob, samples that carry gradients (rsample), means, entropies and divergences.

    normal = bp.distributions.Normal(0.0, 1.0)
    x = normal.rsample((3,))
    normal.log_prob(x)
"""

from .._calls._ops import refuse_names as _refuse_names
from . import constraints as constraints
from . import transforms as transforms
from ._circular import *
from ._constraint_registry import *
from ._continuous import *
from ._continuous_bernoulli import *
from ._counts import *
from ._discrete import *
from ._distribution import *
from ._divergence import *
from ._divergence_pairs import *
from ._gamma import *
from ._joined_transforms import *
from ._low_rank import *
from ._made_of_others import *
from ._matrices import *
from ._matrix_transforms import *
from ._modes import *
from ._powers import *
from ._relaxed import *
from ._transforms import *

__all__ = sorted(name for name in globals() if not name.startswith("_"))

TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _refuse_names(__name__)
del TYPE_CHECKING
