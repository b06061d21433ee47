"""x.at[index]: the updates equal NumPy's ufunc.at on a copy, and compose with the transforms."""

import numpy as np
import pytest

import backplane as bp

UFUNCS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "min": np.minimum, "max": np.maximum, "divide": np.divide, "power": np.power}
INDICES = [
    (1,), (slice(None), 2), (Ellipsis, slice(None, None, -2)), ([0, 2, 0],), ([0, 2, 0], slice(1, 3)), (slice(None), [1, 1, 3]),
    ([2, 0], [1, 1]), (None, 1), (np.array([True, False, True]),), ([],),
]  # fmt: skip


def plain(index):
    return tuple(np.asarray(i, dtype=np.int64) if isinstance(i, list) else i for i in index)


def indexed(index):
    return tuple(bp.asarray(i) if isinstance(i, np.ndarray) else i for i in plain(index))


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("name", sorted(UFUNCS))
def test_updates_equal_numpys(name, index):
    start = np.random.default_rng(0).uniform(1, 2, (3, 4))
    x = bp.asarray(start)
    value = np.random.default_rng(1).uniform(1, 2, start[plain(index)].shape)
    expected = start.copy()
    UFUNCS[name].at(expected, plain(index), value)
    np.testing.assert_allclose(getattr(x.at[indexed(index)], name)(bp.asarray(value)).numpy(), expected, rtol=1e-12)
    assert x.tolist() == start.tolist()  # the tensor itself keeps its values


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_set_and_get_are_assignment_and_indexing(index):
    start = np.arange(12.0).reshape(3, 4)
    x, expected = bp.asarray(start), start.copy()
    expected[plain(index)] = -1
    assert x.at[indexed(index)].set(-1).tolist() == expected.tolist() and x.tolist() == start.tolist()
    assert x.at[indexed(index)].get().tolist() == start[plain(index)].tolist()


def test_updates_of_integers_and_of_no_axes():
    x = bp.asarray([1, 2, 3], dtype=bp.int32)
    assert x.at[bp.asarray([0, 0])].add(2).tolist() == [5, 2, 3] and x.at[1].add(True).dtype == bp.int32
    assert x.at[1:].max(bp.asarray([9, 0], dtype=bp.int64)).tolist() == [1, 9, 3]
    assert bp.zeros(3).at[:2].add(bp.ones((1, 2))).tolist() == bp.zeros(3).at[:2].set(bp.ones((1, 2))).tolist() == [1, 1, 0]
    assert bp.asarray(2.0).at[()].multiply(3).tolist() == 6 and bp.asarray(2.0).at[...].set(3).tolist() == 3


@pytest.mark.parametrize("name", ["add", "multiply", "set"])
def test_transforms_of_updates(name):
    x, i, v = bp.asarray([1.0, 2.0, 3.0]), bp.asarray([[0, 0], [2, 1]]), bp.asarray([[5.0, 7.0], [2.0, 3.0]])

    def update(x, i, v):
        return getattr(x.at[i], name)(v)

    rows = [update(x, i[r], v[r]).tolist() for r in range(2)]
    assert bp.vmap(update, in_axes=(None, 0, 0))(x, i, v).tolist() == rows
    assert bp.compile(update)(x, i[0], v[0]).tolist() == rows[0]
    loss = lambda x, v: (update(x, i[0], v) * bp.asarray([2.0, 3.0, 4.0])).sum()  # noqa: E731
    gx, gv = bp.grad(loss, argnums=(0, 1))(x, v[0])
    by_x, by_v = {"add": ([2, 3, 4], [2, 2]), "multiply": ([70, 3, 4], [14, 10]), "set": ([0, 3, 4], [0, 2])}[name]
    assert gx.tolist() == by_x and gv.tolist() == by_v
    assert [a.tolist() for a in bp.compile(bp.grad(loss, argnums=(0, 1)))(x, v[0])] == [by_x, by_v]


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "power", "min", "max", "set"])
def test_a_mask_and_a_number_need_no_values_of_the_mask(name):
    x = bp.asarray([[1.0, 2.0], [3.0, 4.0]])

    def update(x, mask):
        return getattr(x.at[mask], name)(2.5)

    for mask in (x > 1.5, bp.asarray([True, False])):
        expected = x.numpy().copy()
        here = mask.numpy()
        expected[here] = 2.5 if name == "set" else UFUNCS[name](expected[here], np.float32(2.5))
        for way in (update, bp.compile(update)):
            assert way(x, mask).tolist() == expected.tolist()
    assert bp.vmap(update)(x, x > 1.5).tolist() == [update(x[r], x[r] > 1.5).tolist() for r in range(2)]


def test_updates_refuse_what_would_be_lost():
    x = bp.asarray([1, 2, 3])
    with pytest.raises(bp.DtypeError, match=r"at\[index\].add: found a value of dtype float32 for a tensor of dtype int64"):
        x.at[0].add(2.5)
    with pytest.raises(bp.DtypeError, match="cannot be written into an output of dtype int64"):
        x.at[0].set(2.5)
    with pytest.raises(bp.DtypeError, match=r"at\[index\].divide: found a tensor of dtype int64"):
        x.at[0].divide(2)
    with pytest.raises(bp.OutOfRangeError):
        x.at[7].add(1)
    with pytest.raises(bp.ShapeError):
        x.at[:2].add(bp.asarray([1, 2, 3]))
    assert repr(x.at) == "Tensor.at" and repr(x.at[1:]) == "Tensor.at[slice(1, None, None)]"
