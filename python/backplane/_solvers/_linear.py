"""cg: the method of conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import backplane as bp
from backplane import Tensor

__all__ = []


def cg(
    A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: Callable[[Any], Any] | None = None
) -> tuple[Any, Any]:
    """The solution of A x = b for a Hermitian, positive definite A, by conjugate gradients.

    A: a matrix, anything that has `@`, or a linear function of containers like b. M: a function that approximates the inverse of A.
    It ends when the norm of the residual is at most max(tol · |b|, atol), or after maxiter steps (10 per unknown).
    Returns (x like b, the number of steps as a tensor, or -1 if it did not converge).
    Gradients flow to b and to what A uses, and are those of the exact solution. It runs under compile and vmap.
    Errors: ShapeError where A(b) has another number of elements than b.
    Source: Hestenes and Stiefel, 1952.
    """
    leaves = [x if isinstance(x, Tensor) and "floating" in x.dtype.kind else bp.asarray(x, dtype=bp.default_dtype()) for x in bp.tree.leaves(b)]
    right, unravel = bp.ravel_pytree(bp.tree.unflatten(bp.tree.structure(b), leaves))
    size = right.size

    def apply(v):
        found = bp.ravel_pytree(A(unravel(v)) if callable(A) and not isinstance(A, Tensor) else A @ unravel(v))[0]
        if found.size != size:
            raise bp.ShapeError(f"cg: A gave {found.size} elements for {size}, those of b")
        return found

    def precondition(v):
        return v if M is None else bp.ravel_pytree(M(unravel(v)))[0]

    def solve(apply, precondition, right, start):
        limit = bp.maximum(tol * bp.linalg.vector_norm(right), atol)
        most = 10 * size if maxiter is None else maxiter

        def goes_on(value):
            _, r, _, _, count = value
            return (bp.linalg.vector_norm(r) > limit) & (count < most)

        def step(value):
            x, r, p, rho, count = value
            product = apply(p)
            alpha = rho / _dot(p, product)
            x, r = x + alpha * p, r - alpha * product
            z = precondition(r)
            after = _dot(r, z)
            return x, r, z + (after / rho) * p, after, count + 1

        r = right - apply(start)
        z = precondition(r)
        x, r, _, _, count = bp.while_loop(goes_on, step, (start, r, z, _dot(r, z), bp.asarray(0)))
        return x, bp.where(bp.linalg.vector_norm(r) > limit, -1, count)

    start = bp.zeros_like(right) if x0 is None else bp.ravel_pytree(x0)[0].astype(right.dtype)
    found, count = _differentiable(solve, bp.closure_convert(apply, right), bp.closure_convert(precondition, right), right, start)
    return unravel(found), count


def _dot(a, b):
    return bp.sum(bp.conj(a) * b)


def _differentiable(solve, operator, preconditioner, right, start):
    """The solution with its derivatives: x + A⁻¹ (b - A x), of which the second part is 0 and its derivatives are not.

    operator, preconditioner: functions with the tensors that they capture, as closure_convert gives them.
    """
    (apply, of_apply), (precondition, of_precondition) = operator, preconditioner
    count = len(of_apply)

    def solved(right, start, captured):
        ours, others = captured[:count], captured[count:]
        return solve(lambda v: apply(v, *ours), lambda v: precondition(v, *others), right, start)

    with bp.no_grad():
        constants = [bp.stop_gradient(x) for x in (*of_apply, *of_precondition)]
        found, steps = bp.stop_gradient(solved(bp.stop_gradient(right), bp.stop_gradient(start), constants))

    @bp.custom_function
    def inverse(r, *captured):
        return bp.zeros_like(r)

    def solution(r, captured):
        parts = (apply, captured[:count]), (precondition, captured[count:])
        return _differentiable(solve, *parts, r, bp.zeros_like(r))[0]

    floats = [i for i, x in enumerate(of_apply) if "floating" in x.dtype.kind]

    def product(y, captured):
        """A y as a function of what A captures."""

        def of_floats(*moved):
            replaced = dict(zip(floats, moved, strict=True))
            return apply(y, *(replaced.get(i, x) for i, x in enumerate(captured[:count])))

        return of_floats, [captured[i] for i in floats]

    def pull(kept, g):
        y, captured = kept
        found = solution(g, captured)
        of_floats, moved = product(y, captured)
        cotangents = dict(zip(floats, bp.vjp(of_floats, *moved)[1](-found), strict=True)) if floats else {}
        return found, *(cotangents.get(i) for i in range(len(captured)))

    def push(primals, tangents):
        y, captured = inverse(*primals), primals[1:]
        of_floats, moved = product(y, captured)
        right = tangents[0] - bp.jvp(of_floats, moved, [tangents[1 + i] for i in floats])[1] if floats else tangents[0]
        return y, solution(right, captured)

    # y = A⁻¹ r is 0, and what A moves of it is 0 too, but the derivatives of that are not. So the rules state all of it, and call
    # the function itself: derivatives of theirs have these rules, too.
    def forward(r, *captured):
        y = inverse(r, *captured)
        return y, (y, captured)

    inverse.defvjp(forward, pull)
    inverse.defjvp(push)
    return found + inverse(right - apply(found, *of_apply), *of_apply, *of_precondition), steps
