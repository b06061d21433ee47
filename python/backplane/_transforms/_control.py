"""Structured control flow: cond, while_loop, scan, map, associative_scan, over containers of tensors.

The functions are traced (see make_graph) and become arguments of an op, so that they run eagerly, inside graphs, and under every
transform. What they use from outside, tensors of transforms too, is handed to them.
"""

from __future__ import annotations

from .. import _core, tree
from .._api._data_type_functions import result_type
from .._api._manipulation_functions import normalized_axis
from .._calls._ops import NAMESPACE, ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._core import Tensor

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]

op = getattr(ops, NAMESPACE)


def cond(pred: Tensor | bool, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """true_fun(*operands) where pred holds, else false_fun(*operands); one of the two runs.

    pred: a bool, or a bool tensor of one element. Both functions return tensors of the same structure, shapes and dtypes. Random
    numbers that they draw are drawn whichever runs. operands: containers of tensors; other leaves are passed through. Under vmap with a batched pred both
    run, and where chooses.
    Errors: ArgumentTypeError and ShapeError where the two return different things.
    """
    return _with_numbers_adopting(lambda dtypes: _cond(pred, true_fun, false_fun, operands, dtypes))


def _cond(pred, true_fun, false_fun, operands, dtypes):
    leaves, structure = tree.flatten(operands)
    if _has_named_dims(pred, *leaves):
        return _over_named_dims(cond, pred, true_fun, false_fun, *operands)
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, _core.Tensor)]
    tensors = [leaves[i] for i in places]
    returned, results = [], []

    def flat(function):
        def run(found):
            mixed = list(leaves)
            for place, tensor in zip(places, found):
                mixed[place] = tensor
            values, returned_structure = tree.flatten(function(*tree.unflatten(structure, mixed)))
            found = _adopting(_unnamed(values), dtypes)
            returned.append(returned_structure)
            results.append((values, found))
            if returned[-1] != returned[0]:
                raise _core.ArgumentTypeError(f"cond: the two functions return different structures, {returned[0]} and {returned[-1]}")
            _adopt(*results[0], found, dtypes)
            _adopt(values, found, results[0][1], dtypes)
            return found

        return run, tensors

    found = _core.call_control("cond", "bp::cond", [flat(true_fun), flat(false_fun)], [_core.asarray(pred), tensors], draws="once")
    return tree.unflatten(returned[0], found)


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """value = body_fun(value), from init_val on, as long as cond_fun(value) holds; the last value.

    value: a container of tensors (numbers become some), whose structure, shapes and dtypes body_fun keeps. cond_fun returns one bool.
    Neither draws random numbers, as nobody knows how often it will run.
    There is forward mode and no reverse mode: the number of steps is not known; use scan for that.
    Errors: ShapeError where body_fun changes a shape or a dtype; MissingRuleError in reverse mode.
    """
    return _with_numbers_adopting(lambda dtypes: _while_loop(cond_fun, body_fun, init_val, dtypes))


def _while_loop(cond_fun, body_fun, init_val, dtypes):
    leaves, structure = tree.flatten(init_val)
    if _has_named_dims(*leaves):
        return _over_named_dims(while_loop, cond_fun, body_fun, init_val)
    carry, returned = _adopting(leaves, dtypes), []

    def condition(found):
        return _results(cond_fun(tree.unflatten(structure, found)), [])

    def body(found):
        return _carried_on(body_fun(tree.unflatten(structure, found)), returned, leaves, carry, dtypes)

    found = _core.call_control("while_loop", "bp::while_loop", [(condition, carry), (body, carry)], [carry, []])
    _check_structure("while_loop", returned[0], structure)
    return tree.unflatten(structure, found)


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None, length: int | None = None, reverse: bool = False
) -> tuple[Any, Any]:
    """(carry, y) = f(carry, x) for each x along axis 0 of xs: the last carry, and all y stacked.

    init: a container of tensors (numbers become some), whose structure, shapes and dtypes f keeps. xs: a container of tensors of one
    first size, or None with length. reverse: from the last x to the first; each y stands where its x does.
    Random numbers that f draws are others for each step; those of all steps are drawn before the first one, and kept. A gradient
    keeps the carry of each step, and computes the step again.
    Errors: ShapeError where f changes a shape or a dtype of the carry, or the first sizes of xs differ.
    """
    if _has_named_dims(*tree.leaves((init, xs))):
        return _over_named_dims(scan, f, init, xs, length, reverse)
    return _scan("scan", f, init, xs, length, reverse)


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """f of each element along axis 0 of xs, stacked: one after the other, where vmap takes all at once.

    Random numbers that f draws are others for each element.
    """
    if _has_named_dims(*tree.leaves(xs)):
        return _over_named_dims(map, f, xs)
    return _scan("map", lambda _, x: ((), f(x)), (), xs, None, False)[1]


