"""Functions of sampled functions and of polynomials, in NumPy's forms."""

from __future__ import annotations

import math

from .. import _core
from ._data_type_functions import floating_type, isdtype, real_type, result_type
from .._calls._half_floats import rounds_once
from ._manipulation_functions import normalized_axis, ravel
from .._calls._ops import NAMESPACE, ops
from .._calls._tensor_argument import given_tensor, require_real, takes_dim, takes_tensor, tensor_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._core import Tensor

op = getattr(ops, NAMESPACE)

__all__ = ["convolve", "correlate", "ediff1d", "gradient", "interp", "polyval", "trapezoid", "unwrap"]

_MODES = ("full", "same", "valid")


@takes_tensor
def ediff1d(x: Tensor, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """The differences of neighbours among x's elements in row-major order, between to_begin and to_end."""
    parts = [to_begin, op.diff(ravel(x)), to_end]
    return op.concat([ravel(tensor_like(part, x)) for part in parts if part is not None], axis=0)


@rounds_once
@takes_tensor
def polyval(p: Tensor, x: Any) -> Tensor:
    """The polynomial with coefficients p, the highest power's first, at x."""
    if p.ndim != 1:
        raise _core.ShapeError(f"polyval: argument p: found {p.ndim} dimensions, expected a vector")
    x = tensor_like(x, p)
    dtype = result_type(p, x)
    value = op.zeros_like(x, dtype=_core.int64 if dtype is _core.bool else dtype)
    for place in range(p.shape[0]):
        value = op.add(op.multiply(value, x), p[place])
    return value


def _part(x, axis, start, stop):
    return op.slice(x, [axis], [start], [stop], [1])


@rounds_once
def interp(
    x: Tensor | float, xp: Tensor, fp: Tensor, left: float | None = None, right: float | None = None,
    period: float | None = None
) -> Tensor:
    """The piecewise linear function through the points (xp, fp) at x; xp rises. Outside: fp's ends, or left and right.

    period: xp and x count modulo it, and xp need not rise.
    """
    xp, fp = given_tensor("interp", "xp", xp, (x, fp)), given_tensor("interp", "fp", fp, (x, xp))
    given = given_tensor("interp", "x", x, (xp, fp))
    for name, v in (("x", given), ("xp", xp)):
        require_real("interp", name, v)
    if xp.ndim != 1 or xp.shape != fp.shape or xp.size == 0:
        raise _core.ShapeError(f"interp: found shapes {tuple(xp.shape)} of xp and {tuple(fp.shape)} of fp, expected vectors of one size, not 0")
    is_number = given.ndim == 0 and not isinstance(x, _core.Tensor)
    fp = op.cast(fp, floating_type(xp, fp) if is_number else floating_type(given, xp, fp))
    xp = op.cast(xp, real_type(fp.dtype))
    x = tensor_like(x, xp) if is_number else op.cast(given, xp.dtype)
    if period is not None:
        if period == 0:
            raise _core.ArgumentValueError("interp: argument period: found 0, expected another number")
        period = abs(period)
        x, xp = op.remainder(x, period), op.remainder(xp, period)
        order = op.argsort(xp)
        xp, fp = op.take(xp, order), op.take(fp, order)
        xp = op.concat([op.subtract(xp[-1:], period), xp, op.add(xp[:1], period)])
        fp = op.concat([fp[-1:], fp, fp[:1]])
    last = xp.size - 1
    place = op.minimum(op.maximum(op.subtract(op.searchsorted(xp, x, side="right"), 1), 0), max(last - 1, 0))
    after = op.minimum(op.add(place, 1), last)
    x0, y0, y1 = op.take(xp, place), op.take(fp, place), op.take(fp, after)
    width, rise = op.subtract(op.take(xp, after), x0), op.subtract(y1, y0)
    share = op.divide(op.subtract(x, x0), op.where(op.equal(width, 0), 1, width))
    inside = op.add(y0, op.multiply(rise, share))
    # At an infinite end, interpolate from the other end, as NumPy does. At a knot, and between equal values, no slope is needed.
    inside = op.where(op.isnan(inside), op.subtract(y1, op.multiply(rise, op.subtract(1, share))), inside)
    inside = op.where(op.logical_and(op.isnan(inside), op.logical_or(op.equal(x, x0), op.equal(y0, y1))), y0, inside)
    inside = op.where(op.equal(x, op.take(xp, after)), y1, inside)
    found = op.where(op.less(x, xp[0]), fp[0] if left is None else left, inside)
    found = op.where(op.greater(x, xp[-1]), fp[-1] if right is None else right, found)
    return op.where(op.isnan(x), float("nan"), found)


def _even_gradient(y, axis, step, edge_order):
    n = y.shape[axis]
    middle = op.divide(op.subtract(_part(y, axis, 2, None), _part(y, axis, 0, n - 2)), 2 * step)

    def end(places, factors):
        terms = [op.multiply(_part(y, axis, p, p + 1), factor / step) for p, factor in zip(places, factors)]
        return sum(terms[1:], terms[0])

    if edge_order == 1:
        return [end((0, 1), (-1, 1)), middle, end((n - 2, n - 1), (-1, 1))]
    return [end((0, 1, 2), (-1.5, 2, -0.5)), middle, end((n - 3, n - 2, n - 1), (0.5, -2, 1.5))]


def _uneven_gradient(y, axis, x, edge_order):
    n, shape = y.shape[axis], [1] * y.ndim
    shape[axis] = -1
    h = op.reshape(op.diff(x), shape)
    before, after = _part(h, axis, 0, n - 2), _part(h, axis, 1, n - 1)
    both = op.add(before, after)
    a = op.negative(op.divide(after, op.multiply(before, both)))
    b = op.divide(op.subtract(after, before), op.multiply(before, after))
    c = op.divide(before, op.multiply(after, both))
    parts = [_part(y, axis, i, n - 2 + i) for i in range(3)]
    middle = sum(op.multiply(u, v) for u, v in zip((b, c), parts[1:])) + op.multiply(a, parts[0])
    if edge_order == 1:
        ends = [op.divide(op.subtract(_part(y, axis, i + 1, i + 2), _part(y, axis, i, i + 1)), _part(h, axis, i, i + 1)) for i in (0, n - 2)]
        return [ends[0], middle, ends[1]]

    def end(first, near, far, sign):
        """The slope at the end of the parabola through three points; near and far: the steps from the end inwards."""
        total = op.add(near, far)
        factors = (
            op.negative(op.divide(op.add(op.multiply(near, 2), far), op.multiply(near, total))),
            op.divide(total, op.multiply(near, far)),
            op.negative(op.divide(near, op.multiply(far, total))),
        )
        places = (first, first + sign, first + 2 * sign)
        return op.multiply(sum(op.multiply(_part(y, axis, p, p + 1), f) for p, f in zip(places, factors)), sign)

    head = end(0, _part(h, axis, 0, 1), _part(h, axis, 1, 2), 1)
    return [head, middle, end(n - 1, _part(h, axis, n - 2, n - 1), _part(h, axis, n - 3, n - 2), -1)]


def _vector_or_number(function, name, value, beside):
    """What has elements as a tensor; a number as it is."""
    return given_tensor(function, name, value, beside) if isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) else value


