"""What a compiled function reads of tensors from outside, which its graph does not hold: other values make another kind of call."""

import backplane as bp
import numpy as np
import pytest

READS = {
    "float": lambda w: float(w),
    "int": lambda w: int(w),
    "item": lambda w: w.item(),
    "tolist": lambda w: w.tolist(),
    "numpy": lambda w: float(np.asarray(w)),
    "a comparison": lambda w: 7.0 if w.item() > 2.5 else 1.0,
    "in a body": lambda w: bp.scan(lambda c, x: (c + float(w), x), 0.0, bp.ones(2))[0],
    "of what is computed with": lambda w: w * float(w),
}


def counted(f):
    """f, compiled, and how often it was traced."""
    runs = []

    def noted(*args):
        bp.unguarded(runs.append, 1)
        return f(*args)

    return bp.compile(noted), runs


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_tensor_that_is_read_is_guarded_by_its_values(read):
    w = bp.asarray(2.0)
    f, runs = counted(lambda x: x * read(w))
    x = bp.asarray([1.0, 3.0])
    for change in (None, None, "in place", None, "another", None):
        if change == "in place":
            w *= 2
        elif change == "another":
            w = bp.asarray(3.0)
        np.testing.assert_array_equal(f(x).numpy(), (x * read(w)).numpy())
    assert len(runs) == 3


def test_an_attribute_that_is_read():
    class Optimizer:
        def __init__(self):
            self.rate = bp.asarray(0.5)

        @bp.compile
        def step(self, p, g):
            return p - self.rate.item() * g

    o, p = Optimizer(), bp.ones(2)
    assert o.step(p, p).tolist() == [0.5, 0.5]
    o.rate[...] = 0.25
    assert o.step(p, p).tolist() == [0.75, 0.75]
    o.rate = bp.asarray(1.0)
    assert o.step(p, p).tolist() == [0, 0]


def test_another_tensor_of_the_same_form_is_no_other_call_where_none_is_read():
    state = {"last": bp.ones(3)}
    f, runs = counted(lambda x: x + state["last"].shape[0])
    for _ in range(3):
        state["last"] = bp.ones(3)
        assert f(bp.zeros(1)).tolist() == [3]
    assert len(runs) == 1


def test_whether_a_gradient_is_required():
    state = {"w": bp.ones(3)}
    f = bp.compile(lambda x: x * (1 if state["w"].requires_grad else 5))
    assert f(bp.ones(1)).tolist() == [5]
    state["w"].requires_grad = True
    assert f(bp.ones(1)).tolist() == [1]


def test_whether_gradients_are_recorded():
    f, runs = counted(lambda x: x + (1 if bp.is_grad_enabled() else 5))
    for _ in range(2):
        assert f(bp.ones(1)).tolist() == [2]
        with bp.no_grad():
            assert f(bp.ones(1)).tolist() == [6]
    assert len(runs) == 2
    g, runs = counted(lambda x: x * 2)
    g(bp.ones(1))
    with bp.no_grad():
        g(bp.ones(1))
    assert len(runs) == 1


def test_the_log_names_what_was_read():
    w = bp.asarray(2.0)
    f = bp.compile(lambda x: x * float(w))
    f(bp.ones(1))
    w += 1
    f(bp.ones(1))
    assert any("variable w: found other values" in str(entry) for entry in bp.compile_log())
