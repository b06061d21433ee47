"""Backplane: tensors and operators on whatever backend is plugged in.

    import backplane as bp

    x = bp.asarray([[1.0, 2.0], [3.0, 4.0]]).requires_grad_()
    y = (x @ x.T).sum()
    y.backward()
    print(x.grad, bp.devices())

Functions have their array API names and come from the registry; `bp.explain('add')` shows how a call of one is
resolved. Plugins are found beside the library and opened when a device or an op of theirs is first used.
"""

from . import _core, _forks, _form_kinds, _op_methods, _ops, _settings, _streams, _syntax, _system, _tensor, _tensor_functions, _tensor_methods
from . import tree as tree
from ._core import (
    ArgumentTypeError as ArgumentTypeError,
    ArgumentValueError as ArgumentValueError,
    BackplaneError as BackplaneError,
    BusyError as BusyError,
    DType as DType,
    DataError as DataError,
    Device as Device,
    DeviceError as DeviceError,
    DeviceLostError as DeviceLostError,
    DtypeError as DtypeError,
    Generator as Generator,
    Graph as Graph,
    IndexDataError as IndexDataError,
    InternalError as InternalError,
    MissingRuleError as MissingRuleError,
    NumberRangeError as NumberRangeError,
    Op as Op,
    OutOfMemoryError as OutOfMemoryError,
    OutOfRangeError as OutOfRangeError,
    ShapeError as ShapeError,
    Tensor as Tensor,
    VersionError as VersionError,
    asarray as asarray,
    compile as compile,
    compile_log as compile_log,
    default_generator as default_generator,
    from_dlpack as from_dlpack,
    grad as grad,
    jvp as jvp,
    make_graph as make_graph,
    unguarded as unguarded,
    value_and_grad as value_and_grad,
    vjp as vjp,
    vmap as vmap,
)

TYPE_CHECKING = False
if TYPE_CHECKING:  # what is put into the namespace below, where type checkers do not see it
    from . import fft as fft
    from . import linalg as linalg
    from . import nn as nn
    from . import onnx as onnx
    from . import types as types
    from ._core import (
        bool as bool,
        int8 as int8,
        int16 as int16,
        int32 as int32,
        int64 as int64,
        uint8 as uint8,
        uint16 as uint16,
        uint32 as uint32,
        uint64 as uint64,
        float16 as float16,
        bfloat16 as bfloat16,
        float32 as float32,
        float64 as float64,
        complex64 as complex64,
        complex128 as complex128,
    )
    from ._registry import *
    from .linalg import tensordot as tensordot

from ._array_edits import *
from ._control import *
from ._export import *
from ._creation_functions import *
from ._custom import *
from ._data_type_functions import *
from ._einsum import *
from ._elementwise_functions import *
from ._grad import *
from ._graphs import *
from ._indexing_functions import *
from ._inspection import __array_namespace_info__ as __array_namespace_info__
from ._joining_functions import *
from ._linear_algebra_functions import *
from ._manipulation_functions import *
from ._nan_functions import *
from ._normalization_functions import *
from ._numeric_functions import *
from ._op_methods import *
from ._opcheck_report import *
from ._ops import ops as ops
from ._profile import *
from ._quantiles import *
from ._searching_functions import *
from ._set_functions import *
from ._settings import *
from ._statistical_functions import *
from ._streams import *
from ._system import *
from ._transforms import *
from ._utility_functions import *

__version__ = _core.__version__
__array_api_version__ = _tensor.API_VERSIONS[-1]
device = Device

_core.set_package_folder(__file__.rpartition("/")[0])
_syntax.bind(_core.bind_slot)
_rows = _core.ops()
_functions = _ops.functions(_rows)
_refuse = _ops.refuse_names(__name__)
_ops.add_methods(Tensor, _rows, _functions)
_tensor_methods.refuse_names()
_system.add_methods()
_forks.watch()
globals().update(DTYPES)

_LATER = {"fft": "", "linalg": "", "nn": "", "onnx": "", "tensordot": "linalg", "types": ""}  # whose modules take time to import, which lie where
globals().update({name: op for name, op in _functions.items() if name not in globals() and name not in _LATER})


if not TYPE_CHECKING:  # to whom a name that is in no list is an error

    def __getattr__(name):
        """Ops of our namespace that a plugin registered after the import, and what takes time to import."""
        if name in _LATER:
            import importlib

            found = importlib.import_module("." + (_LATER[name] or name), __name__)
            if _LATER[name]:
                found = globals()[name] = getattr(found, name)
            return found
        if name == "__all__":  # of a star import, which takes all of them
            return sorted({name for name in globals() if not name.startswith("_")} | _LATER.keys() - {"nn", "onnx", "types"})
        if not name.startswith("__") and name in dir(getattr(ops, _ops.NAMESPACE)):
            op = getattr(getattr(ops, _ops.NAMESPACE), name)
            globals()[name] = op
            return op
        _refuse(name)


del TYPE_CHECKING


def __dir__():
    """The public names, without the ops that only other ops use."""
    names = {name for name in globals() if not name.startswith("_")}
    return sorted(names - _ops.helpers(_functions) - {"DTYPES"} | _LATER.keys())
