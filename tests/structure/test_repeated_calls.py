"""No code repeats a call after an error: a form is chosen before anything runs, so that a random number is drawn once and an error stays what it was.

In Python, the handler of a `try` (and what follows in the same body) does not call again what the `try` called with the same starred arguments. In
the bindings, nothing looks at a pending error of an op to hand the call to another form.
"""

import ast
import re

import source_tree

PYTHON = [name for name in source_tree.tracked_files() if name.startswith("python/backplane/") and name.endswith(".py")]
CALLS = source_tree.ROOT / "python/bindings/ops/op_call.cpp"


def forwarded(node):
    """What calls under the node hand on all of their caller's arguments to: f(*args, **more)."""
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
    starred = [one for one in calls if any(isinstance(arg, ast.Starred) for arg in one.args) and any(word.arg is None for word in one.keywords)]
    return {ast.unparse(one.func) for one in starred}


def repeated(tree):
    """(line, function) of each call that is made again after one like it has failed; a function that calls itself repeats its call too."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for statement in (node for node in ast.walk(function) if isinstance(node, ast.Try)):
            first = set().union(*map(forwarded, statement.body)) if statement.body else set()
            after = [*statement.handlers, *(one for one in function.body if one.lineno > statement.lineno)]
            again = set().union(*map(forwarded, after)) & (first | {function.name}) if after else set()
            yield from ((statement.lineno, name) for name in sorted(again) if first)


def test_no_python_code_repeats_a_call():
    found = [f"{name}:{line}: {call}" for name in PYTHON for line, call in repeated(ast.parse((source_tree.ROOT / name).read_text(encoding="utf-8")))]
    assert found == []


def test_the_law_sees_what_it_forbids():
    again = "def f(*args, **more):\n try:\n  return g(*args, **more)\n except AttributeError:\n  pass\n return {}(*args, **more)\n"
    assert list(repeated(ast.parse(again.format("g")))) == [(2, "g")] and list(repeated(ast.parse(again.format("f")))) == [(2, "f")]
    assert list(repeated(ast.parse(again.format("h")))) == []


def body_of(name):
    """The body of a function of the bindings' calls."""
    return re.search(rf"^PyObject\* {name}\(OpObject\*.*?^}}", CALLS.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[0]


def test_no_op_runs_again_after_an_error():
    """In `run_read`, every other form is asked for before the op runs; `run` and `call_given` select one where reading the arguments fails."""
    body = body_of("run_read")
    runs = body.index("run_functional(self")
    assert "run_form" not in body[runs:] and "run_form" in body[:runs]
    for name in ("run", "call_given"):
        body = body_of(name)
        assert 0 < body.index("run_other_form") < body.index("return run_read(self") and "run_other_form" not in body[body.index("return run_read(self") :]
