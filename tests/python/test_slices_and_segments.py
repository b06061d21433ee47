"""dynamic_slice, windows, segments without a number, sparse matrices, choice and shuffle."""

import numpy as np
import pytest

import backplane as bp


@pytest.mark.parametrize("start", [(0, 0), (1, 2), (3, 5), (-1, -2), (9, 1)])
def test_dynamic_slices(start):
    x = bp.arange(24).reshape(4, 6)
    place = [min(max(s + n if s < 0 else s, 0), n - size) for s, n, size in zip(start, (4, 6), (2, 3))]
    expected = x[place[0] : place[0] + 2, place[1] : place[1] + 3]
    assert bp.all(bp.dynamic_slice(x, start, (2, 3)) == expected)
    moving = bp.compile(lambda x, i, j: bp.dynamic_slice(x, (i, j), (2, 3)))
    assert bp.all(moving(x, bp.asarray(start[0]), bp.asarray(start[1])) == expected)
    changed = bp.dynamic_update_slice(x, -expected, [bp.asarray(s) for s in start])
    assert bp.all(bp.dynamic_slice(changed, start, (2, 3)) == -expected) and bp.all(abs(changed) == x)
    with pytest.raises(bp.ShapeError, match="expected 2, one for each axis"):
        bp.dynamic_slice(x, (0,), (2,))
    with pytest.raises(bp.ShapeError, match="expected at most 4"):
        bp.dynamic_slice(x, (0, 0), (5, 1))


def test_sliding_windows():
    x = np.arange(24).reshape(4, 6)
    windows = np.lib.stride_tricks.sliding_window_view
    assert np.array_equal(bp.sliding_window_view(bp.asarray(x), (2, 3)).numpy(), windows(x, (2, 3)))
    assert np.array_equal(bp.sliding_window_view(bp.asarray(x), 2, axis=-1).numpy(), windows(x, 2, axis=-1))
    with pytest.raises(bp.ShapeError, match="window of 7"):
        bp.sliding_window_view(bp.asarray(x), 7, axis=1)


def test_segments():
    data, ids = bp.asarray([[1.0], [2.0], [3.0], [4.0]]), bp.asarray([0, 2, 2, 0])
    assert bp.segment_sum(data, ids).tolist() == [[5.0], [0.0], [5.0]] and bp.segment_mean(data, ids).tolist()[2] == [2.5]
    assert bp.segment_max(data, [0, 1, 1, 0]).tolist() == [[4.0], [3.0]]
    soft = bp.segment_softmax(data, ids)
    assert bp.allclose(bp.segment_sum(soft, ids), bp.asarray([[1.0], [0.0], [1.0]])) and bp.allclose(soft[1:3], bp.softmax(data[1:3], axis=0))
    assert bp.allclose(bp.compile(lambda d: bp.segment_softmax(d, ids, 3))(data), soft)
    assert bp.segment_softmax(data, bp.asarray([0, 5, 0, -1]), 1).tolist()[1] == [0.0]
    with pytest.raises(bp.ArgumentValueError, match="num_segments"):
        bp.compile(lambda ids: bp.segment_sum(data, ids))(ids)


def test_sparse_matrices():
    dense = bp.asarray([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
    a = bp.sparse.csr(dense)
    x, y = bp.asarray([1.0, 2.0, 3.0]), bp.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert a.shape == (3, 3) and a.nnz == 3 and bp.all(a.to_dense() == dense) and bp.all(a.T.to_dense() == dense.T)
    assert bp.all(a @ x == dense @ x) and bp.all(a @ y == dense @ y) and bp.all(x @ a == x @ dense) and bp.all((2 * a).to_dense() == 2 * dense)
    assert bp.all(a.diagonal() == bp.linalg.diagonal(dense)) and "nnz=3" in repr(a)
    same = bp.sparse.csr((a.data, a.indices, a.indptr), shape=(3, 3))
    assert bp.all(same.to_dense() == dense) and bp.all(bp.sparse.coo((bp.ones(2), ([0, 0], [1, 1])), shape=(1, 2)).to_dense() == bp.asarray([[0.0, 2.0]]))
    of_values, of_x = bp.grad(lambda a, x: (a @ x).sum(), argnums=(0, 1))(a, x)
    assert of_values.data.tolist() == [1.0, 3.0, 3.0] and of_x.tolist() == dense.sum(axis=0).tolist()
    assert bp.all(bp.compile(lambda a, x: a @ x)(a, x) == dense @ x) and bp.all(bp.vmap(lambda x: a @ x)(bp.stack([x, x])) == dense @ x)
    assert bp.allclose(bp.cg(bp.sparse.csr(bp.eye(3) * 2), x)[0], x / 2)
    with pytest.raises(bp.IndexDataError, match="indices: found 5, expected from 0 to 2"):
        bp.sparse.csr((bp.ones(2), [0, 5], [0, 1, 2]), shape=(2, 3))
    with pytest.raises(bp.ShapeError, match="expected \\(3,\\)"):
        a @ bp.ones(2)


def test_choice_and_shuffle():
    g = bp.Generator(0)
    drawn = bp.choice(5, (100,), generator=g)
    assert drawn.shape == (100,) and set(drawn.tolist()) <= set(range(5))
    assert sorted(bp.choice(bp.asarray([3, 1, 2]), 3, replace=False).tolist()) == [1, 2, 3]
    assert bp.choice(bp.asarray([1.0, 2.0]), 4, p=[0.0, 1.0]).tolist() == [2.0] * 4
    x = bp.arange(20)
    bp.shuffle(x, generator=g)
    assert sorted(x.tolist()) == list(range(20)) and x.tolist() != list(range(20))
