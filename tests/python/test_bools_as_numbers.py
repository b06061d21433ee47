"""Bools compare, have extremes, and add and multiply as NumPy's do; logical functions take numbers for true where they are not 0."""

import itertools
import operator

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(3)
SHAPES = [(), (5,), (3, 70), (2, 300, 3)]
PAIRS = ["add", "multiply", "maximum", "minimum", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal"]
LOGICAL = ["logical_and", "logical_or", "logical_xor"]
NUMBERS = [np.bool_, np.int8, np.uint64, np.float32, np.float64, np.complex64]


def same(found, expected):
    assert found.dtype.name == np.asarray(expected).dtype.name and found.shape == np.shape(expected)
    np.testing.assert_array_equal(found.numpy(), expected)


def bools(shape):
    return RNG.random(shape) < 0.5


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PAIRS)
def test_two_bools(name, shape):
    a, b = bools(shape), bools(shape)
    same(getattr(bp, name)(bp.asarray(a), bp.asarray(b)), getattr(np, name)(a, b))
    same(getattr(bp, name)(bp.asarray(a).T, bp.asarray(b).T), getattr(np, name)(a.T, b.T))
    same(getattr(bp, name)(bp.asarray(a), True), getattr(np, name)(a, True))


@pytest.mark.parametrize("change", [operator.iadd, operator.imul])
def test_in_place(change):
    a, b = bools((40,)), bools((40,))
    same(change(bp.asarray(a, copy=True), bp.asarray(b)), change(a.copy(), b))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "amax", "cumsum", "cumprod"])
def test_extremes_and_running_sums(name, shape):
    a = np.atleast_1d(bools(shape))
    for array in (a, np.zeros_like(a), np.ones_like(a)):
        for axis in range(a.ndim):
            same(getattr(bp, name)(bp.asarray(array), axis=axis), getattr(np, name)(array, axis=axis))
        same(getattr(bp, name)(bp.asarray(array)), getattr(np, name)(array))


@pytest.mark.parametrize("left, right", [pair for pair in itertools.product(NUMBERS, NUMBERS) if set(pair) != {np.int8, np.uint64}])  # which have no common dtype
@pytest.mark.parametrize("name", LOGICAL)
def test_logical_functions_take_numbers(name, left, right):
    a, b = RNG.integers(0, 4, (30, 1)).astype(left), RNG.integers(0, 4, (40,)).astype(right)
    same(getattr(bp, name)(bp.asarray(a), bp.asarray(b)), getattr(np, name)(a, b))


@pytest.mark.parametrize("number", NUMBERS)
def test_not_of_numbers(number):
    a = np.array([0, 1, 2, 0]).astype(number)
    same(bp.logical_not(bp.asarray(a)), np.logical_not(a))
    same(bp.logical_or(bp.asarray(a), 0), np.logical_or(a, 0))


def test_nan_is_true():
    a = np.array([np.nan, 0.0, -0.0, np.inf])
    same(bp.logical_not(bp.asarray(a)), np.logical_not(a))
    same(bp.logical_and(bp.asarray(a), True), np.logical_and(a, True))


@pytest.mark.parametrize("subtract", [operator.sub, operator.neg])
def test_what_numpy_refuses_stays_refused(subtract):
    args = [bp.asarray([True, False])] * (2 if subtract is operator.sub else 1)
    with pytest.raises(TypeError, match="bool"):
        subtract(*args)


def test_they_batch():
    a, b = bools((4, 6)), bools((4, 6))
    same(bp.vmap(operator.add)(bp.asarray(a), bp.asarray(b)), a + b)
    same(bp.vmap(bp.max)(bp.asarray(a)), a.max(1))
    same(bp.vmap(bp.logical_and)(bp.asarray(a), bp.asarray(b.astype(np.float32))), a & b)


def answers_of_numpy():
    """Functions of one tensor that NumPy has too, and that make bools of bools there."""
    for name in sorted({row[0].removeprefix("bp::") for row in bp._core.ops()}):
        function = getattr(np, name, None)
        if hasattr(bp, name) and isinstance(function, np.ufunc) and function.nin == function.nout == 1 and "?->?" in function.types:
            yield name


@pytest.mark.parametrize("name", [*answers_of_numpy(), "isposinf", "isneginf"])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_numpy_says_of_bools_in_bools(name, shape):
    x = bools(shape)
    same(getattr(bp, name)(bp.asarray(x)), getattr(np, name)(x))
    if shape:
        same(bp.vmap(getattr(bp, name))(bp.asarray(x)), getattr(np, name)(x))
    out = bp.zeros(shape, dtype=bp.bool)
    assert getattr(bp, name)(bp.asarray(x), out=out) is out
    same(out, getattr(np, name)(x))


def test_the_absolute_value_of_bools():
    same(abs(bp.asarray([True, False])), [True, False])


@pytest.mark.parametrize("name", ["sign", "negative", "positive"])
def test_what_numpy_refuses_of_bools_is_refused(name):
    with pytest.raises(TypeError):
        getattr(np, name)(np.ones(2, bool))
    with pytest.raises(bp.DtypeError, match=name):
        getattr(bp, name)(bp.ones(2, dtype=bp.bool))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 12])
def test_differences_of_bools_are_where_they_differ(n):
    x = bools((15, 14))
    for axis in (0, -1):
        same(bp.diff(bp.asarray(x), n, axis), np.diff(x, n, axis))
        same(bp.asarray(x).diff(n, dim=axis), np.diff(x, n, axis))
    n = max(n, 1)
    ends = {"prepend": x[:, :2], "append": x[:, :1]}
    same(bp.diff(bp.asarray(x), n, **{name: bp.asarray(end) for name, end in ends.items()}), np.diff(x, n, **ends))
    same(bp.diff(bp.asarray(x), n, prepend=True), np.diff(x, n, prepend=True))


@pytest.mark.parametrize("shapes", [((3, 300), (300, 2)), ((4,), (4,)), ((2, 3, 4), (4, 1)), ((2, 0), (0, 2))], ids=str)
def test_products_of_matrices_of_bools(shapes):
    a, b = map(bools, shapes)
    same(bp.matmul(bp.asarray(a), bp.asarray(b)), np.matmul(a, b))
    same(bp.asarray(a) @ bp.asarray(b), a @ b)


def test_bools_are_counted():
    x = np.array([True, False, True])
    same(bp.bincount(bp.asarray(x)), np.bincount(x))
