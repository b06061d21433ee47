"""Backplane: tensors and operators on whatever backend is plugged in.

    import backplane as bp

    x = bp.asarray([[1.0, 2.0], [3.0, 4.0]]).requires_grad_()
    y = (x @ x.T).sum()
    y.backward()
    print(x.grad, bp.devices())

Functions have their array API names and come from the registry; `bp.explain('add')` shows how a call of one is
resolved. Plugins are found beside the library and opened when a device or an op of theirs is first used.
"""

import sys as _sys

from . import _core
from ._runtime import _forks, _settings, _streams, _system
from ._calls import _form_kinds, _ops, _syntax
from ._custom_ops import _op_methods
from ._tensors import _indexed_updates, _library_methods, _namespace, _tensor, _tensor_functions, _tensor_methods
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
    from . import data as data
    from . import debug as debug
    from . import distributed as distributed
    from . import distributions as distributions
    from . import fft as fft
    from . import linalg as linalg
    from . import nn as nn
    from . import onnx as onnx
    from . import optim as optim
    from . import random as random
    from . import sparse as sparse
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
    from ._runtime._autocast import autocast as autocast, get_autocast_dtype as get_autocast_dtype, is_autocast_enabled as is_autocast_enabled
    from ._transforms._anomaly import detect_anomaly as detect_anomaly
    from ._transforms._callbacks import pure_callback as pure_callback
    from ._files._checkpoints import CheckpointManager as CheckpointManager
    from ._api._choices import choice as choice, shuffle as shuffle
    from .distributions._incomplete_gamma import gammainc as gammainc, gammaincc as gammaincc
    from ._dims import Dim as Dim, DimTensor as DimTensor, dims as dims
    from ._registry import *
    from .distributed import replicate as replicate, reshard as reshard, shard as shard
    from ._api._segments import segment_softmax as segment_softmax
    from ._api._slices import dynamic_slice as dynamic_slice, dynamic_update_slice as dynamic_update_slice, sliding_window_view as sliding_window_view
    from ._api._windows import bartlett as bartlett, blackman as blackman, hamming as hamming, hanning as hanning, kaiser as kaiser
    from .nn.functional import (
        binary_cross_entropy as binary_cross_entropy,
        binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
        cross_entropy as cross_entropy,
        ctc_loss as ctc_loss,
        gaussian_nll_loss as gaussian_nll_loss,
        hinge_embedding_loss as hinge_embedding_loss,
        huber_loss as huber_loss,
        kl_div as kl_div,
        l1_loss as l1_loss,
        margin_ranking_loss as margin_ranking_loss,
        mse_loss as mse_loss,
        multi_margin_loss as multi_margin_loss,
        multilabel_margin_loss as multilabel_margin_loss,
        nll_loss as nll_loss,
        poisson_nll_loss as poisson_nll_loss,
        smooth_l1_loss as smooth_l1_loss,
        soft_margin_loss as soft_margin_loss,
    )
    from .optim import GradScaler as GradScaler
    from ._solvers import OptimizeResult as OptimizeResult, cg as cg, least_squares as least_squares, minimize as minimize, odeint as odeint
    from ._graphs._summary import Summary as Summary, summary as summary
    from .compat.numpy import (
        apply_along_axis as apply_along_axis,
        apply_over_axes as apply_over_axes,
        asanyarray as asanyarray,
        base_repr as base_repr,
        binary_repr as binary_repr,
        bitwise_count as bitwise_count,
        block as block,
        c_ as c_,
        choose as choose,
        copyto as copyto,
        diag_indices as diag_indices,
        diag_indices_from as diag_indices_from,
        einsum_path as einsum_path,
        extract as extract,
        fill_diagonal as fill_diagonal,
        frombuffer as frombuffer,
        fromfile as fromfile,
        fromfunction as fromfunction,
        fromiter as fromiter,
        fromstring as fromstring,
        genfromtxt as genfromtxt,
        histogram2d as histogram2d,
        histogram_bin_edges as histogram_bin_edges,
        histogramdd as histogramdd,
        index_exp as index_exp,
        iscomplexobj as iscomplexobj,
        isrealobj as isrealobj,
        issubdtype as issubdtype,
        lexsort as lexsort,
        loadtxt as loadtxt,
        mask_indices as mask_indices,
        matvec as matvec,
        may_share_memory as may_share_memory,
        mgrid as mgrid,
        min_scalar_type as min_scalar_type,
        ndenumerate as ndenumerate,
        ndindex as ndindex,
        ogrid as ogrid,
        packbits as packbits,
        piecewise as piecewise,
        place as place,
        poly as poly,
        poly1d as poly1d,
        polyadd as polyadd,
        polyder as polyder,
        polydiv as polydiv,
        polyfit as polyfit,
        polyint as polyint,
        polymul as polymul,
        polysub as polysub,
        put as put,
        putmask as putmask,
        r_ as r_,
        real_if_close as real_if_close,
        resize as resize,
        roots as roots,
        s_ as s_,
        savetxt as savetxt,
        savez as savez,
        savez_compressed as savez_compressed,
        shares_memory as shares_memory,
        sort_complex as sort_complex,
        spacing as spacing,
        tril_indices_from as tril_indices_from,
        trim_zeros as trim_zeros,
        triu_indices_from as triu_indices_from,
        unpackbits as unpackbits,
        vecmat as vecmat,
        vectorize as vectorize,
    )
    from .compat.torch import (
        addbmm as addbmm,
        addmv as addmv,
        addr as addr,
        adjoint as adjoint,
        bartlett_window as bartlett_window,
        binomial as binomial,
        blackman_window as blackman_window,
        block_diag as block_diag,
        cartesian_prod as cartesian_prod,
        cdist as cdist,
        chain_matmul as chain_matmul,
        cholesky_inverse as cholesky_inverse,
        cholesky_solve as cholesky_solve,
        clamp_max as clamp_max,
        clamp_min as clamp_min,
        combinations as combinations,
        conj_physical as conj_physical,
        cumulative_trapezoid as cumulative_trapezoid,
        diag_embed as diag_embed,
        diagonal_scatter as diagonal_scatter,
        dist as dist,
        frexp as frexp,
        ger as ger,
        hamming_window as hamming_window,
        hann_window as hann_window,
        histc as histc,
        index_reduce as index_reduce,
        is_nonzero as is_nonzero,
        is_same_size as is_same_size,
        is_signed as is_signed,
        istft as istft,
        kaiser_window as kaiser_window,
        logaddexp2 as logaddexp2,
        logdet as logdet,
        masked_scatter as masked_scatter,
        mode as mode,
        msort as msort,
        multinomial as multinomial,
        mvlgamma as mvlgamma,
        pca_lowrank as pca_lowrank,
        pdist as pdist,
        pinverse as pinverse,
        poisson as poisson,
        polar as polar,
        randint_like as randint_like,
        renorm as renorm,
        resolve_conj as resolve_conj,
        rsub as rsub,
        scatter_reduce as scatter_reduce,
        select_scatter as select_scatter,
        slice_scatter as slice_scatter,
        split_with_sizes as split_with_sizes,
        stft as stft,
        svd_lowrank as svd_lowrank,
        trapz as trapz,
        unique_consecutive as unique_consecutive,
        view_as_complex as view_as_complex,
        view_as_real as view_as_real,
    )
    from .linalg import tensordot as tensordot

