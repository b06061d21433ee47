"""Random numbers under vmap: refused unless the caller says whether the rows share them; then the same, or each its own,
as the generator's key and counter say."""

import backplane as bp
import numpy as np
import pytest

ROWS = 64


def generator(seed=7):
    found = bp.Generator()
    found.state = (seed, 0)
    return found


DRAWS = {
    "uniform": lambda g: bp.uniform((5,), generator=g),
    "normal": lambda g: bp.normal((5,), generator=g),
    "randint": lambda g: bp.randint(0, 1 << 40, (5,), generator=g),
    "random_bits": lambda g: bp.random_bits((5,), generator=g),
    "permutation": lambda g: bp.permutation(12, generator=g),
}


def drawn(draw, randomness, seed=7, rows=ROWS):
    g = generator(seed)
    found = bp.vmap(lambda x: draw(g), randomness=randomness)(bp.zeros((rows,)))
    return np.array(found.numpy())


@pytest.mark.parametrize("name", DRAWS)
def test_without_a_policy_random_numbers_are_refused(name):
    with pytest.raises(ValueError, match="vmap.*randomness='different'"):
        drawn(DRAWS[name], "error")


@pytest.mark.parametrize("name", DRAWS)
def test_same_gives_all_rows_one_draw(name):
    found = drawn(DRAWS[name], "same")
    np.testing.assert_array_equal(found, np.broadcast_to(DRAWS[name](generator()).numpy(), found.shape))


@pytest.mark.parametrize("name", DRAWS)
def test_different_gives_each_row_its_own(name):
    found = drawn(DRAWS[name], "different")
    assert len({tuple(row) for row in found}) == ROWS
    np.testing.assert_array_equal(found, drawn(DRAWS[name], "different"))
    assert not np.array_equal(found, drawn(DRAWS[name], "different", seed=8))


def test_different_rows_do_not_meet_later_draws():
    """Not the draws of another batch, and not draws outside of a batch, from the same generator."""
    g = generator()
    draw = lambda x: bp.random_bits((3,), generator=g)  # noqa: E731
    batches = [bp.vmap(draw, randomness="different")(bp.zeros((200,))).numpy() for _ in range(3)]
    outside = [bp.random_bits((3,), generator=g).numpy()[None] for _ in range(200)]
    rows = [tuple(row) for block in (*batches, *outside) for row in block]
    assert len(set(rows)) == len(rows)


def test_different_in_nested_batches():
    g = generator()
    inner = bp.vmap(lambda y: bp.uniform((2,), generator=g), randomness="different")
    found = bp.vmap(inner, randomness="different")(bp.zeros((6, 7))).numpy()
    assert found.shape == (6, 7, 2) and len(np.unique(found)) == found.size
    mixed = bp.vmap(inner, randomness="same")(bp.zeros((6, 7))).numpy()
    assert (mixed == mixed[0]).all() and len(np.unique(mixed)) == 14
    with pytest.raises(ValueError, match="randomness"):
        bp.vmap(inner)(bp.zeros((6, 7)))


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_dropout_of_rows(randomness):
    g = generator()
    found = bp.vmap(lambda x: bp.dropout(x, generator=g), randomness=randomness)(bp.ones((ROWS, 40))).numpy()
    assert set(np.unique(found)) == {0.0, 2.0}
    assert (len({tuple(row) for row in found}) == 1) == (randomness == "same")


def test_the_numbers_of_rows_are_independent():
    found = drawn(lambda g: bp.normal((400,), generator=g), "different").astype(np.float64)
    correlation = np.corrcoef(found) - np.eye(ROWS)
    assert abs(correlation).max() < 0.3 and abs(found.mean()) < 0.02 and abs(found.std() - 1) < 0.02


def test_gradients_see_the_same_numbers():
    g = generator()
    per_row = bp.vmap(bp.grad(lambda x: bp.sum(bp.dropout(x, generator=g))), randomness="different")(bp.ones((ROWS, 10)))
    assert set(np.unique(per_row.numpy())) == {0.0, 2.0}


def test_jacobians_of_what_draws_are_of_one_pass():
    x = bp.asarray([1.0, 2.0, 3.0, 4.0])

    def loss(z):
        return (bp.dropout(z, p=0.5) ** 2).sum()

    found = bp.hessian(loss)(x)
    assert bp.array_equal(found, bp.diag(bp.diagonal(found))) and set(bp.diagonal(found).tolist()) <= {0, 8}
    for transform in (bp.jacfwd, bp.jacrev):
        bp.manual_seed(3)
        found = transform(lambda z: bp.dropout(z, p=0.5) * z)(x)
        bp.manual_seed(3)
        kept = bp.dropout(bp.ones(4), p=0.5)
        np.testing.assert_allclose(found.numpy(), np.diag((2 * x * kept).numpy()))
    rows = bp.vmap(bp.hessian(loss), randomness="different")(bp.ones((64, 4)))
    assert len({str(bp.diagonal(row).tolist()) for row in rows}) > 4
