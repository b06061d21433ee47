"""The harness itself: each outcome is recognised, with compilers that are made to cause it."""

import types

import backplane as bp
import pytest
from staleness_kinds import X, outcome_of


def program(run):
    o = types.SimpleNamespace(s=2.0, t=0)

    def body(x):
        o.t += 1
        return x * o.s

    f = run(body, state=lambda: o.t)
    for o.s in (2.0, 3.0):
        yield f(X)


def reading(run):
    o = types.SimpleNamespace(s=2.0)
    f = run(lambda x: x * o.s)
    for o.s in (2.0, 3.0):
        yield f(X)


def line_of(function):
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno + 1}"


def stale(function):
    kept = []

    def call(*args):
        if not kept:
            kept.append(function(*args))
        return kept[0]

    return call


def fails(error, runs_first=False, once=False):
    """A compiler whose function raises this error, made of the function."""

    def compiler(function):
        calls = []

        def call(*args):
            calls.append(1)
            if runs_first:
                function(*args)
            if once and len(calls) > 1:
                return function(*args)
            raise error(function)

        return call

    return compiler


REFUSAL = bp.ArgumentValueError
COMPILERS = {
    "state": lambda function: function,
    "silent": stale,
    "refused": fails(lambda function: REFUSAL(f"compile: a store ({line_of(function)}). Fix: none")),
    "vague": fails(lambda function: REFUSAL("compile: a store. Fix: none")),
    "dirty": fails(lambda function: REFUSAL(f"compile: a store ({line_of(function)})"), runs_first=True),
    "broken": fails(lambda function: KeyError("t")),
}


@pytest.mark.parametrize("outcome", COMPILERS)
def test_outcomes(monkeypatch, outcome):
    monkeypatch.setattr(bp, "compile", COMPILERS[outcome])
    assert outcome_of(program, {})[0] == outcome


def test_a_program_without_state_is_guarded(monkeypatch):
    monkeypatch.setattr(bp, "compile", lambda function: function)
    assert outcome_of(reading, {})[0] == "guarded"


def test_what_was_refused_must_stay_refused(monkeypatch):
    monkeypatch.setattr(bp, "compile", fails(lambda function: REFUSAL(line_of(function)), once=True))
    assert outcome_of(program, {})[0] == "silent"


def test_a_line_of_the_program_itself_is_no_cause(monkeypatch):
    own = f"{program.__code__.co_filename}:{program.__code__.co_firstlineno + 1}"
    monkeypatch.setattr(bp, "compile", fails(lambda function: REFUSAL(own)))
    assert outcome_of(program, {})[0] == "vague"


@pytest.mark.parametrize("change", [lambda y: y * 1.001, lambda y: bp.astype(y, bp.float64), lambda y: y[None], lambda y: [y], lambda y: y.tolist()])
def test_values_dtypes_shapes_and_types_are_compared(monkeypatch, change):
    monkeypatch.setattr(bp, "compile", lambda function: lambda *args: change(function(*args)))
    assert outcome_of(reading, {})[0] == "silent"
