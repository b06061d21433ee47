"""Backplane: tensors and operators on whatever backend is plugged in.

    import backplane as bp

    x = bp.asarray([[1.0, 2.0], [3.0, 4.0]]).requires_grad_()
    y = (x @ x.T).sum()
    y.backward()
    print(x.grad, bp.devices())

Functions have their array API names and come from the registry; `bp.explain('add')` tells how a call of one is
resolved. Plugins are found beside the library and opened when a device or an op of theirs is first used.
"""

from . import _core, _dim_forms, _op_methods, _ops, _syntax, _tensor, _tensor_methods, tree
from ._core import (
    ArgumentTypeError,
    ArgumentValueError,
    BackplaneError,
    BusyError,
    DType,
    DataError,
    Device,
    DeviceError,
    DeviceLostError,
    DtypeError,
    Generator,
    InternalError,
    MissingRuleError,
    NumberRangeError,
    Op,
    OutOfMemoryError,
    OutOfRangeError,
    ShapeError,
    Tensor,
    VersionError,
    allow_batch_loop,
    allow_host_fallback,
    asarray,
    default_device,
    default_generator,
    from_dlpack,
    grad,
    grad_enabled,
    jvp,
    reset_call_counts,
    set_default_device,
    set_grad_enabled,
    value_and_grad,
    vjp,
    vmap,
)
from ._creation_functions import (
    array,
    as_tensor,
    empty,
    empty_like,
    from_numpy,
    geomspace,
    identity,
    logspace,
    meshgrid,
    rand,
    rand_like,
    randn,
    randn_like,
    randperm,
    tensor,
    tri,
    vander,
)
from ._custom import checkpoint, custom_function
from ._data_type_functions import (
    DTYPES,
    astype,
    can_cast,
    e,
    finfo,
    iinfo,
    inf,
    isdtype,
    nan,
    newaxis,
    pi,
    promote_types,
    result_type,
)
from ._einsum import einsum
from ._elementwise_functions import isclose, round
from ._grad import enable_grad, gradients, no_grad
from ._indexing_functions import (
    gather,
    index_select,
    indices,
    ravel_multi_index,
    scatter,
    scatter_add,
    take_along_dim,
    tril_indices,
    triu_indices,
    unravel_index,
)
from ._inspection import __array_namespace_info__
from ._joining_functions import (
    append,
    array_split,
    cat,
    chunk,
    column_stack,
    concat,
    concatenate,
    dsplit,
    dstack,
    hsplit,
    hstack,
    row_stack,
    split,
    tensor_split,
    unbind,
    unstack,
    vsplit,
    vstack,
)
from ._linear_algebra_functions import dot, inner, vdot
from ._manipulation_functions import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_arrays,
    broadcast_shapes,
    broadcast_tensors,
    diag,
    diagflat,
    flatten,
    fliplr,
    flipud,
    narrow,
    pad,
    ravel,
    repeat,
    repeat_interleave,
    reshape,
    rot90,
    squeeze,
    swapaxes,
    swapdims,
    t,
    transpose,
    unflatten,
)
from ._nan_functions import nanargmax, nanargmin, nanmax, nanmean, nanmin, nanprod, nanstd, nansum, nanvar
from ._numeric_functions import convolve, correlate, ediff1d, gradient, interp, polyval, trapezoid
from ._op_methods import custom_op, opcheck
from ._opcheck_report import CheckRow, OpCheckError, OpCheckReport
from ._ops import ops
from ._quantiles import median, nanmedian, nanpercentile, nanquantile, percentile, ptp, quantile
from ._searching_functions import bucketize, flatnonzero, nonzero
from ._set_functions import intersect1d, setdiff1d, union1d, unique
from ._statistical_functions import average, bincount, corrcoef, cov, digitize, histogram
from ._system import (
    CallCounts,
    DeviceInfo,
    PluginInfo,
    add_plugin_path,
    call_counts,
    devices,
    empty_cache,
    explain,
    load_plugin,
    manual_seed,
    memory_stats,
    plugins,
    reset_peak_memory_stats,
    set_memory_limit,
    synchronize,
    unload_plugin,
)
from ._transforms import hessian, jacfwd, jacrev, stop_gradient
from ._utility_functions import (
    allclose,
    array_equal,
    is_complex,
    is_floating_point,
    is_tensor,
    ndim,
    numel,
    shape,
    size,
    to_numpy,
)

__version__ = _core.__version__
__array_api_version__ = _tensor.API_VERSIONS[-1]
device = Device

_syntax.bind(_core.bind_slot)
_tensor.add_methods()
_functions = _ops.functions()
_ops.add_methods(Tensor, _functions)
_op_methods.add_methods()
_tensor_methods.add_methods()
_dim_forms.add_forms()
globals().update(DTYPES)

from . import fft, linalg  # these call ops
from .linalg import tensordot

globals().update({name: op for name, op in _functions.items() if name not in globals()})


def __getattr__(name):
    """Ops of our namespace that a plugin registered after the import, and what takes time to import."""
    if name in ("nn", "types"):
        import importlib

        return importlib.import_module("." + name, __name__)
    if not name.startswith("__") and name in dir(getattr(ops, _ops.NAMESPACE)):
        op = getattr(getattr(ops, _ops.NAMESPACE), name)
        globals()[name] = op
        return op
    raise AttributeError(f"module 'backplane' has no attribute '{name}'")


def __dir__():
    return [name for name in globals() if not name.startswith("_")]
