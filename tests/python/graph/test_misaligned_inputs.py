"""Compiled functions of tensors that do not begin where the device's kernels want them to: views at any offset, as inputs and as targets."""

import numpy as np
import pytest

import backplane as bp


@pytest.fixture(params=["cpu", "sim", "simh"])
def device(request, simulator):
    return request.param


@pytest.mark.parametrize("offset", [1, 2, 4, 8])
def test_inputs(device, offset):
    x = bp.arange(40.0, device=device)[offset:]
    expected = np.arange(offset, 40.0)
    np.testing.assert_allclose(bp.compile(lambda x: x * 2)(x).numpy(), expected * 2)
    np.testing.assert_allclose(bp.compile(lambda x: bp.concat([x[3:] * 2, x[1:].astype(bp.int64).astype(x.dtype)]))(x).numpy(), [*(expected[3:] * 2), *expected[1:]])
    aligned = bp.compile(lambda x, y: x + y)
    for y in (bp.ones(40 - offset, device=device), x):  # one plan for both
        np.testing.assert_allclose(aligned(x, y).numpy(), expected + y.numpy())


@pytest.mark.parametrize("offset", [1, 2, 4, 8])
def test_targets(device, offset):
    """What a function changes in place is changed where it is."""

    def step(p, g):
        p[...] = p - g

    whole = bp.ones(40, device=device)
    bp.compile(step)(whole[offset : offset + 9], bp.arange(40.0, device=device)[offset : offset + 9])
    expected = np.ones(40)
    expected[offset : offset + 9] -= np.arange(offset, offset + 9)
    np.testing.assert_allclose(whole.numpy(), expected)


def test_a_slice_within_the_function_is_the_operand_of_many_kernels(device):
    flat = bp.arange(64.0, device=device)
    compiled = bp.compile(lambda flat: [flat[i : i + 7].reshape((7, 1)) * flat[i + 1 : i + 8] for i in range(0, 50, 7)])
    for i, found in zip(range(0, 50, 7), compiled(flat)):
        np.testing.assert_allclose(found.numpy(), np.arange(i, i + 7.0)[:, None] * np.arange(i + 1.0, i + 8))
