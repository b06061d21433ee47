"""What the array API standard says and its public suite cannot see: error kinds, streams, copies, elements that equal none."""

import enum
import inspect
import math

import backplane as bp
import numpy as np
import pytest

NAN = math.nan


def test_the_namespace_is_that_of_the_versions_that_it_meets():
    x = bp.ones(2)
    assert x.__array_namespace__() is bp
    for version in ("2021.12", "2022.12", "2023.12", "2024.12", bp.__array_api_version__):
        assert x.__array_namespace__(api_version=version) is bp
    for version in ("2020.12", "2099.12", 2025):
        with pytest.raises(ValueError, match="api_version"):
            x.__array_namespace__(api_version=version)


@pytest.mark.parametrize(
    "function, signature",
    [
        (bp.add, "(x, y, /, *, out)"),
        (bp.arange, "(start, /, stop, step, *, dtype, device)"),
        (bp.eye, "(n_rows, n_cols, /, k, *, dtype, device)"),
        (bp.argsort, "(x, /, axis, *, descending, stable)"),
        (bp.broadcast_to, "(x, /, shape)"),
        (bp.moveaxis, "(x, source, destination, /)"),
        (bp.Tensor.sqrt_, "(x, /)"),
        (bp.reshape, "(x, shape, *, order, copy)"),
    ],
)
def test_signatures_show_what_goes_by_position_and_what_by_name(function, signature):
    parameters = inspect.signature(function).parameters.values()
    bare = [p.replace(annotation=inspect.Parameter.empty, default=inspect.Parameter.empty) for p in parameters]
    assert str(inspect.Signature(bare)) == signature


def test_what_stands_before_the_slash_may_go_by_name_too():
    x = bp.asarray([4.0, 9.0])
    assert bp.sqrt(x=x).tolist() == [2.0, 3.0] and bp.sum(x=x).item() == 13 and x.add(y=x).tolist() == [8.0, 18.0]
    assert bp.arange(start=0, stop=2).shape == bp.arange(0, stop=2).shape == (2,)
    with pytest.raises(TypeError, match="given twice"):
        bp.sqrt(x, x=x)


def test_inspection_names_what_creation_takes():
    info = bp.__array_namespace_info__()
    assert info.default_device() in info.devices()
    assert bp.zeros(1).dtype is info.default_dtypes()["real floating"]
    assert bp.asarray(1j).dtype is info.default_dtypes()["complex floating"]
    assert bp.arange(3).dtype is info.default_dtypes()["integral"]
    assert bp.argmax(bp.ones(2)).dtype is info.default_dtypes()["indexing"]
    assert set(info.dtypes(kind=("bool", "complex floating"))) == {"bool", "complex64", "complex128"}
    assert "float16" not in info.dtypes()
    deepest = info.capabilities()["max dimensions"]
    assert bp.zeros((1,) * deepest).ndim == deepest
    with pytest.raises(ValueError):
        bp.zeros((1,) * (deepest + 1))
    with pytest.raises(ValueError, match="kind"):
        info.dtypes(kind="whole")
    with pytest.raises(ValueError, match="nowhere"):
        info.dtypes(device="nowhere")


@pytest.mark.parametrize(
    "operands, expected",
    [
        ((bp.int8, True), bp.int8),
        ((bp.bool, 3), bp.int64),
        ((bp.uint8, 2.5), bp.float32),
        ((bp.float64, 1), bp.float64),
        ((bp.float64, 1j), bp.complex128),
        ((bp.float32, 1j, 2.0), bp.complex64),
        ((bp.int16, bp.uint8, 1), bp.int16),
    ],
)
def test_numbers_promote_as_they_do_in_calls(operands, expected):
    assert bp.result_type(*operands) is expected
    dtype, number = operands[0], operands[-1]
    if len(operands) == 2 and not isinstance(number, bool):
        assert (bp.zeros(1, dtype=dtype) + number if dtype is not bp.bool else bp.where(bp.zeros(1, dtype=dtype), number, False)).dtype is expected


def test_a_result_type_needs_a_dtype():
    for operands in ((), (1, 2.0)):
        with pytest.raises(ValueError, match="result_type"):
            bp.result_type(*operands)
    with pytest.raises(TypeError, match="result_type"):
        bp.result_type("float3")


class Kind(enum.Enum):
    HOST = 1
    CUDA = 2


def test_dlpack_copies_only_where_it_may():
    x = bp.asarray([1.0, 2.0])
    for copy in (None, False):
        shared = np.from_dlpack(x, copy=copy)
        x[0] = 5.0
        assert shared[0] == 5.0
        x[0] = 1.0
    copied = bp.from_dlpack(x, copy=True)
    x[0] = 7.0
    assert copied.tolist() == [1.0, 2.0]
    assert "versioned" in repr(x.__dlpack__(max_version=(1, 0), dl_device=(Kind.HOST, 0)))
    assert "versioned" not in repr(x.__dlpack__(max_version=(0, 8)))


