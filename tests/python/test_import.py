"""Importing is cheap: the modules that it loads, and the plugins that it does not open."""

import importlib.util
import json
import pathlib
import struct
import subprocess
import sys

import pytest

PROBE = """
import sys
before = set(sys.modules)
import backplane
after = set(sys.modules)
import json
mapped = open('/proc/self/maps').read() if sys.platform == 'linux' else ''
print(json.dumps({
    'modules': sorted(after - before),
    'plugins': [p.state for p in backplane.plugins()],
    'openblas': 'openblas' in mapped,
}))
"""


def after_import():
    return json.loads(subprocess.run([sys.executable, "-c", PROBE], check=True, capture_output=True, text=True).stdout)


def test_imports_nothing_slow():
    slow = {"numpy", "inspect", "typing", "dataclasses", "logging", "re", "string", "enum", "ast", "asyncio", "torch"}
    slow |= {"collections", "functools", "importlib", "threading"}
    later = {"backplane." + name for name in ("_api._lower_median", "_calls._other_forms", "data", "distributions", "fft", "linalg", "nn", "onnx", "optim", "types", "_files._checkpoints", "_files._safetensors")}
    assert (slow | later).isdisjoint(after_import()["modules"])


@pytest.mark.parametrize(
    "use",
    ["bp.linalg.norm(x)", "bp.fft.fft(x)", "bp.tensordot(x, x, axes=1)", "bp.types.TensorSpec", "bp.max(x, dim=0).values", "bp.full((2,), x[0])",
     "bp.median(x, dim=0).indices", "x.max(dim=0)", "bp.topk(x, 1)", "bp.einsum('i,i', x, x)"],
)  # fmt: skip
def test_what_is_imported_at_first_use_is_there(use):
    """In a process of its own, where nothing else has imported it."""
    subprocess.run([sys.executable, "-c", f"import backplane as bp\nx = bp.ones(3)\n{use}"], check=True)


def test_star_import_takes_what_is_imported_later():
    program = "from backplane import *\nlinalg.norm, fft.fft, tensordot.__module__, add, Tensor, float32"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_compiles_nothing():
    """Each module has bytecode that the interpreter takes for it: of the source's time and size."""
    import backplane as bp

    for path in pathlib.Path(bp.__file__).parent.glob("**/*.py"):
        header = pathlib.Path(importlib.util.cache_from_source(path)).read_bytes()[:16]
        assert header[:4] == importlib.util.MAGIC_NUMBER, path
        assert struct.unpack("<III", header[4:]) == (0, int(path.stat().st_mtime), path.stat().st_size), path


def test_opens_no_plugin():
    seen = after_import()
    assert set(seen["plugins"]) <= {"found", "refused"}
    assert not seen["openblas"]


def test_every_name_of_the_package_resolves():
    import backplane as bp

    assert all(getattr(bp, name) is not None or name == "newaxis" for name in dir(bp))
    assert {"add", "asarray", "float32", "Tensor", "no_grad"} <= set(dir(bp))


def test_star_import_hides_no_private_name():
    names = {}
    exec("from backplane import *", names)
    assert not any(name.startswith("_") for name in names if name != "__builtins__")


def test_a_subinterpreter_gets_an_import_error():
    """It had waited for ever; the library's tensors and ops are the process's, so one interpreter has them."""
    pytest.importorskip("_xxsubinterpreters", reason="this Python names the module otherwise")
    program = """
import _xxsubinterpreters as interpreters
def run():
    try:
        interpreters.run_string(interpreters.create(), "import backplane")
    except interpreters.RunFailedError as error:
        print(error)
run()
import backplane
run()
print(backplane.ones(2).tolist())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 3, done
    assert all("ImportError" in line and "main interpreter" in line for line in lines[:2])
    assert lines[2] == "[1.0, 1.0]"


def test_modules_are_found_by_a_function_whose_globals_have_no_builtins():
    """The first call of each form imports its modules, from any caller."""
    program = """if True:
        import types, backplane as bp
        def call():
            return bp.sum(x, dim=0).tolist(), repr(bp.sum), bp.grad(f)(1.0).item(), bp.compile(f)(x).tolist()
        names = {"bp": bp, "x": bp.ones((2, 2)), "repr": repr, "f": lambda x: x * 2}
        print(types.FunctionType(call.__code__, names)())
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.startswith("([2.0, 2.0], "), done.stderr
