"""Optimisers under PyTorch's names, `lr_scheduler`, averages of weights (`swa_utils`), schedules as functions (`schedules`), losses per example (`losses`), and the optimisers as pure functions in lower case.

    optimizer = bp.optim.AdamW(model.parameters(), lr=1e-3)
    loss.backward()
    optimizer.step()
"""

from . import losses as losses
from . import lr_scheduler as lr_scheduler
from . import schedules as schedules
from . import swa_utils as swa_utils
from .._calls._ops import refuse_names as _refuse_names
from ._averages import *
from ._functional import *
from ._gradient_transforms import *
from ._gradient_wrappers import *
from ._lbfgs import *
from ._optimizer import *
from ._optimizers import *
from ._scaler import *

__all__ = sorted(name for name in globals() if not name.startswith("_"))

TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _refuse_names(__name__)
del TYPE_CHECKING
