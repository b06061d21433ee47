"""torch.func.vmap of torch.ops.bp: every sample of the registry, at the calls that Python computes and those that a native plan computes."""

import warnings

import comparison
import pytest
import torch
from test_ops import _call, _cases
from torch.utils import _pytree as pytree

import backplane as bp
import backplane.torch

F = torch.func
ops = torch.ops.bp
CALLS = 4  # the third call of a kind runs the plan that the second one made


def _rows(x):
    """Two examples like x along axis 0."""
    return torch.stack([x, x * 0.75 if x.is_floating_point() else x])


def _batched(operator, args, kwargs, along):
    """What vmap gives for two rows of each tensor, which are batched along axis `along(i)`; None: the tensor is not batched."""
    leaves, structure = pytree.tree_flatten((args, kwargs))
    places = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
    axes = [along(n, leaves[i].dim()) for n, i in enumerate(places)]
    given = [leaves[i].detach() if axis is None else _rows(leaves[i].detach()).movedim(0, axis) for i, axis in zip(places, axes)]

    def call(*tensors):
        filled = list(leaves)
        for i, x in zip(places, tensors):
            filled[i] = x
        args, kwargs = pytree.tree_unflatten(filled, structure)
        found = operator(*args, **kwargs)
        return tuple(found) if isinstance(found, (tuple, list)) else (found,)

    one_by_one = [call(*(x if axis is None else x.select(axis, row) for x, axis in zip(given, axes))) for row in range(2)]
    return lambda: F.vmap(call, in_dims=tuple(axes))(*given), [torch.stack(rows) for rows in zip(*one_by_one)]


@pytest.mark.parametrize("case", list(_cases()))
def test_vmap_equals_the_rows(case):
    call = _call(case)
    if call is None or torch.Tag.nondeterministic_seeded in call[0].tags or not comparison.tensors(call[1:]):
        pytest.skip("no tensors of PyTorch, or random numbers")
    for along in (lambda i, rank: 0, lambda i, rank: -1 - rank if i % 2 else rank, lambda i, rank: 0 if i == 0 else None):
        try:
            batch, expected = _batched(*call, along)
            found = batch()
        except (bp.MissingRuleError, bp.DtypeError, RuntimeError) as error:
            if isinstance(error, bp.MissingRuleError) or "stack" in str(error):
                pytest.skip("the shapes of the results depend on values")
            raise
        for _ in range(CALLS):
            for x, y in zip(found, expected, strict=True):
                torch.testing.assert_close(x, y, equal_nan=True)
            found = batch()


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_levels_of_vmap(layers):
    x, y = torch.randn(*[2, 3, 2][:layers], 4, 5, dtype=torch.float64), torch.randn(5, 6, dtype=torch.float64)
    ours, theirs = lambda x, y: ops.matmul(ops.tanh(x), ops.sin(y)), lambda x, y: x.tanh() @ y.sin()
    for _ in range(layers):
        ours, theirs = F.vmap(ours, in_dims=(0, None)), F.vmap(theirs, in_dims=(0, None))
    for _ in range(CALLS):
        torch.testing.assert_close(ours(x, y), theirs(x, y))


def test_vmap_inside_and_outside_of_recording():
    x = torch.randn(3, 4, dtype=torch.float64)
    for _ in range(CALLS):
        leaf = x.clone().requires_grad_()
        F.vmap(lambda row: ops.sum(ops.multiply(row, ops.tanh(row))))(leaf).sum().backward()
        expected = torch.tanh(x) + x * (1 - torch.tanh(x) ** 2)
        torch.testing.assert_close(leaf.grad, expected)
        torch.testing.assert_close(F.vmap(F.grad(lambda row: ops.sum(ops.multiply(row, ops.tanh(row)))))(x), expected)


def test_rows_beside_tensors_that_are_not_batched():
    x, w = torch.randn(3, 4), torch.randn(4, 2)
    for _ in range(CALLS):
        torch.testing.assert_close(F.vmap(ops.matmul, in_dims=(0, None))(x, w), x @ w)
        torch.testing.assert_close(F.vmap(lambda row: ops.matmul(w.T, w), out_dims=0)(x), (w.T @ w).expand(3, 2, 2))
        torch.testing.assert_close(F.vmap(lambda row: ops.concat([row, w[:, 0], row]))(x), torch.cat([x, w[:, 0].expand(3, 4), x], 1))


def test_constants_are_part_of_the_call():
    x = torch.randn(3, 4)
    for _ in range(CALLS):
        for axis in (0, -1):
            for keepdims in (False, True):
                found = F.vmap(lambda x, axis=axis, keepdims=keepdims: ops.sum(x, [axis], keepdims=keepdims))(x)
                torch.testing.assert_close(found, x.sum(1, keepdim=keepdims))
        for slope in (0.1, 0.25, 2):
            found = F.vmap(lambda x, slope=slope: ops.leaky_relu(x, negative_slope=slope))(x)
            torch.testing.assert_close(found, torch.nn.functional.leaky_relu(x, slope))
        low = torch.tensor(-0.5)
        for given, lowest in (((low, None), -0.5), ((None, low), -torch.inf), ((), -torch.inf)):
            found = F.vmap(lambda x, given=given: ops.clip(x, *given))(x)
            torch.testing.assert_close(found, x.clip(lowest, -0.5 if lowest < -1 and given else None))


def test_errors_are_backplanes_also_after_a_plan():
    x = torch.randn(3, 4)
    for _ in range(CALLS):
        F.vmap(lambda x: ops.take(x, torch.tensor([0, 3]), 0))(x)
    with pytest.raises(bp.DataError, match="bp::take: index 4 is out of range"):
        F.vmap(lambda x: ops.take(x, torch.tensor([0, 4]), 0))(x)
    with pytest.raises(bp.ShapeError, match="matmul"):
        F.vmap(ops.matmul)(x, x[:, :3])
    with pytest.raises(bp.MissingRuleError, match="bp::dropout draws random numbers"):
        F.vmap(ops.dropout, randomness="different")(x)


def test_no_row_is_computed_alone():
    """A fallback of PyTorch's vmap would warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for _ in range(CALLS):
            F.vmap(lambda x: ops.layer_norm(ops.softmax(x)))(torch.randn(3, 4))


def test_results_of_plans_own_their_memory():
    x = torch.randn(3, 4)
    for _ in range(CALLS):
        y = F.vmap(ops.positive)(x)
        assert y.data_ptr() != x.data_ptr() and torch.equal(x, y)
