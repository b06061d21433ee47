"""odeint: the method of Dormand and Prince (1980), of order 5 with an error estimate of order 4, and the classical one of Runge and Kutta."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import backplane as bp
from backplane import Tensor

__all__ = []

_NODES = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_STAGES = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
_LEAST, _MOST, _SAFETY = 0.2, 10.0, 0.9  # of the factor by which a step changes


def odeint(
    func: Callable[..., Any], y0: Any, t: Any, *args: Any, rtol: float = 1e-6, atol: float = 1e-8, mxstep: int = 10000, method: str = "dopri5", steps: int = 1
) -> Any:
    """The solution of dy/dt = func(y, t, *args) with y(t[0]) = y0, at the times t, stacked along a new first axis.

    func: of the state and the time, in this order, as in SciPy and JAX; returns a container like y0. t: times that grow, or fall.
    method: "dopri5" chooses its steps so that an error stays below atol + rtol · |y|, with at most mxstep steps between two times;
    "rk4" takes `steps` equal ones between two times.
    Gradients flow to y0, args and whatever else func uses. They are those of the steps taken; where values cannot be read (compile and
    vmap) "dopri5" has forward mode alone, and "rk4" both. The times are constants.
    Errors: ArgumentValueError for times that do not grow or fall, ArithmeticError where mxstep steps do not suffice.

    Example:
        >>> y = bp.odeint(lambda y, t: -y, bp.asarray(1.0), bp.asarray([0.0, 1.0]))
        >>> round(y[1].item(), 5)
        0.36788
    """
    leaves = [leaf if isinstance(leaf, Tensor) and "floating" in leaf.dtype.kind else bp.asarray(leaf, dtype=bp.default_dtype()) for leaf in bp.tree.leaves(y0)]
    start, unravel = bp.ravel_pytree(bp.tree.unflatten(bp.tree.structure(y0), leaves))
    kind = bp.float64 if start.dtype in (bp.float64, bp.complex128) else bp.float32
    t = bp.asarray(t).detach() if isinstance(t, Tensor) else bp.asarray(t, dtype=kind)
    if t.ndim != 1 or t.shape[0] < 1:
        raise bp.ShapeError(f"odeint: argument t: found shape {tuple(t.shape)}, expected one axis with a time at least")
    if method not in ("dopri5", "rk4"):
        raise bp.ArgumentValueError(f"odeint: argument method: found {method!r}, expected 'dopri5' or 'rk4'")
    t = t.astype(kind).to(start.device)
    times = t.tolist() if _readable(t) else None
    if times is not None:
        gaps = [b - a for a, b in zip(times, times[1:])]
        if any(gap * gaps[0] <= 0 for gap in gaps):
            raise bp.ArgumentValueError("odeint: argument t: expected times that grow, or that fall, from each to the next")

    def slope(y, at):
        found = func(unravel(y), at if isinstance(at, Tensor) else bp.asarray(at, dtype=kind, device=y.device), *args)
        flat, _ = bp.ravel_pytree(found)
        if flat.shape != y.shape:
            raise bp.ShapeError(f"odeint: func returned {flat.size} elements, expected {y.size}, those of y0")
        return flat.astype(y.dtype) if flat.dtype != y.dtype else flat

    if method == "rk4":
        rows = _fixed(slope, start, t, steps)
    elif times is not None and _readable(slope(start, times[0])):
        rows = _adaptive(slope, start, times, rtol, atol, mxstep)
    else:
        rows = _adaptive_in_a_loop(slope, start, t, rtol, atol, mxstep)
    return bp.vmap(unravel)(rows)


def _readable(y):
    """Are its values there: outside of traces and vmap?"""
    try:
        bp.stop_gradient(bp.sum(bp.abs(y))).item()
    except (bp.BackplaneError, TypeError, ValueError):
        return False
    return True


def _stages(slope, y, t, h, first):
    """(the state after a step, its error estimate, the slope there). first: the slope at the start."""
    slopes = [first]
    for node, row in zip(_NODES[1:], _STAGES[1:]):
        state = y + h * sum(c * k for c, k in zip(row, slopes) if c)
        slopes.append(slope(state, t + node * h))
    return state, h * sum(c * k for c, k in zip(_ERROR, slopes) if c), slopes[-1]


def _ratio(error, before, after, rtol, atol):
    """The error relative to the tolerance: the root of the mean square."""
    allowed = atol + rtol * bp.maximum(bp.abs(before), bp.abs(after))
    return bp.sqrt(bp.mean((bp.abs(error) / allowed) ** 2))


def _first_step(slope, y, t, first, rtol, atol):
    """Hairer, Nørsett and Wanner, "Solving ordinary differential equations I", II.4."""
    scale = atol + rtol * bp.abs(y)
    d0, d1 = bp.sqrt(bp.mean(bp.abs(y / scale) ** 2)), bp.sqrt(bp.mean(bp.abs(first / scale) ** 2))
    h = bp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / bp.where(d1 == 0, 1.0, d1))
    return h


def _adaptive(slope, y, times, rtol, atol, mxstep):
    """The loop in Python. Step sizes are numbers, so derivatives follow only the accepted steps."""
    rows, sign = [y], 1.0 if len(times) < 2 or times[1] > times[0] else -1.0
    t, first = times[0], slope(y, times[0])
    h = bp.stop_gradient(_first_step(slope, y, t, first, rtol, atol)).item()
    for end in times[1:]:
        count = 0
        while (end - t) * sign > 1e-14 * max(abs(t), abs(end)):
            count += 1
            if count > mxstep:
                raise ArithmeticError(f"odeint: found no solution from {times[0]} to {end} within {mxstep} steps; it reached {t}. Fix: a larger mxstep, or rtol")
            is_last = h >= (end - t) * sign
            step = (end - t) if is_last else h * sign
            after, error, last = _stages(slope, y, t, step, first)
            ratio = bp.stop_gradient(_ratio(error, y, after, rtol, atol)).item()
            if ratio <= 1:
                y, t, first = after, end if is_last else t + step, last
            if ratio != ratio and abs(step) < 1e-12:
                raise ArithmeticError(f"odeint: func returned NaN near t = {t}")
            factor = _LEAST if ratio != ratio else min(_MOST, max(_LEAST, _SAFETY * ratio**-0.2 if ratio > 0 else _MOST))
            h = max(h, abs(step) * factor) if is_last and ratio <= 1 else abs(step) * factor
        rows.append(y)
    return bp.stack(rows)


def _adaptive_in_a_loop(slope, y, t, rtol, atol, mxstep):
    sign = bp.where(t[-1] >= t[0], 1.0, -1.0).astype(t.dtype)
    first = slope(y, t[0])
    h = _first_step(slope, y, t[0], first, rtol, atol).astype(t.dtype)

    def until(carry, end):
        def goes_on(value):
            _, at, _, _, count = value
            return ((end - at) * sign > 1e-7 * bp.abs(end - at) + 0) & (count < mxstep)

        def step(value):
            y, at, h, first, count = value
            is_last = h >= (end - at) * sign
            size = bp.where(is_last, end - at, h * sign)
            after, error, last = _stages(slope, y, at, size.astype(bp.abs(y).dtype), first)
            ratio = _ratio(error, y, after, rtol, atol).astype(t.dtype)
            good = ratio <= 1
            factor = bp.where(ratio == ratio, bp.clip(_SAFETY * bp.maximum(ratio, 1e-10) ** -0.2, _LEAST, _MOST), _LEAST)
            new = bp.where(is_last & good, bp.maximum(h, bp.abs(size) * factor), bp.abs(size) * factor)
            return bp.where(good, after, y), bp.where(good, bp.where(is_last, end, at + size), at), new, bp.where(good, last, first), count + 1

        y, at, h, first = carry
        y, at, h, first, count = bp.while_loop(goes_on, step, (y, at, h, first, bp.asarray(0)))
        row = bp.where(count < mxstep, y, bp.nan)  # what did not converge shows
        return (y, end, h, first), row

    _, rows = bp.scan(until, (y, t[0], h, first), t[1:])
    return bp.concat([y[None], rows])


def _fixed(slope, y, t, steps):
    if not isinstance(steps, int) or steps < 1:
        raise bp.ArgumentValueError(f"odeint: argument steps: found {steps!r}, expected an int of at least 1")

    def between(y, ends):
        begin, end = ends[0], ends[1]
        h = ((end - begin) / steps).astype(bp.abs(y).dtype)

        def step(carry, number):
            y = carry
            at = begin + h.astype(t.dtype) * number
            k1 = slope(y, at)
            k2 = slope(y + h / 2 * k1, at + h / 2)
            k3 = slope(y + h / 2 * k2, at + h / 2)
            k4 = slope(y + h * k3, at + h)
            return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), ()

        y, _ = bp.scan(step, y, bp.arange(steps, dtype=t.dtype, device=t.device))
        return y, y

    if t.shape[0] == 1:
        return y[None]
    _, rows = bp.scan(between, y, bp.stack([t[:-1], t[1:]], axis=1))
    return bp.concat([y[None], rows])
