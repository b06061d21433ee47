"""Ops of bp.custom_op as ufuncs of NumPy: they compute the op, and their kernels may keep their arguments."""

import gc

import numpy as np
import pytest

import backplane as bp
import backplane.numpy as bn


@pytest.fixture
def scaled_difference():
    @bp.custom_op("py_ufunc::scaled_difference", elementwise=True, dtypes="floating", replace=True)
    def op(x: bp.Tensor, y: bp.Tensor, *, by: bp.types.Scalar = 2) -> bp.Tensor:
        return (x - y) * by

    return bn.ufunc("py_ufunc::scaled_difference", by=3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_in_every_layout(scaled_difference, dtype):
    x = np.arange(24, dtype=dtype).reshape(4, 6)
    y = np.linspace(0, 1, 6).astype(dtype)
    wanted = (x - y) * dtype(3)
    packed = np.zeros(24, np.dtype([("other", np.int8), ("x", dtype)]))
    packed["x"] = x.reshape(-1)
    for first in (x, x[::-1][::-1], np.asfortranarray(x), packed["x"].reshape(4, 6), x.astype(np.dtype(dtype).newbyteorder())):
        found = scaled_difference(first, y)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(scaled_difference(x[::2, ::3], y[:2]), (x[::2, ::3] - y[:2]) * dtype(3))
    assert scaled_difference(dtype(2), dtype(1)) == 3
    assert scaled_difference(np.zeros((0, 3), dtype), dtype(1)).shape == (0, 3)


def test_out_where_and_folds(scaled_difference):
    x, y = np.array([1.0, 2.0, 4.0, 8.0]), np.array([1.0, 1.0, 2.0, 3.0])
    out = np.full(8, -1.0)
    scaled_difference(x, y, out=out[::2], where=[True, False, True, True])
    np.testing.assert_array_equal(out[::2], [0, -1, 6, 15])
    np.testing.assert_array_equal(out[1::2], -1)
    scaled_difference(x[1:], x[:-1], out=x[1:])  # the result lies over an input
    np.testing.assert_array_equal(x, [1, 3, 6, 12])
    assert scaled_difference.reduce(y) == (((1 - 1) * 3 - 2) * 3 - 3) * 3
    np.testing.assert_array_equal(scaled_difference.outer(y[:2], y), (y[:2, None] - y) * 3)


def test_a_kernel_may_keep_its_arguments():
    kept = []

    @bp.custom_op("py_ufunc::keeper", elementwise=True, dtypes="floating", replace=True)
    def keeper(x: bp.Tensor) -> bp.Tensor:
        kept.append(x)
        kept.append(x.numpy())
        return x + 1

    f = bn.ufunc("py_ufunc::keeper")
    for n in (3, 2000):
        kept.clear()
        x = np.arange(n, dtype=np.float64)
        np.testing.assert_array_equal(f(x), x + 1)
        wanted = x.copy()
        x[:] = -7  # and the memory is used again
        del x
        gc.collect()
        f(np.full(n, 5.0))
        np.testing.assert_array_equal(kept[0].numpy(), wanted)
        np.testing.assert_array_equal(kept[1], wanted)


def test_an_exception_of_the_kernel_arrives():
    @bp.custom_op("py_ufunc::refuses", elementwise=True, dtypes="floating", replace=True)
    def refuses(x: bp.Tensor) -> bp.Tensor:
        raise KeyError("no such thing")

    with pytest.raises(Exception, match="no such thing"):
        bn.ufunc("py_ufunc::refuses")(np.ones(3))
    assert bn.negative(1.0) == -1


def test_a_result_of_another_shape_is_an_error():
    @bp.custom_op("py_ufunc::sums", elementwise=True, dtypes="floating", replace=True)
    def sums(x: bp.Tensor) -> bp.Tensor:
        return bp.sum(x)

    with pytest.raises(bp.BackplaneError, match="py_ufunc::sums"):
        bn.ufunc("py_ufunc::sums")(np.ones(3))


def test_several_results_and_bools():
    @bp.custom_op("py_ufunc::parts", elementwise=True, dtypes="floating", replace=True)
    def parts(x: bp.Tensor) -> tuple[bp.Tensor, bp.Tensor]:
        return bp.floor(x), x - bp.floor(x)

    whole, rest = bn.ufunc("py_ufunc::parts")(np.array([1.25, -0.5]))
    np.testing.assert_array_equal(whole, [1, -1])
    np.testing.assert_array_equal(rest, [0.25, 0.5])

    @bp.custom_op("py_ufunc::both", elementwise=True, dtypes="bool", replace=True)
    def both(x: bp.Tensor, y: bp.Tensor) -> bp.Tensor:
        return bp.logical_and(x, y)

    unclean = np.array([0, 2, 1, 255], np.uint8).view(np.bool_)
    found = bn.ufunc("py_ufunc::both")(unclean, True)
    assert found.dtype == np.bool_ and found.view(np.uint8).tolist() == [0, 1, 1, 1]


def test_an_op_defined_again_is_the_new_one():
    for by in (2, 5):

        @bp.custom_op("py_ufunc::again", elementwise=True, dtypes="floating", replace=True)
        def again(x: bp.Tensor, factor: float = by) -> bp.Tensor:
            return x * factor

        assert bn.ufunc("py_ufunc::again")(1.0) == by


def test_an_op_that_does_not_say_so_is_refused():
    @bp.custom_op("py_ufunc::plain", replace=True)
    def plain(x: bp.Tensor) -> bp.Tensor:
        return x + 1

    with pytest.raises(bp.ArgumentValueError, match="define it with elementwise=True"):
        bn.ufunc("py_ufunc::plain")
