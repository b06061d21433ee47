"""Embeddings, one-hot, scatter and dropout: their definitions in NumPy, and their behaviour beyond an op."""

import backplane as bp
import backplane.nn.functional as F
import numpy as np
import pytest

RNG = np.random.default_rng(11)
TABLE = RNG.standard_normal((5, 3))
NUMBERS = np.array([[1, 0, 4], [4, 4, 2]])


def test_embedding_reads_rows_and_padding_gets_no_gradient():
    weight = bp.asarray(TABLE).requires_grad_()
    rows = F.embedding(bp.asarray(NUMBERS), weight, padding_idx=-1)
    np.testing.assert_array_equal(rows.detach().numpy(), TABLE[NUMBERS])
    rows.sum().backward()
    np.testing.assert_array_equal(weight.grad.numpy()[:, 0], [1, 1, 1, 0, 0])


def test_embedding_limits_norms_in_place_of_the_rows_it_uses():
    weight = bp.asarray(TABLE * 3, copy=True)
    rows = F.embedding(bp.asarray(NUMBERS), weight, max_norm=1.0)
    found = np.linalg.norm(weight.numpy(), axis=1)
    assert (found[[0, 1, 2, 4]] <= 1.00001).all() and found[3] == np.linalg.norm(TABLE[3] * 3)
    np.testing.assert_array_equal(rows.numpy(), weight.numpy()[NUMBERS])


def test_embedding_divides_gradients_by_frequency():
    weight = bp.asarray(TABLE).requires_grad_()
    F.embedding(bp.asarray(NUMBERS), weight, scale_grad_by_freq=True).sum().backward()
    np.testing.assert_allclose(weight.grad.numpy()[:, 0], [1, 1, 1, 0, 1])


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 4])
def test_bags_reduce_their_rows(mode, padding):
    flat, offsets = np.array([1, 0, 4, 4, 2, 3]), np.array([0, 2, 2, 4])
    bags = [flat[0:2], flat[2:2], flat[2:4], flat[4:]]
    kept = [[i for i in bag if i != padding] for bag in bags]
    reduce = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    expected = np.stack([reduce(TABLE[bag], axis=0) if len(bag) else np.zeros(3) for bag in kept])
    given = (bp.asarray(flat), bp.asarray(TABLE), bp.asarray(offsets))
    np.testing.assert_allclose(F.embedding_bag(*given, mode=mode, padding_idx=padding).numpy(), expected)
    ends = bp.asarray(np.append(offsets, len(flat)))
    found = F.embedding_bag(given[0], given[1], ends, mode=mode, padding_idx=padding, include_last_offset=True)
    np.testing.assert_allclose(found.numpy(), expected)
    square = F.embedding_bag(bp.asarray(NUMBERS), given[1], mode=mode)
    np.testing.assert_allclose(square.numpy(), reduce(TABLE[NUMBERS], axis=1))


def test_bags_weigh_their_rows():
    share = RNG.uniform(0.5, 2, NUMBERS.shape)
    found = F.embedding_bag(bp.asarray(NUMBERS), bp.asarray(TABLE), mode="sum", per_sample_weights=bp.asarray(share))
    np.testing.assert_allclose(found.numpy(), (TABLE[NUMBERS] * share[..., None]).sum(1))
    with pytest.raises(ValueError, match="per_sample_weights"):
        F.embedding_bag(bp.asarray(NUMBERS), bp.asarray(TABLE), per_sample_weights=bp.asarray(share))


def test_one_hot_finds_its_width_and_refuses_what_does_not_fit():
    np.testing.assert_array_equal(F.one_hot(bp.asarray(NUMBERS)).numpy(), np.eye(5, dtype="int64")[NUMBERS])
    assert F.one_hot(bp.asarray([0, 1]), 4).shape == (2, 4)
    with pytest.raises(bp.DataError, match="out of range"):
        F.one_hot(bp.asarray([0, 4]), 4)


