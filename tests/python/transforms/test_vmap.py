"""vmap is a loop: over every axis, prefix, container and nesting."""

import collections
import itertools

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(3)
X = bp.asarray(RNG.normal(size=(2, 3, 4)))
Y = bp.asarray(RNG.normal(size=(4, 2, 3)))


def take(x, axis, i):
    return bp.asarray(np.take(np.asarray(x), i, axis))


def same(found, expected):
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-12)


def stacked(parts, axis=0):
    return np.stack([np.asarray(part) for part in parts], axis)


@pytest.mark.parametrize("axis", range(-3, 3))
@pytest.mark.parametrize("out_axis", range(-2, 2))
def test_over_every_axis_it_is_a_loop(axis, out_axis):
    def f(x):
        return (x * x).sum(axis=0) - bp.exp(x[0])

    size = X.shape[axis]
    expected = stacked([f(take(X, axis, i)) for i in range(size)], out_axis)
    same(bp.vmap(f, axis, out_axis)(X), expected)


@pytest.mark.parametrize("axes", [(a, b) for a, b in itertools.product(range(3), range(3)) if X.shape[a] == Y.shape[b]])
def test_with_mixed_axes_it_is_a_loop(axes):
    def f(x, y):
        return x.sum() * y

    size = X.shape[axes[0]]
    same(
        bp.vmap(f, axes)(X, Y),
        stacked([f(take(X, axes[0], i), take(Y, axes[1], i)) for i in range(size)]),
    )


def test_none_is_the_same_for_all():
    same(bp.vmap(lambda x, y: x + y, (0, None))(X, Y[0, 0, 0]), np.asarray(X) + float(Y[0, 0, 0]))
    same(bp.vmap(lambda x, scale: x * scale, (0, None))(X, 2.0), 2 * np.asarray(X))
    assert bp.vmap(lambda x, text: (x if text == "keep" else -x), (0, None))(X, "keep").tolist() == X.tolist()


def test_integers_of_numpy_are_axes():
    same(bp.vmap(lambda x: x, np.int64(1), np.int8(-1))(X), np.moveaxis(np.asarray(X), 1, -1))


def test_a_list_serves_as_in_axes():
    same(bp.vmap(lambda x, y: x + y, [0, None])(X, 1.0), np.asarray(X) + 1)


Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize(
    "in_axes",
    [
        0,
        (0, 0),
        ({"w": 0, "b": (0, 0)}, 0),
        ({"w": 0, "b": 0}, Point(0, 0)),
        (0, Point(-2, 0)),
    ],
)
def test_in_axes_are_prefixes(in_axes):
    params = {"w": bp.ones((2, 3)), "b": (bp.ones(2), bp.ones((2, 5)))}
    point = Point(bp.ones((2, 2)), bp.ones(2))

    def f(p, q):
        assert p["w"].shape == (3,) and p["b"][0].shape == () and p["b"][1].shape == (5,)
        assert q.x.shape == (2,) and q.y.shape == ()
        return p["w"].sum() + p["b"][0] + p["b"][1].sum() + q.x.sum() + q.y

    assert bp.vmap(f, in_axes)(params, point).tolist() == [12.0, 12.0]


def test_prefixes_with_none_inside():
    params = {"w": bp.ones((2, 3)), "b": bp.ones(3)}
    found = bp.vmap(lambda p: p["w"] * p["b"], ({"w": 0, "b": None},))(params)
    assert found.shape == (2, 3)
    found = bp.vmap(lambda p, n: p["w"] if n is None else None, (0, 0))({"w": bp.ones(2)}, None)
    assert found.shape == (2,)


def test_out_axes_are_prefixes():
    def f(x):
        return {"a": x, "b": (x, [x.sum()])}

    found = bp.vmap(f, out_axes={"a": 1, "b": (-1, 0)})(X)
    assert found["a"].shape == (3, 2, 4) and found["b"][0].shape == (3, 4, 2) and found["b"][1][0].shape == (2,)
    same(found["a"], np.moveaxis(np.asarray(X), 0, 1))
    found = bp.vmap(lambda x: (x, 3.0, None), out_axes=(0, None, None))(X)
    assert found[1].shape == () and found[2] is None


def test_results_that_are_the_same_for_all_are_repeated():
    assert bp.vmap(lambda x: 1.5)(X).tolist() == [1.5, 1.5]
    assert bp.vmap(lambda x: bp.arange(2))(X).tolist() == [[0, 1], [0, 1]]
    assert bp.vmap(lambda x: Y, out_axes=None)(X).shape == Y.shape


def test_axis_size_alone_maps():
    assert bp.vmap(lambda: bp.ones(2), axis_size=3)().shape == (3, 2)
    assert bp.vmap(lambda x: x, None, axis_size=3)(1.0).tolist() == [1.0, 1.0, 1.0]
    assert bp.vmap(lambda x: x, axis_size=2)(X).shape == X.shape


def test_keyword_arguments_are_mapped_over_axis_0():
    assert bp.vmap(lambda x, *, y: x * y)(bp.arange(3), y=bp.arange(3)).tolist() == [0, 1, 4]


def test_arrays_of_other_libraries_are_mapped():
    assert bp.vmap(lambda x: x.sum())(np.ones((2, 3))).tolist() == [3.0, 3.0]


def test_a_batch_of_none_is_a_batch():
    assert bp.vmap(lambda x: x.sum())(bp.ones((0, 3))).shape == (0,)


def test_ops_themselves_are_mapped():
    same(bp.vmap(bp.matmul)(X, bp.permute_dims(X, (0, 2, 1))), np.asarray(X) @ np.swapaxes(np.asarray(X), 1, 2))


@pytest.mark.parametrize("axes", list(itertools.permutations([0, 0])) + [(1, 0), (0, 1), (2, 1), (-1, -1)])
def test_vmap_of_vmap_is_two_loops(axes):
    outer, inner = axes

    def f(x):
        return bp.sin(x).sum()

    expected = stacked(
        [
            stacked([f(take(part, inner, j)) for j in range(part.shape[inner])])
            for part in (take(X, outer, i) for i in range(X.shape[outer]))
        ]
    )
    same(bp.vmap(bp.vmap(f, inner), outer)(X), expected)


def test_an_outer_product_from_two_vmaps():
    x, y = bp.arange(3), bp.arange(4)
    found = bp.vmap(bp.vmap(lambda a, b: a * b, (None, 0)), (0, None))(x, y)
    assert found.tolist() == np.outer(np.arange(3), np.arange(4)).tolist()


def draws(randomness):
    def f(x):
        return x + bp.uniform(())

    return bp.vmap(f, randomness=randomness)(bp.zeros(8)).tolist()


def test_random_numbers_follow_the_policy():
    assert len(set(draws("same"))) == 1
    assert len(set(draws("different"))) == 8
    with pytest.raises(bp.BackplaneError, match="random"):
        draws("error")


def test_the_batch_survives_indexing_and_conditions_by_where():
    table = bp.arange(10)
    assert bp.vmap(lambda i: table[i])(bp.asarray([3, 5])).tolist() == [3, 5]
    assert bp.vmap(lambda x: bp.where(x > 1, x, -x))(bp.arange(3)).tolist() == [0, -1, 2]


def test_large_batches_agree_with_the_whole():
    x = bp.asarray(RNG.normal(size=(64, 1000)))
    same(bp.vmap(lambda row: (row * row).sum())(x), (np.asarray(x) ** 2).sum(1))
