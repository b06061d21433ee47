"""Products of several matrices for linalg.py: chains in the cheapest order, powers of whole numbers."""

from .. import _core
from .._calls._ops import NAMESPACE, ops

op = getattr(ops, NAMESPACE)


def chain_product(arrays):
    """The product of matrices, in the order of multiplication that takes the fewest operations."""
    splits = _splits([x.shape[0] for x in arrays] + [arrays[-1].shape[1]])
    return _product(arrays, splits, 0, len(arrays) - 1)


def _splits(sizes):
    """Where to split the chain from i to j, for all i < j (Cormen and others, Introduction to Algorithms, 15.2)."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            ways = {k: cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)}
            split[i, j] = min(ways, key=ways.get)
            cost[i, j] = ways[split[i, j]]
    return split


def _product(arrays, split, i, j):
    if i == j:
        return arrays[i]
    k = split[i, j]
    return op.matmul(_product(arrays, split, i, k), _product(arrays, split, k + 1, j))


def whole_power(x, n):
    """The n-th powers of square matrices of integers, in their dtype, n not negative."""
    power = op.broadcast_to(op.eye(x.shape[-1], dtype=x.dtype, device=x.device), x.shape)
    while n:
        if n & 1:
            power = op.matmul(power, x)
        n >>= 1
        x = op.matmul(x, x) if n else x
    return power


def of_triangle(function, x, uplo):
    """Hermitian matrices of one triangle of x, NumPy's 'L' or 'U'; for None x itself."""
    if uplo is None:
        return x
    if uplo not in ("L", "U", "l", "u"):
        raise _core.ArgumentValueError(f"{function}: argument UPLO: found {uplo!r}, expected 'L' or 'U'")
    below = op.tril(x if uplo in "Ll" else op.conj(x).mT, k=-1)
    return op.add(op.add(below, op.conj(below).mT), op.triu(op.tril(x)))
