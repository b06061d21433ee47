"""State that a compiled function replaces is refused and left as it was, however deep it lies; what functions read behind methods makes
another kind of call."""

import functools
import gc
import types
import weakref
from unittest import mock

import backplane as bp
import pytest

X = bp.asarray([1.0, 2.0, 3.0])


class Module:
    training = True

    def __init__(self):
        self.h = bp.zeros(3)
        self.list = [bp.zeros(3)]
        self.a, self.b = bp.ones(3), bp.zeros(3)

    def scaled(self, x):
        return x * (2 if self.training else 1)


class Outer:
    def __init__(self):
        self.sub = Module()

    def attribute(self, x):
        self.sub.h = self.sub.h + x
        return self.sub.h * 1

    def element(self, x):
        self.sub.list[0] = self.sub.list[0] + x
        return self.sub.list[0] * 1

    def swap(self, x):
        self.sub.a, self.sub.b = self.sub.b, self.sub.a
        return self.sub.a + x


def test_tensors_that_change_places_do_so_at_each_call():
    eager, outer = Outer(), Outer()
    compiled = bp.compile(outer.swap)
    for _ in range(3):
        assert compiled(X).tolist() == eager.swap(X).tolist()
        assert outer.sub.a.tolist() == eager.sub.a.tolist() and outer.sub.b.tolist() == eager.sub.b.tolist()


@pytest.mark.parametrize("name", ["attribute", "element"])
def test_state_below_self_is_refused_and_left(name):
    outer = Outer()
    before = (outer.sub.h, outer.sub.list[0], outer.sub.a, outer.sub.b)
    for _ in range(2):
        with pytest.raises(bp.ArgumentValueError, match=r"replaces static argument self\.sub\.(h|list\[0\]|a|b), which it reads.*Fix: change it in place"):
            bp.compile(getattr(outer, name))(X)
    assert all(now is had for now, had in zip((outer.sub.h, outer.sub.list[0], outer.sub.a, outer.sub.b), before))


def test_state_in_variables_is_refused_and_left():
    state, module = {"h": bp.zeros(3)}, Module()
    kept = state["h"]

    def in_a_dict(x):
        state["h"] = state["h"] * 0.5 + x
        return state["h"] * 1

    def in_an_object(x):
        module.h = module.h * 0.5 + x
        return module.h * 1

    for function, place in [(in_a_dict, r"variable state\['h'\]"), (in_an_object, r"variable module\.h")]:
        with pytest.raises(bp.ArgumentValueError, match=place):
            bp.compile(function)(X)
    assert state["h"] is kept and module.h.tolist() == [0, 0, 0]
    state["h"][...] = 5  # in place it is captured
    assert bp.compile(lambda x: state["h"].add_(x) * 1)(X).tolist() == [6, 7, 8] and kept.tolist() == [6, 7, 8]


def test_containers_of_state_that_are_replaced_whole_are_refused_and_left():
    class Recurrent:
        def __init__(self):
            self.hidden = (bp.zeros(3), bp.ones(3))
            self.list = [bp.zeros(3)]
            self.dict = {"h": bp.zeros(3)}

        def in_a_tuple(self, x):
            h, c = self.hidden
            self.hidden = (h + x, c * 2)
            return self.hidden[0] * c

        def in_a_list(self, x):
            self.list = [v + x for v in self.list]
            return self.list[0] * 1

        def in_a_dict(self, x):
            self.dict = {key: v + x for key, v in self.dict.items()}
            return self.dict["h"] * 1

    model = Recurrent()
    before = dict(vars(model))
    for method in (model.in_a_tuple, model.in_a_list, model.in_a_dict):
        with pytest.raises(bp.ArgumentValueError, match=r"replaces static argument self\.(hidden|list|dict)"):
            bp.compile(method)(X)
    assert vars(model) == before and all(vars(model)[name] is had for name, had in before.items())


