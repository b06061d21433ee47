"""Memory of training loops: flat over 10,000 steps."""

import os

import pytest

import backplane as bp

pytestmark = pytest.mark.alone

STEPS = 10_000
PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * PAGE


def network(weights, x):
    return bp.tanh(x @ weights["w1"] + weights["b1"]) @ weights["w2"]


def loss(weights, x, y):
    return ((network(weights, x) - y) ** 2).mean()


def initial_weights(generator):
    return {
        "w1": bp.normal((4, 16), generator=generator),
        "b1": bp.zeros((16,)),
        "w2": bp.normal((16, 1), generator=generator),
    }


def functional_step(weights, x, y):
    gradients = bp.grad(loss)(weights, x, y)
    return {name: weights[name] - 0.01 * gradients[name] for name in weights}


def eager_step(weights, x, y):
    for weight in weights.values():
        weight.requires_grad_()
        weight.grad = None
    loss(weights, x, y).backward()
    with bp.no_grad():
        for weight in weights.values():
            weight -= 0.01 * weight.grad
    return weights


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the address sanitizer holds freed memory back")
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the resident size is read from /proc")
@pytest.mark.parametrize("step", [functional_step, eager_step])
def test_a_training_loop_holds_a_flat_resident_size(step):
    generator = bp.Generator(0)
    weights = initial_weights(generator)
    x, y = bp.normal((32, 4), generator=generator), bp.normal((32, 1), generator=generator)
    for _ in range(STEPS // 10):
        weights = step(weights, x, y)
    before = resident_bytes()
    for _ in range(STEPS):
        weights = step(weights, x, y)
    grown = resident_bytes() - before
    assert grown < 1 << 20, f"{STEPS} steps grew the process by {grown} bytes"
