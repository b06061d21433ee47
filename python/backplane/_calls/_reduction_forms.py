"""Forms of reductions that their entries do not take: NumPy's `where=` and `initial=`, SciPy's `b=`."""

from .. import _core
from .._api._data_type_functions import iinfo
from ._ops import NAMESPACE, ops
from ._tensor_argument import takes_operands

op = getattr(ops, NAMESPACE)

# What changes no result, and what joins an initial value to one; a maximum of no elements is not defined.
_JOINS = {"sum": (0, op.add), "prod": (1, op.multiply), "any": (0, None), "all": (1, None), "max": (None, op.maximum), "min": (None, op.minimum)}
_BESIDE_NAN = ("nanmax", "nanmean", "nanmin", "nanprod", "nansum")


def _kept(name, x, where, value):
    """x, with the value where `where` is false."""
    where = _core.asarray(where, device=x.device)
    kept = op.where(where, x, bool(value) if x.dtype is _core.bool else value)
    if kept.shape != x.shape:
        raise _core.ShapeError(f"{name}: argument where: found shape {tuple(where.shape)}, expected one that broadcasts to x, {tuple(x.shape)}")
    return kept


def _no_extreme(name, dtype):
    """What every other number of the dtype is before, so that it ties with none."""
    if dtype.kind == "real floating":
        return float("-inf" if name == "max" else "inf")
    if dtype is _core.bool:
        return name == "min"
    return iinfo(dtype).min if name == "max" else iinfo(dtype).max


def _masked(name, x, args, where, initial, out, more):
    value, join = _JOINS[name]
    if join is None and initial is not None:
        return NotImplemented
    if value is None:
        if initial is None:
            raise _core.ArgumentValueError(f"{name}: found where without initial, expected both; initial is the {name} of no elements")
        if x.dtype.kind == "complex floating":
            return getattr(op, name)(x)  # which says that there is no order
        value = _no_extreme(name, x.dtype)
    if where is not None:
        x = _kept(name, x, where, value)
    reduce = getattr(op, name)
    if initial is None:
        return reduce(x, *args, out=out, **more)
    if x.size or name in ("sum", "prod"):
        found = reduce(x, *args, **more)
    else:
        found = op.full(op.any(x, *args, **more).shape, initial, dtype=x.dtype, device=x.device)
    if not isinstance(initial, _core.Tensor):
        initial = op.full([], initial, dtype=found.dtype, device=found.device)
    return join(found, initial, out=out)


def _count(x, where, axis, keepdims):
    is_kept = op.cast(_core.asarray(where, device=x.device), _core.bool)
    return op.sum(op.broadcast_to(is_kept, x.shape), axis, dtype=_core.int64, keepdims=keepdims)


def masked_mean(name, x, axis=None, *, where, keepdims=False, out=None):
    """The mean of the elements where `where` is true."""
    total, count = op.sum(_kept(name, x, where, 0), axis, keepdims=keepdims), _count(x, where, axis, keepdims)
    if total.dtype is _core.uint64:  # which has no common dtype with int64
        count = op.cast(count, _core.uint64)
    return op.divide(total, count, out=out)


def _masked_distances(name, x, axis, where, correction, keepdims):
    """The distances from the mean, 0 where `where` is false, and the divisor of their squares. Elements that do not count, NaN perhaps, have
    no share in the gradient either."""
    distances = op.subtract(_kept(name, x, where, 0), masked_mean(name, x, axis, where=where, keepdims=True))
    return _kept(name, distances, where, 0), op.maximum(op.subtract(_count(x, where, axis, keepdims), correction), 0)


def masked_variance(name, x, axis=None, *, where, correction=0, keepdims=False):
    """The variance of the elements where `where` is true."""
    distances, count = _masked_distances(name, x, axis, where, correction, keepdims)
    squares = op.real(op.multiply(distances, op.conj(distances))) if x.dtype.kind == "complex floating" else op.square(distances)
    return op.divide(op.sum(squares, axis, keepdims=keepdims), count)


