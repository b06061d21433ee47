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

    # The rules call the function itself, so that derivatives of theirs have these rules too. What A moves is in b - A x.
    inverse.defvjp(lambda r, *captured: (inverse(r, *captured), captured), lambda captured, g: (solution(g, captured), *[None] * len(captured)))
    inverse.defjvp(lambda primals, tangents: (inverse(*primals), solution(tangents[0], primals[1:])))
    return found + inverse(right - apply(found, *of_apply), *of_apply, *of_precondition), steps
