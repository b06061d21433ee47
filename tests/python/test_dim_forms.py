"""With PyTorch's dim= and keepdim= a function means what PyTorch means; with axis= and keepdims= what NumPy means."""

import pickle

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(8)
A = RNG.permutation(60).reshape(3, 4, 5).astype(np.float64)
HOLES = np.where(RNG.random((3, 4, 5)) < 0.4, np.nan, A)
HOLES[0, 0] = np.nan


def same(found, expected):
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


def picked(array, indices, dim):
    return np.take_along_axis(array, indices, dim)


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_over_dim_are_pairs(name, dim, keepdim):
    x = bp.asarray(A)
    position = getattr(np, "arg" + name)(A, axis=dim, keepdims=keepdim)
    for found in (getattr(bp, name)(x, dim=dim, keepdim=keepdim), getattr(x, name)(dim=dim, keepdim=keepdim), getattr(bp.ops.bp, name)(x, dim=dim, keepdim=keepdim)):
        values, indices = found
        assert found.values is values and found.indices is indices and indices.dtype == bp.int64
        same(values, getattr(np, name)(A, axis=dim, keepdims=keepdim))
        same(indices, position)
    same(getattr(x, name)(axis=dim), getattr(np, name)(A, axis=dim))
    same(getattr(bp, "a" + name)(x, dim=dim, keepdim=keepdim), getattr(np, name)(A, axis=dim, keepdims=keepdim))
    same(getattr(x, "a" + name)(dim=(0, -1)), getattr(np, name)(A, axis=(0, -1)))


