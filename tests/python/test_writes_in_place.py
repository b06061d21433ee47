"""Writing parts of a tensor: the in-place forms give the results of the functional ones, with memory only for the written part, or change nothing."""

import backplane as bp
import numpy as np
import pytest

N = 1 << 18  # elements of the tensor that is written to
FEW = 64 << 10  # bytes: far less than the tensor has


def tensor(*shape, dtype="float64", seed=0):
    return bp.asarray(np.random.default_rng(seed).standard_normal(shape), dtype=dtype)


def at(*places):
    return bp.asarray(list(places), dtype=bp.int64)


ROWS = (N // 4, 4)
# A write in place; its functional form; the shape of the tensor.
WRITES = {
    "index_put": (lambda x: x.index_put_([at(3, 1)], 9.0), lambda x: bp.index_put(x, [at(3, 1)], 9.0), ROWS),
    "index_put, adding": (lambda x: x.index_put_([at(3, 3)], 9.0, accumulate=True),
                          lambda x: bp.index_put(x, [at(3, 3)], 9.0, accumulate=True), ROWS),
    "take_put": (lambda x: x.take_put_(at(5, -1), tensor(2, 4)), lambda x: bp.take_put(x, at(5, -1), tensor(2, 4)), ROWS),
    "put_along_axis": (lambda x: x.put_along_axis_(at(5, -1), 2.0, axis=0), lambda x: bp.put_along_axis(x, at(5, -1), 2.0, axis=0), (N,)),
    "put_along_axis, adding": (lambda x: x.put_along_axis_(at(5, 5), tensor(2), axis=0, accumulate=True),
                               lambda x: bp.put_along_axis(x, at(5, 5), tensor(2), axis=0, accumulate=True), (N,)),
    "scatter_max": (lambda x: x.scatter_max_(at(5, 5), tensor(2), axis=0), lambda x: bp.scatter_max(x, at(5, 5), tensor(2), axis=0), (N,)),
    "scatter_min": (lambda x: x.scatter_min_(at(5, 5), tensor(2), axis=0), lambda x: bp.scatter_min(x, at(5, 5), tensor(2), axis=0), (N,)),
    "scatter_prod": (lambda x: x.scatter_prod_(at(5, 5), tensor(2), axis=0), lambda x: bp.scatter_prod(x, at(5, 5), tensor(2), axis=0), (N,)),
    "slice_put": (lambda x: x.slice_put_(1.0, [0], [3], [9], [2]), lambda x: bp.slice_put(x, 1.0, [0], [3], [9], [2]), ROWS),
    "select_put": (lambda x: x.select_put_(tensor(4), 0, -2), lambda x: bp.select_put(x, tensor(4), 0, -2), ROWS),
    "diagonal_put": (lambda x: x.diagonal_put_(tensor(4)), lambda x: bp.diagonal_put(x, tensor(4)), ROWS),
    "diagonal_put, of axes apart": (lambda x: x.diagonal_put_(tensor(4, 4), axis1=2, axis2=0, offset=-1),
                                    lambda x: bp.diagonal_put(x, tensor(4, 4), axis1=2, axis2=0, offset=-1), (4, 4, N // 16)),
    "index_add": (lambda x: x.index_add_(0, at(1, 1), tensor(2, 4)), lambda x: bp.index_add(x, 0, at(1, 1), tensor(2, 4)), ROWS),
    "index_add, scaled": (lambda x: x.index_add_(0, at(1, 1), tensor(2, 4), alpha=3),
                          lambda x: bp.index_add(x, 0, at(1, 1), tensor(2, 4), alpha=3), ROWS),
    "index_copy": (lambda x: x.index_copy_(0, at(1, 7), tensor(2, 4)), lambda x: bp.index_copy(x, 0, at(1, 7), tensor(2, 4)), ROWS),
    "index_fill": (lambda x: x.index_fill_(0, at(1, 7), 4.0), lambda x: bp.index_fill(x, 0, at(1, 7), 4.0), ROWS),
    "scatter": (lambda x: x.scatter_(0, at(1, 7), tensor(2)), lambda x: bp.scatter(x, 0, at(1, 7), tensor(2)), (N,)),
    "scatter of a number": (lambda x: x.scatter_(0, at(1, 7), 3.0), lambda x: bp.scatter(x, 0, at(1, 7), 3.0), (N,)),
    "scatter, in part": (lambda x: x.scatter_(0, at(1, 7).reshape(2, 1), tensor(2, 1)), lambda x: bp.scatter(x, 0, at(1, 7).reshape(2, 1), tensor(2, 1)), ROWS),
    "scatter, sums": (lambda x: x.scatter_(0, at(7, 7), tensor(2), "sum"), lambda x: bp.scatter(x, 0, at(7, 7), tensor(2), "sum"), (N,)),
    "scatter, products": (lambda x: x.scatter_(0, at(7, 7), tensor(2), "prod"), lambda x: bp.scatter(x, 0, at(7, 7), tensor(2), "prod"), (N,)),
    "scatter, maxima": (lambda x: x.scatter_(0, at(7, 7), tensor(2), "amax"), lambda x: bp.scatter(x, 0, at(7, 7), tensor(2), "amax"), (N,)),
    "scatter_add": (lambda x: x.scatter_add_(0, at(7, 7), tensor(2)), lambda x: bp.scatter_add(x, 0, at(7, 7), tensor(2)), (N,)),
    "x[i]": (lambda x: x.__setitem__(at(2), 9.0), lambda x: bp.index_put(x, [at(2)], 9.0), ROWS),
    "x[:, i]": (lambda x: x.__setitem__((slice(0, 8), at(2)), 9.0), lambda x: bp.concat([bp.index_put(x[:8], [None, at(2)], 9.0), x[8:]]), ROWS),
    "x[[i]] += 1": (lambda x: x.__setitem__(at(5), x[at(5)] + 1), lambda x: bp.index_put(x, [at(5)], x[at(5)] + 1), ROWS),
    "x[i, j]": (lambda x: x.__setitem__((at(5, 6), at(1, 2)), at(1, 2).astype(bp.float64)),
                lambda x: bp.index_put(x, [at(5, 6), at(1, 2)], at(1, 2).astype(bp.float64)), ROWS),
}
# These have scans of the whole tensor, in memory of a byte per element.
MASKS = {
    "masked_put": (lambda x: x.masked_put_(x > 4.0, 1.0), lambda x: bp.masked_put(x, x > 4.0, 1.0), ROWS),
    "x[mask]": (lambda x: x.__setitem__(x > 4.0, 1.0), lambda x: bp.where(x > 4.0, 1.0, x), ROWS),
    "masked_fill": (lambda x: x.masked_fill_(x > 1.0, 1.0), lambda x: bp.masked_fill(x, x > 1.0, 1.0), ROWS),
}


def peak_of(call):
    call()  # what is made once
    before = bp.memory_stats("cpu")["allocated_bytes"]
    bp.reset_peak_memory_stats("cpu")
    call()
    return bp.memory_stats("cpu")["peak_bytes"] - before


@pytest.mark.parametrize("name", [*WRITES, *MASKS])
def test_in_place_gives_what_the_function_gives(name):
    write, function, shape = {**WRITES, **MASKS}[name]
    x = tensor(*shape)
    expected = np.asarray(function(x))
    alias, view = x[...], x[1:]
    write(x)
    np.testing.assert_array_equal(np.asarray(x), expected)
    np.testing.assert_array_equal(np.asarray(alias), expected)
    np.testing.assert_array_equal(np.asarray(view), expected[1:])


@pytest.mark.parametrize("name", WRITES)
def test_writing_takes_memory_for_what_is_written(name):
    write, _, shape = WRITES[name]
    x = tensor(*shape)
    assert peak_of(lambda: write(x)) < FEW


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_takes_a_byte_per_element(name):
    write, _, shape = MASKS[name]
    x = tensor(*shape)
    assert peak_of(lambda: write(x)) < 1.3 * N + FEW


@pytest.mark.parametrize("name", WRITES)
def test_a_view_that_steps_is_written_in_place(name):
    write, function, shape = WRITES[name]
    whole = tensor(shape[0] * 2, *shape[1:])
    x = whole[::2]
    expected = np.array(np.asarray(whole))
    expected[::2] = np.asarray(function(x))
    assert peak_of(lambda: write(x)) < FEW
    whole[...] = tensor(shape[0] * 2, *shape[1:])
    write(x)
    np.testing.assert_array_equal(np.asarray(whole), expected)


@pytest.mark.parametrize("name", WRITES)
def test_gradients_through_a_write_are_those_of_the_function(name):
    write, function, shape = WRITES[name]
    small = tuple(min(n, 16) for n in shape)
    x, weights = tensor(*small, seed=1), tensor(*small, seed=2)

    def written(x):
        y = x * 1.0
        write(y)
        return bp.sum(y * weights)

    expected = bp.grad(lambda x: bp.sum(function(x * 1.0) * weights))(x)
    np.testing.assert_array_equal(np.asarray(bp.grad(written)(x)), np.asarray(expected))
    np.testing.assert_array_equal(np.asarray(bp.compile(bp.grad(written))(x)), np.asarray(expected))
    leaf = x.detach()
    leaf.requires_grad = True
    written(leaf).backward()
    np.testing.assert_array_equal(np.asarray(leaf.grad), np.asarray(expected))


@pytest.mark.parametrize("write", [
    lambda x: x.index_put_([at(1, 99)], 9.0),
    lambda x: x.index_put_([at(1, -7)], 9.0, accumulate=True),
    lambda x: x.take_put_(at(1, 99), tensor(2, 4)),
    lambda x: x.put_along_axis_(at(1, 99).reshape(2, 1), 1.0, axis=0),
    lambda x: x.put_along_axis_(at(1, 99).reshape(2, 1), tensor(2, 4), axis=0, accumulate=True),
    lambda x: x.put_along_axis_(bp.asarray(np.array([[0, 1], [1, 99]] * 3)), 1.0, axis=1),
    lambda x: x.scatter_max_(at(1, 99).reshape(2, 1), tensor(2, 4), axis=0),
    lambda x: x.scatter_prod_(at(1, 99).reshape(2, 1), tensor(2, 4), axis=0),
    lambda x: x.index_add_(0, at(1, 99), tensor(2, 4)),
    lambda x: x.index_copy_(0, at(1, 99), tensor(2, 4)),
    lambda x: x.index_fill_(0, at(1, 99), 4.0),
    lambda x: x.scatter_(0, at(1, 99).reshape(2, 1), 1.0),
    lambda x: x.scatter_(0, at(1, 99).reshape(2, 1), 1.0, "amin"),
    lambda x: x.scatter_(0, at(1, 99).reshape(2, 1), 1.0, "prod", include_self=False),
    lambda x: x.__setitem__(at(1, 99), 9.0),
    lambda x: x.__setitem__((at(1, 2), at(1, 99)), 9.0),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_an_index_out_of_range_changes_nothing(write, dtype):
    x = tensor(6, 4, dtype=dtype)
    before = np.array(np.asarray(x))
    with pytest.raises(bp.BackplaneError, match="out of range|dtype"):
        write(x)
    np.testing.assert_array_equal(np.asarray(x), before)


def test_values_that_lie_in_the_tensor_are_read_first():
    x = tensor(6, 4)
    before = np.array(np.asarray(x))
    x.index_put_([at(5, 4, 3, 2, 1, 0)], x)
    np.testing.assert_array_equal(np.asarray(x), before[::-1])
    x = bp.asarray(before, copy=True)
    x.take_put_(at(1, 2, 3, 4, 5), x[:5])
    np.testing.assert_array_equal(np.asarray(x), before[[0, 0, 1, 2, 3, 4]])
    x = bp.asarray(before, copy=True)
    x.put_along_axis_(bp.asarray(np.arange(5, -1, -1)[:, None]), x, axis=0)
    np.testing.assert_array_equal(np.asarray(x), before[::-1])
    x = bp.asarray(before, copy=True)
    x.index_add_(0, at(0, 1, 2, 3, 4, 5), x[::-1])
    np.testing.assert_array_equal(np.asarray(x), before + before[::-1])
    x = bp.asarray(before, copy=True)
    x[at(0, 1), at(1, 1)] = x[2, :2]
    expected = before.copy()
    expected[[0, 1], [1, 1]] = before[2, :2]
    np.testing.assert_array_equal(np.asarray(x), expected)


def test_positions_that_are_the_tensor_are_read_first():
    order = np.array([2, 0, 1, 1, 3, 5])
    expected = order.copy()
    expected[order] = [7, 6, 5, 4, 3, 2]
    for write in (lambda x, v: x.__setitem__(x, v), lambda x, v: x.take_put_(x, v), lambda x, v: x.put_along_axis_(x, v, axis=0),
                  lambda x, v: x.scatter_(0, x, v)):
        x = bp.asarray(order, copy=True)
        write(x, at(7, 6, 5, 4, 3, 2))
        np.testing.assert_array_equal(np.asarray(x), expected)


def test_a_saved_tensor_notices_the_write():
    x = tensor(6)
    x.requires_grad = True
    y = x * 2
    z = (y * y).sum()
    with bp.no_grad():
        y[at(1)] = 0.0
    with pytest.raises(bp.BackplaneError, match="changed in place"):
        z.backward()
