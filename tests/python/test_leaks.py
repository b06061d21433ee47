"""Calls, failures and conversions give back every reference and every byte that they take."""

import gc
import sys
import weakref

import backplane as bp
import numpy as np
import pytest

pytestmark = pytest.mark.alone

MATRIX = bp.asarray([[1.0, 2.0], [3.0, 4.0]])
ARRAY = np.ones((2, 2), dtype=np.float32)


def failing(call):
    try:
        call()
    except Exception:
        return
    raise AssertionError("it was expected to fail")


def recorded():
    x = bp.ones(2).requires_grad_()
    x.register_hook(lambda g: g * 2)
    (x * x).sum().backward()
    return x.grad


ACTIONS = {
    "operator": lambda: MATRIX + MATRIX,
    "number": lambda: 2.0 * MATRIX,
    "keywords": lambda: bp.sum(MATRIX, axis=(0, 1), keepdims=True),
    "list": lambda: bp.concat([MATRIX, MATRIX], axis=0),
    "results": lambda: bp.topk(MATRIX, 1),
    "index": lambda: MATRIX[0, ::-1],
    "arrays": lambda: MATRIX[[0, 1], MATRIX[:, 0] > 0],
    "numpy": lambda: np.asarray(bp.asarray(ARRAY)),
    "dlpack": lambda: np.from_dlpack(bp.from_dlpack(ARRAY)),
    "unused capsule": lambda: MATRIX.__dlpack__(max_version=(1, 0)),
    "values": lambda: bp.asarray([[1, 2], [3, 4]]),
    "text": lambda: repr(MATRIX),
    "record": recorded,
    "wrong type": lambda: failing(lambda: bp.add(MATRIX, "x")),
    "wrong shape": lambda: failing(lambda: bp.add(MATRIX, bp.ones(3))),
    "wrong keyword": lambda: failing(lambda: bp.add(MATRIX, z=1)),
    "ragged": lambda: failing(lambda: bp.asarray([[1], [2, 3]])),
    "wrong key": lambda: failing(lambda: MATRIX[9]),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_python_keeps_no_object(name):
    action = ACTIONS[name]

    def grown():
        before = sys.getallocatedblocks()
        for _ in range(300):
            action()
        gc.collect()
        return sys.getallocatedblocks() - before

    grown()  # fills caches and free lists
    assert any(grown() < 50 for _ in range(4))  # caches of NumPy may grow for longer; what is kept grows in each round


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_of_tensors_is_returned():
    def work():
        big = bp.zeros((256, 1024))  # 1 MiB
        np.asarray(bp.asarray((big + 1).numpy()))

    for _ in range(50):
        work()
    before = resident()
    for _ in range(200):
        work()
    assert resident() - before < 32 << 20


def test_weak_references():
    x = bp.ones(2)
    reference = weakref.ref(x)
    assert reference() is x
    del x
    assert reference() is None


def test_arguments_keep_their_reference_counts():
    x, shape = bp.ones(6), (2, 3)
    counts = sys.getrefcount(x), sys.getrefcount(shape)
    for _ in range(100):
        x.reshape(shape)
        x + x
        x.sum(axis=(0,))
    assert (sys.getrefcount(x), sys.getrefcount(shape)) == counts