def test_what_lies_beside_large_settings_is_found():
    settings = [{f"{k}_{i}": str(i) for i in range(1000)} for k in range(6)]
    state = {"h": bp.zeros(3)}

    def function(x):
        state["h"] = state["h"] + len(settings) * x
        return state["h"] * 1

    with pytest.raises(bp.ArgumentValueError, match=r"variable state\['h'\]"):
        bp.compile(function)(X)


def test_objects_that_answer_to_every_name_are_left_alone():
    call = mock.call  # a tuple with attributes
    assert bp.compile(lambda x: (mock.call(1), x * 2)[1])(X).tolist() == [2, 4, 6]
    assert bp.compile(lambda x: (call(1), x * 2)[1])(X).tolist() == [2, 4, 6]


def compiled_forms(module):
    forward = module.scaled
    listed, partial = [module.scaled], functools.partial(module.scaled)
    return {
        "variable": bp.compile(lambda x: forward(x)),
        "vmap": bp.compile(bp.vmap(module.scaled)),
        "list": bp.compile(lambda x: listed[0](x)),
        "partial": bp.compile(lambda x: partial(x)),
        "whole partial": bp.compile(functools.partial(module.scaled)),
        "grad": bp.compile(lambda x: bp.grad(lambda x: forward(x).sum())(x) * x),
    }


@pytest.mark.parametrize("form", compiled_forms(Module()))
def test_objects_behind_methods_are_guarded(form):
    module = Module()
    module.training = True
    function = compiled_forms(module)[form]
    assert function(X).tolist() == [2, 4, 6]
    module.training = False
    assert function(X).tolist() == [1, 2, 3]


def test_a_simple_namespace_is_an_object():
    settings = types.SimpleNamespace(scale=2.0, h=bp.zeros(3))
    function = bp.compile(lambda x: x * settings.scale)
    assert function(X).tolist() == [2, 4, 6]
    settings.scale = 3.0
    assert function(X).tolist() == [3, 6, 9]
    with pytest.raises(bp.ArgumentValueError, match=r"variable settings\.h"):
        bp.compile(lambda x: (setattr(settings, "h", settings.h + x), settings.h * 1)[1])(X)


def test_the_order_of_a_dict_makes_another_kind_of_call():
    first = bp.compile(lambda d: next(iter(d.values())) * 1)
    assert first({"a": X, "b": X * 2}).tolist() == [1, 2, 3]
    assert first({"b": X * 2, "a": X}).tolist() == [2, 4, 6]


def test_an_object_that_holds_its_compiled_method_is_collected():
    class Holder:
        def __init__(self):
            self.w = bp.ones(3)
            self.f = bp.compile(self.run)

        def run(self, x):
            return x * self.w.sum()

    holder = Holder()
    assert holder.f(X).tolist() == [3, 6, 9]
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None


def test_a_dict_of_the_state_gets_new_entries():
    state, counts = {}, {}

    def keep(x):
        state["y"] = x + 3
        return bp.abs(x)

    def count(x):
        y = counts.get("y", bp.asarray(0))
        counts["y"] = x + y
        return x + 2 * y

    keep, count = bp.compile(keep, outputs=state), bp.compile(count, inputs=counts, outputs=counts)
    for value in (-1, -2, 5):
        assert keep(bp.asarray(value)).item() == abs(value) and state["y"].item() == value + 3
    assert [count(bp.asarray(1)).item() for _ in range(4)] == [1, 3, 5, 7] and counts["y"].item() == 4


def test_a_call_that_fails_adds_no_entry():
    state = {}

    def fail(x):
        state["y"] = x
        raise KeyError(x.shape)

    with pytest.raises(KeyError):
        bp.compile(fail, state=[state])(bp.ones(2))
    assert state == {}


def test_a_tensor_that_becomes_an_attribute_is_refused():
    class Keeps(bp.nn.Module):
        def forward(self, x):
            self.last = x * 2
            return x

    module = Keeps()
    with pytest.raises(bp.ArgumentValueError, match="keeps a tensor"):
        bp.compile(lambda x: module(x), state=[module])(bp.ones(2))
    assert "last" not in vars(module)
