"""The Vulkan backend's compiler: the laws of regions, and what push constants do not hold."""

import backplane as bp
import pytest
from device_regions import RegionLaws, fused, tensor


class TestRegions(RegionLaws):
    @pytest.fixture
    def device(self, vulkan):
        return vulkan


def test_more_dimensions_than_push_constants_hold(vulkan):
    x, y = tensor(vulkan, bp.float32, (2, 3, 2, 3, 2, 3)), tensor(vulkan, bp.float32, (3, 2, 3, 2, 3, 2))
    x, y = bp.permute_dims(x, (4, 1, 0, 5, 2, 3)), bp.permute_dims(y, (1, 0, 3, 2, 5, 4))
    fused(2, lambda x, y: (x + y) * x, x, y)


def test_more_operands_than_push_constants_hold(vulkan):
    tensors = [tensor(vulkan, bp.float32, (6, 4)).T for _ in range(20)]

    def function(*tensors):
        total = tensors[0]
        for tensor in tensors[1:]:
            total = total * 0.5 + tensor
        return total, total * 2

    fused(39, function, *tensors)
