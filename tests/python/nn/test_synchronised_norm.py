"""SyncBatchNorm without other ranks is batch norm; with ranks, see distributed/tensor_parallel_checks.py."""

import numpy as np
import pytest

import backplane as bp
from backplane import nn


@pytest.mark.parametrize("shape", [(5, 3), (5, 3, 4), (2, 3, 4, 4)])
def test_alone_it_is_batch_norm(shape):
    x = bp.randn(shape)
    kinds = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}
    plain, joined = kinds[len(shape)](3, momentum=None), nn.SyncBatchNorm(3, momentum=None)
    for _ in range(2):
        np.testing.assert_array_equal(joined(x).detach().numpy(), plain(x).detach().numpy())
    for name, value in plain.state_dict().items():
        np.testing.assert_array_equal(joined.state_dict()[name].numpy(), value.numpy())


def test_conversion_keeps_tensors_and_modes():
    net = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.Sequential(nn.BatchNorm2d(2, affine=False))).eval()
    weight = net[1].weight
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert converted is net and isinstance(net[1], nn.SyncBatchNorm) and net[1].weight is weight and not net[1].training
    assert isinstance(net[2][0], nn.SyncBatchNorm) and net[2][0].weight is None
    assert isinstance(nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(2)), nn.SyncBatchNorm)
    with pytest.raises(bp.ArgumentValueError, match="call the model once"):
        nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.LazyBatchNorm1d()))
    with pytest.raises(bp.ShapeError, match="expected at least 2"):
        nn.SyncBatchNorm(2)(bp.ones(2))