def _scan(name, f, init, xs, length, reverse):
    slices, xs_structure = _tensors(xs)
    length = _length(name, slices, length)
    return _with_numbers_adopting(lambda dtypes: _scan_of(name, f, init, slices, xs_structure, length, reverse, dtypes))


def _scan_of(name, f, init, slices, xs_structure, length, reverse, dtypes):
    leaves, structure = tree.flatten(init)
    carry, returned = _adopting(leaves, dtypes), []

    def body(found):
        result = f(tree.unflatten(structure, found[: len(carry)]), tree.unflatten(xs_structure, found[len(carry) : len(carry) + len(slices)]))
        if not isinstance(result, tuple) or len(result) != 2:
            raise _core.ArgumentTypeError(f"{name}: the function returned {type(result).__name__}, expected a pair (carry, y)")
        return _carried_on(result[0], returned, leaves, carry, dtypes) + _results(result[1], returned)

    rows = (len(carry), len(slices))
    found = _core.call_control(name, "bp::scan", [(body, carry + slices)], [carry, slices, []], rows, length, reverse, "per row")
    _check_structure(name, returned[0], structure)
    return tree.unflatten(structure, found[: len(carry)]), tree.unflatten(returned[1], found[len(carry) :])


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """The running combination of elems along an axis, in about twice the logarithm of its size of steps.

    fn(a, b): associative, over containers like elems, element by element along the axis, whose size differs from call to call.
    a combines what comes before b. reverse: from the last element to the first, so that a stands behind b along the axis: the scan of
    the flipped elems, flipped back, as JAX does it. The order matters where fn does not commute.
    Source: Blelloch, "Prefix sums and their applications", 1990.
    """
    if _has_named_dims(*tree.leaves(elems)):
        return _over_named_dims(associative_scan, fn, elems, reverse, axis)
    leaves, structure = _tensors(elems)
    if not leaves:
        return elems
    for leaf in leaves:
        normalized_axis("associative_scan", axis, leaf.ndim)
    moved = [op.moveaxis(leaf, axis, 0) for leaf in leaves]
    if len(_different(leaf.shape[0] for leaf in moved)) != 1:
        raise _core.ShapeError(f"associative_scan: the tensors have different sizes along axis {axis}")

    def combine(a, b):
        sides = [[op.moveaxis(x, 0, axis) for x in side] for side in (a, b)]
        found, returned = _tensors(fn(*(tree.unflatten(structure, side) for side in sides)))
        if returned != structure:
            raise _core.ArgumentTypeError(f"associative_scan: the function returned {returned}, expected the structure of elems, {structure}")
        for x, like in zip(found, sides[0]):
            if x.shape != like.shape:
                raise _core.ShapeError(
                    f"associative_scan: the function returned a tensor of shape {tuple(x.shape)}, expected the shape of its arguments, {tuple(like.shape)}"
                )
        return found

    def forward(a, b):
        return [op.moveaxis(x, axis, 0) for x in combine(a, b)]

    found = _running(forward, [op.flip(x, axis=0) for x in moved] if reverse else moved)
    found = [op.flip(x, axis=0) for x in found] if reverse else found
    return tree.unflatten(structure, [op.moveaxis(x, 0, axis) for x in found])


def _running(fn, elems):
    """Pairs are combined, their running combinations give every second result, and one more step the others."""
    size = elems[0].shape[0]
    if size < 2:
        return elems
    odd = _running(fn, fn([x[: size - 1 : 2] for x in elems], [x[1::2] for x in elems]))
    if size == 2:
        return [op.concat([x[:1], o]) for x, o in zip(elems, odd)]
    even = fn([o[:-1] if size % 2 == 0 else o for o in odd], [x[2::2] for x in elems])
    return [_interleaved(op.concat([x[:1], e]), o) for x, e, o in zip(elems, even, odd)]


