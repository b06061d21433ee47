"""einsum: sums of products named by letters, by matrix products of two operands at a time, the cheapest pair first."""

from __future__ import annotations

import itertools
import math

from .. import _core
from ._data_type_functions import result_type
from .._calls._ops import NAMESPACE, ops
from .._calls._tensor_argument import KEPT, given_tensor, names_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._core import Tensor

op = getattr(ops, NAMESPACE)

__all__ = ["einsum"]

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _fail(text):
    raise _core.ArgumentValueError(f"einsum: argument subscripts: {text}")


def _spelled(args):
    """The letters and operands of einsum(x, [0, 1], y, [1, 2], [0, 2])."""
    pairs, out = args[: len(args) // 2 * 2], args[len(args) // 2 * 2 :]

    def text(places):
        return "".join("..." if place is Ellipsis else _LETTERS[place] for place in places)

    left = ",".join(text(places) for places in pairs[1::2])
    return left + ("->" + text(out[0]) if out else ""), list(pairs[::2])


def _axes_of(term, ndim, dots):
    """The labels of an operand's axes; those of its ellipsis are the last ones of `dots`."""
    if term.count(".") not in (0, 3) or (("." in term) and "..." not in term):
        _fail(f"found {term!r}, expected letters and at most one '...'")
    head, ellipsis, tail = term.partition("...")
    covered = ndim - len(head) - len(tail)
    if covered < 0 or (covered > 0 and not ellipsis):
        _fail(f"found {term!r} for an operand of {ndim} dimensions, expected as many letters")
    return [*head, *(dots[len(dots) - covered :] if ellipsis else []), *tail]


_parsed = {}  # what _parse gave, of the last 256 at most


def _labels(subscripts, ranks):
    """What _parse gives, which is kept."""
    found = _parsed.get((subscripts, ranks))
    if found is None:
        if len(_parsed) == 256:
            _parsed.clear()
        found = _parsed[subscripts, ranks] = _parse(subscripts, ranks)
    return found


def _parse(subscripts, ranks):
    """The labels of the axes of each operand, which has this rank, and of the result. Axes of the ellipsis are numbers."""
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        _fail(f"found {len(terms)} terms for {len(ranks)} operands")
    for letter in set(left + right) - set(_LETTERS + ".,"):
        _fail(f"found {letter!r}, expected letters, ',', '...' and '->'")
    rank = max((ndim - len(term.replace(".", "")) for term, ndim in zip(terms, ranks) if "." in term), default=0)
    dots = list(range(max(rank, 0)))
    labels = [_axes_of(term, ndim, dots) for term, ndim in zip(terms, ranks)]
    if not arrow:
        letters = sorted(left.replace(",", "").replace(".", ""))
        return labels, dots + [letter for letter in letters if letters.count(letter) == 1]
    out = _axes_of(right, len(right.replace(".", "")) + (len(dots) if "..." in right else 0), dots)
    if len(set(out)) < len(out):
        _fail(f"found the result {right!r}, expected each letter once")
    for label in out:
        if not any(label in axes for axes in labels):
            _fail(f"found {label!r} in the result alone")
    return labels, out


def _diagonal(x, labels):
    """x and its labels with each repeated label as one axis, the diagonal."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if x.shape[first] != x.shape[second]:
                _fail(f"found sizes {x.shape[first]} and {x.shape[second]} of {label!r} in one operand, expected one size")
            x = op.diagonal(x, axis1=first, axis2=second)
            labels = [name for place, name in enumerate(labels) if place not in (first, second)] + [label]
    return x, labels


def _sizes(terms):
    sizes = {}
    for x, labels in terms:
        for label, size in zip(labels, x.shape):
            known = sizes.setdefault(label, size)
            if known == 1:
                sizes[label] = size
            elif size not in (1, known):
                raise _core.ShapeError(f"einsum: found sizes {known} and {size} of axis {label!r}, expected one size, or 1")
    return sizes


def _without_ones(x, labels, sizes):
    """An axis of size 1 that is longer elsewhere broadcasts: it may as well be absent."""
    ones = [place for place, label in enumerate(labels) if x.shape[place] == 1 and sizes[label] != 1]
    if not ones:
        return x, labels
    return op.squeeze(x, ones), [label for place, label in enumerate(labels) if place not in ones]


def _summed(x, labels, keep):
    """x summed over the axes whose label nothing else needs."""
    gone = [place for place, label in enumerate(labels) if label not in keep]
    if not gone:
        return x, labels
    return op.sum(x, gone, dtype=x.dtype), [label for label in labels if label in keep]


def _permuted(x, labels, wanted):
    return x if labels == wanted else op.permute_dims(x, [labels.index(label) for label in wanted])


def _arranged(x, labels, groups, sizes):
    """x with one axis for each group of labels."""
    x = _permuted(x, labels, [label for group in groups for label in group])
    if all(len(group) == 1 for group in groups):
        return x
    return op.reshape(x, [math.prod(sizes[label] for label in group) for group in groups])


def _product(a, b, keep, sizes):
    """The product of two operands, summed over the labels that only they have."""
    (x, left), (y, right) = (_summed(*one, keep | set(other[1])) for one, other in ((a, b), (b, a)))
    batch = [label for label in left if label in right and label in keep]
    inner = [label for label in left if label in right and label not in keep]
    rows, columns = [label for label in left if label not in right], [label for label in right if label not in left]
    found = batch + rows + columns
    stack = [batch] if batch else []
    if inner:
        z = op.matmul(_arranged(x, left, [*stack, rows, inner], sizes), _arranged(y, right, [*stack, inner, columns], sizes))
    else:
        z = op.multiply(_arranged(x, left, [*stack, rows, []], sizes), _arranged(y, right, [*stack, [], columns], sizes))
    if all(len(group) == 1 for group in (*stack, rows, columns)):
        return z, found
    return op.reshape(z, [sizes[label] for label in found]), found


def _cheapest(terms, out, sizes):
    """The pair whose product takes the fewest multiplications; of equals the one with the smaller result."""

    def cost(pair):
        i, j = pair
        both = set(terms[i][1]) | set(terms[j][1])
        keep = set(out).union(*(labels for k, (_, labels) in enumerate(terms) if k not in pair))
        return math.prod(sizes[label] for label in both), math.prod(sizes[label] for label in both & keep)

    return min(itertools.combinations(range(len(terms)), 2), key=cost)


@names_errors
def einsum(subscripts: Any, /, *operands: Any, optimize: bool = True) -> Tensor:
    """Sums of products: einsum('ij,jk->ik', x, y) is the matrix product; letters that the result lacks are summed over.

    subscripts as NumPy's: repeated letters take diagonals, '...' stands for any further axes, which broadcast; without '->' the
    result has the letters that occur once, in order. The form einsum(x, [0, 1], y, [1, 2], [0, 2]) is taken as well.
    optimize: False multiplies from left to right, else the cheapest pair comes first.
    """
    for kind in map(type, (subscripts, *operands)):
        if kind in KEPT:
            return KEPT[kind][1](subscripts, operands, {"optimize": optimize})
    if any(isinstance(x, str) for x in operands):
        _fail("found subscripts behind an operand, expected them first: einsum('ij->', x)")
    if not isinstance(subscripts, str):
        subscripts, operands = _spelled((subscripts, *operands))
    if not operands:
        _fail("found no operands, expected at least one")
    operands = [given_tensor("einsum", f"operands[{place}]", x, operands) for place, x in enumerate(operands)]
    bools = all(x.dtype is _core.bool for x in operands)
    if bools:
        operands = [op.cast(x, _core.int64) for x in operands]
    elif any(x.dtype is not operands[0].dtype for x in operands):
        dtype = result_type(*operands)  # before a sum of one operand or a product of two is rounded to a narrower one
        operands = [op.cast(x, dtype) for x in operands]
    labels, out = _labels(subscripts, tuple(x.ndim for x in operands))
    terms = [_diagonal(x, axes) for x, axes in zip(operands, labels)]
    sizes = _sizes(terms)
    terms = [_without_ones(x, axes, sizes) for x, axes in terms]
    while len(terms) > 1:
        i, j = _cheapest(terms, out, sizes) if optimize and len(terms) > 2 else (0, 1)
        rest = [term for k, term in enumerate(terms) if k not in (i, j)]
        keep = set(out).union(*(axes for _, axes in rest))
        terms = [_product(terms[i], terms[j], keep, sizes), *rest]
    x, axes = _summed(*terms[0], set(out))
    alone = len(operands) == 1  # the result is a view then, not the operand itself
    result = op.permute_dims(x, [axes.index(label) for label in out]) if alone else _permuted(x, axes, out)
    return op.cast(result, _core.bool) if bools else result
