"""Many processes that compute together: collectives over MPI, groups and meshes of ranks, data-parallel training.

    import backplane as bp

    world = bp.distributed.init()
    total = bp.distributed.all_reduce(bp.ones(3) * bp.distributed.rank())

    mpirun -n 4 python PROGRAM      # or: backplane launch -n 4 PROGRAM, or srun in a Slurm job
"""

from .._calls._ops import refuse_names as _refuse_names
from ._collectives import *
from ._connection import *
from ._data_parallel import *
from ._devices import *
from ._estimate import *
from ._groups import *
from ._sharding import *
from ._sharded_ops import *
from ._tensor_parallel import *
from ._zero import *

__all__ = sorted(name for name in globals() if not name.startswith("_"))

TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _refuse_names(__name__)
del TYPE_CHECKING
