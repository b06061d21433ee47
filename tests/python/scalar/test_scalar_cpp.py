"""The scalar functions of the registry, as C++ and as CUDA C++ compute them on the host."""

import ctypes
import os
import shutil
import subprocess

import numpy as np
import pytest
import scalar_law

C_TYPES = {
    **{name: name + "_t" for name in scalar_law.DTYPES if "int" in name},
    **{"bool": "bool", "float32": "float", "float64": "double"},
    **{"complex64": "bp_complex64", "complex128": "bp_complex128"},
}


def _loop(function):
    """A function of C that calls it on each element of arrays."""
    params = "".join(f", const {C_TYPES[dtype]}* p{i}" for i, dtype in enumerate(function.params))
    args = ", ".join(f"p{i}[n]" for i in range(len(function.params)))
    return (
        f'extern "C" void run_{function.name}(long count, {C_TYPES[function.result]}* out{params}) {{\n'
        f"  for (long n = 0; n < count; ++n) out[n] = {function.name}({args});\n}}\n"
    )


def _compiled(folder, dialect, compiler):
    include = scalar_law.write_headers(folder, dialect)
    header = "backplane/scalar." + ("hpp" if dialect == "c++" else "cuh")
    functions = list(scalar_law.functions())
    source = folder / ("loops.cpp" if dialect == "c++" else "loops.cu")
    source.write_text(f'#include "{header}"\n' + "".join(map(_loop, functions)))
    library = folder / "loops.so"
    # nvcc does not run under the address sanitizer.
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    subprocess.run([*compiler, "-I", include, "-o", library, source], check=True, timeout=600, env=environment)
    return ctypes.CDLL(str(library)), functions


def _run(library, function, arrays):
    out = np.empty(len(arrays[0]), function.result)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (out, *arrays)]
    getattr(library, "run_" + function.name)(ctypes.c_long(len(out)), *pointers)
    return out


@pytest.fixture(scope="module", params=["c++", "cuda"])
def library(request, tmp_path_factory):
    compiler = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    if request.param == "cuda":
        if not shutil.which("nvcc"):
            pytest.skip("no nvcc")
        compiler = ["nvcc", "-std=c++17", "-O1", "-shared", "-Xcompiler=-fPIC", "-arch=sm_75"]
    return _compiled(tmp_path_factory.mktemp("scalar"), request.param, compiler)


@pytest.mark.parametrize("op", [op for op, entry in scalar_law.ENTRIES.items() if entry["scalar"]["dtypes"]])
def test_scalar_function_is_the_cpu_backends(library, op):
    loaded, functions = library
    wrong = []
    for function in functions:
        if function.op == op:
            arrays = scalar_law.arguments(function)
            wrong += scalar_law.mistakes(function, arrays, _run(loaded, function, arrays), units=4)
    assert not wrong, f"{len(wrong)}: {wrong[:12]}"


def test_every_elementwise_primitive_has_a_scalar_function():
    lacking = [
        op
        for op, entry in scalar_law.ENTRIES.items()
        if entry["family"] in scalar_law.ELEMENTWISE_FAMILIES and not (entry["scalar"]["stated"] and entry["scalar"]["dtypes"])
    ]
    assert not lacking
