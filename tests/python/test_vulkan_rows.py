"""Reductions in regions of the Vulkan backend's compiler: the laws of rows, how many commands they are, and what push constants do not hold."""

import os
import subprocess
import sys

import backplane as bp
import numpy as np
import pytest
from device_regions import regions, tensor
from device_rows import RowLaws, cross_entropy, layer_norm, one_region, rms_norm, softmax


class TestRows(RowLaws):
    @pytest.fixture
    def device(self, vulkan):
        return vulkan


def commands(function, *tensors):
    """What a call records, once its plan and its shaders are there."""
    compiled = bp.compile(function)
    compiled(*tensors)
    before = tensors[0].device.properties["recorded_commands"]
    compiled(*tensors)
    return tensors[0].device.properties["recorded_commands"] - before


@pytest.mark.parametrize("shape", [(512, 256), (4096, 256), (3, 5000)])
def test_what_is_written_of_parts_is_one_command(vulkan, shape):
    x, w, b = (tensor(vulkan, bp.float32, size) for size in (shape, shape[1:], shape[1:]))
    labels = tensor(vulkan, bp.int32, shape[:1]) % shape[1]
    classes = bp.arange(shape[1], device=vulkan).astype(bp.int32)
    assert commands(softmax, x) == 1
    assert commands(layer_norm, x, w, b) == 1
    assert commands(rms_norm, x, w) == 1
    assert commands(cross_entropy, x, labels, classes) == 1
    assert commands(lambda x: bp.mean(bp.square(x), axis=-1), x) == 1


def test_the_gradient_of_a_softmax_of_parts_is_one_region(vulkan):
    x = tensor(vulkan, bp.float32, (40, 33))
    assert regions(bp.grad(lambda x: bp.sum(softmax(x) * x)), x)[0] == 1


def test_small_losses_of_one_shape_are_one_region(vulkan):
    """They share no value."""
    def losses(*tensors):
        return tuple(bp.mean(bp.square(x), axis=-1) for x in tensors)

    assert regions(losses, *(tensor(vulkan, bp.float32, (5, 30)) for _ in range(4)))[0] == 1


@pytest.mark.parametrize("shape", [(6, 5), (3, 2000)])
def test_more_operands_and_dimensions_than_push_constants_hold(vulkan, shape):
    tensors = [tensor(vulkan, bp.float32, shape[::-1]).T for _ in range(40)]

    def function(*tensors):
        total = tensors[0]
        for x in tensors[1:]:
            total = total * 0.5 + x
        return softmax(total), bp.max(total, axis=-1)

    one_region(function, *tensors)


def test_rows_of_any_number_run_where_workgroups_take_turns(vulkan):
    x = tensor(vulkan, bp.int32, (70000, 3))
    found = bp.compile(lambda x: bp.sum(x * 3 - 1, axis=-1))(x)
    np.testing.assert_array_equal(found.numpy(), (x.numpy().astype(np.int64) * 3 - 1).sum(-1))


def test_a_workgroup_shares_a_long_row_on_what_is_no_processor(vulkan):
    """A driver that is one runs the laws as another device would."""
    laws = "TestRows and (lengths or special or floats or integers or complex or gradients or every_run or memory)"
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", laws],
                          env={**os.environ, "BACKPLANE_VULKAN_AS_GPU": "1"}, capture_output=True, text=True)
    assert done.returncode == 0 and " passed" in done.stdout and "skipped" not in done.stdout, done.stdout
