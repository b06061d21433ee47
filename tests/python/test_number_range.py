"""Python's numbers beside integer dtypes: comparisons are exact, and whatever else does not fit is refused at every door."""

import itertools
import operator

import backplane as bp
import numpy as np
import pytest
from backplane import _core
from backplane.nn import functional as F

DTYPES = [getattr(bp, sign + width) for sign in ("int", "uint") for width in ("8", "16", "32", "64")]
NUMBERS = sorted({sign * 2**power + step for power in (0, 7, 8, 15, 16, 24, 31, 32, 53, 62, 63, 64, 70, 2000) for sign in (1, -1) for step in (-1, 0, 1)})
COMPARISONS = {"equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le, "greater": operator.gt,
               "greater_equal": operator.ge}  # fmt: skip


def limits(dtype):
    found = bp.iinfo(dtype)
    return int(found.min), int(found.max)


def elements(dtype):
    low, high = limits(dtype)
    return [low, max(low, -1), 0, 1, 100, high - 1, high]


@pytest.fixture(params=[False, True], ids=["kernels", "primitives"])
def by(request):
    before = _core.force_decomposition(request.param)
    yield
    _core.force_decomposition(before)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_with_ints_of_any_size_are_exact(name, dtype, by):
    compare, values = COMPARISONS[name], elements(dtype)
    x = bp.asarray(values, dtype=dtype)
    for number in NUMBERS:
        expected = [compare(value, number) for value in values]
        assert compare(x, number).tolist() == getattr(bp, name)(x, number).tolist() == expected, number
        assert getattr(bp, name)(number, x).tolist() == [compare(number, value) for value in values], number
        assert compare(x[::2], number).tolist() == expected[::2]
        assert getattr(bp, name)(x, number, out=bp.zeros(len(values), dtype=bp.bool)).tolist() == expected


def test_comparisons_are_exact_inside_transforms_and_beside_bools():
    x = bp.asarray([[0, 255], [1, 2]], dtype=bp.uint8)
    assert bp.vmap(lambda row: row < 300)(x).tolist() == [[True, True], [True, True]]
    assert bp.vmap(lambda row: row == -1)(x).tolist() == [[False, False], [False, False]]
    assert (bp.asarray([True, False]) < 2**63).tolist() == (bp.asarray([True, False]) < 2**70).tolist() == [True, True]
    weights = bp.asarray([1.0, 2.0])
    assert bp.grad(lambda w: bp.sum(bp.where(x[0] < 300, w, 0)))(weights).tolist() == [1.0, 1.0]


def test_floats_are_compared_with_the_int_itself():
    x = bp.asarray([1e30, -1e30, float("inf"), 1e10], dtype=bp.float64)
    for number in (2**70, -(2**70), 2**63, 2**64, 10**30):
        assert (x < number).tolist() == [value < number for value in x.tolist()]


def outside(dtype):
    low, high = limits(dtype)
    return [number for number in (low - 1, high + 1, 2**62, -(2**62), 2**63, -(2**63), 2**64 - 1) if not low <= number <= high]


def of_numpy(number):
    """As a number of NumPy, where it has one of that size."""
    return next((kind(number) for kind in (np.int64, np.uint64) if np.iinfo(kind).min <= number <= np.iinfo(kind).max), number)