REDUCTIONS = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def scattered(x, dim, index, src, reduce, include_self):
    out, seen = x.copy(), {}
    for at in np.ndindex(*index.shape):
        to = list(at)
        to[dim] = index[at]
        seen.setdefault(tuple(to), []).append(src[at])
    for to, values in seen.items():
        if reduce is None:
            out[to] = values[-1]
            continue
        values = [out[to], *values] if include_self else values
        out[to] = sum(values) / len(values) if reduce == "mean" else REDUCTIONS[reduce].reduce(values)
    return out


@pytest.mark.parametrize("reduce", [None, "sum", "prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_scatter_combines_what_meets(reduce, include_self, dim):
    x, src = RNG.standard_normal((3, 4)), RNG.standard_normal((3, 5))
    # Where positions repeat without a reduction, the last value stays, and the gradient of the others is not stated.
    drawn = np.argsort(RNG.random((3, 4)), axis=dim)[:2, :3]
    index = drawn if reduce is None else RNG.integers(0, x.shape[dim], (2, 3))
    expected = scattered(x, dim, index, src, reduce, include_self)
    given = [bp.asarray(v) for v in (x, index, src)]
    found = bp.scatter(given[0], dim, given[1], given[2], reduce, include_self=include_self)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-14)
    weights = RNG.standard_normal(x.shape)

    def scalar(a, b):
        return bp.sum(bp.scatter(a, dim, given[1], b, reduce, include_self=include_self) * bp.asarray(weights))

    for position, gradient in enumerate(bp.grad(scalar, argnums=(0, 1))(given[0], given[2])):
        base = (x, src)[position]
        for at in np.ndindex(*base.shape):
            pair = []
            for step in (1e-6, -1e-6):
                moved = [x.copy(), src.copy()]
                moved[position][at] += step
                pair.append((scattered(moved[0], dim, index, moved[1], reduce, include_self) * weights).sum())
            np.testing.assert_allclose(gradient.numpy()[at], (pair[0] - pair[1]) / 2e-6, atol=1e-7)


def test_scatter_takes_numbers_integers_and_names_what_is_wrong():
    x = bp.asarray([5, 1, 2])
    assert bp.scatter(x, 0, bp.asarray([0, 0]), 9).tolist() == [9, 1, 2]
    assert bp.scatter(x, 0, bp.asarray([0, 0, 1]), bp.asarray([2, 3, 4]), "amax", include_self=False).tolist() == [3, 4, 2]
    assert bp.scatter(x, 0, bp.asarray([0, 0]), bp.asarray([2, 4]), "mean").tolist() == [3, 1, 2]
    for call, found in (
        (lambda: bp.scatter(x, 0, bp.asarray([0]), x, "median"), "reduce"),
        (lambda: bp.scatter(x, 0, bp.asarray([0, 1]), bp.asarray([1])), "src"),
        (lambda: bp.scatter(x, 0, bp.asarray([[0]]), x), "index"),
        (lambda: bp.scatter(x, 0, bp.asarray([3]), x), "out of range"),
        (lambda: bp.scatter(x, 1, bp.asarray([0]), x), "dim"),
    ):
        with pytest.raises((ValueError, IndexError), match=found):
            call()


def test_segments_out_of_range_are_left_out_under_transforms_too():
    data, ids = bp.asarray(RNG.standard_normal((4, 2))), bp.asarray([0, 9, 1, 0])
    weights = bp.asarray(RNG.standard_normal((2, 2)))
    gradient = bp.grad(lambda d: bp.sum(bp.segment_max(d, ids, 2) * weights))(data)
    assert (gradient.numpy()[1] == 0).all() and np.count_nonzero(gradient.numpy()) == 4


def test_topk_refuses_more_than_there_are():
    with pytest.raises(bp.ShapeError, match="found 4, expected k at most"):
        bp.topk(bp.asarray([1.0, 2.0, 3.0]), 4)


def test_topk_counts_nan_as_largest_and_keeps_the_order_of_equals():
    x = bp.asarray([1.0, float("nan"), 3.0, 3.0, -1.0])
    values, positions = bp.topk(x, 3)
    assert positions.tolist() == [1, 2, 3] and np.isnan(values.numpy()[0])
    assert bp.topk(x, 2, largest=False)[1].tolist() == [4, 0]


@pytest.mark.parametrize("shape", [(1000,), (30, 40), (0, 3)])
def test_dropout_zeroes_and_scales(shape):
    bp.manual_seed(1)
    x = bp.ones(shape)
    found = F.dropout(x, 0.25).numpy()
    assert set(np.unique(found)) <= {np.float32(0), np.float32(1 / 0.75)}
    if found.size:
        assert abs(found.mean() - 1) < 0.06
    assert F.dropout(x, 0.25, training=False) is x
    np.testing.assert_array_equal(F.dropout(x, 1.0).numpy(), 0)
    drawn = bp.ones(shape)
    assert F.dropout(drawn, 0.5, inplace=True) is drawn


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_channels_drop_out_whole(axes):
    bp.manual_seed(2)
    x = bp.ones((20, 30, *[3] * axes))
    function = getattr(F, f"dropout{axes}d")
    found = function(x, 0.4).numpy().reshape(600, -1)
    assert (found == found[:, :1]).all() and abs((found[:, 0] == 0).mean() - 0.4) < 0.08
    assert function(bp.ones((4, *[3] * axes)), 0.4).shape == (4, *[3] * axes)
    with pytest.raises(ValueError, match="axes"):
        function(bp.ones(3), 0.4)


@pytest.mark.parametrize("draw", [
    lambda **how: F.dropout(bp.ones((4, 5)), 0.5, **how),
    lambda **how: F.dropout1d(bp.ones((9, 9, 2)), 0.5, **how),
    lambda **how: F.dropout2d(bp.ones((9, 9, 2, 2)), 0.5, **how),
    lambda **how: F.dropout3d(bp.ones((9, 9, 2, 1, 2)), 0.5, **how),
    lambda **how: F.alpha_dropout(bp.ones((4, 5)), 0.5, True, **how),
    lambda **how: F.feature_alpha_dropout(bp.ones((9, 9, 2)), 0.5, True, **how),
    lambda **how: F.rrelu(-bp.ones((4, 5)), training=True, **how),
    lambda **how: F.gumbel_softmax(bp.zeros((4, 5)), **how),
], ids=["dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "rrelu", "gumbel_softmax"])  # fmt: skip
def test_random_bits_come_from_the_generator_that_is_given(draw):
    first, second = bp.Generator(7), bp.Generator(7)
    bp.manual_seed(0)
    untouched = bp.uniform((3,)).tolist()
    bp.manual_seed(0)
    drawn = [draw(generator=first).tolist() for _ in range(2)]
    assert drawn[0] != drawn[1] and drawn == [draw(generator=second).tolist() for _ in range(2)]
    assert bp.uniform((3,)).tolist() == untouched
    compiled, third = bp.compile(lambda g: draw(generator=g)), bp.Generator(7)
    assert [compiled(third).tolist() for _ in range(2)] == drawn


def test_alpha_dropout_keeps_mean_and_variance():
    bp.manual_seed(3)
    x = bp.asarray(RNG.standard_normal((400, 500)))
    for function in (F.alpha_dropout, F.feature_alpha_dropout):
        found = function(x, 0.3, training=True).numpy()
        assert abs(found.mean()) < 0.02 and abs(found.var() - 1) < 0.03
        assert function(x, 0.3) is x
    with pytest.raises(ValueError, match="probability"):
        F.alpha_dropout(x, 1.5)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("ends", [[0, 2], [0, 1, 3], [0, 0, 1], [0]], ids=str)
def test_the_last_offset_is_the_end(mode, ends):
    numbers, table = bp.asarray([0, 1, 2]), bp.asarray([[1.0], [10.0], [100.0]])
    found = F.embedding_bag(numbers, table, bp.asarray(ends), mode=mode, include_last_offset=True)
    short = F.embedding_bag(numbers[: ends[-1]], table, bp.asarray(ends[:-1], dtype=bp.int64), mode=mode)
    assert found.shape == (len(ends) - 1, 1) and found.tolist() == short.tolist()
