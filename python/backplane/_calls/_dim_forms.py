"""What ops mean under PyTorch's `dim=` and `keepdim=`, where that differs from their meaning under NumPy's `axis=`.

Of a call that spells one of the two, the Op hands its arguments to the form here: var and std are unbiased, max, min, sort and the
medians give pairs. All other ops take the words as axis and keepdims. The first such call imports this module.
"""

from .. import _core
from .._api._manipulation_functions import normalized_axes, normalized_axis
from ._ops import NAMESPACE, ops
from ._tensor_argument import require_real, given_tensor
from .._runtime._wraps import named_tuple

op = getattr(ops, NAMESPACE)

_FIELDS = ("values", "indices")


def _named(function, values, indices):
    return named_tuple(function, _FIELDS)(values, indices)


def _one_axis(function, x, dim, several):
    """The axis of x. A tensor without dimensions accepts the axes 0 and -1."""
    if not hasattr(dim, "__index__"):
        raise _core.ArgumentTypeError(f"{function}: argument dim: found {dim!r}, expected one axis (an int); {several}")
    return normalized_axis(function, dim, max(x.ndim, 1), "dim")


def _pair(function, x, indices, dim, keepdim):
    """The elements at `indices`, whose axis dim has one place."""
    values = op.take_along_axis(x, indices, axis=dim)
    return _named(function, *((values, indices) if keepdim else (op.squeeze(values, dim), op.squeeze(indices, dim))))


def _extreme(name, locate, reduce):
    def form(x, /, dim=None, keepdim=False):
        if type(x) is _core.Tensor and type(dim) is int and -x.ndim <= dim < x.ndim and not keepdim:  # the usual call
            at = locate(x, dim, keepdims=True)
            return _named(name, op.squeeze(op.take_along_axis(x, at, axis=dim), dim), op.squeeze(at, dim))
        x = given_tensor(name, "x", x)
        if dim is None:
            return reduce(x, keepdims=keepdim)
        dim = _one_axis(name, x, dim, f"a{name} takes several, and gives values alone")
        if x.ndim == 0:
            return _named(name, x, locate(x))
        return _pair(name, x, locate(x, dim, keepdims=True), dim, keepdim)

    return form


def _sort(x, /, dim=-1, descending=False, stable=True):
    x = given_tensor("sort", "x", x)
    dim = _one_axis("sort", x, dim, "sort along one after the other")
    if x.ndim == 0:
        return _named("sort", x, op.full([], 0, dtype=_core.int64, device=x.device))
    indices = op.argsort(x, dim, descending=descending, stable=stable)
    return _named("sort", op.take_along_axis(x, indices, axis=dim), indices)


def _spread(reduce):
    def form(x, /, dim=None, *, unbiased=True, correction=None, keepdim=False):
        if type(x) is _core.Tensor and type(dim) is int and x.ndim and correction is None:  # the usual call
            return reduce(x, dim, correction=1 if unbiased else 0, keepdims=keepdim)
        x = given_tensor(reduce.__name__, "x", x)
        if dim is not None and (x.ndim == 0 or dim == () or dim == []):  # PyTorch reads no axes as all
            normalized_axes(reduce.__name__, dim, 1, "dim")
            dim = None
        return reduce(x, dim, correction=int(bool(unbiased)) if correction is None else correction, keepdims=keepdim)

    return form


def lower_median(function, x, dim, keepdim):
    """The middle element along dim, of two the smaller, and its position: NaN where there is one, or (nanmedian) of the others."""
    x = given_tensor(function, "x", x)
    require_real(function, "x", x)
    dim = _one_axis(function, x, dim, "axis takes several, for the mean of the two middle elements")
    if x.ndim == 0:
        return _named(function, x, op.full([], 0, dtype=_core.int64, device=x.device))
    size = x.shape[dim]
    if size == 0:
        raise _core.ArgumentValueError(f"{function}: argument x: found no elements along axis {dim}, expected at least one")
    order, missing = op.argsort(x, dim), op.isnan(x)  # NaN last
    count = op.subtract(size, op.sum(missing, dim, dtype=_core.int64, keepdims=True))
    if function == "nanmedian":
        at = op.maximum(op.floor_divide(op.subtract(count, 1), 2), 0)
    else:
        at = op.where(op.equal(count, size), (size - 1) // 2, count)
    return _pair(function, x, op.take_along_axis(order, at, axis=dim), dim, keepdim)


def _in_pytorchs_words(name, form):
    """The form, which refuses NumPy's words beside dim."""
    code = form.__code__
    words = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    taken = frozenset(words[1:])

    def answered(*args, **more):
        if args and taken.issuperset(more):
            return form(*args, **more)
        if not args and "input" in more:
            args = (more.pop("input"),)
        for word in more.keys() - set(words):
            raise _core.ArgumentTypeError(f"{name}: found an argument {word!r} beside dim or keepdim, expected one of: {', '.join(words)}; others go with axis and keepdims")
        return form(*args, **more)

    return answered


def _add_forms():
    forms = {"max": _extreme("max", op.argmax, op.max), "min": _extreme("min", op.argmin, op.min), "sort": _sort,
             "std": _spread(op.std), "var": _spread(op.var)}  # fmt: skip
    for name, form in forms.items():
        form = _in_pytorchs_words(name, form)
        form.__name__ = form.__qualname__ = name  # as errors of a wrong argument call it
        _core.set_dim_form(f"{NAMESPACE}::{name}", name, form)


_add_forms()
