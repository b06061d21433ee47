"""A traced function that collects garbage: functions in gc.callbacks are none of its code, unless it put them there itself."""

import gc

import backplane as bp
import pytest

X = bp.ones(2)


class Caller:
    """A callback of the collector that reads and changes what the traced function does not know."""

    def __init__(self):
        self.phases, self.state = [], {"count": 0}

    def note(self, phase, info):
        self.phases.append(phase)
        self.state["count"] = self.state["count"] + 1

    __call__ = note


@pytest.mark.parametrize("form", ["function", "method", "object"])
def test_a_callback_from_before_is_no_code_of_the_function(form):
    caller = Caller()
    callback = {"function": lambda phase, info: caller.note(phase, info), "method": caller.note, "object": caller}[form]

    traces = []

    def f(x):
        bp.unguarded(traces.append, None)
        gc.collect(0)
        return x * 2

    compiled = bp.compile(f)
    gc.callbacks.append(callback)
    try:
        for i in range(3):
            caller.state["count"] = i  # guarded, if it were read
            assert compiled(X).tolist() == [2, 2]
    finally:
        gc.callbacks.remove(callback)
    assert caller.phases and len(traces) == 1


def test_a_callback_that_the_function_adds_is_its_code():
    state = {"factor": 2.0}

    def f(x):
        found = []
        gc.callbacks.append(lambda phase, info: found.append(state["factor"]))
        try:
            gc.collect(0)
        finally:
            gc.callbacks.pop()
        return x * found[0]

    compiled = bp.compile(f)
    assert compiled(X).tolist() == [2, 2]
    state["factor"] = 3.0
    assert compiled(X).tolist() == [3, 3]