from ._api._array_edits import *
from ._transforms._control import *
from ._graphs._export import *
from ._api._casts import *
from ._api._creation_functions import *
from ._transforms._custom import *
from ._api._data_type_functions import *
from ._api._einsum import *
from ._api._elementwise_functions import *
from ._transforms._grad import *
from ._graphs._reports import *
from ._api._indexing_functions import *
from ._api._inspection import __array_namespace_info__ as __array_namespace_info__
from ._api._joining_functions import *
from ._api._linear_algebra_functions import *
from ._transforms._loop_functions import *
from ._api._manipulation_functions import *
from ._api._nan_functions import *
from ._api._normalization_functions import *
from ._api._numeric_functions import *
from ._api._padding import *
from ._custom_ops._op_methods import *
from ._custom_ops._opcheck_report import *
from ._calls._ops import ops as ops
from ._graphs._profile import *
from ._api._quantiles import *
from ._files._saving import *
from ._api._searching_functions import *
from ._api._set_functions import *
from ._runtime._settings import *
from ._api._statistical_functions import *
from ._runtime._streams import *
from ._runtime._system import *
from ._transforms._jacobians import *
from ._api._utility_functions import *

__version__ = _core.__version__
__array_api_version__ = _tensor.API_VERSIONS[-1]
device = Device

_namespace.package = _sys.modules[__name__]
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

