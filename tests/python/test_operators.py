"""Python's operators are the ops of the registry, with Python numbers on either side."""

import array
import operator

import backplane as bp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod]
COMPARISONS = [operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]
BITWISE = [operator.and_, operator.or_, operator.xor]
LEFT = np.array([[1.5, -2.0, 3.25], [0.5, 4.0, -6.5]], dtype=np.float32)
RIGHT = np.array([2.0, 0.75, -1.5], dtype=np.float32)


def same(tensor, array):
    np.testing.assert_allclose(tensor.numpy(), array, rtol=1e-6)


@pytest.mark.parametrize("op", ARITHMETIC + COMPARISONS)
def test_as_numpy_between_tensors_and_numbers(op):
    same(op(bp.asarray(LEFT), bp.asarray(RIGHT)), op(LEFT, RIGHT))
    same(op(bp.asarray(LEFT), 2), op(LEFT, np.float32(2)))
    same(op(2.5, bp.asarray(RIGHT)), op(np.float32(2.5), RIGHT))


@pytest.mark.parametrize("op", BITWISE)
def test_bitwise_as_numpy(op):
    a, b = np.array([12, 10, -1]), np.array([10, 6, 3])
    same(op(bp.asarray(a), bp.asarray(b)), op(a, b))
    same(op(bp.asarray(a > 0), bp.asarray(b > 5)), op(a > 0, b > 5))


def test_shifts_powers_and_unary():
    a = np.array([1, 2, 3])
    same(bp.asarray(a) << 2, a << 2)
    same(bp.asarray(a) >> 1, a >> 1)
    same(bp.asarray(LEFT) ** 2, LEFT**2)
    same(2.0 ** bp.asarray(RIGHT), np.float32(2) ** RIGHT)
    same(-bp.asarray(LEFT), -LEFT)
    same(+bp.asarray(LEFT), LEFT)
    same(abs(bp.asarray(LEFT)), abs(LEFT))
    same(~bp.asarray(a), ~a)


def test_matmul_and_transposes():
    x = bp.asarray(LEFT)
    np.testing.assert_allclose((x @ x.T).numpy(), LEFT @ LEFT.T, rtol=1e-5)
    cube = np.arange(24.0).reshape(2, 3, 4)
    same(x.T, LEFT.T)
    for array in (cube, LEFT[0], LEFT[0, 0]):
        same(bp.asarray(array).T, array.T)
    same(bp.asarray(cube).mT, cube.swapaxes(1, 2))


@given(st.integers(-(2**31), 2**31), st.integers(1, 2**31))
def test_integers_divide_as_python_does(a, b):
    x = bp.asarray(a)
    assert (x // b).item() == a // b
    assert (x % b).item() == a % b


@pytest.mark.parametrize("number, dtype", [(True, "int64"), (3, "int64"), (2.5, "float32"), (1j, "complex64")])
def test_numbers_are_weak(number, dtype):
    assert (bp.asarray([1, 2]) + number).dtype.name == dtype
    assert (bp.asarray([1.0], dtype=bp.float64) + (2.5 if number == 1j else number)).dtype is bp.float64
    assert (bp.asarray([1], dtype=bp.int8) + 1).dtype is bp.int8


def test_numpy_scalars_are_numbers():
    x = bp.asarray([1.0])
    for scalar in (np.float32(2), np.float64(2), np.int64(2), np.bool_(True)):
        assert (x + scalar).dtype is bp.float32
        assert (scalar + x).dtype is bp.float32


def test_other_types_get_their_turn():
    class Other:
        def __radd__(self, left):
            return "other"

    assert bp.asarray([1.0]) + Other() == "other"
    with pytest.raises(TypeError):
        bp.asarray([1.0]) + "1"


@pytest.mark.parametrize("other", [None, object(), "1", b"1", bytearray(b""), np.str_("1"), np.datetime64("2026-01-01"), ["1"], range(2)])
def test_what_is_no_number_is_unequal(other):
    x = bp.asarray([1.0])
    assert (x == other) is False and (other == x) is False and (x != other) is True and (other != x) is True


class Array:
    """Of a library that speaks DLPack and knows no other's arrays."""

    def __dlpack__(self, **wishes):
        return bp.asarray([1.0]).__dlpack__(**wishes)


NESTED = []
NESTED.append(NESTED)


@pytest.mark.parametrize("compare", [operator.eq, operator.ne, operator.lt, operator.ge])
@pytest.mark.parametrize("other", [[1], (1, 2), [], [[1.0], [2.0]], [bp.asarray(1)], [np.ones(1)]],
                         ids=lambda value: value.__name__ if callable(value) else f"{type(value).__name__}{len(value)}")  # fmt: skip
def test_numbers_in_lists_are_compared_after_asarray(compare, other):
    for operands in ((bp.asarray([1.0]), other), (other, bp.asarray([1.0]))):
        with pytest.raises(TypeError, match=f"found a value of type .*{type(other).__name__} beside a Tensor.*backplane.asarray"):
            compare(*operands)


@pytest.mark.parametrize("combine", [operator.add, operator.mul, operator.truediv, operator.iadd, operator.imul])
@pytest.mark.parametrize("x", [bp.asarray([1.0, 2.0]), bp.asarray(2)])
def test_numbers_in_lists_behind_a_tensor_are_refused_with_advice(combine, x):
    for other in ([1, 2], (1, 2)):
        with pytest.raises(TypeError, match=f"found a value of type {type(other).__name__} beside a Tensor.*backplane.asarray"):
            combine(x, other)


@pytest.mark.parametrize("compare", [operator.eq, operator.ne, operator.lt, operator.ge])
@pytest.mark.parametrize("other", [np.ones(1), array.array("d", [1]), Array()], ids=lambda value: type(value).__name__)
def test_arrays_of_other_libraries_are_compared(compare, other):
    for operands in ((bp.asarray([1.0]), other), (other, bp.asarray([1.0]))):
        assert compare(*operands).tolist() == [compare(1.0, 1.0)]


def test_lists_keep_their_own_operators():
    assert [7] * bp.asarray(2) == [7, 7]
    assert (bp.asarray([1.0]) == NESTED) is False
    tensors = []
    tensors += bp.asarray([1, 2])
    assert [t.item() for t in tensors] == [1, 2]


def test_conversion_to_python_numbers():
    assert bool(bp.asarray(2)) and not bool(bp.asarray([[0.0]]))
    assert int(bp.asarray([2.7])) == 2
    assert float(bp.asarray(3)) == 3.0
    assert [10, 20, 30][bp.asarray(1)] == 20
    with pytest.raises(ValueError, match="expected one element"):
        bool(bp.asarray([1, 2]))
    with pytest.raises(TypeError):
        [1][bp.asarray(0.0)]


def test_len_iteration_membership():
    x = bp.asarray([[1, 2], [3, 4]])
    assert len(x) == 2
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    assert 3 in x and 9 not in x
    with pytest.raises(TypeError):
        len(bp.asarray(1))
    with pytest.raises(TypeError):
        iter(bp.asarray(1))


def test_tensors_hash_by_identity():
    x, y = bp.asarray([1]), bp.asarray([1])
    assert {x: 1, y: 2}[x] == 1