def _interleaved(even, odd):
    shared = odd.shape[0]
    both = op.reshape(op.stack([even[:shared], odd], axis=1), (2 * shared, *odd.shape[1:]))
    return op.concat([both, even[shared:]]) if even.shape[0] > shared else both


def _tensors(container):
    leaves, structure = tree.flatten(container)
    return [_core.asarray(leaf) for leaf in _unnamed(leaves)], structure


def _has_named_dims(*values):
    return any(hasattr(type(value), "named_dims") for value in values)


def _over_named_dims(function, *args):
    """function(*args), batched over the named dimensions of its operands."""
    from .._dims._calls import batched  # only where a program has named dimensions

    return batched(function, args, {})


def _unnamed(leaves):
    """The leaves of what a function returned. Named dimensions that no operand has are unknown to its caller."""
    for leaf in leaves:
        if _has_named_dims(leaf):
            raise _core.ArgumentTypeError(
                f"a function of control flow returned a tensor with the named dimensions {leaf.dims}, expected a plain tensor. Fix: pass "
                "tensors with named dimensions as operands, or order them first, as in x.order(i)"
            )
    return leaves


def _results(value, structures):
    leaves, structure = _tensors(value)
    structures.append(structure)
    return leaves


class _Adopted(Exception):
    """A number of Python has got another dtype of the tensors that it meets: the functions are traced again."""


def _with_numbers_adopting(call):
    """call(dtypes), again as long as a number adopts a dtype; dtypes: of which one is made a tensor, by its place."""
    dtypes = {}
    while True:
        try:
            return call(dtypes)
        except _Adopted:
            pass


def _is_number(leaf):
    return isinstance(leaf, (int, float, complex)) and not hasattr(leaf, "dtype")


def _adopting(leaves, dtypes):
    return [_core.asarray(leaf, dtype=dtypes.get(i)) if _is_number(leaf) else _core.asarray(leaf) for i, leaf in enumerate(leaves)]


def _adopt(leaves, tensors, others, dtypes):
    """Numbers adopt the wider dtypes of the tensors beside them, as in an operator."""
    adopted = False
    for i, (leaf, tensor, other) in enumerate(zip(leaves, tensors, others)):
        if _is_number(leaf) and tensor.dtype != other.dtype and result_type(tensor, other) == result_type(other, leaf) == other.dtype:
            dtypes[i] = other.dtype
            adopted = True
    if adopted:
        raise _Adopted


def _carried_on(value, structures, leaves, carry, dtypes):
    """The carry that a body returns: in it numbers are of the dtype that was carried, where that can hold them."""
    values, structure = tree.flatten(value)
    _unnamed(values)
    structures.append(structure)
    kept = {i: like.dtype for i, (x, like) in enumerate(zip(values, carry)) if _is_number(x) and result_type(like, x) == like.dtype}
    found = _adopting(values, kept)
    if len(found) == len(carry):
        _adopt(leaves, carry, found, dtypes)
    return found


def _check_structure(name, found, expected):
    if found != expected:
        found, expected = (str(structure).removeprefix("Structure(").removesuffix(")") for structure in (found, expected))
        raise _core.ArgumentTypeError(
            f"{name}: the function carries on {found}, expected the structure of its argument, {expected} (* is a tensor)"
        )


def _different(sizes):
    """The distinct sizes, by comparison: a trace follows comparisons of a dynamic size, but not its hash."""
    found = []
    for size in sizes:
        if size not in found:
            found.append(size)
    return found


def _length(name, slices, length):
    sizes = _different([x.shape[0] if x.ndim else None for x in slices] + ([] if length is None else [length]))
    if not sizes:
        raise _core.ShapeError(f"{name}: found no tensors in xs and no length, expected one of the two. Fix: pass length=")
    if None in sizes:
        raise _core.ShapeError(f"{name}: argument xs: found a tensor without axes, expected at least one, because the loop goes along axis 0. Fix: add an axis with x.reshape(1), or make it part of init")
    if len(sizes) != 1:
        raise _core.ShapeError(f"{name}: axis 0 of xs, and length: found the sizes {sorted(str(size) for size in sizes)}, expected one size")
    found = sizes[0]
    if found < 0:
        raise _core.OutOfRangeError(f"{name}: argument length: found {found}, expected 0 or more")
    return found
