"""What a traced function stores and takes back before it ends: compiled it does the same as eager, and leaves nothing."""

import atexit
import collections
import contextlib
import signal
import threading

import backplane as bp
import pytest


class Plain:
    pass


class Slotted:
    __slots__ = ("v",)


def attribute():
    a = Plain()

    def f(x):
        a.cache = x * 2
        y = a.cache + 1
        del a.cache
        return y

    return f, lambda: vars(a)


def attribute_through_its_dict():
    a = Plain()

    def f(x):
        a.cache = x * 2
        y = a.cache + 1
        vars(a).pop("cache")
        return y

    return f, lambda: vars(a)


def former_value():
    a = Plain()
    a.v = 3

    def f(x):
        a.v, old = x, a.v
        y = a.v * 2
        a.v = old
        return y

    return f, lambda: vars(a)


def slot():
    a = Slotted()

    def f(x):
        a.v = x * 2
        y = a.v + 1
        del a.v
        return y

    return f, lambda: hasattr(a, "v")


def thread_local():
    a = threading.local()

    def f(x):
        a.v = x * 2
        y = a.v + 1
        del a.v
        return y

    return f, lambda: hasattr(a, "v")


def module_attribute():
    m = bp.nn.Linear(2, 2, bias=False)
    with bp.no_grad():
        m.weight[...] = 1.0

    def f(x):
        m.cache = x * 2
        y = m(m.cache).detach()
        del m.cache
        return y

    return f, lambda: hasattr(m, "cache")


def forward_hook():
    m = bp.nn.Linear(2, 2, bias=False)
    with bp.no_grad():
        m.weight[...] = 1.0

    def f(x):
        seen = []
        hook = m.register_forward_hook(lambda module, arguments, result: seen.append(result * 3))
        y = m(x)
        hook.remove()
        return (y + seen[0]).detach()

    return f, lambda: None


def list_to_end():
    a = [1]

    def f(x):
        a.append(x * 2)
        return a.pop() + 1

    return f, lambda: a


def list_element():
    a, n = [1, 2], [0]

    def f(x):
        a[0] = x
        y = a[0] * 2
        a[0] = 1
        n[0] += 1
        return y

    return f, lambda: (a, n)


def dict_entry():
    a = {"v": 1}

    def f(x):
        a["w"] = x * 2
        y = a["w"] * a["v"]
        del a["w"]
        return y

    return f, lambda: a


def queue():
    a = collections.deque()

    def f(x):
        a.extend([x, x * 2])
        y = 0
        while a:
            y = y + a.popleft()
        return y

    return f, lambda: list(a)


def scope():
    stack = []

    @contextlib.contextmanager
    def within(v):
        stack.append(v)
        try:
            yield
        finally:
            stack.pop()

    def f(x):
        with within(x * 2):
            return stack[-1] + 1

    return f, lambda: stack


@pytest.mark.parametrize("make", [attribute, attribute_through_its_dict, former_value, slot, thread_local, module_attribute, forward_hook, list_to_end,
                                  list_element, dict_entry, queue, scope])  # fmt: skip
def test_a_passing_store_is_no_effect(make):
    (eager, eager_state), (function, state) = make(), make()
    compiled = bp.compile(function)
    for i in range(4):
        x = bp.asarray([float(i), 2.0])
        assert compiled(x).numpy().tolist() == eager(x).numpy().tolist()
        assert state() == eager_state()


def kept_in_attribute(a, x):
    a.v = x * 2


def kept_by_pullback(a, x):
    a.v = bp.vjp(lambda z: z * z, x)[1]


@pytest.mark.parametrize("keep", [kept_in_attribute, kept_by_pullback])
@pytest.mark.parametrize("holder", [Plain, Slotted, threading.local])
def test_a_store_that_is_refused_is_taken_back(holder, keep):
    a = holder()

    def f(x):
        keep(a, x)
        return x

    with pytest.raises(bp.ArgumentValueError, match=r"keeps a tensor in variable a\.v"):
        bp.compile(f)(bp.ones(2))
    assert not hasattr(a, "v")


def test_a_pullback_that_c_code_keeps_is_refused():
    kept = []

    def f(x):
        y, pullback = bp.vjp(lambda z: z * z, x)
        list(map(kept.append, [pullback]))
        return y

    with pytest.raises(bp.ArgumentValueError, match="leaves a tensor of the trace in variable kept"):
        bp.compile(f)(bp.ones(2))
    assert kept == []


@pytest.mark.parametrize(("register", "what"), [(lambda later: atexit.register(later), "registers a function that runs at the exit"),
                                                (lambda later: signal.signal(signal.SIGUSR1, later), "sets a handler of signals")])  # fmt: skip
def test_what_the_interpreter_calls_later_is_refused(register, what):
    def f(x):
        register(lambda *event: x)
        return x * 2

    before = signal.getsignal(signal.SIGUSR1)
    with pytest.raises(bp.ArgumentValueError, match=what):
        bp.compile(f)(bp.ones(2))
    signal.signal(signal.SIGUSR1, before)
