"""Data for training: datasets, samplers, a loader of batches with worker processes (under PyTorch's names), readers of files, `transforms` of images.

    for x, y in bp.data.DataLoader(bp.data.TensorDataset(images, labels), batch_size=32, shuffle=True):
        …
"""

from . import transforms as transforms
from .._calls._ops import refuse_names as _refuse_names
from ._collate import *
from ._datasets import *
from ._distributed_sampler import *
from ._loader import *
from ._readers import *
from ._samplers import *
from ._workers import *

__all__ = sorted(name for name in globals() if not name.startswith("_"))

TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _refuse_names(__name__)
del TYPE_CHECKING
