"""Transforms give back every reference, level and byte, also when they fail."""

import gc
import os
import sys
import weakref

import backplane as bp
import pytest

pytestmark = pytest.mark.alone

X = bp.asarray([1.0, 2.0])


def fail(x):
    raise KeyError


def failing(call):
    try:
        call()
    except (KeyError, bp.BackplaneError):
        return
    raise AssertionError("it was expected to fail")


def total(p):
    return (p["w"][0] * p["w"][1]).sum()


PARAMS = {"w": (X, [X])[:1] + (X,)}
ACTIONS = {
    "grad": lambda: bp.grad(lambda x: (x * x).sum())(X),
    "containers": lambda: bp.grad(total)(PARAMS),
    "aux": lambda: bp.value_and_grad(lambda x: (x.sum(), {"x": x, "n": "n"}), has_aux=True)(X),
    "vjp": lambda: bp.vjp(lambda x: {"a": x * x}, X)[1]({"a": X}),
    "unused pullback": lambda: bp.vjp(lambda x: {"a": x * x}, X),
    "jvp": lambda: bp.jvp(lambda x: {"a": x * x}, (X,), (X,)),
    "vmap": lambda: bp.vmap(lambda p, y: {"a": p["w"][0] * y}, ({"w": (0, None)}, None))(PARAMS, 2.0),
    "nested": lambda: bp.vmap(bp.grad(lambda x: x * bp.grad(lambda y: x * y)(x)))(X),
    "jacobians": lambda: bp.hessian(lambda x: (x * x).sum())(X),
    "exception": lambda: failing(lambda: bp.vmap(bp.grad(fail))(X)),
    "wrong structure": lambda: failing(lambda: bp.vjp(lambda x: {"a": x}, X)[1]([X])),
    "wrong prefix": lambda: failing(lambda: bp.vmap(total, ({"v": 0},))(PARAMS)),
    "wrong input": lambda: failing(lambda: bp.grad(total)({"w": (X, "text")})),
    "wrong result": lambda: failing(lambda: bp.grad(lambda x: x)(X)),
    "mutation": lambda: bp.grad(lambda x: written(x).sum())(X),
    "trees": lambda: bp.tree.map(lambda a, b: a, PARAMS, PARAMS),
}


def written(x):
    z = x * 1
    z[0] = x[1]
    z[1:] += x[0]
    return z


@pytest.mark.parametrize("name", ACTIONS)
def test_python_keeps_no_object(name):
    action = ACTIONS[name]
    for _ in range(300):  # fills caches and free lists
        action()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(300):
        action()
    gc.collect()
    assert sys.getallocatedblocks() - before < 50


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the address sanitizer holds freed memory back")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("name", ["grad", "vjp", "jvp", "vmap", "nested", "exception", "mutation"])
def test_resident_memory_stays_flat(name):
    big = bp.ones((64, 1024))  # 256 KiB
    action = {
        "grad": lambda: bp.grad(lambda x: (bp.exp(x) * x).sum())(big),
        "vjp": lambda: bp.vjp(lambda x: bp.exp(x) * x, big)[1](big),
        "jvp": lambda: bp.jvp(lambda x: bp.exp(x) * x, (big,), (big,)),
        "vmap": lambda: bp.vmap(lambda x: bp.exp(x) * x)(big),
        "nested": lambda: bp.vmap(bp.grad(lambda x: (x * bp.grad(lambda y: (y * y * x).sum())(x)).sum()))(big),
        "exception": lambda: failing(lambda: bp.vmap(bp.grad(lambda x: fail(bp.exp(x) * x)))(big)),
        "mutation": lambda: bp.grad(lambda x: written(x).sum())(big),
    }[name]
    for _ in range(20):
        action()
    before = resident()
    for _ in range(150):
        action()
    assert resident() - before < 12 << 20


def test_inputs_and_results_live_no_longer_than_their_users():
    x = bp.asarray([1.0])
    watched = []

    class Marked:
        pass

    def f(x):
        mark = Marked()
        watched.append(weakref.ref(mark))
        return (x * x).sum()

    gradient = bp.grad(f)
    count = sys.getrefcount(x)
    gradient(x)
    assert sys.getrefcount(x) == count
    assert watched[0]() is None
