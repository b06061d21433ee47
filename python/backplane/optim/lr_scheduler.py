"""Learning-rate schedulers, under PyTorch's names: each changes the rates of an optimiser's groups at its step().

    scheduler = bp.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)
"""

from .._calls._ops import refuse_names as _refuse_names
from ._schedule_cycles import *
from ._schedules import *

__all__ = sorted(name for name in globals() if not name.startswith("_"))

TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _refuse_names(__name__)
del TYPE_CHECKING
