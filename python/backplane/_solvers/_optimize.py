"""minimize by BFGS and by L-BFGS with bounds, and least_squares by Levenberg and Marquardt's method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import backplane as bp
from backplane import Tensor

__all__ = []


class OptimizeResult(dict[str, Any]):
    """What a solver found, as attributes and as a dict: x, fun, jac, nit, nfev, success, message, as in SciPy."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"OptimizeResult: has no attribute {name!r}, expected one of {', '.join(self)}", name=name, obj=self) from None

    def __dir__(self) -> list[str]:
        return list(self)

    def __repr__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:>{width}}: {value}" for name, value in self.items())


def _flat(function, x0, name):
    leaves = bp.tree.leaves(x0)
    if not leaves:
        raise bp.ArgumentValueError(f"{name}: argument x0: found no numbers")
    floats = [x if isinstance(x, Tensor) and "real floating" == x.dtype.kind else bp.asarray(x, dtype=bp.default_dtype()) for x in leaves]
    x, unravel = bp.ravel_pytree(bp.tree.unflatten(bp.tree.structure(x0), floats))
    return bp.stop_gradient(x), unravel


def minimize(
    fun: Callable[..., Any], x0: Any, args: tuple[Any, ...] = (), method: str | None = None, tol: float | None = None, options: dict[str, Any] | None = None,
    *, bounds: Any = None,
) -> OptimizeResult:
    """The minimum of fun(x, *args), near x0, by the method of Broyden, Fletcher, Goldfarb and Shanno.

    fun: returns a tensor without axes. x0: a container of tensors; floats become the default dtype, and a list of numbers a vector.
    method: "BFGS", or "L-BFGS-B", which keeps ten pairs of vectors instead of a matrix and takes bounds; None chooses by bounds.
    tol: the largest element of the gradient at the end (1e-5), with bounds of the projected gradient.
    options: {"maxiter": 200 per unknown, "gtol": as tol}, of L-BFGS-B also {"ftol": 1e-9 of the value, at least of 1; the fall per step}.
    bounds: a pair (low, high) per unknown, None for no bound, or an object with lb and ub. Every point that fun gets is within them.
    Returns x like x0, fun, jac (the gradient, like x0), hess_inv (of BFGS), nit, nfev, success and message.
    It reads values, so it runs outside of compile and vmap.
    Errors: ArgumentValueError for another method, and for bounds that do not fit.
    Source: Nocedal and Wright, "Numerical optimization", 2nd ed., 2006, chapter 6; the line search is that of Lewis and Overton, 2013.
    """
    options = dict(options or {})
    name = (method or ("BFGS" if bounds is None else "L-BFGS-B")).upper()
    if name not in ("BFGS", "L-BFGS-B"):
        raise bp.ArgumentValueError(f"minimize: argument method: found {method!r}, expected 'BFGS' or 'L-BFGS-B'")
    if name == "BFGS" and bounds is not None:
        raise bp.ArgumentValueError("minimize: found bounds with the method 'BFGS', expected 'L-BFGS-B'")
    if isinstance(x0, list) and x0 and all(isinstance(x, (int, float)) for x in x0):
        x0 = bp.asarray([float(x) for x in x0])
    x, unravel = _flat(fun, x0, "minimize")
    gtol = options.pop("gtol", 1e-5 if tol is None else tol)
    most = options.pop("maxiter", 200 * x.size)
    ftol = options.pop("ftol", max(1e-9, 10 * bp.finfo(x.dtype).eps)) if name == "L-BFGS-B" else 0.0
    if options:
        raise bp.ArgumentValueError(f"minimize: argument options: found {next(iter(options))!r}, expected 'gtol', 'maxiter' or, of L-BFGS-B, 'ftol'")
    both, count = bp.value_and_grad(lambda v: fun(unravel(v), *args)), 0

    def evaluate(v):
        nonlocal count
        count += 1
        try:
            value, gradient = both(v)
        except TypeError as error:
            if count > 1 or isinstance(x0, Tensor) or isinstance(error, bp.BackplaneError):
                raise
            raise bp.ArgumentTypeError(
                f"minimize: argument x0: found a {type(x0).__name__}, which fun gets as a {type(x0).__name__} of tensors, and fun raised TypeError: {error}. "
                "Fix: pass a tensor, bp.asarray(x0), or compute with the elements"
            ) from error
        return value.item(), gradient

    if name == "L-BFGS-B":
        from ._bounded import bounded, limits

        low, high = (bp.full_like(x, -bp.inf), bp.full_like(x, bp.inf)) if bounds is None else limits(bounds, x)
        x, value, g, nit, message, success = bounded(evaluate, x, low, high, gtol, ftol, most)
        return OptimizeResult(x=unravel(x), fun=bp.asarray(value, dtype=x.dtype), jac=unravel(g), nit=nit, nfev=count, success=success, message=message)
    value, g = evaluate(x)
    inverse, nit, message = bp.eye(x.size, dtype=x.dtype, device=x.device), 0, ""
    while not message:
        if bp.max(bp.abs(g)).item() <= gtol:
            message = "The gradient is below gtol."
        elif nit >= most:
            message = "The largest number of iterations has been reached."
        else:
            direction = -(inverse @ g)
            if bp.sum(direction * g).item() >= 0:  # rounding has spoiled the matrix
                inverse = bp.eye(x.size, dtype=x.dtype, device=x.device)
                direction = -g
            found = _line_search(evaluate, x, value, g, direction, 1.0 if nit else min(1.0, 1.0 / max(bp.sum(bp.abs(g)).item(), 1e-30)))
            if found is None:
                message = "No lower value was found along the search direction: the precision of the dtype is reached."
                break
            after, value, g_after = found
            s, y = after - x, g_after - g
            sy = bp.sum(s * y).item()
            if sy > 1e-14 * max(bp.sum(y * y).item(), 1e-300):
                if nit == 0:
                    inverse = inverse * (sy / bp.sum(y * y).item())
                hy = inverse @ y
                scale = (1 + bp.sum(y * hy).item() / sy) / sy
                inverse = inverse + scale * (s[:, None] * s) - (hy[:, None] * s + s[:, None] * hy) / sy
            x, g, nit = after, g_after, nit + 1
    success = bp.max(bp.abs(g)).item() <= gtol
    return OptimizeResult(x=unravel(x), fun=bp.asarray(value, dtype=x.dtype), jac=unravel(g), hess_inv=inverse, nit=nit, nfev=count, success=success, message=message)


