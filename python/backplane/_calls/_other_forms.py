"""What calls of ops mean whose arguments their entries do not take: further spellings of NumPy and PyTorch, tensors for numbers.

An Op hands a call here before anything runs: where the arguments do not match the entry's signature, or the first operand is of a kind that
the entry refuses (_form_kinds.py). A form that returns NotImplemented leaves the call to the op. The first such call imports this module.
"""

from .. import _core
from ._arithmetic_forms import arithmetic_forms, in_place_forms
from ._creation_forms import creation_forms
from .._api._data_type_functions import result_type
from .._api._manipulation_functions import broadcast_shapes, normalized_axis, reshape_by_columns
from .._api._matrix_products import whole_power
from ._ops import NAMESPACE, ops
from ._reduction_forms import KEEPDIM_SECOND, masked_deviation, masked_mean, masked_variance, of_tensor, reduction_forms, with_keepdim
from .._api._searching_functions import nonzero
from .._api._segments import counted
from ._tensor_argument import name_function, require_real

op = getattr(ops, NAMESPACE)

_MISSING = object()
FORMS = {}  # by full name and name in Python
_ALIASES = {"divide": ("div", "true_divide"), "max": ("amax",), "min": ("amin",), "permute_dims": ("permute",), "subtract": ("sub",)}
_KINDS = ("stable", "mergesort", "quicksort", "heapsort")  # NumPy's, of sorting


def _is_tensor(x):
    return isinstance(x, _core.Tensor)


def _as_refused(name, form):
    """The form, which leaves arguments that it takes as little as the op to the op's error; errors of its steps name the op."""

    def answered(*args, **more):
        try:
            return form(*args, **more)
        except _core.BackplaneError as error:
            name_function(error, name)
            raise
        except TypeError:  # Python's own, of the form's parameters
            return NotImplemented

    return answered


def _with_axes_alone(name, form):
    """The form, which refuses NumPy's dtype by position, that came among the axes."""

    def answered(*args, **more):
        axes = args[1] if len(args) > 1 else None
        if isinstance(axes, tuple) and len(axes) > 1 and isinstance(axes[1], (str, type, _core.DType)):
            raise _core.ArgumentTypeError(f"{name}: found {axes[1]!r} by position among the ints of argument 'axis'; pass a dtype by keyword: dtype=")
        return form(*args, **more)

    return answered


def _in_dtype(name, x, dtype):
    """x in the dtype in which NumPy's mean, var and std are computed."""
    if dtype is None:
        return x
    kind = _core.as_dtype(dtype, name).kind
    if kind not in ("real floating", "complex floating"):
        raise _core.ArgumentTypeError(f"{name}: argument dtype: found {dtype}, expected a floating or complex dtype; convert the result with astype")
    if kind == "real floating":
        require_real(name, "x", x)
    return op.cast(x, dtype)


def _spread(name):
    @of_tensor
    def form(x, *args, where=None, dtype=None, **more):
        """NumPy's where and dtype."""
        if where is None and dtype is None:
            return NotImplemented
        x = _in_dtype(name, x, dtype)
        if where is None:
            return getattr(op, name)(x, *args, **more)
        if name.startswith("nan"):
            where = op.where(op.isnan(x), False, _core.asarray(where, device=x.device))
        return (masked_variance if name.endswith("var") else masked_deviation)(name, x, *args, where=where, **more)

    return form


def _ordered(name):
    def form(x, axis=-1, kind=_MISSING, **more):
        """NumPy's kinds, each of which is the stable one here; without an axis x is flattened."""
        if axis is not None and kind is _MISSING:
            return NotImplemented
        if kind not in (_MISSING, None, *_KINDS):
            kinds = ", ".join(map(repr, _KINDS))
            raise _core.ArgumentValueError(f"{name}: argument kind: found {kind!r}, expected one of {kinds}, each of which is stable")
        return getattr(op, name)(*((op.reshape(x, [-1]),) if axis is None else (x, axis)), **more)

    return form


def _running(name):
    def form(x, *axes, **more):
        """Without an axis, or of None, x is flattened, as NumPy has it."""
        axes += tuple(more.pop(word) for word in ("axis", "dim") if word in more)
        if len(axes) > 1 or any(axis is not None for axis in axes):
            return NotImplemented
        return getattr(op, name)(op.reshape(x, [-1]), axis=0, **more)

    return form


def _cumulative(name):
    @of_tensor
    def form(x, *args, **more):
        """Of a number, as of a vector of one element."""
        if x.ndim == 0:
            return getattr(op, name)(op.reshape(x, [1]), *args, **more)
        if x.ndim > 1 and not any(axis is not None for axis in (*args, more.get("axis"), more.get("dim"))):
            raise _core.OutOfRangeError(f"{NAMESPACE}::{name}: argument axis: found None for a tensor of {x.ndim} axes, expected one of them")
        return NotImplemented

    return form


