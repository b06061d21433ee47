"""x[key] and x[key] = v are NumPy's, over keys that hypothesis makes."""

import backplane as bp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4)


def filled(shape):
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


@st.composite
def basic(draw):
    shape = draw(SHAPES)
    return shape, draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))


@st.composite
def with_arrays(draw):
    """Ints, slices, new axes and integer arrays that broadcast together, in any order."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    common = draw(hnp.array_shapes(min_dims=1, max_dims=2, min_side=1, max_side=3))
    key = []
    for size in shape[: draw(st.integers(1, len(shape)))]:
        kind = draw(st.sampled_from(["array", "slice", "int", "newaxis", "array"]))
        if kind == "newaxis":
            key.append(None)
            kind = "array"
        if kind == "array":
            key.append(draw(hnp.arrays(np.int64, common, elements=st.integers(-size, size - 1))))
        elif kind == "slice":
            key.append(draw(st.slices(size)))
        else:
            key.append(draw(st.integers(-size, size - 1)))
    return shape, tuple(key)


@given(basic())
@settings(max_examples=300, deadline=None)
def test_basic_keys(case):
    shape, key = case
    array = filled(shape)
    expected = array[key]
    found = bp.asarray(array)[key]
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found.numpy(), expected)


@given(basic())
@settings(max_examples=100, deadline=None)
def test_basic_keys_are_views(case):
    shape, key = case
    array = filled(shape)
    view = bp.asarray(array)[key]
    array += 1
    np.testing.assert_array_equal(view.numpy(), array[key])


@given(basic(), st.booleans())
@settings(max_examples=200, deadline=None)
def test_assignment_by_basic_keys(case, with_number):
    shape, key = case
    array = filled(shape)
    tensor = bp.asarray(array, copy=True)
    value = np.float32(-1) if with_number else -np.arange(array[key].size, dtype=np.float32).reshape(array[key].shape)
    array[key] = value
    tensor[key] = -1 if with_number else bp.asarray(value)
    np.testing.assert_array_equal(tensor.numpy(), array)


@given(with_arrays())
@settings(max_examples=300, deadline=None)
def test_keys_with_arrays(case):
    shape, key = case
    array = filled(shape)
    expected = array[key]
    found = bp.asarray(array)[key]
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found.numpy(), expected)
    tensors = tuple(bp.asarray(item) if isinstance(item, np.ndarray) else item for item in key)
    np.testing.assert_array_equal(bp.asarray(array)[tensors].numpy(), expected)


@given(with_arrays())
@settings(max_examples=200, deadline=None)
def test_assignment_by_keys_with_arrays(case):
    shape, key = case
    array = filled(shape)
    tensor = bp.asarray(array, copy=True)
    array[key] = 7  # one value: where positions repeat, the order does not matter
    tensor[key] = 7
    np.testing.assert_array_equal(tensor.numpy(), array)


@given(hnp.arrays(np.float32, hnp.array_shapes(max_dims=3, max_side=4), elements=st.floats(-4, 4, width=32)))
@settings(max_examples=100, deadline=None)
def test_masks(array):
    x = bp.asarray(array, copy=True)
    np.testing.assert_array_equal(x[x > 0].numpy(), array[array > 0])
    rows = array.reshape(len(array), -1)[:, 0] > 0
    np.testing.assert_array_equal(x[bp.asarray(rows)].numpy(), array[rows])
    x[x > 0] = 0
    array[array > 0] = 0
    np.testing.assert_array_equal(x.numpy(), array)


def test_lists_and_ranges_are_arrays():
    array = filled((4, 3))
    x = bp.asarray(array)
    np.testing.assert_array_equal(x[[2, 0]].numpy(), array[[2, 0]])
    np.testing.assert_array_equal(x[:, [1, -1]].numpy(), array[:, [1, -1]])
    np.testing.assert_array_equal(x[[[0, 1], [2, 3]], 1].numpy(), array[[[0, 1], [2, 3]], 1])
    np.testing.assert_array_equal(x[[True, False, True, False]].numpy(), array[[True, False, True, False]])
    assert x[[]].shape == (0, 3)


def test_augmented_assignment_through_a_key():
    array = filled((3, 3))
    x = bp.asarray(array, copy=True)
    array[1] += 10
    x[1] += 10
    array[:, ::2] *= 2
    x[:, ::2] *= 2
    array[[0, 2]] -= 1
    x[[0, 2]] -= 1
    np.testing.assert_array_equal(x.numpy(), array)


def test_assignment_broadcasts_and_casts_within_a_kind():
    x = bp.zeros((2, 3))
    x[:] = bp.asarray([1, 2, 3])
    assert x.tolist() == [[1, 2, 3]] * 2
    x[...] = np.array([[4.0], [5.0]])
    assert x.tolist() == [[4] * 3, [5] * 3]
    x[0] = [7.0, 8.0, 9.0]
    assert x[0].tolist() == [7, 8, 9]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("key", [1, -1, (0, 2), (-2, -3), slice(None), (slice(None), 1)], ids=str)
def test_numbers_are_written_in_every_dtype(dtype, key):
    x = bp.zeros((2, 3), dtype=dtype)
    mask = np.zeros((2, 3), dtype=bool)
    x[key], mask[key] = True if dtype == "bool" else 3, True
    assert x.tolist() == [[(True if dtype == "bool" else 3) if hit else 0 for hit in row] for row in mask.tolist()]


@pytest.mark.parametrize("key", [(0, 5), (2, 0), (-3, 0), (0, -4), 2, -3], ids=str)
def test_a_position_out_of_range_writes_nothing(key):
    x = bp.zeros((2, 3))
    with pytest.raises(IndexError, match="expected an int from|out of range"):
        x[key] = 1.0
    assert x.tolist() == [[0] * 3] * 2


def test_a_tensor_is_written_over_itself():
    x = bp.arange(4)
    x[::-1] = x
    assert x.tolist() == [3, 2, 1, 0]
    x[1:] = x[:-1]
    assert x.tolist() == [3, 3, 2, 1]
    x[:] = x
    assert x.tolist() == [3, 3, 2, 1]


@pytest.mark.parametrize(
    "key, text",
    [
        (3, "index 3"),
        (-4, "index -4"),
        ((0, 5), "5"),
        ((0, 0, 0), "3 axes"),
        ((..., ...), "2 ellipses"),
        ("a", "str 'a'"),
        (1.5, "float"),
        ([0.5], "float32"),
        ([True, False], "mask of size 2"),
    ],
)
def test_wrong_keys_are_index_errors(key, text):
    with pytest.raises(IndexError, match=text):
        bp.zeros((3, 2))[key]


def test_wrong_values():
    x = bp.asarray([1, 2, 3])
    with pytest.raises(TypeError, match="int64"):
        x[0] = 1.5
    with pytest.raises(ValueError):
        x[:] = bp.asarray([1, 2])
    with pytest.raises(TypeError):
        del x[0]
    with pytest.raises((IndexError, ValueError)):
        x[bp.asarray([7])].tolist()


def test_gradients_flow_through_keys():
    x = bp.ones((3, 4)).requires_grad_()
    (x[1:, ::2].sum() * 2 + x[0, 1] + x[[0, 0], [3, 3]].sum()).backward()
    expected = np.zeros((3, 4))
    expected[1:, ::2] += 2
    expected[0, 1] += 1
    expected[0, 3] += 2
    np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_gradients_of_assigned_values():
    x = bp.ones((3,)).requires_grad_()
    v = bp.asarray(5.0).requires_grad_()
    y = x * 2
    y[1] = v * 3
    (y * y).sum().backward()
    assert x.grad.tolist() == [8, 0, 8]
    assert v.grad.item() == 2 * 15 * 3


@pytest.mark.parametrize("read", [bp.take, lambda x, at: bp.take_along_axis(x, at, axis=0)], ids=["take", "take_along_axis"])
def test_positions_are_checked_wherever_they_stand(read):
    x = bp.arange(700)
    for place in (0, 15, 511, 512, 1299):
        at = np.arange(1300) % 700
        for bad in (700, -701, 2**62, -(2**63)):
            at[place] = bad
            with pytest.raises(bp.DataError, match=f"index {bad} is out of range for an axis of size 700"):
                read(x, bp.asarray(at))
        at[place] = -700
        assert np.array_equal(np.asarray(read(x, bp.asarray(at))), np.arange(700)[at])


@pytest.mark.parametrize("read", [bp.take, lambda x, at: bp.take_along_axis(x, at, axis=0)], ids=["take", "take_along_axis"])
def test_an_unsigned_position_beyond_int64_is_not_a_negative_one(read):
    at = bp.asarray(np.full(20, 2**64 - 1, np.uint64))
    with pytest.raises(bp.DataError, match=f"index {2**64 - 1} is out of range"):
        read(bp.arange(4), at)


def test_adding_at_repeated_positions_sums_in_every_dtype():
    at = np.asarray([0, 2, 2, -1, 0, 2] * 5)
    for dtype in (np.bool_, np.int8, np.uint64, np.float16, np.float32, np.complex128):
        values = np.arange(30).astype(dtype)
        expected = np.zeros(4, dtype)
        np.add.at(expected, at, values)
        put = [bp.index_put, lambda x, i, v, accumulate: bp.put_along_axis(x, i[0], v, accumulate=accumulate)]
        for write in put:
            found = write(bp.zeros(4, dtype=getattr(bp, np.dtype(dtype).name)), [bp.asarray(at)], bp.asarray(values), accumulate=True)
            assert np.array_equal(np.asarray(found), expected), dtype


@pytest.mark.parametrize(
    "key",
    [
        (slice(None), [0, 1], ..., [1, 2]),
        (slice(None), 0, ..., [0, 1]),
        (slice(None), [0, 1], ..., 0),
        (slice(None), [[0, 1]], ..., [1]),
        ([0, 1], [1, 2], ..., [0, 1]),
        (slice(1, None), None, [0, 1], ..., [1, 2]),
        (slice(None), slice(None), [0, 1], ..., True),
    ],
)
def test_an_ellipsis_for_no_axis_parts_arrays(key):
    """As a slice between them does: their axes come first."""
    array = np.arange(60.0).reshape(3, 4, 5)
    tensor = bp.asarray(array.copy())
    np.testing.assert_array_equal(tensor[key].numpy(), array[key])
    values = -np.arange(1.0, array[key].size + 1).reshape(array[key].shape)
    array[key] = values
    tensor[key] = bp.asarray(values)
    np.testing.assert_array_equal(tensor.numpy(), array)
    x = bp.asarray(array)
    weights = bp.asarray(values)
    expected = np.zeros_like(array)
    np.add.at(expected, key, values)
    np.testing.assert_array_equal(bp.grad(lambda x: (x[key] * weights).sum())(x).numpy(), expected)


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize(
    "read",
    [
        lambda x, at: x[at],
        lambda x, at: bp.take(x, at, axis=0),
        lambda x, at: bp.index_select(x, 0, at),
        lambda x, at: bp.nn.functional.embedding(at, x),
        lambda x, at: x.__setitem__(at, 1.0),
        lambda x, at: bp.take_put(x, at, bp.zeros((1, 0)), axis=0),
    ],
)
def test_positions_are_checked_where_nothing_is_read(read, decomposed):
    bp._core.force_decomposition(decomposed)
    try:
        for wrong in (3, 99, -4):
            with pytest.raises(bp.BackplaneError, match=str(wrong)):
                read(bp.zeros((3, 0)), bp.asarray([wrong]))
    finally:
        bp._core.force_decomposition(False)


def test_what_is_assigned_loses_its_first_axes_of_one_element():
    array, x = np.zeros((3, 2), dtype=np.float32), bp.zeros((3, 2))
    for key, value in [(0, np.ones((1, 2))), (0, np.full((1, 1, 2), 2.0)), ((slice(None), 0), np.full((1, 3), 3.0)),
                       ([0, 1], np.full((1, 2, 2), 4.0)), (slice(None), np.full((1, 1, 1, 1), 8.0)),
                       (np.array([True, False, True]), np.full((1, 1, 2), 9.0))]:  # fmt: skip
        array[key] = value
        x[key] = bp.asarray(value, dtype=bp.float32)
        np.testing.assert_array_equal(x.numpy(), array)
    with pytest.raises(bp.ShapeError, match=r"\(2, 2\) does not broadcast"):
        x[0] = bp.ones((2, 2))
    weight = bp.ones((1, 2)).requires_grad_()
    out = bp.zeros((3, 2))
    out[1] = weight * 2
    out.sum().backward()
    assert weight.grad.tolist() == [[2, 2]]


def test_an_assigned_value_of_the_same_memory_brings_its_history():
    for assign in (lambda y: y.__setitem__(slice(None), y.detach()), lambda y: y.copy_(y.detach())):
        x = bp.asarray([1.0, 2.0]).requires_grad_()
        y = x * 1
        assign(y)
        y.sum().backward()
        assert x.grad is None or x.grad.tolist() == [0, 0]


def test_a_mask_of_another_library_without_elements_is_one():
    for shape in [(0, 4), (4, 0), (0,)]:
        mask = np.zeros(shape, dtype=bool)
        assert bp.zeros(shape)[mask].shape == np.zeros(shape)[mask].shape
    assert bp.zeros((3, 2))[[]].shape == (0, 2)


def test_elements_that_share_a_place_are_not_assigned_one_by_one():
    g = bp.grad(lambda p: p.sum())(bp.ones((2, 3)))
    for key in ((0, 0), 0, slice(1), ([0], [1]), bp.asarray([True, False])):
        with pytest.raises(bp.ArgumentValueError, match="several elements share the output's place"):
            g[key] = 7
    assert g.tolist() == [[1, 1, 1], [1, 1, 1]]
    for part in (g[0], g[0, 0], g[:, 1][1], g.detach()[1], g.reshape((6,))[2:3]):  # dense, and still many elements
        with pytest.raises(bp.ArgumentValueError, match="copy it first"):
            part += 1
        with pytest.raises(bp.ArgumentValueError, match="copy it first"):
            bp.add(part, 1, out=part)
    assert g.tolist() == [[1, 1, 1], [1, 1, 1]]
    both = bp.grad(lambda a, b: (bp.stack([a, b]).sum(axis=0) * bp.asarray([1.0, 2])).sum(), argnums=(0, 1))
    of_a, of_b = both(bp.ones(2), bp.ones(2))  # two rows that are one
    with pytest.raises(bp.ArgumentValueError, match="copy it first"):
        of_a *= 2
    assert of_b.tolist() == [1, 2]
    one = bp.broadcast_to(bp.zeros((1, 2)), (1, 2))
    one[0, 0] = 3
    assert one.tolist() == [[3, 0]]


def test_masked_select_broadcasts_and_an_index_takes_leading_axes():
    x = bp.asarray([[1, 2], [3, 4]])
    assert bp.masked_select(x, bp.asarray([True, False])).tolist() == [1, 3] and x[bp.asarray([True, False])].tolist() == [[1, 2]]
    assert x.masked_select(mask=x > 1).tolist() == [2, 3, 4] and bp.masked_select(input=x, mask=True).tolist() == [1, 2, 3, 4]
    assert bp.masked_select(x[0], [[True, False], [True, True]]).tolist() == [1, 1, 2]
    assert bp.grad(lambda x: bp.masked_select(x, bp.asarray([True, False])).sum())(bp.ones((2, 2))).tolist() == [[1, 0], [1, 0]]
    with pytest.raises(bp.ShapeError, match=r"masked_select: argument mask: found shape \(3,\).* \(2, 2\); x\[mask\]"):
        bp.masked_select(x, bp.asarray([True, False, True]))


def test_index_select_keeps_the_axis():
    x = bp.asarray([[1, 2], [3, 4]])
    assert bp.index_select(x, 0, bp.asarray(1)).tolist() == [[3, 4]] and bp.index_select(bp.asarray(5), 0, bp.asarray([0])).item() == 5
    with pytest.raises(bp.ShapeError, match="index_select: argument index: found 2 dimensions"):
        bp.index_select(x, 0, [[0]])