def test_extremes_over_dim_find_nan_and_send_the_gradient_to_one_element():
    x = bp.asarray([[1.0, float("nan"), 3.0], [2.0, 2.0, 1.0]])
    values, indices = x.max(dim=1)
    assert np.isnan(values[0].item()) and values[1].item() == 2.0 and indices.tolist() == [1, 0]
    assert bp.grad(lambda x: bp.sum(x.max(dim=1).values))(bp.asarray([[2.0, 2.0]])).tolist() == [[1.0, 0.0]]
    assert bp.asarray(3.0).max(dim=0).values.item() == 3.0
    assert bp.asarray([[3, 9]], dtype=bp.int16).max(dim=1).values.dtype == bp.int16
    rows = bp.vmap(lambda row: row.min(dim=0))(bp.asarray([[3.0, 1.0], [0.0, 5.0]]))
    assert rows.values.tolist() == [1.0, 0.0] and rows.indices.tolist() == [1, 0]


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_sort_over_dim_is_a_pair(dim):
    x = bp.asarray(A)
    for found, sign in ((bp.sort(x, dim=dim), 1), (x.sort(dim=dim, descending=True), -1), (x.sort(dim=dim, stable=True), 1)):
        order = np.argsort(sign * A, axis=dim)
        same(found.values, picked(A, order, dim))
        same(found.indices, order)
    same(bp.sort(x, axis=dim), np.sort(A, axis=dim))
    same(x.argsort(dim=dim), np.argsort(A, axis=dim))


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_medians_over_dim_are_pairs_of_the_lower_middle(dim, keepdim):
    for array in (A, HOLES):
        x, order = bp.asarray(array), np.argsort(array, axis=dim)
        n, whole = array.shape[dim], np.isnan(array).sum(axis=dim, keepdims=True) == 0
        middle = np.where(whole, (n - 1) // 2, n - np.isnan(array).sum(axis=dim, keepdims=True))
        lower = np.maximum((n - np.isnan(array).sum(axis=dim, keepdims=True) - 1) // 2, 0)
        for name, at in (("median", middle), ("nanmedian", lower)):
            expected = picked(array, picked(order, at, dim), dim)
            for found in (getattr(bp, name)(x, dim=dim, keepdim=keepdim), getattr(x, name)(dim=dim, keepdim=keepdim)):
                same(found.values, expected if keepdim else expected.squeeze(dim))
                same(found.values, found.values.numpy())
                kept = found.indices if keepdim else bp.expand_dims(found.indices, [dim])
                same(kept, picked(order, at, dim))
    same(bp.asarray(A).median(axis=1), np.median(A, axis=1))


def test_medians_over_dim_take_integers_and_refuse_several_axes():
    assert bp.asarray([[4, 1, 3, 2]], dtype=bp.int32).median(dim=1).values.tolist() == [2]
    with pytest.raises(TypeError, match="argument dim: found .* expected one axis"):
        bp.ones((2, 2)).median(dim=(0, 1))
    for call in (lambda x: x.max(dim=(0, 1)), lambda x: x.sort(dim=None)):
        with pytest.raises(TypeError, match="found .Tensor, dim=.*, expected the arguments of one of these signatures: "):
            call(bp.ones((2, 2)))
    with pytest.raises(ValueError, match="median: argument x: found no elements"):
        bp.zeros((2, 0)).median(dim=1)
    with pytest.raises(IndexError):
        bp.ones(2).median(dim=3)


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("dim", [0, (0, 2), None, ()])
def test_spreads_over_dim_are_unbiased(name, dim):
    x, numpy = bp.asarray(A), getattr(np, name)
    axis = None if dim == () else dim
    same(getattr(x, name)(dim=dim), numpy(A, axis=axis, ddof=1))
    same(getattr(bp, name)(x, dim=dim, keepdim=True), numpy(A, axis=axis, ddof=1, keepdims=True))
    same(getattr(x, name)(dim=dim, correction=0), numpy(A, axis=axis))
    same(getattr(x, name)(0, keepdim=True), numpy(A, axis=0, ddof=1, keepdims=True))
    same(getattr(x, name)(axis=0, keepdims=True), numpy(A, axis=0, keepdims=True))
    same(getattr(x, name)(), numpy(A))


def test_others_mean_the_same_under_both_words():
    x, holes = bp.asarray(A), bp.asarray(HOLES)
    same(x.quantile(0.3, dim=1, keepdim=True), np.quantile(A, 0.3, axis=1, keepdims=True))
    same(bp.nanmean(holes, dim=2), bp.nanmean(holes, axis=2).numpy())
    same(holes.nansum(dim=(0, 1), keepdim=True), np.nansum(HOLES, axis=(0, 1), keepdims=True))
    for name in ("sum", "mean", "prod", "logsumexp", "count_nonzero", "argmax", "cumulative_sum", "cumsum", "logcumsumexp", "softmax", "flip", "diff"):
        same(getattr(bp, name)(x, dim=1), getattr(bp, name)(x, axis=1).numpy())
    for found, expected in zip(x.cummax(dim=1), x.cummax(axis=1)):
        same(found, expected.numpy())


def test_no_axes_are_all_to_pytorch_and_none_to_numpy_so_dim_refuses_them():
    for call in (lambda x: x.sum(dim=()), lambda x: x.mean(dim=[]), lambda x: x.amax(dim=())):
        with pytest.raises(ValueError, match="argument 'dim': found no axes"):
            call(bp.ones((2, 2)))
    assert bp.ones((2, 2)).sum(axis=()).shape == (2, 2)


def test_pickled_ops_know_their_forms():
    assert pickle.loads(pickle.dumps(bp.max))(bp.asarray([[1.0, 2.0]]), dim=1).indices.tolist() == [1]
    assert pickle.loads(pickle.dumps(bp.amax))(bp.asarray([[1.0, 2.0]]), dim=1).tolist() == [2.0]


@pytest.mark.parametrize("name", ["std", "var"])
def test_unbiased_is_pytorchs_other_word(name):
    x = bp.asarray([1.0, 2.0, 4.0])
    biased, unbiased = getattr(np, name)([1, 2, 4]), getattr(np, name)([1, 2, 4], ddof=1)
    assert float(getattr(bp, name)(x, dim=0, unbiased=False)) == pytest.approx(biased)
    assert float(getattr(x, name)(dim=0, unbiased=True)) == pytest.approx(unbiased)
    assert float(getattr(x, name)(dim=0)) == pytest.approx(unbiased)
    assert float(getattr(x, name)(unbiased=False)) == float(getattr(bp, name)(x, unbiased=0)) == pytest.approx(biased)
    assert float(getattr(x, name)(unbiased=True)) == pytest.approx(unbiased) == float(getattr(bp, name)(x, axis=0, unbiased=True))
    for more in ({"correction": 1}, {"ddof": 1}):
        with pytest.raises(TypeError, match=f"{name}: found .*unbiased.*, expected one of them"):
            getattr(bp, name)(x, unbiased=True, **more)


def test_a_wrong_argument_is_reported_in_the_functions_name():
    for name in ("std", "var", "max", "min", "sort"):
        with pytest.raises(TypeError, match=rf"{name}: found \(Tensor, dim=int, axis=int\), expected .*{name}\(x, dim"):
            getattr(bp, name)(bp.ones(3), dim=0, axis=0)


def test_tensors_without_axes_have_one_to_name():
    assert [part.item() for part in bp.sort(bp.asarray(2.0), dim=0)] == [2.0, 0]
    assert np.isnan(float(bp.std(bp.asarray(1.0), dim=0)))


def test_functions_of_several_ops_take_dim_as_well():
    x = bp.asarray(A[:, :1])
    same(bp.squeeze(x, dim=1), A[:, 0])
    same(x.squeeze(dim=1), A[:, 0])
    same(bp.rot90(x, dims=(0, 2)), np.rot90(A[:, :1], axes=(0, 2)))
    for name in ("fft", "rfft"):
        np.testing.assert_allclose(getattr(bp.fft, name)(bp.asarray(A), dim=1).numpy(), getattr(np.fft, name)(A, axis=1), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(bp.fft.fftn(bp.asarray(A), dim=(0, 1)).numpy(), np.fft.fftn(A, axes=(0, 1)), rtol=1e-9, atol=1e-9)
    with pytest.raises(TypeError, match="found dim and axis, expected one of them"):
        bp.squeeze(x, axis=1, dim=1)


@pytest.mark.parametrize("name", ["max", "min", "sort", "var", "std", "median", "nanmedian"])
def test_the_operand_goes_by_pytorchs_name_beside_dim(name):
    x = bp.asarray(A)
    found, expected = getattr(bp, name)(input=x, dim=1), getattr(bp, name)(x, dim=1)
    for one, other in zip(found, expected) if isinstance(expected, tuple) else [(found, expected)]:
        same(one, other.numpy())


def test_squeeze_over_dim_leaves_longer_axes():
    x = bp.ones((2, 1, 3, 1))
    assert x.squeeze(dim=0).shape == (2, 1, 3, 1) and x.squeeze(dim=(0, 1, -1)).shape == (2, 3)
    with pytest.raises(bp.ShapeError):
        x.squeeze(axis=0)
    with pytest.raises(bp.OutOfRangeError, match="squeeze: argument dim"):
        x.squeeze(dim=4)
    with pytest.raises(bp.ArgumentTypeError, match="squeeze: found dim and axis"):
        x.squeeze(1, dim=1)
