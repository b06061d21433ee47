"""minimize within bounds: a quasi-Newton method of limited memory whose steps are projected on the bounds.

Variables at a bound whose gradient points outwards stay there; the others follow the two-loop recursion (Nocedal, 1980), and the step is
projected (Bertsekas, "Projected Newton methods for optimization problems with simple constraints", 1982).
"""

from __future__ import annotations

from typing import Any

import backplane as bp

__all__ = []

_PAIRS = 10  # of steps and changes of the gradient that are kept
_BETTER = 1e-4  # of the fall that the slope promises, which a step must reach


def limits(bounds: Any, x: Any) -> tuple[Any, Any]:
    """(lower, upper) as vectors like x. Errors: ArgumentValueError for another number of pairs, and for a lower bound above the upper one."""
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):
        low, high = (bp.broadcast_to(bp.asarray(end, dtype=x.dtype, device=x.device), x.shape) for end in (bounds.lb, bounds.ub))
    else:
        pairs = [tuple(pair) for pair in bounds]
        if len(pairs) != x.size or any(len(pair) != 2 for pair in pairs):
            raise bp.ArgumentValueError(f"minimize: argument bounds: found {len(pairs)} entries, expected {x.size} pairs (low, high), one per unknown")
        ends = [[-bp.inf if low is None else float(low) for low, _ in pairs], [bp.inf if high is None else float(high) for _, high in pairs]]
        low, high = (bp.asarray(end, dtype=x.dtype, device=x.device) for end in ends)
    if not bool((low <= high).all()):
        raise bp.ArgumentValueError("minimize: argument bounds: found a lower bound above the upper one")
    return low, high


class _Memory:
    """The last steps and changes of the gradient, from which a product with the inverse of the Hessian comes."""

    def __init__(self):
        self.pairs = []

    def add(self, s, y):
        if bp.sum(s * y).item() > 1e-12 * max(bp.sum(y * y).item(), 1e-300):
            self.pairs = [*self.pairs[1 - _PAIRS :], (s, y)]

    def direction(self, g, free):
        """Minus the inverse of the Hessian of the free variables, times their gradient."""
        zero = bp.zeros_like(g)
        q, shares = bp.where(free, g, zero), []
        pairs = [(bp.where(free, s, zero), bp.where(free, y, zero)) for s, y in self.pairs]
        pairs = [(s, y, bp.sum(s * y).item()) for s, y in pairs]
        pairs = [(s, y, sy) for s, y, sy in pairs if sy > 0]
        for s, y, sy in reversed(pairs):
            shares.append(bp.sum(s * q).item() / sy)
            q = q - shares[-1] * y
        if pairs:
            _, y, sy = pairs[-1]
            q = q * (sy / bp.sum(y * y).item())
        for (s, y, sy), share in zip(pairs, reversed(shares)):
            q = q + (share - bp.sum(y * q).item() / sy) * s
        return -bp.where(free, q, zero)


def _search(evaluate, x, value, g, direction, low, high, step):
    """A projected point with a value that has fallen enough; None: there is none that differs from x."""
    for _ in range(50):
        after = bp.clip(x + step * direction, low, high)
        promised = bp.sum(g * (after - x)).item()
        if promised == 0:
            return None
        found, gradient = evaluate(after)
        if found <= value + _BETTER * promised and promised < 0:
            return after, found, gradient
        step /= 2
    return None


def bounded(evaluate: Any, x: Any, low: Any, high: Any, gtol: float, ftol: float, most: int) -> tuple[Any, float, Any, int, str, bool]:
    """(x, its value, its gradient, iterations, message, success)."""
    x = bp.clip(x, low, high)
    value, g = evaluate(x)
    memory, nit, message = _Memory(), 0, ""

    def distance(x, g):
        """The largest element of the projected gradient."""
        return bp.max(bp.abs(bp.clip(x - g, low, high) - x)).item()

    while not message:
        if distance(x, g) <= gtol:
            message = "The projected gradient is below gtol."
            break
        if nit >= most:
            message = "The largest number of iterations has been reached."
            break
        free = ~(((x <= low) & (g > 0)) | ((x >= high) & (g < 0)))
        direction = memory.direction(g, free)
        if bp.sum(direction * g).item() >= 0:
            memory.pairs.clear()
            direction = memory.direction(g, free)
        first = 1.0 if memory.pairs else min(1.0, 1.0 / max(bp.sum(bp.abs(direction)).item(), 1e-30))
        found = _search(evaluate, x, value, g, direction, low, high, first)
        if found is None and memory.pairs:  # the projection has turned the direction: try the gradient
            memory.pairs.clear()
            continue
        if found is None:
            message = "No lower value was found along the search direction: the precision of the dtype is reached."
            break
        after, value_after, g_after = found
        memory.add(after - x, g_after - g)
        fall, size = value - value_after, max(abs(value), abs(value_after), 1.0)
        x, value, g, nit = after, value_after, g_after, nit + 1
        if fall <= ftol * size:
            message = "The value falls by less than ftol."
    success = not message.startswith("The largest") and (distance(x, g) <= gtol or message.startswith("The value"))
    return x, value, g, nit, message, success
