"""backplane-codegen --standalone: a header of scalar functions that needs nothing of the SDK."""

import math
import os
import pathlib
import shutil
import subprocess

import pytest

CODEGEN = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "")) / "bin/backplane-codegen"
ENTRY = pathlib.Path(__file__).resolve().parents[3] / "plugins/wave/ops.yaml"

pytestmark = pytest.mark.skipif(not CODEGEN.exists(), reason="needs backplane-codegen (BACKPLANE_BUILD)")


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def headers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("headers")
    run(CODEGEN, "--ops", ENTRY, "--out", folder, "--emit", "scalar", "--dialect", "c++,cuda,glsl,opencl", "--standalone")
    return folder / "include"


def test_they_hold_what_they_call_and_nothing_else(headers):
    for extension in ("hpp", "cuh", "glsl", "cl"):
        text = (headers / "sketch/scalar").with_suffix(f".{extension}").read_text(encoding="utf-8")
        assert "backplane/" not in text and "bp_sin_float32(" in text and "bp_cos_float32(" not in text
        assert len(text) < 40_000


@pytest.mark.skipif(not shutil.which("c++"), reason="needs a C++ compiler")
def test_cpp_compiles_it_alone_and_beside_another(headers, tmp_path):
    other = tmp_path / "other.yaml"
    other.write_text(ENTRY.read_text(encoding="utf-8").replace("sketch", "other").replace("wave", "ripple"), encoding="utf-8")
    run(CODEGEN, "--ops", other, "--out", tmp_path, "--emit", "scalar", "--dialect", "c++", "--standalone")
    program = '#include "sketch/scalar.hpp"\n#include "other/scalar.hpp"\n#include <cstdio>\n'
    program += 'int main() { std::printf("%.17g %.17g", sketch_wave_float64(0.5, 3.0), other_ripple_float64(0.5, 2.0)); }\n'
    (tmp_path / "program.cpp").write_text(program, encoding="utf-8")
    run("c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{headers}", f"-I{tmp_path}/include", tmp_path / "program.cpp", "-o", tmp_path / "program")
    assert [float(word) for word in run(tmp_path / "program").split()] == [math.sin(1.5), math.sin(1.0)]


@pytest.mark.skipif(not shutil.which("glslc"), reason="needs glslc")
def test_glslc_compiles_it_alone(headers, tmp_path):
    shader = "#version 450\n#extension GL_GOOGLE_include_directive : require\n#define BP_SCALAR_WITHOUT_FLOAT64\n" '#include "sketch/scalar.glsl"\n'
    shader += "layout(set = 0, binding = 0) buffer Numbers { float at[]; };\nvoid main() { at[0] = sketch_wave_float32(at[1], 2.0); }\n"
    (tmp_path / "a.comp").write_text(shader, encoding="utf-8")
    run("glslc", "--target-env=vulkan1.2", f"-I{headers}", tmp_path / "a.comp", "-o", tmp_path / "a.spv")


def test_wgsl_is_put_together_by_its_host(tmp_path):
    done = subprocess.run([CODEGEN, "--ops", ENTRY, "--out", tmp_path, "--emit", "scalar", "--standalone"], capture_output=True, text=True)
    assert done.returncode == 2 and "name some of them with --dialect" in done.stderr
