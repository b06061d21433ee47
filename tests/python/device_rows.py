"""What a compiler of reductions over rows keeps to: a region of rows gives what its ops give one by one, over any length, layout and dtype.

Sums come in another order than the kernels', so floats are compared with a tolerance; what has no rounding is compared to the bit.
The tests of a backend derive a class from `RowLaws` and have a fixture `device`."""

import backplane as bp
import numpy as np
import pytest
from device_regions import FLOATS, INTEGERS, regions, tensor, words

LENGTHS = (1, 2, 7, 8, 31, 32, 33, 255, 256, 1000, 5000)
DIGITS = {bp.float64: 1e-12, bp.float32: 2e-5, bp.float16: 4e-3, bp.bfloat16: 3e-2, bp.complex64: 2e-5, bp.complex128: 1e-12}


def softmax(x):
    e = bp.exp(x - bp.max(x, axis=-1, keepdims=True))
    return e / bp.sum(e, axis=-1, keepdims=True)


def log_softmax(x):
    y = x - bp.max(x, axis=-1, keepdims=True)
    return y - bp.log(bp.sum(bp.exp(y), axis=-1, keepdims=True))


def layer_norm(x, weight, bias):
    centred = x - bp.mean(x, axis=-1, keepdims=True)
    variance = bp.mean(centred * centred, axis=-1, keepdims=True)
    return centred * bp.rsqrt(variance + 1e-5) * weight + bias


def rms_norm(x, weight):
    return x * bp.rsqrt(bp.mean(bp.square(x), axis=-1, keepdims=True) + 1e-6) * weight


def cross_entropy(x, labels, classes):
    """Of each row, at its label, without a table of one-hot rows."""
    y = x - bp.max(x, axis=-1, keepdims=True)
    chosen = bp.sum(bp.where(bp.expand_dims(labels, axis=-1) == classes, y, 0), axis=-1)
    return bp.log(bp.sum(bp.exp(y), axis=-1)) - chosen


def close(function, *tensors):
    """The compiled function's results are the eager ones'."""
    expected, found = function(*tensors), bp.compile(function)(*tensors)
    expected, found = ([x] if isinstance(x, bp.Tensor) else list(x) for x in (expected, found))
    assert len(expected) == len(found)
    for one, other in zip(expected, found):
        assert (one.shape, one.dtype, one.device) == (other.shape, other.dtype, other.device)
        if one.dtype in DIGITS:
            np.testing.assert_allclose(words(other), words(one), rtol=DIGITS[one.dtype], atol=DIGITS[one.dtype])
        else:
            np.testing.assert_array_equal(words(other), words(one))


def one_region(function, *tensors):
    assert regions(function, *tensors)[0] == 1 and "kernel of plugin" not in bp.explain_plan(function)(*tensors)
    close(function, *tensors)


