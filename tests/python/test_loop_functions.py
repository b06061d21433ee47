"""fori_loop, switch, ravel_pytree, hvp, and trees with paths, eagerly, in gradients and compiled."""

import pytest

import backplane as bp


def test_fori_loop():
    def power(x, n):
        return bp.fori_loop(0, n, lambda i, value: value * x + i, bp.ones(()))

    assert power(bp.asarray(2.0), 3).item() == 12.0
    assert power(bp.asarray(2.0), 0).item() == 1.0
    assert bp.grad(power)(bp.asarray(2.0), 3).item() == 13.0
    assert bp.compile(lambda x, n: power(x, n))(bp.asarray(2.0), bp.asarray(3)).item() == 12.0
    assert bp.fori_loop(1, bp.asarray(4), lambda i, v: v + i, bp.asarray(0)).item() == 6


@pytest.mark.parametrize("index, expected", [(0, 3.0), (1, 9.0), (2, -3.0), (7, -3.0), (-2, 3.0)])
def test_switch(index, expected):
    branches = [lambda x: x, lambda x: x * x, lambda x: -x]
    assert bp.switch(index, branches, bp.asarray(3.0)).item() == expected
    assert bp.switch(bp.asarray(index), branches, bp.asarray(3.0)).item() == expected
    assert bp.compile(lambda i, x: bp.switch(i, branches, x))(bp.asarray(index), bp.asarray(3.0)).item() == expected


def test_ravel_pytree():
    tree = {"a": bp.ones((2, 2)), "b": [bp.asarray(3), 4.0]}
    vector, unravel = bp.ravel_pytree(tree)
    assert vector.tolist() == [1, 1, 1, 1, 3, 4]
    again = unravel(vector * 2)
    assert again["b"][0].item() == 6 and again["b"][0].dtype == tree["b"][0].dtype and again["a"].shape == (2, 2)
    with pytest.raises(bp.ShapeError, match=r"expected \(6,\)"):
        unravel(vector[1:])


def test_hvp():
    value, product = bp.hvp(lambda x: (x**3).sum(), (bp.asarray([1.0, 2.0]),), (bp.asarray([1.0, 0.5]),))
    assert value.item() == 9.0 and product.tolist() == [6.0, 6.0]


def test_trees_with_paths():
    tree = {"b": [1, 2], "a": (3, None)}
    paths, structure = bp.tree.flatten_with_path(tree)
    assert paths == [(("a", 0), 3), (("b", 0), 1), (("b", 1), 2)] and structure == bp.tree.structure(tree)
    assert bp.tree.map_with_path(lambda path, x: (path[-1], x), tree) == {"b": [(0, 1), (1, 2)], "a": ((0, 3), None)}
    assert bp.tree.reduce(lambda a, b: a + b, tree, 10) == 16


def test_scan_over_a_tensor_without_axes_says_so():
    with pytest.raises(bp.ShapeError, match="scan: goes along axis 0 of xs: found a tensor without axes"):
        bp.scan(lambda k, x: (k, x), bp.asarray(0.0), bp.asarray(1.0))