def masked_deviation(name, x, axis=None, *, where, correction=0, keepdims=False):
    """The root of masked_variance, without squares that overflow; its gradient is 0 where all elements are equal."""
    distances, count = _masked_distances(name, x, axis, where, correction, keepdims)
    length = op.vector_norm(distances, axis=axis, keepdims=keepdims)
    return op.divide(length, op.sqrt(op.cast(count, length.dtype)))


def _reduction(name):
    def form(x, *args, where=None, initial=None, out=None, **more):
        if where is None and initial is None:
            return NotImplemented
        return _masked(name, x, args, where, initial, out, more)

    return form


def _nan_reduction(name):
    def form(x, *args, where=None, initial=None, **more):
        """NumPy's where= and initial=, for the elements that are not NaN."""
        if (where is None and initial is None) or (name == "nanmean" and initial is not None):
            return NotImplemented
        is_number = op.equal(x, x)
        kept = is_number if where is None else op.logical_and(is_number, _core.asarray(where, device=x.device))
        if name == "nanmean":
            return masked_mean(name, x, *args, where=kept, **more)
        return _masked(name.removeprefix("nan"), x, args, kept, initial, more.pop("out", None), more)

    return form


def of_tensor(form):
    """The form of what a list or a number is as a tensor; what is none is left to the op's error."""

    @takes_operands
    def of_tensor(x, *args, **more):
        try:
            x = _core.asarray(x)
        except (TypeError, ValueError, AttributeError):
            return NotImplemented
        return form(x, *args, **more)

    return of_tensor


def _weighted_logsumexp(x, axis=None, b=None, keepdims=False, return_sign=False, **more):
    """SciPy's b=, factors of the exponentials, and return_sign=, log|sum| and the sign of the sum."""
    axis, keepdims = more.pop("dim", axis), more.pop("keepdim", keepdims)
    if b is None and not return_sign:
        return NotImplemented
    if more:
        return NotImplemented
    axis = [axis] if type(axis) is int else axis
    b = _core.asarray(1 if b is None else b, device=x.device)
    if not return_sign:
        return op.logsumexp_weighted(x, b, axis, keepdims=keepdims)
    if x.dtype.kind == "complex floating" or b.dtype.kind == "complex floating":
        raise _core.DtypeError("logsumexp: argument return_sign: found True with a complex dtype, expected real numbers")
    return _signed_logsumexp(x, b, axis, keepdims)


def _signed_logsumexp(x, b, axis, keepdims):
    weighed = op.where(op.equal(b, 0), float("-inf"), x)
    top = op.max(weighed, axis, keepdims=True)
    total = op.sum(op.multiply(b, op.exp(op.subtract(weighed, op.where(op.isfinite(top), top, 0)))), axis, keepdims=True)
    sign = op.sign(total)
    log = op.logsumexp_weighted(x, op.where(op.less(sign, 0), op.negative(b), b), axis, keepdims=keepdims)
    return log, op.reshape(sign, log.shape)


# Reductions whose second argument by position is PyTorch's keepdim: NumPy has a dtype there, and `out`.
KEEPDIM_SECOND = ("all", "amax", "amin", "any", "argmax", "argmin", "logsumexp", "max", "mean", "min", "nanmean", "nansum", "prod", "std", "sum", "var")


def with_keepdim(word, form):
    """The form of a reduction of this name; x.sum(1, True) and x.max(1, True) are PyTorch's, as is x.std(1, False) without correction."""

    def answered(*args, **more):
        given = args[1:]
        if len(given) == 1 and isinstance(given[0], tuple):
            given = given[0]
        if len(given) != 2 or type(given[1]) is not bool or more:
            return form(*args, **more)
        x, (dim, flag) = args[0], given
        if word in ("std", "var"):
            return getattr(op, word)(x, dim, correction=int(flag))
        if word in ("max", "min"):
            return getattr(op, word)(x, dim=dim, keepdim=flag)
        return getattr(op, {"amax": "max", "amin": "min"}.get(word, word))(x, dim, keepdims=flag)

    return answered


def reduction_forms():
    """By the op's name."""
    return {**{name: of_tensor(_reduction(name)) for name in _JOINS}, **{name: of_tensor(_nan_reduction(name)) for name in _BESIDE_NAN},
            "logsumexp": of_tensor(_weighted_logsumexp)}  # fmt: skip
