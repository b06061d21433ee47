"""The Vulkan backend's compiler: the laws of regions, and what push constants do not hold."""

import backplane as bp
import pytest
from device_regions import RegionLaws, fused, regions, tensor


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


def test_small_updates_of_one_shape_are_one_region(vulkan):
    """They share no value; those of another shape, and large ones, are left alone."""
    def updates(*tensors):
        return tuple(weight - 0.01 * gradient for weight, gradient in zip(tensors[::2], tensors[1::2]))

    small = [tensor(vulkan, bp.float32, (5, 3)) for _ in range(8)]
    fused(8, updates, *small)
    large = [tensor(vulkan, bp.float32, (130, 130)) for _ in range(4)]
    assert regions(updates, *large) == (2, 4)
    assert regions(updates, *small, *large) == (3, 12)
