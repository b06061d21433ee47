"""dynamic=True: all sizes from 2 on may change, and those that are equal are one."""

import backplane as bp
import pytest

SHAPES = [(3, 4), (5, 4), (5, 7), (2, 9)]


@pytest.fixture
def runs():
    return []


def counting(runs, f):
    def counted(*args, **kwargs):
        bp.unguarded(runs.append, 1)
        return f(*args, **kwargs)

    return counted


def products(params, x, *, bias):
    return [bp.tanh(x @ params["w"] + bias), x.mean(0) + x.shape[0]]


def test_one_graph_serves_all_sizes(runs):
    f, counts = bp.compile(counting(runs, products), dynamic=True), []
    for n, k in SHAPES:
        args, bias = ({"w": bp.full((k, 6 + n), 0.25)}, bp.arange(1, n * k + 1).reshape(n, k) / 10), bp.ones(6 + n)
        for one, other in zip(f(*args, bias=bias), products(*args, bias=bias)):
            assert bp.allclose(one, other)
        counts.append(len(runs))
    assert counts[0] > 1 and set(counts) == {counts[0]}


def test_sizes_that_were_equal_by_chance_are_another_kind(runs):
    f = bp.compile(counting(runs, lambda x, y: x[:, None] * y), dynamic=True)
    for n, m in ((3, 3), (4, 4), (3, 5), (6, 2)):
        assert f(bp.ones(n), bp.ones(m)).shape == (n, m)
        first = len(runs) if (n, m) == (3, 3) else first
        assert (len(runs) == first) == (n == m)


@pytest.mark.parametrize("n", [0, 1])
def test_sizes_below_two_are_their_own_kind(n):
    f = bp.compile(lambda x, y: x + y, dynamic=True)
    assert f(bp.ones(4), bp.ones(4)).shape == (4,)
    assert f(bp.ones(n), bp.ones(n)).shape == (n,)
    assert f(bp.ones(1), bp.ones(4)).shape == (4,)


def test_where_a_size_is_fixed_each_is_traced():
    f = bp.compile(lambda x: x + bp.ones(4), dynamic=True)
    assert f(bp.ones(4)).tolist() == [2] * 4
    assert f(bp.ones((3, 4))).shape == (3, 4) and f(bp.ones((5, 4))).shape == (5, 4)
    with pytest.raises(bp.ShapeError):
        f(bp.ones(5))


def test_graphs_and_exports_take_it(tmp_path):
    graph = bp.make_graph(lambda x: x * x.shape[0], dynamic=True)(bp.ones((3, 2)))
    assert graph(bp.ones((5, 7))).tolist() == [[5] * 7] * 5
    bp.export(lambda x: bp.tanh(x), [bp.ones((3, 2))], tmp_path / "m.safetensors", dynamic=True)
    assert bp.load(tmp_path / "m.safetensors")(bp.zeros((6, 4)))[0].shape == (6, 4)
    assert bp.compile(lambda x: x + 1, dynamic=False)(bp.ones(2)).tolist() == [2, 2]
