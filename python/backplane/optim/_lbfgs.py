"""LBFGS: directions of a limited-memory quasi-Newton method, and a line search for the strong Wolfe conditions.

Source: Nocedal and Wright, Numerical Optimization, 2nd ed., 2006, algorithms 7.4 (two loops), 3.5 and 3.6 (bracketing and zoom), with
the constants and stopping rules of PyTorch's optimiser of the name, so that both take the same steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import backplane as bp
from backplane import Tensor

from .._transforms import _gradient_sync
from ._optimizer import Optimizer

__all__ = ["LBFGS"]

_DECREASE, _CURVATURE = 1e-4, 0.9  # of the Wolfe conditions


class _Point(NamedTuple):
    """A step length along a direction: the loss there, its gradient, and the derivative along the direction."""

    t: float
    f: float
    g: Tensor
    slope: float


def _dot(a, b):
    return float((a * b).sum())


def _largest(x):
    return float(bp.abs(x).max())


def _cubic(a, b, low=None, high=None):
    """The minimum of the cubic through two points and their slopes, within bounds; their middle where there is none."""
    low, high = (min(a.t, b.t), max(a.t, b.t)) if low is None else (low, high)
    left, right = (a, b) if a.t <= b.t else (b, a)
    d1 = a.slope + b.slope - 3 * (a.f - b.f) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    d2 = math.sqrt(square)
    t = right.t - (right.t - left.t) * ((right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2))
    return min(max(t, low), high)


class _LineSearch:
    """evaluate(t) gives the point at step length t. start: the point at 0."""

    def __init__(self, evaluate, start, size, least_change, most):
        self.evaluate, self.start, self.size, self.least_change, self.most = evaluate, start, size, least_change, most
        self.evaluations = 0

    def at(self, t):
        self.evaluations += 1
        return self.evaluate(t)

    def is_too_high(self, point):
        return point.f > self.start.f + _DECREASE * point.t * self.start.slope

    def is_flat(self, point):
        return abs(point.slope) <= -_CURVATURE * self.start.slope

    def find(self, t):
        """A point that fulfils the conditions, or the best of the bracket around one."""
        last, point, number = self.start, self.at(t), 0
        while number < self.most:
            if self.is_too_high(point) or (number > 1 and point.f >= last.f):
                return self.zoom([last, point], number)
            if self.is_flat(point):
                return point
            if point.slope >= 0:
                return self.zoom([last, point], number)
            t = _cubic(last, point, point.t + 0.01 * (point.t - last.t), point.t * 10)
            last, point, number = point, self.at(t), number + 1
        return min((self.start, point), key=lambda one: one.f)

    def zoom(self, bracket, number):
        low, high = (0, 1) if bracket[0].f <= bracket[1].f else (1, 0)
        was_close = False
        while number < self.most and abs(bracket[1].t - bracket[0].t) * self.size >= self.least_change:
            t = _cubic(*bracket)
            t, was_close = self.kept_inside(t, bracket, was_close)
            point, number = self.at(t), number + 1
            if self.is_too_high(point) or point.f >= bracket[low].f:
                bracket[high] = point
                low, high = (0, 1) if bracket[0].f <= bracket[1].f else (1, 0)
                continue
            flat = self.is_flat(point)
            if not flat and point.slope * (bracket[high].t - bracket[low].t) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = point
            if flat:
                break
        return bracket[low]

    def kept_inside(self, t, bracket, was_close):
        """t, or a place a tenth from the end where it came close to one twice, or reached it."""
        first, last = min(bracket[0].t, bracket[1].t), max(bracket[0].t, bracket[1].t)
        margin = 0.1 * (last - first)
        if min(last - t, t - first) >= margin:
            return t, False
        if was_close or t >= last or t <= first:
            return (last - margin if abs(t - last) < abs(t - first) else first + margin), False
        return t, True


class LBFGS(Optimizer):
    """Limited-memory BFGS. step(closure) makes up to max_iter iterations; closure computes the loss and the gradients.

    line_search_fn: None, for steps of length lr, or 'strong_wolfe'. All parameters form one group.
    """

    def __init__(
        self, params: Any, lr: float | Tensor = 1, max_iter: int = 20, max_eval: int | None = None, tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9, history_size: int = 100, line_search_fn: str | None = None,
    ) -> None:
        if line_search_fn not in (None, "strong_wolfe"):
            raise bp.ArgumentValueError(f"LBFGS: argument line_search_fn: found {line_search_fn!r}, expected None or 'strong_wolfe'")
        super().__init__(params, {"lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                                  "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
                                  "line_search_fn": line_search_fn})  # fmt: skip
        if len(self.param_groups) != 1:
            raise bp.ArgumentValueError(f"LBFGS: argument params: found {len(self.param_groups)} groups, expected one")

    def init_state(self) -> None:
        raise bp.ArgumentValueError("LBFGS: its steps depend on values and cannot be part of a compiled function; compile the closure")

    def update(self, model: Any, gradients: Any) -> None:
        raise bp.ArgumentValueError("LBFGS: update is not defined, because a step evaluates the loss several times; use step(closure)")

    # ---- the parameters as one vector -------------------------------------------------------------------------------

    def _gradient(self):
        own = self.param_groups[0]["params"]
        return bp.concat([(bp.zeros_like(p.detach()) if p.grad is None else p.grad.detach()).reshape((-1,)) for p in own])

    def _move(self, x, t, d):
        """Writes x + t · d into the parameters; x: their values at t = 0."""
        start = 0
        with bp.no_grad():
            for p, values in zip(self.param_groups[0]["params"], x):
                p[...] = values + t * d[start : start + p.size].reshape(p.shape)
                start += p.size

    def _evaluate(self, closure):
        with bp.enable_grad():
            loss = closure()
        return loss, float(loss), self._gradient()

    # ---- the step ---------------------------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        if closure is None:
            raise bp.ArgumentTypeError("LBFGS.step: argument closure: missing; it computes the loss and the gradients")
        self._check_closure(closure)
        if _gradient_sync.average is not None:
            raise bp.MissingRuleError("LBFGS.step: it evaluates the loss several times, which a data-parallel step does not average; use another optimiser there")
        self._follow_moves()
        group = self.param_groups[0]
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first, f, g = self._evaluate(closure)
        evaluations = 1
        state["func_evals"] += 1
        if _largest(g) <= group["tolerance_grad"]:
            return first
        lr = float(group["lr"])
        for number in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            d = self._direction(state, g, group["history_size"])
            before = f
            state.update(prev_flat_grad=g, prev_loss=f, d=d)
            t = min(1.0, 1.0 / float(bp.abs(g).sum())) * lr if state["n_iter"] == 1 else lr
            slope = _dot(g, d)
            state["t"] = t
            if slope > -group["tolerance_change"]:
                break
            f, g, t, count = self._walk(closure, _Point(0.0, f, g, slope), t, d, evaluations, number)
            state["t"] = t
            evaluations += count
            state["func_evals"] += count
            if number == group["max_iter"] or evaluations >= group["max_eval"] or _largest(g) <= group["tolerance_grad"]:
                break
            if _largest(d * t) <= group["tolerance_change"] or abs(f - before) < group["tolerance_change"]:
                break
        return first

    def _walk(self, closure, start, t, d, evaluations, number):
        """Moves along d: (loss, gradient, step length, evaluations)."""
        group = self.param_groups[0]
        x = [bp.copy(p.detach()) for p in group["params"]]
        if group["line_search_fn"] is None:
            self._move(x, t, d)
            if number == group["max_iter"]:
                return start.f, start.g, t, 0
            _, f, g = self._evaluate(closure)
            return f, g, t, 1

        def at(length):
            self._move(x, length, d)
            _, f, g = self._evaluate(closure)
            return _Point(length, f, g, _dot(g, d))

        search = _LineSearch(at, start, _largest(d), 1e-9, group["max_eval"] - evaluations)
        point = search.find(t)
        self._move(x, point.t, d)
        return point.f, point.g, point.t, search.evaluations

    def _direction(self, state, g, size):
        """Minus the gradient times the approximate inverse Hessian, of the latest steps."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return -g
        y, s = g - state["prev_flat_grad"], state["d"] * state["t"]
        ys = _dot(y, s)
        if ys > 1e-10:
            for name, value in (("old_dirs", y), ("old_stps", s), ("ro", 1.0 / ys)):
                state[name] = [*state[name], value][-size:]
            state["H_diag"] = ys / _dot(y, y)
        q, shares = -g, []
        history = list(zip(state["old_dirs"], state["old_stps"], state["ro"]))
        for y, s, ro in reversed(history):
            share = _dot(s, q) * ro
            shares.append(share)
            q = q - share * y
        r = q * state["H_diag"]
        for (y, s, ro), share in zip(history, reversed(shares)):
            r = r + (share - _dot(y, r) * ro) * s
        return r