_LATER = {"CheckpointManager": "_files._checkpoints", "Dim": "_dims", "DimTensor": "_dims", "dims": "_dims", "data": "", "distributed": "", "distributions": "", "fft": "", "jax": "", "linalg": "", "nn": "", "numpy": "", "onnx": "", "optim": "", "random": "", "replicate": "distributed", "reshard": "distributed", "shard": "distributed", "tensordot": "linalg", "types": ""}  # whose modules take time to import, which lie where
_LATER.update(dict.fromkeys(("OptimizeResult", "cg", "least_squares", "minimize", "odeint"), "_solvers"))
_LATER.update(dict.fromkeys(("bartlett", "blackman", "hamming", "hanning", "kaiser"), "_api._windows"))
_LATER.update(dict.fromkeys(("gammainc", "gammaincc"), "distributions._incomplete_gamma"))
_LATER.update(dict.fromkeys(("dynamic_slice", "dynamic_update_slice", "sliding_window_view"), "_api._slices"))
_LATER.update(dict.fromkeys("""
binary_cross_entropy binary_cross_entropy_with_logits cross_entropy ctc_loss gaussian_nll_loss hinge_embedding_loss huber_loss
kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss poisson_nll_loss smooth_l1_loss
soft_margin_loss
""".split(), "nn.functional"))  # which reduce, unlike the ops of these names
_LATER.update({"GradScaler": "optim", "Summary": "_graphs._summary", "debug": "", "detect_anomaly": "_transforms._anomaly", "pure_callback": "_transforms._callbacks", "summary": "_graphs._summary"})
_LATER.update(dict.fromkeys(("autocast", "get_autocast_dtype", "is_autocast_enabled"), "_runtime._autocast"))
_LATER.update({"choice": "_api._choices", "segment_softmax": "_api._segments", "shuffle": "_api._choices", "sparse": ""})
_LATER.update(dict.fromkeys("""
addbmm addmv addr adjoint bartlett_window binomial blackman_window block_diag cartesian_prod cdist chain_matmul
cholesky_inverse cholesky_solve clamp_max clamp_min combinations conj_physical cumulative_trapezoid diag_embed
diagonal_scatter dist frexp ger hamming_window hann_window histc index_reduce is_nonzero is_same_size is_signed istft
kaiser_window logaddexp2 logdet masked_scatter mode msort multinomial mvlgamma pca_lowrank pdist pinverse poisson
polar randint_like renorm resolve_conj rsub scatter_reduce select_scatter slice_scatter split_with_sizes stft
svd_lowrank trapz unique_consecutive view_as_complex view_as_real
""".split(), "compat.torch"))
_LATER.update(dict.fromkeys("""
apply_along_axis apply_over_axes asanyarray base_repr binary_repr bitwise_count
block c_ choose copyto diag_indices diag_indices_from einsum_path extract fill_diagonal frombuffer fromfile
fromfunction fromiter fromstring genfromtxt histogram2d histogram_bin_edges histogramdd index_exp iscomplexobj
isrealobj issubdtype lexsort loadtxt mask_indices matvec may_share_memory mgrid min_scalar_type ndenumerate ndindex
ogrid packbits piecewise place poly poly1d polyadd polyder polydiv polyfit polyint polymul polysub put putmask r_
real_if_close resize roots s_ savetxt savez savez_compressed shares_memory sort_complex spacing tril_indices_from
trim_zeros triu_indices_from unpackbits vecmat vectorize
""".split(), "compat.numpy"))
globals().update({name: op for name, op in _functions.items() if name not in globals() and name not in _LATER})


if not TYPE_CHECKING:  # to whom a name that is in no list is an error

    def __getattr__(name):
        """Ops of our namespace that a plugin registered after the import, and what takes time to import."""
        if name in _LATER:
            import importlib

            found = importlib.import_module("." + (_LATER[name] or name), __name__)
            if _LATER[name]:
                found = globals()[name] = getattr(found, name)
            if _LATER[name].startswith("compat."):
                from ._calls._borrowed_docs import documented

                documented(name, found)
            return found
        if name == "__all__":  # of a star import, which takes all of them
            return sorted({name for name in globals() if not name.startswith("_")} | _LATER.keys() - {"CheckpointManager", "data", "debug", "distributed", "distributions", "jax", "nn", "numpy", "onnx", "optim", "random", "sparse", "types"})
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