@of_tensor
def _diff(x, n=1, axis=-1, **ends):
    """Where neighbours of bools differ, n times over: whether the difference of numbers is odd."""
    if x.dtype is not _core.bool:
        return NotImplemented
    axis = ends.pop("dim", axis)
    ends = {name: op.cast(end, _core.uint8) if _is_tensor(end) else end for name, end in ends.items()}
    return op.not_equal(op.bitwise_and(op.diff(op.cast(x, _core.uint8), n, axis, **ends), 1), 0)


def _randint(*args, size=_MISSING, low=_MISSING, high=_MISSING, **more):
    """PyTorch's randint(high, size), NumPy's randint(low, high, size=...)."""
    if size is _MISSING:
        if len(args) == 1 and not more:
            raise _core.ArgumentTypeError(f"randint: missing argument size, as in randint({args[0]!r}, size=(2, 3)); size=() draws one number")
        if len(args) != 2 or not isinstance(args[1], (list, tuple)):
            return NotImplemented
        *args, size = args
    bounds = [*args, *(bound for bound in (low, high) if bound is not _MISSING)]
    if len(bounds) not in (1, 2):
        return NotImplemented
    return op.randint(*([0, *bounds] if len(bounds) == 1 else bounds), size, **more)


def _parameters(first, second, size):
    """NumPy's order, two parameters and the size: what came by position is gathered, as a shape's sizes are."""
    if isinstance(first, tuple) and len(first) == 3 and isinstance(first[2], (tuple, list)):
        return first
    return (*first, size) if isinstance(first, tuple) and len(first) == 2 else (first, second, size)


def _uniform(low=0.0, high=1.0, size=_MISSING, **more):
    low, high, size = _parameters(low, high, size)
    return NotImplemented if size is _MISSING else op.uniform(size, low=low, high=high, **more)


def _normal(mean=0.0, std=1.0, size=_MISSING, *, loc=_MISSING, scale=_MISSING, generator=None, **more):
    """Of PyTorch's size= and NumPy's loc= and scale=, or of means and standard deviations in tensors."""
    mean, std, size = _parameters(mean if loc is _MISSING else loc, std if scale is _MISSING else scale, size)
    if size is not _MISSING:
        return op.normal(size, mean=mean, std=std, generator=generator, **more)
    tensors = [x for x in (mean, std) if _is_tensor(x)]
    if not tensors:
        return NotImplemented
    shape = broadcast_shapes(*(x.shape for x in tensors))
    noise = op.normal(shape, generator=generator, dtype=result_type(*tensors, 0.0), device=tensors[0].device)
    return op.add(op.multiply(noise, std), mean)


def _bernoulli(p, *, generator=None):
    """PyTorch's, of probabilities in a tensor, in its dtype."""
    if not _is_tensor(p):
        return NotImplemented
    if p.size and _core.has_values(p) and not bool(op.all(op.logical_and(op.greater_equal(p, 0), op.less_equal(p, 1)))):
        raise _core.ArgumentValueError("bernoulli: argument p: found NaN or a number outside of 0 to 1, expected probabilities")
    return op.cast(op.less(op.uniform(p.shape, dtype=_core.float64, device=p.device, generator=generator), p), p.dtype)


def _angle(x, deg=_MISSING, **more):
    if deg is _MISSING:
        return NotImplemented
    return op.rad2deg(op.angle(x), **more) if deg else op.angle(x, **more)


def _reshape(x, *shape, order=_MISSING):
    if order is _MISSING:
        return NotImplemented
    return reshape_by_columns(x, shape[0] if len(shape) == 1 else shape, order)


def _select(condlist, choicelist, default=0):
    """NumPy's: of each place the first choice whose condition holds."""
    if not isinstance(condlist, (list, tuple)) or not isinstance(choicelist, (list, tuple)):
        return NotImplemented
    if len(condlist) != len(choicelist):
        raise _core.ArgumentValueError(f"select: found {len(condlist)} conditions and {len(choicelist)} choices, expected as many")
    found = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist)):
        found = op.where(condition, choice, found)
    return found


def _logit(x, eps=None):
    """PyTorch's eps: from there to 1 - eps x is limited to."""
    return NotImplemented if eps is None else op.logit(op.clip(x, eps, 1 - eps))


def _tile(x, *repetitions, **more):
    return op.tile(x, repetitions) if len(repetitions) > 1 and not more else NotImplemented


def _where(*args):
    return nonzero(_core.asarray(args[0])) if len(args) == 1 else NotImplemented


def _nanmean(otherwise):
    @of_tensor
    def form(x, *args, dtype=_MISSING, **more):
        """NumPy's dtype."""
        return otherwise(x, *args, **more) if dtype is _MISSING else op.nanmean(_in_dtype("nanmean", x, dtype), *args, **more)

    return form