def _line_search(evaluate, x, value, g, direction, step):
    """A point where the value has fallen and the slope has risen enough, by bisection; None: there is none that differs from x."""
    slope, low, high, best = bp.sum(direction * g).item(), 0.0, float("inf"), None
    for _ in range(50):
        after = x + step * direction
        found, gradient = evaluate(after)
        if not found <= value + 1e-4 * step * slope:
            high = step
        elif bp.sum(direction * gradient).item() < 0.9 * slope:
            low, best = step, (after, found, gradient)
        else:
            return after, found, gradient
        step = (low + high) / 2 if high < float("inf") else 2 * low
    return best


def least_squares(
    fun: Callable[..., Any], x0: Any, args: tuple[Any, ...] = (), *, ftol: float = 1e-8, xtol: float = 1e-8, gtol: float = 1e-8, max_nfev: int | None = None
) -> OptimizeResult:
    """The x near x0 for which half the sum of squares of the residuals fun(x, *args) is smallest, by Levenberg and Marquardt's method.

    fun: returns a tensor, or a container of tensors. x0: a container of tensors; floats become the default dtype.
    It ends when the cost falls by less than ftol of it, x changes by less than xtol of it, or the gradient is below gtol.
    Returns x like x0, cost, fun (the residuals as a vector), jac (a matrix), grad, optimality, nfev, njev, success and message.
    It reads values, so it runs outside of compile and vmap.
    Source: Madsen, Nielsen and Tingleff, "Methods for non-linear least squares problems", 2004, section 3.2.
    """
    x, unravel = _flat(fun, x0, "least_squares")
    most = 100 * x.size if max_nfev is None else max_nfev

    def residuals(v):
        return bp.ravel_pytree(fun(unravel(v), *args))[0]

    r = residuals(x)
    jacobian = bp.jacrev(residuals) if r.size < x.size else bp.jacfwd(residuals)
    j = jacobian(x)
    cost, nfev, njev, message = 0.5 * bp.sum(r * r).item(), 1, 1, ""
    normal, g = j.T @ j, j.T @ r
    damping, growth = 1e-3 * max(bp.max(bp.linalg.diagonal(normal)).item(), 1e-30), 2.0
    identity = bp.eye(x.size, dtype=x.dtype, device=x.device)
    while not message:
        if bp.max(bp.abs(g)).item() <= gtol:
            message = "The gradient is below gtol."
            break
        if nfev >= most:
            message = "The largest number of evaluations has been reached."
            break
        step = -bp.linalg.solve(normal + damping * identity, g)
        size = bp.linalg.vector_norm(step).item()
        if size <= xtol * (xtol + bp.linalg.vector_norm(x).item()):
            message = "The change of x is below xtol."
            break
        after = residuals(x + step)
        nfev += 1
        new_cost = 0.5 * bp.sum(after * after).item()
        expected = 0.5 * bp.sum(step * (damping * step - g)).item()
        gain = (cost - new_cost) / expected if expected > 0 else -1.0
        if gain > 0:
            if cost - new_cost <= ftol * cost:
                message = "The cost falls by less than ftol."
            x, r, cost = x + step, after, new_cost
            j, njev = jacobian(x), njev + 1
            normal, g = j.T @ j, j.T @ r
            damping, growth = damping * max(1 / 3, 1 - (2 * gain - 1) ** 3), 2.0
        else:
            damping, growth = damping * growth, growth * 2
            if not damping < 1e300:
                message = "No lower cost was found: the precision of the dtype is reached, or the residuals are not finite."
                break
    success = "largest" not in message and "No lower" not in message
    return OptimizeResult(
        x=unravel(x), cost=bp.asarray(cost, dtype=x.dtype), fun=r, jac=j, grad=g, optimality=bp.max(bp.abs(g)), nfev=nfev, njev=njev, success=success, message=message
    )
