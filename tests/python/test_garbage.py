"""Tensors that keep themselves alive through a cycle are found by Python's garbage collector, and memory comes back."""

import functools
import gc
import sys
import threading
import time
import weakref

import backplane as bp
import pytest

pytestmark = pytest.mark.alone


class Witness:
    """Dies with the closure that holds it."""


def a_leafs_hook(witness):
    x = bp.ones(3).requires_grad_()
    x.register_hook(lambda g: (x, witness) and None)


def a_results_hook(witness):
    y = bp.ones(3).requires_grad_() * 2
    y.register_hook(lambda g: (y, witness) and None)


def a_hook_after_a_pass(witness):
    x = bp.ones(3).requires_grad_()
    x.register_hook(lambda g: (x, witness) and None)
    (x * x).sum().backward()


def two_tensors(witness):
    x, y = bp.ones(3).requires_grad_(), bp.ones(3).requires_grad_()
    x.register_hook(lambda g: (y, witness) and None)
    y.register_hook(lambda g: (x, witness) and None)


def a_hook_without_a_closure(witness):
    x = bp.ones(3).requires_grad_()
    x.register_hook(functools.partial(lambda x, w, g: None, x, witness))


def a_method_as_a_hook(witness):
    x = bp.ones(3).requires_grad_()
    x.register_hook(x.__mul__)
    x.register_hook(lambda g: witness and None)


def a_handle(witness):
    x = bp.ones(3).requires_grad_()
    handle = x.register_hook(lambda g: (handle, witness) and None)


def a_gradients_hook(witness):
    x = bp.ones(3).requires_grad_()
    x.grad = bp.ones(3).requires_grad_()
    x.grad.register_hook(lambda g: (x, witness) and None)


def a_custom_function(witness):
    box = [witness]

    @bp.custom_function
    def twice(x):
        return box and x * 2

    twice.defvjp(lambda x: (x * 2, None), lambda saved, g: (box and g * 2,))
    box.append(twice(bp.ones(3).requires_grad_()))


def a_checkpoint(witness):
    box = [witness]
    box.append(bp.checkpoint(lambda x: box and x * 2)(bp.ones(3).requires_grad_()))


@pytest.mark.parametrize("make", [a_leafs_hook, a_results_hook, a_hook_after_a_pass, two_tensors, a_hook_without_a_closure,
                                  a_method_as_a_hook, a_handle, a_gradients_hook, a_custom_function, a_checkpoint],
                         ids=lambda make: make.__name__)  # fmt: skip
def test_a_cycle_is_collected(make):
    witness = Witness()
    reference = weakref.ref(witness)
    make(witness)
    del witness
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize("length", [1, 2, 3])
def test_gradients_in_a_circle_are_freed(length):
    def circle():
        tensors = [bp.ones(1 << 17) for _ in range(length)]
        for x, grad in zip(tensors, tensors[1:] + tensors[:1]):
            x.grad = grad
            assert x.grad.tolist()[:2] == [1, 1]

    circle()
    before = bp.memory_stats("cpu")["allocated_bytes"]
    for _ in range(5):
        circle()
    assert bp.memory_stats("cpu")["allocated_bytes"] == before


def test_a_tensor_that_is_its_own_gradient_shares_its_memory():
    x = bp.ones(3)
    x.grad = x
    x += 1
    assert x.grad.tolist() == [2, 2, 2] and x.grad.grad is None


def test_what_lives_is_not_collected():
    x = bp.ones(3).requires_grad_()
    seen = []
    x.register_hook(lambda g: seen.append(x) and None)
    loss = (x * x).sum()
    gc.collect()
    loss.backward()
    gc.collect()
    (x * 2).sum().backward()
    assert len(seen) == 2 and x.grad.tolist() == [4, 4, 4]


def test_hooks_of_a_history_outlive_their_tensors_object():
    x = bp.ones(3).requires_grad_()
    seen = []

    def result():
        y = x * 2
        y.register_hook(lambda g: seen.append(y.shape) and None)
        return (y * y).sum()

    loss = result()
    gc.collect()
    loss.backward()
    assert seen == [(3,)]


def test_collecting_beside_passes():
    stop = threading.Event()
    failures = []

    def passes():
        while not stop.is_set():
            x = bp.ones(20000).requires_grad_()
            seen = []
            x.register_hook(lambda g: seen.append(x.shape) and None)
            (x * x).sum().backward()
            if len(seen) != 1:
                failures.append(seen)

    threads = [threading.Thread(target=passes) for _ in range(2)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 5  # what imported modules hold makes a collection take up to a second
    while time.monotonic() < end:
        gc.collect()
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_tensor_without_python_objects_is_not_tracked():
    x = bp.ones(3)
    y = x + x
    assert not gc.is_tracked(x) and not gc.is_tracked(y) and not gc.is_tracked(y.requires_grad_())


def test_objects_come_from_the_free_list_untracked():
    for _ in range(300):
        x = bp.ones(3).requires_grad_()
        x.register_hook(lambda g: None)
        del x
    assert not any(gc.is_tracked(bp.ones(3)) for _ in range(300))
    assert sys.getrefcount(bp.Tensor) > 1