class RowLaws:
    @pytest.mark.parametrize("length", LENGTHS)
    def test_lengths(self, device, length):
        x, w, b = (tensor(device, bp.float32, shape) for shape in ((3, length), (length,), (length,)))
        labels, classes = tensor(device, bp.int32, (3,)) % length, bp.arange(length, device=device).astype(bp.int32)
        check = one_region if length > 1 else close  # of one element there is nothing to reduce
        check(softmax, x)
        check(log_softmax, x)
        check(layer_norm, x, w, b)
        check(rms_norm, x, w)
        check(cross_entropy, x, labels, classes)

    @pytest.mark.parametrize("rows", [1, 2, 31, 33, 257, 1025])
    def test_numbers_of_rows(self, device, rows):
        def function(x):
            y = x * 2
            return softmax(y), bp.sum(y, axis=-1)

        one_region(function, tensor(device, bp.float32, (rows, 19)))

    def test_empty_rows_and_no_rows(self, device):
        def sums(x):
            return bp.sum(x * 2, axis=-1), bp.prod(x + 1, axis=-1), bp.any(x > 0, axis=-1), bp.all(x > 0, axis=-1), bp.mean(x * 2, axis=-1)

        for shape in ((5, 0), (0, 5), (0, 0)):
            close(sums, tensor(device, bp.float32, shape))
        with pytest.raises(ValueError, match="no elements to choose from"):
            bp.compile(lambda x: bp.max(x * 2, axis=-1) + 1)(tensor(device, bp.float32, (5, 0)))

    @pytest.mark.parametrize("dtype", FLOATS, ids=str)
    def test_floats(self, device, dtype):
        x, w, b = (tensor(device, dtype, shape) for shape in ((5, 70), (70,), (70,)))
        one_region(softmax, x)
        one_region(layer_norm, x, w, b)
        one_region(lambda x: (bp.max(x * 2, axis=-1), bp.min(-x, axis=-1), bp.sum(x + 1, axis=-1), bp.prod(x + 1, axis=-1)), x)

    @pytest.mark.parametrize("dtype", [bp.bool, *INTEGERS], ids=str)
    def test_integers_and_bools_to_the_bit(self, device, dtype):
        def function(x):
            y = bp.where(x > 5, x, ~x)
            results = [bp.max(y, axis=-1), bp.min(y, axis=-1), bp.any(y, axis=-1), bp.all(y, axis=-1), bp.sum(y, axis=-1), bp.prod(y, axis=-1)]
            return *results, bp.sum(y, axis=-1, dtype=bp.float32), y - bp.max(y, axis=-1, keepdims=True) if dtype != bp.bool else y

        one_region(function, tensor(device, dtype, (6, 300)))

    @pytest.mark.parametrize("dtype", [bp.complex64, bp.complex128], ids=str)
    def test_complex_numbers(self, device, dtype):
        x = (tensor(device, bp.float64, (4, 21)) + 1j * tensor(device, bp.float64, (4, 21))).astype(dtype)
        one_region(lambda x: (x / bp.sum(x * 2, axis=-1, keepdims=True), bp.prod(x * 0.5, axis=-1), bp.any(x - x, axis=-1)), x)

    def test_uint64_beyond_int64(self, device):
        x = bp.asarray(np.array([[2**63 + 5, 3], [7, 2**64 - 1]], np.uint64), device=device)
        one_region(lambda x: (bp.max(x + 0, axis=-1), bp.min(x + 0, axis=-1), bp.sum(x + 0, axis=-1)), x)

    def test_sums_of_another_dtype(self, device):
        x = tensor(device, bp.int8, (4, 200))
        one_region(lambda x: (bp.sum(x * 2, axis=-1, dtype=bp.float32), bp.sum(x * 2, axis=-1, dtype=bp.int8), bp.sum(x > 5, axis=-1)), x)
        close(lambda x: bp.sum(x * 2, axis=-1, dtype=bp.bool), x)

    @pytest.mark.parametrize("at", [0, 1, 40, 69])
    @pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
    def test_special_numbers(self, device, value, at):
        host = np.random.default_rng(7).standard_normal((3, 70)).astype(np.float32)
        host[1, at] = value
        x = bp.asarray(host, device=device)
        one_region(lambda x: (softmax(x), bp.max(x * 1, axis=-1), bp.min(x * 1, axis=-1), bp.sum(x * 1, axis=-1), bp.any(x * 1, axis=-1)), x)
        host[:] = value
        one_region(lambda x: (bp.max(x * 1, axis=-1), bp.min(x * 1, axis=-1), bp.max(x * 1, axis=-1, keepdims=True) - x), bp.asarray(host, device=device))

    @pytest.mark.parametrize("axes", [(-1,), (1, 2), (2, 1), (0, 1, 2), (2,)], ids=str)
    @pytest.mark.parametrize("keepdims", [False, True])
    def test_last_axes(self, device, axes, keepdims):
        def function(x):
            return bp.sum(x * 2, axis=axes, keepdims=keepdims) * 0.5, x - bp.max(x * 2, axis=axes, keepdims=True)

        one_region(function, tensor(device, bp.float32, (3, 4, 10)))

    def test_axes_of_size_1(self, device):
        one_region(lambda x: softmax(x) * bp.sum(x, axis=(1, 3), keepdims=True), tensor(device, bp.float32, (4, 1, 1, 9)))
        one_region(lambda x: x - bp.mean(x, axis=1, keepdims=True), tensor(device, bp.float32, (6, 20, 1)))

    @pytest.mark.parametrize("axis", [0, 1, (0, 2)], ids=str)
    def test_other_axes_are_reduced_by_their_kernel(self, device, axis):
        x = tensor(device, bp.float32, (3, 4, 5))
        assert "reduces over axes that are not the last" in bp.explain_plan(lambda x: bp.sum(x * 2, axis=axis) + 1)(x)
        close(lambda x: bp.sum(x * 2, axis=axis) + 1, x)

    @pytest.mark.parametrize(
        "layout", [lambda x: x, lambda x: x.T, lambda x: x[1:, 2:], lambda x: x[::2, ::2], lambda x: x[::-1, ::-1], lambda x: bp.broadcast_to(x[1], (4, 44))],
        ids=["contiguous", "transposed", "from an offset", "every second", "backward", "repeated"])
    def test_layouts(self, device, layout):
        x = layout(tensor(device, bp.float32, (44, 44)))
        one_region(lambda x: (softmax(x), bp.sum(x * x, axis=-1)), x)

    def test_operands_of_every_form(self, device):
        """One in all, one per row, one per column, one for each, and four axes without an axis of size 1."""
        def function(x, one, row, column):
            twice = one * 2
            y = x * twice + row - column
            return bp.sum(y, axis=(2, 3), keepdims=True) * row + y, bp.max(y, axis=(-1, -2)) * 2, twice

        x = bp.permute_dims(tensor(device, bp.float32, (5, 3, 4, 2)), (2, 0, 3, 1))
        row, column = tensor(device, bp.float32, (4, 5, 1, 1)), bp.permute_dims(tensor(device, bp.float32, (3, 2)), (1, 0))
        one_region(function, x, tensor(device, bp.float32, (1, 1)), row, column)

    def test_a_column_of_a_square_is_no_row(self, device):
        """A value of one element per row, and one per column, have the same shape there."""
        def function(x):
            total = bp.sum(x * 2, axis=-1)
            return x * total + 1, x - bp.expand_dims(total, axis=-1)

        close(function, tensor(device, bp.float32, (12, 12)))

    def test_results_of_rows_repeated(self, device):
        def function(x):
            total = bp.broadcast_to(bp.expand_dims(bp.sum(x * 2, axis=-1), axis=-1), x.shape)
            return total, total * 1, total + x

        one_region(function, tensor(device, bp.float32, (7, 40)))

    def test_a_whole_tensor_is_one_row(self, device):
        def loss(x, y):
            return bp.mean(bp.square(x - y))

        for shape in ((6, 10), (4, 1000), (3,), (16384,)):
            one_region(loss, tensor(device, bp.float32, shape), tensor(device, bp.float32, shape))

    def test_rows_that_are_too_long_are_reduced_by_their_kernel(self, device):
        x = tensor(device, bp.float32, (2, 16385))
        assert "too long" in bp.explain_plan(lambda x: bp.sum(x * 2, axis=-1) + 1)(x)
        close(lambda x: bp.sum(x * 2, axis=-1) + 1, x)

    @pytest.mark.parametrize("length", [9, 100, 2000])
    def test_gradients(self, device, length):
        x, w, b = (tensor(device, bp.float32, shape) for shape in ((4, length), (length,), (length,)))
        labels, classes = tensor(device, bp.int32, (4,)) % length, bp.arange(length, device=device).astype(bp.int32)
        close(bp.grad(lambda x: bp.sum(softmax(x) * x)), x)
        close(bp.grad(lambda *args: bp.sum(bp.square(layer_norm(*args))), argnums=(0, 1, 2)), x, w, b)
        close(bp.grad(lambda x: bp.mean(cross_entropy(x, labels, classes))), x)
        compiled = bp.compile(lambda x: bp.sum(softmax(x) * x))
        np.testing.assert_allclose(words(bp.grad(compiled)(x)), words(bp.grad(lambda x: bp.sum(softmax(x) * x))(x)), rtol=2e-5, atol=2e-5)

    def test_dynamic_sizes(self, device):
        compiled = bp.compile(lambda x: (softmax(x), bp.sum(x * 2, axis=-1)), dynamic={"x": {0: "rows", 1: "columns"}})
        for shape in ((3, 5), (7, 300), (2, 1), (100, 2), (0, 4), (3, 5000)):
            x = tensor(device, bp.float32, shape)
            found, total = compiled(x)
            np.testing.assert_allclose(words(found), words(softmax(x)), rtol=2e-5, atol=1e-6)
            np.testing.assert_allclose(words(total), words(bp.sum(x * 2, axis=-1)), rtol=2e-5, atol=2e-4)

    def test_an_operand_may_give_its_memory(self, device):
        """Written by the last pass that reads it."""
        for function in (softmax, lambda x: (x * 2, bp.sum(x * 2, axis=-1, keepdims=True) + x)):
            x = tensor(device, bp.float32, (40, 50))
            expected = function(x)
            found = bp.compile(function, donate=0)(x + 0)
            for one, other in zip(*([y] if isinstance(y, bp.Tensor) else y for y in (expected, found))):
                np.testing.assert_allclose(words(other), words(one), rtol=2e-5, atol=2e-4)

    @pytest.mark.parametrize("shape", [(100, 37), (3, 4000)])
    def test_the_same_at_every_run(self, device, shape):
        x = tensor(device, bp.float32, shape)
        compiled = bp.compile(lambda x: (softmax(x), bp.sum(x * x, axis=-1)))
        first = [words(y) for y in compiled(x)]
        for _ in range(5):
            for one, other in zip(first, compiled(x)):
                np.testing.assert_array_equal(one, words(other))
