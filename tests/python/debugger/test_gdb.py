"""The printers of debugger/gdb_printers.py, in gdb, at a stop of a program that has one variable of each type."""

import os
import pathlib
import shutil
import subprocess

import pytest
from sanitized import SANITIZED

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("BACKPLANE_BUILD", ""))
EXPECTED = {
    "row": "tensor(float32[1, 3], device 0:0, elements [1.5, 2.0, -3.0])",
    "wide": "tensor(bfloat16[1, 3], device 0:0, strides [3, 1])",
    "tensor": "Tensor(float32[1, 3], device 0:0, elements [1.5, 2.0, -3.0])",
    "empty": "Tensor(empty)",
    "number": "Dim(7)",
    "expression": "Dim(expression 4)",
    "entry": 'OpEntry("bp::add", 2 arguments, 1 results, 0 rows, fast path kLikeOperands)',
}


def test_printers_show_what_a_variable_holds(tmp_path):
    if SANITIZED:
        pytest.skip("gdb and the compiler would run with the sanitizer that is loaded before the interpreter")
    gdb, compiler, library = shutil.which("gdb"), shutil.which("g++"), BUILD / "lib/libbackplane.so"
    if not gdb or not compiler or not library.exists():
        pytest.skip(f"gdb: {gdb}, g++: {compiler}, {library.name}: {library.exists()}; this needs all three")
    program, generated = tmp_path / "shown", BUILD / "dispatcher/generated"
    includes = [f"-I{folder}" for folder in (ROOT / "dispatcher", ROOT / "dispatcher/abi", ROOT / "dispatcher/include", generated, generated / "include")]
    sanitizers = ["-fsanitize=address,undefined"] if BUILD.name == "asan" else ["-fsanitize=thread"] if BUILD.name == "tsan" else []
    source = pathlib.Path(__file__).with_name("shown.cpp")
    subprocess.run([compiler, "-std=c++20", "-g", "-O0", *sanitizers, *includes, source, "-o", program,
                    f"-L{library.parent}", "-lbackplane", f"-Wl,-rpath,{library.parent}"], check=True)  # fmt: skip
    steps = ["set auto-load off", f"source {ROOT / 'debugger/gdb_printers.py'}", "run", *(f"print {name}" for name in EXPECTED)]
    command = [gdb, "-q", "-batch", "-nx", *(word for step in steps for word in ("-ex", step)), program]
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    output = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment).stdout
    if "ptrace" in output and "not permitted" in output:
        pytest.skip("gdb may not trace a process here")
    shown = [line.partition(" = ")[2] for line in output.splitlines() if line.startswith("$")]
    assert dict(zip(EXPECTED, shown)) == EXPECTED, output