@rounds_once
@takes_dim
@takes_tensor
def gradient(
    f: Tensor, /, *spacing: Tensor | float, axis: int | Sequence[int] | None = None, edge_order: int = 1
) -> Any:
    """Slopes of f along each of its axes (or those stated), by differences over two steps, one-sided at the ends.

    spacing: nothing (1), one number for all axes, or for each axis a number or the vector of coordinates. edge_order: 1 or 2.
    One tensor for one axis, else a list.
    """
    spacing = [_vector_or_number("gradient", "spacing", step, (f,)) for step in spacing]
    f = op.cast(f, floating_type(f, *(step for step in spacing if isinstance(step, _core.Tensor))))
    stated = range(f.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else [axis]
    axes = [normalized_axis("gradient", one, f.ndim) for one in stated]
    steps = list(spacing) * len(axes) if len(spacing) == 1 and not getattr(spacing[0], "ndim", 0) else list(spacing) or [1.0] * len(axes)
    if len(steps) != len(axes):
        raise _core.ArgumentTypeError(f"gradient: found {len(spacing)} spacings for {len(axes)} axes, expected none, one number, or one for each")
    if edge_order not in (1, 2):
        raise _core.ArgumentValueError(f"gradient: argument edge_order: found {edge_order}, expected 1 or 2")
    found = []
    for one, step in zip(axes, steps):
        if f.shape[one] < edge_order + 1:
            raise _core.ShapeError(f"gradient: found {f.shape[one]} elements along axis {one}, expected at least {edge_order + 1}")
        if getattr(step, "ndim", 0):
            if step.shape != (f.shape[one],):
                raise _core.ShapeError(f"gradient: found coordinates of shape {tuple(step.shape)}, expected ({f.shape[one]},)")
            places = step if isdtype(step.dtype, ("real floating", "complex floating")) else op.cast(step, real_type(f.dtype))
            pieces = _uneven_gradient(f, one, places, edge_order)
        else:
            if not isinstance(step, _core.Tensor) and not hasattr(step, "__float__"):
                raise _core.ArgumentTypeError(f"gradient: argument spacing: found {step!r}, expected a number or a vector")
            pieces = _even_gradient(f, one, step if isinstance(step, _core.Tensor) else float(step), edge_order)
        found.append(op.concat(pieces, axis=one))
    return found[0] if len(found) == 1 else found


@rounds_once
@takes_dim
@takes_tensor
def trapezoid(y: Tensor, x: Tensor | None = None, dx: float | Tensor = 1.0, axis: int = -1) -> Tensor:
    """The integral of y along axis by the trapezoidal rule, over coordinates x (a vector, or of y's shape) or steps dx, one or those between elements."""
    axis = normalized_axis("trapezoid", axis, y.ndim)
    x = None if x is None else given_tensor("trapezoid", "x", x, (y,))
    dx = _vector_or_number("trapezoid", "dx", dx, (y,))
    y = op.cast(y, floating_type(*(v for v in (y, x, dx) if isinstance(v, _core.Tensor))))
    n = y.shape[axis]
    pairs = op.add(_part(y, axis, 1, None), _part(y, axis, 0, max(n - 1, 0)))
    if x is None and not isinstance(dx, _core.Tensor):
        return op.multiply(op.sum(pairs, [axis], dtype=pairs.dtype), dx / 2)
    x = x if x is None or isdtype(x.dtype, ("real floating", "complex floating")) else op.cast(x, real_type(y.dtype))
    if x is None:
        steps = dx
    elif x.ndim == 1:
        steps = op.reshape(op.diff(x), [-1 if place == axis else 1 for place in range(y.ndim)])
    else:
        steps = op.diff(x, axis=axis)
    return op.divide(op.sum(op.multiply(pairs, steps), [axis], dtype=result_type(pairs, steps)), 2)


@rounds_once
def cumulative_trapezoid(y: Tensor, x: Tensor | None, dx: float | Tensor, axis: int) -> Tensor:
    """The integrals of y along axis up to each element but the first, by the trapezoidal rule."""
    y = op.moveaxis(y, axis, -1)
    widths = dx if x is None else op.diff(x if x.ndim == 1 else op.moveaxis(x, axis, -1))
    return op.moveaxis(op.cumsum(op.multiply(op.divide(op.add(y[..., 1:], y[..., :-1]), 2), widths), -1), -1, axis)


@rounds_once
def logaddexp2(x: Tensor, y: Tensor) -> Tensor:
    """log2(2**x + 2**y), without overflow."""
    dtype = floating_type(*(v for v in (x, y) if isinstance(v, _core.Tensor)))
    x, y = (op.cast(v, dtype) if isinstance(v, _core.Tensor) else v for v in (x, y))
    apart = op.where(op.equal(x, y), 0, op.subtract(x, y))  # 0 of two infinities, too
    return op.add(op.maximum(x, y), op.divide(op.log1p(op.exp2(op.negative(op.abs(apart)))), math.log(2)))


@rounds_once
def polar(length: Tensor, angle: Tensor) -> Tensor:
    """The complex numbers of these absolute values and angles."""
    dtype = floating_type(length, angle)
    length, angle = op.cast(length, dtype), op.cast(angle, dtype)
    return op.complex_from(op.multiply(length, op.cos(angle)), op.multiply(length, op.sin(angle)))


def _checked(function, x, y, mode):
    if mode not in _MODES:
        raise _core.ArgumentValueError(f"{function}: argument mode: found {mode!r}, expected one of {', '.join(_MODES)}")
    y = given_tensor(function, "y", y, (x,))
    for v in (x, y):
        if v.ndim > 1 or v.size == 0:
            raise _core.ShapeError(f"{function}: found shape {tuple(v.shape)}, expected a vector of at least one element")
    dtype = result_type(x, y)
    return op.reshape(op.cast(x, dtype), [-1]), op.reshape(op.cast(y, dtype), [-1])


def _full(long, short):
    """All len(long) + len(short) - 1 sums of products, `short` reversed; exact for integers."""
    m = short.size
    if isdtype(long.dtype, "real floating"):
        kernel = op.reshape(op.flip(short), [1, 1, m])
        return op.reshape(op.conv(op.reshape(long, [1, 1, -1]), kernel, stride=[1], padding=[m - 1], dilation=[1]), [-1])
    windows = op.unfold(op.pad(long, [m - 1], [m - 1]), 0, m)
    return op.matmul(windows, op.flip(short))


@rounds_once
@takes_tensor
def convolve(x: Tensor, y: Tensor, mode: str = "full") -> Tensor:
    """The convolution of two vectors: all sums ('full'), the middle ones, as many as the longer has ('same'), or those that overlap wholly ('valid')."""
    x, y = _checked("convolve", x, y, mode)
    long, short = (x, y) if x.size >= y.size else (y, x)
    n, m = long.size, short.size
    found = _full(long, short)
    if mode == "full":
        return found
    return found[(m - 1) // 2 : (m - 1) // 2 + n] if mode == "same" else found[m - 1 : n]


@rounds_once
@takes_tensor
def correlate(x: Tensor, y: Tensor, mode: str = "valid") -> Tensor:
    """The correlation of two vectors: sums of x[n + k] conj(y[n]); modes as of convolve."""
    x, y = _checked("correlate", x, y, mode)
    turned = op.conj(op.flip(y))
    n, m = max(x.size, y.size), min(x.size, y.size)
    found = _full(x, turned) if x.size >= y.size else _full(turned, x)
    if mode == "full":
        return found
    start = (m - 1) // 2 if x.size >= y.size else m // 2
    return found[start : start + n] if mode == "same" else found[m - 1 : n]


@rounds_once
@takes_tensor
def unwrap(x: Tensor, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi) -> Tensor:
    """x with whole periods added along axis, so that no step is larger than half of one (or than discont, where that is more)."""
    axis = normalized_axis("unwrap", axis, x.ndim)
    x = x if isdtype(x.dtype, "real floating") else op.cast(x, _core.default_float())
    if x.shape[axis] < 2:
        return op.copy(x)
    step, half = op.diff(x, axis=axis), period / 2
    wrapped = op.subtract(op.remainder(op.add(step, half), period), half)
    wrapped = op.where(op.logical_and(op.equal(wrapped, -half), op.greater(step, 0)), half, wrapped)
    away = op.where(op.less(op.abs(step), half if discont is None else max(discont, half)), 0, op.subtract(wrapped, step))
    return op.concat([_part(x, axis, 0, 1), op.add(_part(x, axis, 1, None), op.cumsum(away, axis))], axis=axis)
