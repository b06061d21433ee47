"""The harness of the catalogue of staleness: a kind is a program that runs eagerly and compiled, and says what both give.

A program is a generator function `test_*(run)` under the decorator `kind`. `run(f)` is f, or f compiled; what the program yields is
compared. `run(f, state=...)` names a function of no arguments that returns the state around f: it is compared after each call, and a
refused call must leave it as it was. `make=` is what takes the place of `bp.compile`. Outcomes:

- guarded: everything that was yielded is equal to eager.
- state:   the same, and calls of f change what `state` returns.
- refused: up to a bp error that names a line of the traced code, and that left the state as it was.
- silent, vague (the error names no line), dirty (a refused call changed the state) and broken (another error) fail.
"""

import functools
import inspect
import linecache
import re
import types

import backplane as bp
import pytest
from staleness_values import Snapshot, difference

X = bp.asarray([1.0, 2.0, 3.0])
GUARDED = ("guarded", "state")
ANY = (*GUARDED, "refused")
NO_LINE = (*ANY, "vague")  # of what no single line of the traced code does
FAULTS = ("silent", "vague", "dirty", "broken")


class Refused(BaseException):
    """Not an Exception, so that no program catches it."""

    def __init__(self, error, changed, accepted_later):
        super().__init__(str(error))
        self.error, self.changed, self.accepted_later = error, changed, accepted_later


class Run:
    """What a program makes its functions with, and what their calls left in the state."""

    def __init__(self, compiled):
        self.compiled = compiled
        self.states = []
        self.changes_state = False

    def __call__(self, function=None, *, state=None, make=None, **options):
        if function is None:
            return functools.partial(self, state=state, make=make, **options)
        made = (make or bp.compile)(function, **options) if self.compiled else function
        look = state or tuple

        def call(*args, **kwargs):
            before = Snapshot(look())
            try:
                result = made(*args, **kwargs)
            except bp.BackplaneError as error:
                if not self.compiled:
                    raise
                changed = difference(before, Snapshot(look()))
                raise Refused(error, changed, _accepts(made, args, kwargs)) from None
            if state:
                self.states.append(Snapshot((look(), result)))
                self.changes_state |= difference(before, Snapshot(look())) is not None
            return result

        call.made = made  # what a program calls that calls its own function
        return call


def _accepts(made, args, kwargs):
    """A call that was refused once must not be answered the next time."""
    try:
        made(*args, **kwargs)
    except bp.BackplaneError:
        return False
    return True


def played(program, compiled, arguments):
    """What the program yields, as snapshots; the states after its calls; how it was refused, if it was."""
    bp.manual_seed(0)
    run, found = Run(compiled), []
    try:
        for value in program(run, **arguments):
            found.append(Snapshot(value))
    except Refused as refusal:
        return run, found, refusal
    return run, found, None


def names_a_line(text, code):
    """Does the text name a line that may be the cause? A line marked `# here` if the program marks any, else a line of the traced code."""
    file = re.escape(code.co_filename.rpartition("/")[2])
    lines = [int(line) for line in re.findall(rf"{file}:(\d+)", text)]
    inner = {line for nested in _nested(code) for _, _, line in nested.co_lines()}
    own = {line for _, _, line in code.co_lines()} - inner
    marked = {line for line in inner if linecache.getline(code.co_filename, line or 0).rstrip().endswith("# here")}
    if marked:
        return any(line in marked for line in lines)
    # Text that was executed, and the bodies that programs share, are traced code in other files.
    return any(line not in own for line in lines) or re.search(r"(<stale>|staleness_\w+\.py):\d+", text) is not None


def _nested(code):
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _nested(constant)


def first_difference(eager, found):
    for index, (expected, value) in enumerate(zip(eager, found)):
        if text := difference(expected, value):
            return f"step {index}: {text}"
    return None


def outcome_of(program, arguments):
    """(outcome, what there is to say about it)."""
    eager_run, eager, _ = played(program, False, arguments)
    try:
        run, found, refusal = played(program, True, arguments)
    except Exception as error:
        return "broken", f"{type(error).__name__}: {error}"
    if text := first_difference(eager, found) or first_difference(eager_run.states, run.states):
        return "silent", text
    if refusal is None:
        return ("silent", f"{len(found)} steps of {len(eager)}") if len(found) != len(eager) else ("state" if eager_run.changes_state else "guarded", "")
    if refusal.changed:
        return "dirty", f"{refusal.changed}, though the call was refused: {refusal}"
    if refusal.accepted_later:
        return "silent", f"the call after the refused one went through: {refusal}"
    return "refused" if names_a_line(str(refusal), program.__code__) else "vague", str(refusal)


def kind(acceptable):
    """`@kind` or `@kind(GUARDED)`: the program as a test, which passes if its outcome is acceptable."""
    if callable(acceptable):
        return kind(ANY)(acceptable)

    def decorate(program):
        names = list(inspect.signature(program).parameters)[1:]

        def test(request, **arguments):
            outcome, said = outcome_of(program, arguments)
            request.node.user_properties.append(("staleness", outcome))
            if outcome not in acceptable:
                pytest.fail(f"{outcome}, expected {' or '.join(acceptable)}: {said}", pytrace=False)

        test.__name__, test.__doc__, test.__module__ = program.__name__, program.__doc__, program.__module__
        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ["request", *names]]
        test.__signature__ = inspect.Signature(parameters)
        return test

    return decorate
