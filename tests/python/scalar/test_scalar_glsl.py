"""The scalar functions of the registry in GLSL, compiled by glslc and run by the first Vulkan device."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import scalar_law
from sanitized import SANITIZED
from words import by_op, from_words, to_words

pytestmark = pytest.mark.skipif(SANITIZED, reason="a driver compiles and runs these: nothing of them is sanitized")

TYPES = {"float32": "float", "float64": "double", "complex64": "vec2", "complex128": "dvec2", "bool": "bool", "int32": "int", "uint32": "uint"}
TYPES |= {name: name + "_t" for name in scalar_law.DTYPES if "int" in name and "32" not in name}
READ = {
    **{"bool": "{0}.x != 0u", "float32": "uintBitsToFloat({0}.x)", "float64": "packDouble2x32({0}.xy)"},
    **{"complex64": "uintBitsToFloat({0}.xy)", "complex128": "dvec2(packDouble2x32({0}.xy), packDouble2x32({0}.zw))"},
    **{"int64": "packInt2x32(ivec2({0}.xy))", "uint64": "packUint2x32({0}.xy)"},
    **{name: f"{TYPES[name]}(int({{0}}.x))" for name in ("int8", "int16", "int32")},
    **{name: f"{TYPES[name]}({{0}}.x)" for name in ("uint8", "uint16", "uint32")},
}
WRITE = {
    **{"bool": "uvec4({0} ? 1u : 0u, 0u, 0u, 0u)", "float32": "uvec4(floatBitsToUint({0}), 0u, 0u, 0u)"},
    **{"float64": "uvec4(unpackDouble2x32({0}), 0u, 0u)", "complex64": "uvec4(floatBitsToUint({0}), 0u, 0u)"},
    **{"complex128": "uvec4(unpackDouble2x32({0}.x), unpackDouble2x32({0}.y))"},
    **{"int64": "uvec4(uvec2(unpackInt2x32({0})), 0u, 0u)", "uint64": "uvec4(unpackUint2x32({0}), 0u, 0u)"},
    **{name: "uvec4(uint(int({0})), 0u, 0u, 0u)" for name in ("int8", "int16", "int32")},
    **{name: "uvec4(uint({0}), 0u, 0u, 0u)" for name in ("uint8", "uint16", "uint32")},
}
SHADER = """#version 450
#extension GL_GOOGLE_include_directive : require
#include "backplane/scalar.glsl"
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { uvec4 p0[]; };
layout(std430, binding = 1) readonly buffer Y { uvec4 p1[]; };
layout(std430, binding = 2) readonly buffer Z { uvec4 p2[]; };
layout(std430, binding = 3) writeonly buffer R { uvec4 result[]; };
layout(push_constant) uniform Push { uint which; uint count; };
void main() {
  uint n = gl_GlobalInvocationID.x;
  if (n >= count) return;
  switch (which) {
%s  }
}
"""
# Three operands at most: an op with more numbers than that is compiled, and asked in the other dialects.
GROUPS = by_op(function for function in scalar_law.functions() if len(function.params) <= 3)


def _shader(functions):
    cases = ""
    for which, function in enumerate(functions):
        args = ", ".join(READ[dtype].format(f"p{i}[n]") for i, dtype in enumerate(function.params))
        value = f"{TYPES[function.result]} value = {function.name}({args})"
        cases += f"    case {which}: {{ {value}; result[n] = {WRITE[function.result].format('value')}; break; }}\n"
    return SHADER % cases


@pytest.fixture(scope="module")
def include(tmp_path_factory):
    if not shutil.which("glslc"):
        pytest.skip("no glslc (Debian: glslc)")
    return scalar_law.write_headers(tmp_path_factory.mktemp("scalar"), "glsl")


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    """A process that runs shaders; see vulkan_runner.cpp."""
    program = tmp_path_factory.mktemp("runner") / "vulkan_runner"
    source = Path(__file__).with_name("vulkan_runner.cpp")
    built = subprocess.run(["g++", "-std=c++20", "-O1", "-o", program, source, "-lvulkan"], capture_output=True, timeout=120, check=False)
    if built.returncode != 0:
        pytest.skip(f"no Vulkan headers and loader (Debian: libvulkan-dev): {built.stderr[:200]}")
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "LP_NUM_THREADS": "1"})
    yield process
    process.stdin.close()
    assert process.wait(60) in (0, 3)


def _run(runner, folder, shader, which, function, arrays):
    count = len(arrays[0])
    words = [to_words(array) for array in arrays] + [np.zeros((count, 4), np.uint32)] * (3 - len(arrays))
    (folder / "in").write_bytes(np.concatenate(words).tobytes())
    runner.stdin.write(f"{shader} {which} {folder / 'in'} {folder / 'out'} {count}\n")
    runner.stdin.flush()
    if runner.stdout.readline() != "done\n":
        if runner.wait(60) == 3:
            pytest.skip("no Vulkan device, or one without types of 8, 16 and 64 bits")
        raise AssertionError(f"the runner of shaders ended with status {runner.returncode}")
    return from_words(np.frombuffer((folder / "out").read_bytes(), np.uint32).reshape(count, 4), function.result)


@pytest.mark.one_in(3)  # the driver compiles a program for each
@pytest.mark.parametrize("op", GROUPS)
def test_scalar_function_is_the_cpu_backends(runner, include, op, tmp_path):
    source, shader = tmp_path / "op.comp", tmp_path / "op.spv"
    source.write_text(_shader(GROUPS[op]))
    subprocess.run(["glslc", "--target-env=vulkan1.2", "-O", "-I", include, "-o", shader, source], check=True, timeout=120)
    wrong = []
    for which, function in enumerate(GROUPS[op]):
        arrays = scalar_law.arguments(function)
        found = _run(runner, tmp_path, shader, which, function, arrays)
        wrong += scalar_law.mistakes(function, arrays, found, units=16, flushes=True)
    assert not wrong, f"{len(wrong)}: {wrong[:12]}"
