"""Laws of compile: a global or a variable of an enclosing function that is given another value makes another kind of call."""

import functools
import sys

import backplane as bp
import pytest

scale, weight, options, table, names = 2.0, bp.ones((3,)), {"shift": 1.0}, [1.0, 2.0], ("a", "b")
notes, counter = [], 0
X = bp.asarray([1.0, 2.0, 3.0])


class Settings:
    gain = 1.5


settings = Settings()


def helper(x):
    return x * scale


def reader(x):
    return helper(x) * weight + options["shift"] + table[0] + settings.gain + len(names)


def noting(x):
    global counter
    counter += 1
    notes.append(x.shape)
    return x * scale


@pytest.fixture(autouse=True)
def as_they_were(monkeypatch):
    for name, value in {"scale": 2.0, "weight": bp.ones((3,)), "options": {"shift": 1.0}, "table": [1.0, 2.0], "names": ("a", "b"),
                        "settings": Settings()}.items():
        monkeypatch.setattr(sys.modules[__name__], name, value)


CHANGES = {
    "number of a helper": ("scale = 3.0", "global scale: found 3.0, had 2.0"),
    "tensor": ("weight = bp.asarray([1.0, 5.0, 2.0])", "global weight: found another tensor, had a tensor, float32 of shape"),
    "entry of a dict": ("options['shift'] = 7.0", "global options['shift']: found 7.0, had 1.0"),
    "another dict": ("options = {'shift': 4.0}", "global options: found"),
    "entry of a list": ("table[0] = 9.0", "global table[0]: found 9.0, had 1.0"),
    "attribute": ("settings.gain = 3.0", "global settings.gain: found 3.0, had none"),
    "function": ("helper = lambda x: x - 1", "global helper: found <function"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_global_that_is_changed_is_seen(change, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "helper", helper)
    compiled = bp.compile(reader)
    assert compiled(X).tolist() == reader(X).tolist()
    log = bp.compile_log()
    compiled(X)
    assert bp.compile_log() == log
    statement, says = CHANGES[change]
    exec(statement, globals())
    assert compiled(X).tolist() == reader(X).tolist()
    assert says in bp.compile_log()[-1]


def test_a_variable_of_an_enclosing_function_is_seen():
    k, inner, unread = 2.0, 3.0, 0

    def loss(x):
        return (x * inner).sum()

    gradient = bp.grad(loss)

    def function(x):
        return gradient(x) * k

    compiled = bp.compile(function)
    assert compiled(X).tolist() == [6.0] * 3
    unread += 1
    k = 5.0
    assert compiled(X).tolist() == [15.0] * 3
    assert "variable k: found 5.0, had 2.0" in bp.compile_log()[-1]
    inner = 4.0
    assert compiled(X).tolist() == [20.0] * 3
    assert "variable inner: found 4.0, had 3.0" in bp.compile_log()[-1]


def test_what_the_function_stores_it_stores_at_each_call():
    global counter
    del notes[:]
    counter, compiled = 0, bp.compile(noting)
    for _ in range(3):
        compiled(X)
        compiled(X[:2])
    assert counter == 6 and notes == [(3,), (2,)] * 3


def test_attributes_of_the_names_of_globals_are_no_guard():
    global gain
    gain = 1.0
    compiled = bp.compile(lambda x: x * settings.gain)
    compiled(X)
    log = bp.compile_log()
    gain = 2.0
    compiled(X)
    assert bp.compile_log() == log


def test_a_graph_stays_what_it_was():
    global scale
    graph = bp.make_graph(helper)(X)
    scale = 9.0
    assert graph(X).tolist() == [2.0, 4.0, 6.0]


def test_under_a_profiler_variables_are_seen():
    k = 2.0
    sys.setprofile(lambda *_: None)
    try:
        compiled = bp.compile(lambda x: helper(x) * k)
        compiled(X)
        k = 3.0
        assert compiled(X).tolist() == (X * 6).tolist()
    finally:
        sys.setprofile(None)


class Rated:
    def __init__(self):
        self.rate = 2.0


def rated(x, rate=1.0, *, by=None):
    return x * rate if by is None else x * by.rate


def made(kind):
    """A function of x that reads a rate where no variable holds it, and what gives it another."""
    held = Rated()
    change = lambda: setattr(held, "rate", 5.0)  # noqa: E731
    if kind == "default":
        return lambda x, held=held: x * held.rate, change
    if kind == "default of a helper":
        helpers = [lambda x, held=held: x * held.rate]
        return lambda x: helpers[0](x), change
    if kind == "keyword's default":

        def keyword(x, *, held=held):
            return x * held.rate

        return lambda x: keyword(x), change
    if kind == "default of a method":

        class Layer:
            def step(self, x, held=held):
                return x * held.rate

        layer = Layer()
        return lambda x: layer.step(x), change
    if kind == "attribute that was not there":
        return lambda x: x * getattr(held, "scale", 1.0), lambda: setattr(held, "scale", 4.0)
    if kind == "hasattr":
        return lambda x: x * (4.0 if hasattr(held, "scale") else 1.0), lambda: setattr(held, "scale", 4.0)
    partial = functools.partial(rated, rate=2.0) if kind == "keyword of a partial" else functools.partial(rated, by=held)
    if kind == "keyword of a partial":
        return lambda x: partial(x), lambda: partial.keywords.update(rate=7.0)
    return (partial if kind == "partial itself" else lambda x: partial(x)), change


KINDS = ["default", "default of a helper", "keyword's default", "default of a method", "attribute that was not there", "hasattr", "keyword of a partial", "object of a partial", "partial itself"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_defaults_and_partials_lead_to_is_seen(kind):
    function, change = made(kind)
    compiled = bp.compile(function)
    assert compiled(X).tolist() == function(X).tolist()
    log = bp.compile_log()
    compiled(X)
    assert bp.compile_log() == log
    change()
    assert compiled(X).tolist() == function(X).tolist()
    assert bp.compile_log() != log