def _softmax(name):
    @of_tensor
    def form(x, *args, **more):
        """Of a number, which counts as a vector of one."""
        if x.ndim:
            return NotImplemented
        return op.reshape(getattr(op, name)(op.reshape(x, [1]), *args, **more), [])

    return form


@of_tensor
def _mean(x, *args, dtype=_MISSING, where=None, **more):
    if dtype is _MISSING and where is None:
        return NotImplemented
    x = _in_dtype("mean", x, None if dtype is _MISSING else dtype)
    return op.mean(x, *args, **more) if where is None else masked_mean("mean", x, *args, where=where, **more)


def _matrix_power(x, n):
    """Of integers, exact where n is not negative, else in the default float, as inv has it."""
    if not (_is_tensor(x) and x.dtype.kind in ("signed integer", "unsigned integer")) or not hasattr(n, "__index__"):
        return NotImplemented
    if n < 0 or x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        return op.matrix_power(op.cast(x, _core.default_float()), n)
    return whole_power(x, n.__index__())


@of_tensor
def _take(x, indices, axis=None, mode=_MISSING):
    """NumPy's modes, which say what positions out of range mean."""
    if mode is _MISSING:
        return NotImplemented
    if mode not in ("raise", "wrap", "clip"):
        raise _core.ArgumentValueError(f"take: argument mode: found {mode!r}, expected 'raise', 'wrap' or 'clip'")
    if axis is None:
        x, axis = op.reshape(x, [-1]), 0
    if mode != "raise":
        size = max(x.shape[normalized_axis("take", axis, x.ndim)], 1)
        indices = op.remainder(indices, size) if mode == "wrap" else op.clip(indices, 0, size - 1)
    return op.take(x, indices, axis=axis)


@of_tensor
def _take_along_axis(x, indices, axis=_MISSING):
    """NumPy's axis=None: positions in row-major order."""
    if axis is not None:
        return NotImplemented
    indices = indices if _is_tensor(indices) else _core.asarray(indices, device=x.device)
    if indices.ndim != 1:
        raise _core.ShapeError(f"take_along_axis: argument indices: found shape {tuple(indices.shape)}, expected one axis where axis is None")
    return op.take(op.reshape(x, [-1]), indices, axis=0)


def _nan_to_num(x, *args, copy=_MISSING, **more):
    """NumPy's copy=False writes into x."""
    if copy is _MISSING:
        return NotImplemented
    return op.nan_to_num(x, *args, **more) if copy else op.nan_to_num(x, *args, out=x, **more)


def _permutation(n, **more):
    if not _is_tensor(n) and not isinstance(n, (list, tuple)) and not getattr(n, "ndim", 0):
        return NotImplemented
    raise _core.ArgumentTypeError(
        f"permutation: argument n: found a value of type {type(n).__name__}, expected how many elements; elements in random order are "
        "x[backplane.permutation(len(x))]"
    )


def _add_forms():
    reductions = reduction_forms()
    forms = {
        **creation_forms(),
        **{name: _spread(name) for name in ("nanstd", "nanvar", "std", "var")},
        **{name: _running(name) for name in ("cumprod", "cumsum")},
        **{name: _cumulative(name) for name in ("cumulative_prod", "cumulative_sum")},
        **{name: _ordered(name) for name in ("argsort", "sort")},
        **reductions,
        **{name: lambda *args, **more: NotImplemented for name in ("argmax", "argmin")},
        **arithmetic_forms(),
        "angle": _angle,
        "bernoulli": _bernoulli,
        "diff": _diff,
        "log_softmax": _softmax("log_softmax"),
        "logit": _logit,
        "matrix_power": _matrix_power,
        "mean": _mean,
        "nan_to_num": _nan_to_num,
        "nanmean": _nanmean(reductions["nanmean"]),
        "normal": _normal,
        "permutation": _permutation,
        "randint": _randint,
        "reshape": _reshape,
        **{name: counted(name) for name in ("segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum")},
        "select": _select,
        "softmax": _softmax("softmax"),
        "take": _take,
        "take_along_axis": _take_along_axis,
        "tile": _tile,
        "uniform": _uniform,
        "where": _where,
    }
    forms.update({name: _with_axes_alone(name, forms[name]) for name in ("mean", "nanstd", "nanvar", "std", "var")})
    for name, form in forms.items():
        form.__name__ = form.__qualname__ = name
        for word in (name, *_ALIASES.get(name, ())):
            FORMS[f"{NAMESPACE}::{name}", word] = _as_refused(name, with_keepdim(word, form) if word in KEEPDIM_SECOND else form)
    for name, word, form in in_place_forms():
        FORMS[f"{NAMESPACE}::{name}", word] = _as_refused(name, form)
    for (full_name, word), form in FORMS.items():
        _core.set_other_form(full_name, word, form)


_add_forms()