# Every way in which a Python number becomes an element, or meets one.
DOORS = {
    "asarray": lambda x, n: bp.asarray(n, dtype=x.dtype),
    "asarray of a list": lambda x, n: bp.asarray([[0, n]], dtype=x.dtype),
    "asarray of a list with a tensor": lambda x, n: bp.asarray([x[0], n]),
    "asarray of a number of NumPy": lambda x, n: bp.asarray(of_numpy(n), dtype=x.dtype),
    "asarray of a list of NumPy's": lambda x, n: bp.asarray([of_numpy(n), np.int8(0)], dtype=x.dtype),
    "asarray of a list of arrays": lambda x, n: bp.asarray([np.array(n) if of_numpy(n) is not n else n], dtype=x.dtype),
    "tensor": lambda x, n: bp.tensor([n], dtype=x.dtype),
    "array": lambda x, n: bp.array((n,), x.dtype),
    "full": lambda x, n: bp.full((2,), n, dtype=x.dtype),
    "full_like": lambda x, n: bp.full_like(x, n),
    "full_like with a dtype": lambda x, n: bp.full_like(bp.ones(3), n, dtype=x.dtype),
    "arange": lambda x, n: bp.arange(n, n + (1 if n < 0 else -1), 1 if n < 0 else -1, dtype=x.dtype),
    "setitem": lambda x, n: operator.setitem(x, 0, n),
    "setitem of a slice": lambda x, n: operator.setitem(x, slice(None), n),
    "setitem of a mask": lambda x, n: operator.setitem(x, x == x, n),
    "setitem of positions": lambda x, n: operator.setitem(x, bp.asarray([0]), n),
    "setitem of a list": lambda x, n: operator.setitem(x, slice(0, 2), [1, n]),
    "setitem of a list by positions": lambda x, n: operator.setitem(x, bp.asarray([0, 1]), (n, 1)),
    "append": lambda x, n: bp.append(x, [n]),
    "fill_": lambda x, n: x.fill_(n),
    "where": lambda x, n: bp.where(x == x, x, n),
    "where, the other way": lambda x, n: bp.where(x == x, n, x),
    "maximum": lambda x, n: bp.maximum(x, n),
    "clip below": lambda x, n: bp.clip(x, n, None),
    "clip above": lambda x, n: bp.clip(x, None, n),
    "clamp_": lambda x, n: x.clamp_(max=n),
    "masked_fill": lambda x, n: bp.masked_fill(x, x == x, n),
    "add": lambda x, n: x + n,
    "add from the left": lambda x, n: n + x,
    "add into out": lambda x, n: bp.add(x, n, out=x),
    "subtract": lambda x, n: x - n,
    "multiply": lambda x, n: x * n,
    "floor_divide": lambda x, n: x // n,
    "remainder": lambda x, n: x % n,
    "bitwise_and": lambda x, n: x & n,
    "add in place": operator.iadd,
    "multiply in place": operator.imul,
    "or in place": operator.ior,
    "pad": lambda x, n: bp.pad(x, 1, constant_values=n),
    "nn pad": lambda x, n: F.pad(x, (1, 1), value=n),
    "diff": lambda x, n: bp.diff(x, prepend=bp.full((1,), n, dtype=x.dtype)),
    "vmap": lambda x, n: bp.vmap(lambda row: row + n)(x),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("door", DOORS)
def test_a_number_outside_the_range_is_refused(door, dtype, by):
    for number in outside(dtype):
        x = bp.zeros(3, dtype=dtype)
        with pytest.raises(OverflowError) as raised:
            DOORS[door](x, number)
        assert isinstance(raised.value, bp.BackplaneError) and isinstance(raised.value, ValueError)
        assert dtype.name in str(raised.value) or "64 bits" in str(raised.value)
        assert len(str(raised.value).splitlines()) <= 10
        assert x.tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_ends_of_the_range_are_taken(dtype, by):
    for number in limits(dtype):
        x = bp.zeros(2, dtype=dtype)
        assert bp.asarray([number], dtype=dtype).tolist() == bp.full(1, number, dtype=dtype).tolist() == [number]
        assert (x + number).tolist() == bp.full_like(x, number).tolist() == bp.where(x == 0, number, x).tolist() == [number, number]
        x[0] = number
        x += 0
        assert x.tolist() == [number, 0]
        assert F.pad(x, (0, 1), value=number).tolist() == [number, 0, number]


def test_the_error_says_what_was_found_and_what_the_dtype_holds():
    with pytest.raises(bp.NumberRangeError, match=r"add: argument 'y': the integer 300 is out of bounds for uint8, which holds 0 to 255"):
        bp.ones(1, dtype=bp.uint8) + 300
    with pytest.raises(bp.NumberRangeError, match=r"-32769 is out of bounds for int16, which holds -32768 to 32767"):
        bp.asarray([1, -32769], dtype=bp.int16)


@pytest.mark.parametrize("value", [300.0, -1.0, 255.5 + 1, float("nan"), float("inf")])
def test_a_float_that_is_made_an_integer_fits_it(value):
    for make in (lambda: bp.full((2,), value, dtype=bp.uint8), lambda: bp.asarray([0, value], dtype=bp.uint8), lambda: bp.arange(value, value + 1, dtype=bp.uint8)):
        with pytest.raises(ValueError):
            make()
    assert bp.full((1,), 255.9, dtype=bp.uint8).tolist() == bp.asarray([255.9], dtype=bp.uint8).tolist() == [255]
    assert bp.full((1,), -0.5, dtype=bp.uint8).tolist() == [0]


@pytest.mark.parametrize("door", ["full", "full_like", "arange", "add"])
def test_numbers_beyond_int64_reach_uint64_whole_and_floats_rounded(door, by):
    for number in (2**63, 2**63 + 1, 2**64 - 2):
        make = {"full": lambda dtype: bp.full((2,), number, dtype=dtype)[0], "full_like": lambda dtype: bp.full_like(bp.ones((), dtype=dtype), number),
                "arange": lambda dtype: bp.arange(number, number + 1, dtype=dtype)[0] if dtype == bp.uint64 else bp.full((), number, dtype=dtype),
                "add": lambda dtype: bp.zeros((), dtype=dtype) + number}[door]  # fmt: skip
        assert make(bp.uint64).item() == number
        for dtype in (bp.float32, bp.float64, bp.complex128):
            assert make(dtype).item() == bp.asarray(float(number), dtype=dtype).item()


@pytest.mark.parametrize("start, stop, step", [(2**63 - 2, 2**63 + 3, 1), (2**64 - 1, 2**64 - 6, -2), (0, 2**64 - 1, 2**62 + 1), (2**64 - 1, 0, -(2**63)),
                                               (5, 0, -1), (0, 10, 300)])  # fmt: skip
def test_ranges_of_uint64_are_python_s(start, stop, step, by):
    assert bp.arange(start, stop, step, dtype=bp.uint64).tolist() == list(range(start, stop, step))


def test_a_range_that_leaves_its_dtype_is_refused_and_one_within_is_not():
    for start, stop, step in itertools.product((0, 250, 255), (0, 100, 255, 256), (1, 5, 300, -1, -7)):
        values = list(range(start, stop, step))
        assert bp.arange(start, stop, step, dtype=bp.uint8).tolist() == values
    assert bp.arange(-128, 127, 200, dtype=bp.int8).tolist() == [-128, 72]
    for arguments in ((300,), (250, 260), (0, -3, -1)):
        with pytest.raises(OverflowError, match="arange: .*uint8"):
            bp.arange(*arguments, dtype=bp.uint8)
    with pytest.raises(OverflowError, match="int64"):
        bp.arange(2**63, 2**63 + 4)


def test_random_integers_stay_within_their_dtype():
    bp.manual_seed(3)
    for low, high, dtype in ((0, 256, bp.uint8), (-128, 128, bp.int8), (0, 2**63, bp.int64), (2**63, 2**64 - 1, bp.uint64)):
        drawn = bp.randint(low, high, (1000,), dtype=dtype).tolist()
        assert low <= min(drawn) and max(drawn) < high and max(drawn) - min(drawn) > (high - low) // 2
    for low, high in ((0, 257), (-1, 3)):
        with pytest.raises(OverflowError, match="randint: .*uint8"):
            bp.randint(low, high, (2,), dtype=bp.uint8)


def test_ldexp_saturates_at_exponents_of_any_integer_dtype(by):
    for dtype in (bp.float16, bp.float32, bp.float64):
        x = bp.asarray([1.0, -1.0, 0.0], dtype=dtype)
        for exponent in (2**32, 2**40, 2**62, bp.asarray(2**63 - 1), bp.asarray(2**64 - 1, dtype=bp.uint64)):
            assert bp.ldexp(x, exponent).tolist() == [float("inf"), -float("inf"), 0.0], exponent
        for exponent in (-(2**32), -(2**63), bp.asarray(-(2**40))):
            assert bp.ldexp(x, exponent).tolist() == [0.0, 0.0, 0.0]
        assert bp.ldexp(x, bp.asarray([3, 3, 3], dtype=bp.int8)).tolist() == [8.0, -8.0, 0.0]
    assert bp.ldexp(1.0, 2**32).item() == float("inf")


def test_repeats_count_from_zero_on():
    for repeats in (-1, bp.asarray([-1, 2]), bp.asarray([-1, 1]), bp.asarray(-2)):
        for function in (bp.repeat, bp.repeat_interleave):
            with pytest.raises(ValueError, match="repeat: argument repeats: found -"):
                function(bp.ones(2), repeats)
    assert bp.repeat(bp.arange(2), bp.asarray([0, 2], dtype=bp.uint8)).tolist() == [1, 1]


def test_positions_in_a_flattened_tensor_fit_64_bits():
    with pytest.raises(ValueError, match="ravel_multi_index: argument dims: found"):
        bp.ravel_multi_index((bp.asarray([2**33]), bp.asarray([1])), (2**34, 2**34))
    at = (bp.asarray([2**30 - 1]), bp.asarray([2**32 - 1]))
    assert bp.ravel_multi_index(at, (2**30, 2**32)).tolist() == np.ravel_multi_index([i.numpy() for i in at], (2**30, 2**32)).tolist()


def test_numbers_beside_a_tensor_of_a_lower_kind_keep_theirs():
    x, y = bp.asarray([0, 1]), bp.asarray([0, 10])
    assert bp.interp([0.5], x, y).tolist() == bp.interp(0.5, x, y).reshape(1).tolist() == [5.0]
    assert bp.append(x, [0.5]).tolist() == [0.0, 1.0, 0.5] and bp.append(x, [2]).dtype == bp.int64
    assert bp.polyval(bp.asarray([1, 0]), [1.5]).tolist() == [1.5]
    assert bp.append(bp.zeros(1, dtype=bp.uint64), [2**64 - 1]).tolist() == [0, 2**64 - 1]
    wide = bp.zeros(2, dtype=bp.float64)
    wide[:] = [0.1, 1 / 3]
    assert wide.tolist() == [0.1, 1 / 3]


def test_numbers_alone_are_compared_as_numbers():
    for x, y in ((2, 3), (3, 2), (2, 2), (0.5, 2), (2, 0.25), (-1, 1), (True, False)):
        for name, compare in COMPARISONS.items():
            if not isinstance(x, bool) or name in ("equal", "not_equal"):
                assert getattr(bp, name)(x, y).item() is compare(x, y), (name, x, y)
    assert bp.isnan(2.5).item() is False and bp.isfinite(1.5).item() is True and bp.signbit(-1.0).item() is True
    with pytest.raises(OverflowError, match="int64"):
        bp.equal(2**63, 2**63 + 1)


def test_numbers_and_arrays_of_numpy():
    """A number must fit the dtype; an array is cast, as by astype. Without a dtype each keeps its own."""
    for number in (np.int64(300), np.float32(300.0), np.int16(-1), np.uint64(2**63)):
        with pytest.raises(OverflowError, match="asarray: the .* is out of bounds for uint8"):
            bp.asarray(number, dtype=bp.uint8)
    assert bp.asarray(np.array(300), dtype=bp.uint8).item() == 44
    for number in (np.bool_(True), np.int16(3), np.uint64(2**64 - 1), np.float16(0.1), np.float64(0.1), np.complex64(1j)):
        kept = bp.asarray(number)
        assert kept.dtype.name == number.dtype.name and kept.item() == number.item() and kept.shape == ()
        wide = bp.asarray(number, dtype=bp.complex128)
        assert wide.item() == bp.asarray(np.array(number), dtype=bp.complex128).item()
    assert bp.asarray(np.float64(0.1), dtype=bp.float64).item() == 0.1
    assert bp.asarray(np.int64(7), dtype=bp.int32, copy=False).item() == 7
    with pytest.raises(TypeError, match="asarray: found a value of type numpy.datetime64"):
        bp.asarray(np.datetime64("2026-01-01"), dtype=bp.int64)


def test_arrays_without_axes_are_numbers_of_a_list():
    assert bp.asarray([np.array(3), 4]).tolist() == [3, 4]
    assert bp.asarray([[np.array(0.5)], [np.array(True)]]).tolist() == [[0.5], [1.0]]
    assert bp.asarray([np.array(30)], dtype=bp.uint8).dtype is bp.uint8
    for alien in (np.array("2026-01-01", dtype="datetime64[D]"), np.array(None)):
        with pytest.raises(TypeError, match="asarray: found a value of type numpy.ndarray, expected numbers"):
            bp.asarray([alien])


def test_numbers_of_numpy_beside_tensors_in_a_list():
    x = bp.asarray(1.0).requires_grad_()
    for numbers in ([x, np.float32(3)], [np.float64(3), x], [x, np.array(3)], [x, np.int8(3)]):
        made = bp.asarray(numbers)
        assert made.dtype is bp.float32 and sorted(made.tolist()) == [1.0, 3.0] and made.requires_grad
    assert bp.asarray([bp.asarray(1), np.float64(0.5)]).tolist() == [1.0, 0.5]


def test_ints_of_both_ends_are_floats_where_these_are_asked_for():
    assert bp.asarray([2**63, -1], dtype=bp.float64).tolist() == [2.0**63, -1.0]
    assert bp.asarray([2**64 - 1, -(2**63)], dtype=bp.complex64).tolist() == [2.0**64, -(2.0**63)]
    x = bp.zeros(2)
    x[:] = [2**63, -1]
    assert x.tolist() == [2.0**63, -1.0]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_linspace_of_integers_is_exact(dtype):
    """Between the ends of any integer dtype, rounded down as NumPy rounds, without the rounding of floats."""
    low, high = bp.iinfo(dtype).min, bp.iinfo(dtype).max
    starts = [(low, high), (high, low), (high, high), (high - 1, high), (0, 7), (7, 0)]
    starts += [(2**53 + 1, 2**53 + 1), (2**53 + 1, 2**53 + 5)] if high > 2**53 else []
    for (start, stop), num, endpoint in itertools.product(starts, [0, 1, 2, 3, 4, 7], [True, False]):
        steps = max(num - 1 if endpoint else num, 1)
        expected = [start + i * (stop - start) // steps for i in range(num)]
        assert bp.linspace(start, stop, num, dtype=dtype, endpoint=endpoint).tolist() == expected
    for start, stop in [(low - 1, high), (low, high + 1), (high + 1, low)]:
        with pytest.raises(bp.NumberRangeError):
            bp.linspace(start, stop, 3, dtype=dtype)


@pytest.mark.parametrize("counts", [[2**63 - 1, 5], [2**62, 2**62, 0, 0], [2**53, 0]], ids=str)
@pytest.mark.parametrize("dtype", [bp.int64, bp.uint64], ids=str)
def test_repeat_refuses_counts_whose_sum_would_wrap(counts, dtype):
    with pytest.raises(bp.OutOfMemoryError, match="repeat: argument repeats: found counts of .* in all"):
        bp.repeat(bp.ones(len(counts)), bp.asarray(counts, dtype=dtype))


def test_repeat_refuses_unsigned_counts_whose_sum_is_zero():
    with pytest.raises(bp.OutOfMemoryError, match="found counts of 18446744073709551616 in all"):
        bp.repeat(bp.ones(2), bp.asarray([2**63, 2**63], dtype=bp.uint64))
