"""How an op without tensors' rules of its own batches: by its formula, row by row where it says so, or not at all."""

import backplane as bp
import numpy as np
import pytest

_names = iter(range(10**6))


def centred(**options):
    """x less its mean over all of it: a shape rule says nothing of that."""

    @bp.custom_op(f"batch_rules::op{next(_names)}", **options)
    def centre(x: bp.Tensor) -> bp.Tensor:
        """Takes the mean away."""
        return bp.asarray(x.numpy() - x.numpy().mean())

    @centre.register_shape
    def centre_shape(x):
        return x

    return centre


X = np.arange(24.0).reshape(2, 3, 4) ** 2


def rows(axis):
    return np.stack([row - row.mean() for row in np.moveaxis(X, axis, 0)])


def array(tensor):
    return np.asarray(tensor.numpy())


@pytest.fixture
def looping():
    op = centred()
    op.register_batch("loop")
    bp.reset_call_counts()
    return op


@pytest.mark.parametrize("axis", range(3))
def test_a_loop_goes_row_by_row_and_is_counted(looping, axis):
    np.testing.assert_allclose(array(bp.vmap(looping, in_axes=axis)(bp.asarray(X))), rows(axis))
    assert bp.call_counts().batch_loops == 1


def test_loops_nest(looping):
    found = bp.vmap(bp.vmap(looping), in_axes=1)(bp.asarray(X))
    expected = [[X[i, j] - X[i, j].mean() for i in range(2)] for j in range(3)]
    np.testing.assert_allclose(array(found), expected)


def test_a_loop_over_no_rows(looping):
    assert bp.vmap(looping)(bp.zeros((0, 3))).shape == (0, 3)


def test_a_loop_can_be_forbidden(looping):
    before = bp.allow_batch_loop(False)
    try:
        with pytest.raises(NotImplementedError, match="allow_batch_loop"):
            bp.vmap(looping)(bp.asarray(X))
        assert bp.vmap(lambda x: looping(bp.asarray(X)))(bp.zeros(2)).shape == (2, 2, 3, 4)  # nothing of it is batched
    finally:
        bp.allow_batch_loop(before)


def test_without_a_rule_it_is_refused_by_name():
    op = centred()
    with pytest.raises(NotImplementedError, match="batch"):
        bp.vmap(op)(bp.asarray(X))
    assert bp.vmap(lambda x: bp.add(op(bp.asarray(X[0])), x))(bp.asarray(X)).shape == X.shape


def test_a_rule_whose_result_lacks_the_batch_is_reported():
    op = centred()

    @op.register_batch
    def wrong(x):
        return bp.sum(x)

    with pytest.raises(ValueError, match="axis 0 is not the batch of size 2"):
        bp.vmap(op)(bp.asarray(X))


def test_explain_shows_the_rule_that_is_used():
    assert "derived from the shape class broadcast" in bp.explain("bp::add")
    assert "through the decomposition" in bp.explain("bp::tril")
    assert "stated" in next(line for line in bp.explain("bp::take").splitlines() if line.startswith("  batch"))
    assert "refused" in next(line for line in bp.explain("bp::argwhere").splitlines() if line.startswith("  batch"))
