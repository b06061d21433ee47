"""A plugin is not unloaded while anything points into it: the error lists what lives, and without it the plugin goes.

Each case is a process of its own, so that nothing of other tests holds the plugin.
"""

import os
import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(os.environ.get("BACKPLANE_EXAMPLE_PLUGINS", "/nonexistent"))
pytestmark = pytest.mark.skipif(not (EXAMPLES / "axpby.so").exists(), reason="needs the example plugins (BACKPLANE_EXAMPLE_PLUGINS)")

PROGRAM = """
import gc, pathlib, sys
import backplane as bp

folder, plugin, expression, says = sys.argv[1:]
for name in ("simulator", "axpby"):
    bp.load_plugin(pathlib.Path(folder, name + ".so"))
x = bp.ones(100)
axpby = lambda a: bp.ops.example.axpby(a, a)

def called(f, x):
    f(x)
    return f

def recorded():
    y = bp.ones(100, device="sim")
    with bp.capture("sim") as recording:
        y + 1
    return recording

kept = eval(expression)
try:
    bp.unload_plugin(plugin)
    sys.exit("it was unloaded")
except bp.BusyError as error:
    assert f'plugin "{plugin}" is in use' in str(error) and says in str(error), error
del kept
gc.collect()
bp.synchronize("sim")
bp.unload_plugin(plugin)
assert {one.name: one.state for one in bp.plugins()}[plugin] in ("closed", "parked")
"""

LIVE = {
    "a tensor": ("simulator", "bp.ones(100, device='sim')", "tensor storages"),
    "a view": ("simulator", "bp.ones(100, device='sim')[1:]", "tensor storages"),
    "memory of a kind": ("simulator", "bp.empty_in('fast', (100,), device='sim')", "tensor storages"),
    "a capsule": ("simulator", "bp.ones(100, device='sim').__dlpack__()", "exported capsules"),
    "a stream": ("simulator", "bp.Stream('sim')", "streams, events and recordings"),
    "an event": ("simulator", "bp.Event().record(bp.Stream('sim'))", "streams, events and recordings"),
    "a recording": ("simulator", "recorded()", "streams, events and recordings"),
    "pinned memory": ("simulator", "bp.pin(bp.ones(3), 'sim')", "blocks of pinned memory"),
    "a compiled function on its device": ("simulator", "called(bp.compile(lambda a: bp.sin(a) + a), bp.ones(9, device='sim'))", "graphs and their compiled code"),
    "a node of the tape": ("axpby", "axpby(x.requires_grad_())", "autograd nodes"),
    "a graph": ("axpby", "bp.make_graph(axpby)(x)", "graphs and their compiled code"),
    "a compiled function": ("axpby", "called(bp.compile(axpby), x)", "graphs and their compiled code"),
    "a pullback": ("axpby", "bp.vjp(axpby, x)[1]", "autograd nodes"),
}  # fmt: skip


@pytest.mark.parametrize("what", LIVE)
def test_what_lives_keeps_a_plugin(what):
    done = subprocess.run([sys.executable, "-c", PROGRAM, EXAMPLES, *LIVE[what]], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


NAMES = """
import pathlib, sys
import backplane as bp

bp.load_plugin(pathlib.Path(sys.argv[1], "axpby.so"))
axpby = bp.ops.example.axpby
bp.unload_plugin("axpby")
try:
    axpby(bp.ones(3), bp.ones(3))
    sys.exit("it was called")
except bp.BackplaneError as error:
    assert str(error) == 'example::axpby: its plugin "axpby" was unloaded; load it again to use the op', error
bp.load_plugin(pathlib.Path(sys.argv[1], "axpby.so"))
assert axpby(bp.ones(3), bp.ones(3)).tolist() == [2.0, 2.0, 2.0]
"""


def test_the_name_of_an_op_holds_nothing_and_works_again():
    done = subprocess.run([sys.executable, "-c", NAMES, EXAMPLES], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
