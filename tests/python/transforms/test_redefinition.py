"""A custom op that is redefined, or gets a rule, gives its old record and its old functions back."""

import gc
import os
import threading
import weakref

import backplane as bp
import pytest
from custom_op_toys import name, values  # noqa: F401

pytestmark = pytest.mark.alone


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def define(name, factor=2):
    @bp.custom_op(name, replace=True)
    def op(x: bp.Tensor) -> bp.Tensor:
        """Scales a tensor."""
        return bp.multiply(x, factor)

    op.register_shape(lambda x: x)
    op.register_vjp(lambda g: bp.multiply(g, factor))
    return op


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the address sanitizer holds freed memory back")
def test_memory_does_not_grow(name):  # noqa: F811
    for _ in range(200):
        define(name)(bp.ones(2))
    gc.collect()
    before = resident()
    for _ in range(2000):
        define(name)(bp.ones(2))
    gc.collect()
    assert resident() - before < 4 << 20  # a record and its rows are some 9 KB: 2000 times 3 of them would be 54 MB


def test_the_old_functions_are_dropped(name):  # noqa: F811
    def kernel(x: bp.Tensor) -> bp.Tensor:
        return bp.multiply(x, 1)

    reference = weakref.ref(kernel)
    bp.custom_op(name, kernel)(bp.ones(2))
    del kernel
    for _ in range(2):
        define(name)
    gc.collect()
    assert reference() is None


def test_a_graph_keeps_the_rules_that_it_was_recorded_with(name):  # noqa: F811
    x = bp.ones(2).requires_grad_()
    y = define(name, 2)(x).sum()
    for _ in range(5):
        define(name, 7)
    gc.collect()
    y.backward()
    assert values(x.grad).tolist() == [2, 2]


def test_others_call_it_meanwhile(name):  # noqa: F811
    op = define(name)
    stop, failures = threading.Event(), []

    def call():
        while not stop.is_set():
            try:
                x = bp.ones(30000).requires_grad_()
                op(x).sum().backward()
            except NotImplementedError:
                pass  # between two definitions, or between one and its rule
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        define(name)
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
