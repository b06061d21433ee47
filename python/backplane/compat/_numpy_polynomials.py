"""NumPy's functions of polynomials: vectors of coefficients, with the highest power first."""

from __future__ import annotations

from .. import _core, linalg
from .._api._creation_functions import vander
from .._api._joining_functions import concatenate
from .._api._manipulation_functions import atleast_1d
from .._calls._ops import NAMESPACE, ops
from .._api._searching_functions import nonzero

op = getattr(ops, NAMESPACE)

__all__ = ["poly", "polyder", "polyfit", "polyint", "polynomial_sum", "roots"]


def _coefficients(p):
    return atleast_1d(_core.asarray(p))


def poly(seq_of_zeros):
    """The polynomial with these roots."""
    roots = _coefficients(seq_of_zeros)
    if roots.ndim == 2:
        roots = linalg.eigvals(roots)
    found = op.full([1], 1.0, dtype=roots.dtype if "floating" in roots.dtype.kind else _core.float64)
    for place in range(roots.shape[0]):
        factor = op.stack([op.full([], 1, dtype=found.dtype), op.cast(op.negative(roots[place]), found.dtype)])
        found = _product(found, factor)
    if found.dtype.kind == "complex floating" and bool(op.all(op.less(op.abs(op.imag(found)), 1e-12 * (1 + op.max(op.abs(found)))))):
        return op.real(found)
    return found


def _product(a, b):
    from .._api._numeric_functions import convolve

    return convolve(a, b)


def polynomial_sum(a1, a2, sign):
    """a1 + sign * a2, the shorter one with zeros in front."""
    first, second = _coefficients(a1), _coefficients(a2)
    size = max(first.size, second.size)
    first, second = (concatenate([op.full([size - x.size], 0, dtype=x.dtype), x]) for x in (first, second))
    return op.add(first, second) if sign > 0 else op.subtract(first, second)


def polyder(p, m):
    """The m-th derivative."""
    p = _coefficients(p)
    for _ in range(m):
        powers = op.iota(max(p.size - 1, 0), start=p.size - 1, step=-1)
        p = op.multiply(p[:-1], op.cast(powers, p.dtype))
    return p


def polyint(p, m, k):
    """The m-th integral, with the constants k."""
    p = _coefficients(p)
    p = p if "floating" in p.dtype.kind else op.cast(p, _core.float64)
    constants = [0] * m if k is None else [k] * m if not hasattr(k, "__len__") else list(k)
    for constant in constants:
        powers = op.cast(op.iota(p.size, start=p.size, step=-1), p.dtype)
        p = concatenate([op.divide(p, powers), op.full([1], constant, dtype=p.dtype)])
    return p


def polyfit(x, y, deg):
    """The polynomial of degree deg with the least squares from the points."""
    x, y = op.cast(_core.asarray(x), _core.float64), op.cast(_core.asarray(y), _core.float64)
    if x.ndim != 1 or y.ndim not in (1, 2) or x.size != y.shape[0]:
        raise _core.ShapeError(f"polyfit: found x of shape {tuple(x.shape)} and y of {tuple(y.shape)}, expected a vector and as many values")
    rows = vander(x, deg + 1)
    scale = op.sqrt(op.sum(op.square(rows), 0))
    found = linalg.lstsq(op.divide(rows, scale), y if y.ndim == 2 else op.expand_dims(y, 1))[0]
    found = op.divide(found, op.expand_dims(scale, 1))
    return found if y.ndim == 2 else found[:, 0]


def roots(p):
    """The roots: the eigenvalues of the companion matrix, and a 0 for each coefficient 0 at the end."""
    p = _coefficients(p)
    p = p if "floating" in p.dtype.kind else op.cast(p, _core.float64)
    places = nonzero(p)[0].tolist()
    if not places:
        return op.full([0], 0, dtype=p.dtype)
    zeros = p.size - 1 - places[-1]
    p = p[places[0] : places[-1] + 1]
    size = p.size - 1
    if size == 0:
        return op.full([zeros], 0, dtype=p.dtype)
    below = op.cast(op.eye(size, size, k=-1), p.dtype)
    first = op.expand_dims(op.negative(op.divide(p[1:], p[0])), 0)
    found = linalg.eigvals(concatenate([first, below[1:]]))
    if bool(op.all(op.equal(op.imag(found), 0))):
        found = op.real(found)
    return concatenate([found, op.full([zeros], 0, dtype=found.dtype)])
