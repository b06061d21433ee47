"""What tests of the bridge compare: leaves of results, and errors relative to PyTorch's values."""

import torch
from torch.utils import _pytree as pytree

import backplane as bp
import backplane.torch


def tensors(value):
    return [x for x in pytree.tree_leaves(value) if isinstance(x, (torch.Tensor, bp.Tensor))]


def as_torch(x):
    return backplane.torch.to_torch_tensor(x) if isinstance(x, bp.Tensor) else x.detach()


def assert_same(found, expected, tolerance=1e-4):
    """Tensor by tensor: the dtype, the shape, and elements up to tolerance of the largest."""
    found, expected = tensors(found), tensors(expected)
    assert len(found) == len(expected)
    for x, y in zip(found, expected):
        x, y = as_torch(x), as_torch(y)
        assert x.dtype == y.dtype and x.shape == y.shape
        if y.numel() and (y.is_floating_point() or y.is_complex()):
            torch.testing.assert_close(x, y, rtol=0, atol=tolerance * max(1.0, y.nan_to_num().abs().max().item()), check_stride=False, equal_nan=True)
        else:
            assert torch.equal(x, y)


def copied(value):
    """The arguments of a call, copied, with what requires a gradient."""
    return pytree.tree_map(lambda x: x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x, value)