def test_what_cannot_be_exported_is_a_buffer_error():
    x = bp.asarray([1.0])
    with pytest.raises(BufferError, match="dl_device"):
        x.__dlpack__(dl_device=(Kind.CUDA, 0))
    with pytest.raises(BufferError, match="dl_device"):
        x.__dlpack__(dl_device=(1, 3))
    for stream in (0, 1, -1):
        with pytest.raises(ValueError, match="stream"):
            x.__dlpack__(stream=stream)
    for wish in ({"max_version": 1}, {"dl_device": "cpu"}, {"copy": 1}):
        with pytest.raises(TypeError, match="__dlpack__"):
            x.__dlpack__(**wish)
    with pytest.raises(AttributeError, match="__dlpack__"):
        bp.from_dlpack([1.0])


class Older:
    """An exporter of before version 1 of DLPack, which knows no wishes."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, stream=None):
        return self.tensor.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def test_an_older_exporter_is_copied_here():
    x = bp.asarray([1.0])
    shared, copied = bp.from_dlpack(Older(x), copy=False), bp.from_dlpack(Older(x), copy=True)
    x[0] = 2.0
    assert shared.item() == 2.0 and copied.item() == 1.0


def test_from_dlpack_asks_the_exporter_for_the_host():
    class Elsewhere(Older):
        wishes = {}

        def __dlpack__(self, **wishes):
            Elsewhere.wishes = wishes
            return self.tensor.__dlpack__(max_version=wishes["max_version"])

        def __dlpack_device__(self):
            return (Kind.CUDA.value, 0)

    x = bp.asarray([1.0])
    assert bp.from_dlpack(Elsewhere(x), device="cpu").item() == 1.0
    assert Elsewhere.wishes["dl_device"] == (1, 0)
    with pytest.raises(ValueError, match="copy"):
        bp.from_dlpack(Elsewhere(x), device="cpu", copy=False)


def test_asarray_copies_where_it_says():
    source = np.arange(3.0)
    shared, copied = bp.asarray(source, copy=False), bp.asarray(source, copy=True)
    source[0] = 9
    assert shared.tolist()[0] == 9 and copied.tolist()[0] == 0
    x = bp.ones(2)
    assert bp.asarray(x) is x and bp.asarray(x, copy=True) is not x
    with pytest.raises(ValueError, match="copy"):
        bp.asarray(x, dtype=bp.int8, copy=False)


def test_reshape_copies_where_it_says():
    x = bp.reshape(bp.arange(6), (2, 3))
    view, copied = bp.reshape(x, (3, 2), copy=False), bp.reshape(x, (3, 2), copy=True)
    x[0, 0] = 9
    assert view[0, 0].item() == 9 and copied[0, 0].item() == 0
    assert bp.reshape(bp.zeros((0, 2)), (2, 0), copy=False).shape == (2, 0)
    with pytest.raises(ValueError, match="copy"):
        bp.reshape(x.T, (6,), copy=False)


def test_to_device_takes_no_stream():
    x = bp.ones(2)
    assert x.to_device(x.device) is x
    with pytest.raises(ValueError, match="stream"):
        x.to_device("cpu", stream=1)


def test_scalar_conversions_refuse_what_is_none():
    assert complex(bp.asarray(1 + 2j)) == 1 + 2j and complex(bp.asarray(True)) == 1
    with pytest.raises(TypeError, match="complex"):
        complex(bp.ones(1))
    with pytest.raises(TypeError):
        float(bp.asarray(1j))
    with pytest.raises(TypeError):
        range(bp.asarray(2.0))


def test_equal_elements_are_one_and_each_nan_is_its_own():
    x = bp.asarray([[2.0, NAN, 1.0], [1.0, 2.0, NAN]])
    found = bp.unique_all(x)
    np.testing.assert_array_equal(found.values.numpy(), [1, 2, NAN, NAN])
    assert found.indices.tolist() == [2, 0, 1, 5]
    assert found.inverse_indices.tolist() == [[1, 2, 0], [0, 1, 3]]
    assert found.counts.tolist() == [2, 2, 1, 1]
    np.testing.assert_array_equal(bp.unique_counts(x).counts.numpy(), found.counts.numpy())
    np.testing.assert_array_equal(bp.unique_inverse(x).inverse_indices.numpy(), found.inverse_indices.numpy())
    np.testing.assert_array_equal(bp.unique_values(x).numpy(), found.values.numpy())


def test_complex_elements_are_ordered_by_part():
    x = bp.asarray([2 + 1j, 1 + 5j, 2 + 0j, 1 + 5j, complex(0, NAN), complex(0, 1)])
    found = bp.unique_counts(x)
    np.testing.assert_array_equal(found.values.numpy(), np.asarray([1j, complex(0, NAN), 1 + 5j, 2, 2 + 1j], np.complex64))
    assert found.counts.tolist() == [1, 1, 2, 1, 1]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 9, 64, 65])
def test_searchsorted_finds_the_places_that_numpy_finds(n, side):
    draw = np.random.default_rng(n)
    x1 = np.sort(draw.integers(0, 12, n)).astype(np.float32)
    x1[n - n // 4 :] = NAN
    x2 = np.concatenate([np.arange(-1.0, 14.0, 0.5), [NAN, -np.inf, np.inf]]).astype(np.float32)
    found = bp.searchsorted(bp.asarray(x1), bp.asarray(x2), side=side)
    np.testing.assert_array_equal(found.numpy(), np.searchsorted(x1, x2, side=side))
    order = draw.permutation(n)
    sorter = np.argsort(x1[order], kind="stable")
    found = bp.searchsorted(bp.asarray(x1[order]), bp.asarray(x2), side=side, sorter=bp.asarray(sorter))
    np.testing.assert_array_equal(found.numpy(), np.searchsorted(x1, x2, side=side))


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("dtype", ["int16", "float64", "complex64", "bool"])
def test_isin_is_numpys(dtype, invert):
    draw = np.random.default_rng(3)
    for n in (0, 1, 7, 8, 40):
        x1, x2 = draw.integers(0, 30, (4, 5)).astype(dtype), draw.integers(0, 30, n).astype(dtype)
        found = bp.isin(bp.asarray(x1), bp.asarray(x2), invert=invert)
        np.testing.assert_array_equal(found.numpy(), np.isin(x1, x2, invert=invert))


def test_isin_of_complex_numbers_compares_both_parts():
    parts = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 2.5])
    grid = parts.astype(np.complex128)[:, None] + np.zeros(8)
    grid.imag = parts
    for x2 in (grid, grid[1:7:2], grid.real, parts):
        for x1 in (grid, parts):
            expected = (x1[..., None] == x2.reshape(-1)).any(-1)
            np.testing.assert_array_equal(bp.isin(bp.asarray(x1), bp.asarray(x2)).numpy(), expected)


def test_isin_of_bools_and_complex_numbers_takes_no_product_of_the_sizes():
    n = 1 << 18  # a product would be 2**36 elements
    for x in (bp.arange(n) % 2 == 0, bp.arange(n, dtype=bp.complex64)):
        assert bp.all(bp.isin(x, x)).item() and bp.setdiff1d(x, x).size == 0


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("repeats", [2, 0, [1, 0, 3], [2]])
def test_repeat_is_numpys(repeats, axis):
    x = np.arange(9.0).reshape(3, 3)
    if axis is None and isinstance(repeats, list) and len(repeats) > 1:
        repeats = repeats * 3
    ours = repeats if isinstance(repeats, int) else bp.asarray(repeats)
    np.testing.assert_array_equal(bp.repeat(bp.asarray(x), ours, axis=axis).numpy(), np.repeat(x, repeats, axis=axis))
    w = bp.asarray(x).requires_grad_()
    bp.sum(bp.repeat(w, ours, axis=axis)).backward()
    counts = np.broadcast_to(np.asarray(repeats), (x.size if axis is None else 3,))
    expected = counts.reshape(3, 3) if axis is None else np.broadcast_to(counts[:, None] if axis == 0 else counts, (3, 3))
    np.testing.assert_array_equal(w.grad.numpy(), expected)


@pytest.mark.parametrize("call", [
    lambda: bp.nonzero(bp.asarray(1)),
    lambda: bp.meshgrid(bp.ones((2, 2))),
    lambda: bp.meshgrid(bp.ones(2), indexing="yx"),
    lambda: bp.broadcast_shapes((2,), (3,)),
    lambda: bp.cumulative_sum(bp.ones((2, 2))),
    lambda: bp.cumulative_prod(bp.ones((2, 2))),
    lambda: bp.unstack(bp.ones(2), axis=1),
    lambda: bp.roll(bp.ones(2), (1, 1), axis=(0, 1)),
    lambda: bp.moveaxis(bp.ones((2, 2)), (0, 1), 0),
    lambda: bp.moveaxis(bp.ones((2, 2)), (0, 0), (0, 1)),
    lambda: bp.repeat(bp.ones(3), bp.asarray([1, 2])),
    lambda: bp.diff(bp.ones((2, 2)), prepend=bp.ones((3, 1))),
    lambda: bp.searchsorted(bp.ones((2, 2)), 1.0),
])
def test_what_does_not_fit_is_refused(call):
    with pytest.raises((ValueError, IndexError)) as caught:
        call()
    assert isinstance(caught.value, bp.BackplaneError)


def test_an_unknown_size_gives_way_to_a_known_one():
    assert bp.broadcast_shapes((None, 3), (2, 1)) == (2, 3)
    assert bp.broadcast_shapes((None, 1), (1,)) == (None, 1)
    assert bp.broadcast_shapes() == ()


@pytest.mark.parametrize("mask", [True, False])
@pytest.mark.parametrize("place", [lambda m: m, lambda m: (m, 0), lambda m: (0, m), lambda m: (slice(None), m), lambda m: (..., m), lambda m: (None, m)])
def test_a_mask_of_no_axes_takes_a_part_once_or_not_at_all(mask, place):
    x = np.arange(6.0).reshape(2, 3)
    found, written = bp.asarray(x)[place(bp.asarray(mask))], bp.asarray(x, copy=True)
    expected = x[place(np.asarray(mask))]
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found.numpy(), expected)
    written[place(bp.asarray(mask))] = 9.0
    x[place(np.asarray(mask))] = 9.0
    np.testing.assert_array_equal(written.numpy(), x)


@pytest.mark.parametrize("dtype", [bp.float32, bp.float64])
def test_zeros_keep_their_sign_and_cos_is_one_at_them(dtype):
    x = bp.asarray([0.0, -0.0] * 9, dtype=dtype)
    assert bp.all(bp.cos(x) == 1)
    assert bp.all(bp.signbit(bp.sin(x)) == bp.signbit(x))
    assert bp.all(bp.signbit(bp.floor_divide(x, 3.0)) == bp.signbit(x))


TOP = 2**64 - 1


@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda x: x == TOP, [False, True]),
        (lambda x: x < TOP, [True, False]),
        (lambda x: TOP - x, [TOP - 1, 0]),
        (lambda x: x & 2**63, [0, 2**63]),
        (lambda x: bp.where(x == 1, TOP, x), [TOP, TOP]),
        (lambda x: bp.clip(x, 2**63, TOP), [2**63, TOP]),
        (lambda x: bp.asarray([0, TOP], dtype=bp.uint64) + x - x, [0, TOP]),
    ],
)
def test_ints_that_only_uint64_holds_are_numbers_too(call, expected):
    x = bp.asarray([1, TOP], dtype=bp.uint64)
    assert call(x).tolist() == expected
    x[0] = TOP
    assert x.tolist() == [TOP, TOP]
    x -= TOP
    assert x.tolist() == [0, 0]


def test_ints_that_only_uint64_holds_fit_no_other_integers():
    with pytest.raises(OverflowError, match="int8"):
        bp.ones(1, dtype=bp.int8) + 2**63
    for dtype in (None, bp.int64, bp.uint8):
        with pytest.raises(ValueError, match="uint64"):
            bp.asarray(2**63, dtype=dtype)
    with pytest.raises(ValueError, match="no integer"):
        bp.asarray([-1, 2**63], dtype=bp.uint64)
    assert bp.asarray(2**63, dtype=bp.float64).item() == 2.0**63
    assert (bp.asarray([1.0]) * 2**63).item() == 2.0**63


def test_expm1_of_a_complex_zero_has_a_positive_real_part():
    found = bp.expm1(bp.asarray([complex(-0.0, 0.0), complex(0.0, 0.0)]))
    assert found.tolist() == [0j, 0j] and not bp.any(bp.signbit(bp.real(found)))


def test_a_diagonal_beyond_64_bits_is_no_diagonal():
    for k in (2**63, -(2**63), 2**70, -(2**70)):
        assert not bp.any(bp.eye(3, 2, k=k))
        assert bp.all(bp.tril(bp.ones((2, 2)), k=k) == float(k > 0)) and bp.all(bp.triu(bp.ones((2, 2)), k=k) == float(k < 0))


@pytest.mark.parametrize("n", [1, 9])
def test_isin_takes_a_number_beside_any_integers(n):
    for dtype in (bp.uint64, bp.int8):
        x = bp.arange(n, dtype=dtype)
        assert bp.isin(0, x).item() and bp.isin(x, 0).tolist() == [True] + [False] * (n - 1)


@pytest.mark.parametrize("start, stop, step", [(0, -(2**63), 2**58), (-(2**63), 2**63 - 1, 2**60), (2**63 - 1, -(2**63), -(2**60)),
                                               (-7, 9, 3), (9, -7, -4), (5, 5, 2), (3, -2, 1)])
def test_a_range_may_span_more_than_64_bits(start, stop, step):
    assert bp.arange(start, stop, step).tolist() == list(range(start, stop, step))
