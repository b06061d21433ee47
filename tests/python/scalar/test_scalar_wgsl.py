"""The scalar functions of the registry in WGSL, compiled by wgpu-native and run by the first device that it finds."""

import re
import subprocess

import numpy as np
import pytest
import scalar_law
from sanitized import SANITIZED
from words import by_op, from_words, to_words

pytestmark = pytest.mark.skipif(SANITIZED, reason="a driver compiles and runs these: nothing of them is sanitized")

TYPES = {"bool": "bool", "float32": "f32", "complex64": "vec2<f32>", "int64": "vec2<u32>", "uint64": "vec2<u32>"}
TYPES |= {name: name[0] + "32" for name in scalar_law.DTYPES if "int" in name and "64" not in name}
READ = {"bool": "{0}.x != 0u", "float32": "bitcast<f32>({0}.x)", "complex64": "bitcast<vec2<f32>>({0}.xy)"}
READ |= {name: "{0}.xy" if "64" in name else f"{TYPES[name]}({{0}}.x)" for name in TYPES if "int" in name}
WRITE = {"bool": "select(0u, 1u, {0}), 0u", "float32": "bitcast<u32>({0}), 0u", "complex64": "bitcast<vec2<u32>>({0})"}
WRITE |= {name: "{0}" if "64" in name else "u32({0}), 0u" for name in TYPES if "int" in name}
SHADER = """
struct Call { which: u32, count: u32 }
@group(0) @binding(0) var<storage, read> p0: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> p1: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> p2: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> result: array<vec4<u32>>;
@group(0) @binding(4) var<uniform> call: Call;
@compute @workgroup_size(64) fn run(@builtin(global_invocation_id) id: vec3<u32>) {
  let n = id.x;
  if (n >= call.count) { return; }
  var out = p0[n] | p1[n] | p2[n];
  switch (call.which) {
%s    default: {}
  }
  result[n] = out;
}
"""
# Three operands at most: an op with more numbers than that is compiled, and asked in the other dialects.
FUNCTIONS = [f for f in scalar_law.functions() if len(f.params) <= 3 and {f.dtype, *f.params, f.result} <= TYPES.keys()]
GROUPS = by_op(FUNCTIONS)


def _shader(functions):
    cases = ""
    for which, function in enumerate(functions):
        args = ", ".join(READ[dtype].format(f"p{i}[n]") for i, dtype in enumerate(function.params))
        value = f"let value: {TYPES[function.result]} = {function.name}({args});"
        cases += f"    case {which}u: {{ {value} out = vec4<u32>({WRITE[function.result].format('value')}, 0u, 0u); }}\n"
    return SHADER % cases


class Device:
    """A WebGPU device through the Python package wgpu, which brings wgpu-native."""

    def __init__(self, wgpu):
        adapters = wgpu.gpu.enumerate_adapters_sync()
        if not adapters:
            pytest.skip("WebGPU: no adapter (Debian: mesa-vulkan-drivers)")
        self.usage, self.device = wgpu.BufferUsage, adapters[0].request_device_sync()

    def pipeline(self, source):
        module = self.device.create_shader_module(code=source)
        return self.device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "run"})

    def run(self, pipeline, which, arrays, result):
        count = len(arrays[0])
        words = [to_words(array) for array in arrays] + [np.zeros((count, 4), np.uint32)] * (3 - len(arrays))
        buffers = [self.device.create_buffer_with_data(data=array, usage=self.usage.STORAGE) for array in words]
        buffers.append(self.device.create_buffer(size=16 * count, usage=self.usage.STORAGE | self.usage.COPY_SRC))
        buffers.append(self.device.create_buffer_with_data(data=np.array([which, count], np.uint32), usage=self.usage.UNIFORM))
        group = self.device.create_bind_group(
            layout=pipeline.get_bind_group_layout(0), entries=[{"binding": i, "resource": {"buffer": buffer}} for i, buffer in enumerate(buffers)]
        )
        encoder = self.device.create_command_encoder()
        work = encoder.begin_compute_pass()
        work.set_pipeline(pipeline)
        work.set_bind_group(0, group)
        work.dispatch_workgroups((count + 63) // 64)
        work.end()
        self.device.queue.submit([encoder.finish()])
        found = np.frombuffer(self.device.queue.read_buffer(buffers[3]), np.uint32).reshape(count, 4)
        return from_words(found, result)


def _needed(declarations, text):
    """What of the header `text` calls: a fraction, which compiles in a fraction of the time."""
    needed, names = {}, re.findall(r"\bbp_\w+", text)
    while names:
        name = names.pop()
        if name in declarations and name not in needed:
            needed[name] = declarations[name]
            names += re.findall(r"\b(?:bp_|Bp)\w+", declarations[name])
    return "".join(needed.values())


@pytest.fixture(scope="module")
def device():
    return Device(pytest.importorskip("wgpu", reason="no Python package wgpu"))


@pytest.fixture(scope="module")
def header(tmp_path_factory):
    return (scalar_law.write_headers(tmp_path_factory.mktemp("scalar"), "wgsl") / "backplane/scalar.wgsl").read_text()


@pytest.fixture(scope="module")
def declarations(header):
    texts = re.split(r"^(?=(?:fn|const|struct) )", header, flags=re.MULTILINE)[1:]
    return {re.match(r"\w+ (\w+)", text)[1]: text for text in texts}


def test_the_whole_header_is_one_module(device, header):
    device.pipeline(header + _shader(GROUPS["add"]))


@pytest.mark.parametrize("op", GROUPS)
def test_scalar_function_is_the_cpu_backends(device, declarations, op):
    shader = _shader(GROUPS[op])
    pipeline = device.pipeline(_needed(declarations, shader) + shader)
    wrong = []
    for which, function in enumerate(GROUPS[op]):
        arrays = scalar_law.arguments(function)
        found = device.run(pipeline, which, arrays, function.result)
        wrong += scalar_law.mistakes(function, arrays, found, units=16, flushes=True)
    assert not wrong, f"{len(wrong)}: {wrong[:12]}"


# What a compiler takes for something else if it may assume real numbers: formula, and its value.
FORMULAS = {
    "times_zero": ("x * 0.0", lambda x, y: x * np.float32(0)),
    "zero_times": ("0.0 * x", lambda x, y: np.float32(0) * x),
    "plus_zero": ("x + 0.0", lambda x, y: x + np.float32(0)),
    "zero_minus": ("0.0 - x", lambda x, y: np.float32(0) - x),
    "itself_less": ("x - x", lambda x, y: x - x),
    "by_itself": ("x / x", lambda x, y: x / x),
    "rounding": ("(x + y) - x", lambda x, y: (x + y) - x),
    "fused": ("x * y - x * y", lambda x, y: x * y - x * y),
    "scaled": ("(x * 1e30) * 1e-30", lambda x, y: (x * np.float32(1e30)) * np.float32(1e-30)),
    "not_less": ("where(not (x < y), 1.0, 0.0)", lambda x, y: ~(x < y)),
    "greater": ("where(x < y, y, x)", lambda x, y: np.where(x < y, y, x)),
    "is_nan": ("where(x != x, 1.0, 0.0)", lambda x, y: x != x),
}


def test_a_compiler_changes_no_formula(device, header, tmp_path):
    entry = "  - op: {}(Tensor x, Tensor y) -> Tensor\n    doc: F.\n    primitive: binary\n    dtypes: [float32]\n    shape: broadcast(x, y)\n    vjp: zero\n    jvp: zero\n    samples: [{{x: [2], y: [2]}}]\n    scalar: {}\n"
    (tmp_path / "own.yaml").write_text("namespace: own\nops:\n" + "".join(entry.format(name, formula) for name, (formula, _) in FORMULAS.items()))
    codegen = [scalar_law.BUILD / "bin/backplane-codegen", "--ops", tmp_path / "own.yaml", "--import", scalar_law.REGISTRY]
    subprocess.run([*codegen, "--out", tmp_path, "--emit", "scalar", "--dialect", "wgsl"], check=True, timeout=60)
    functions = [scalar_law.Function(name, "float32", ("float32", "float32"), "float32", f"own_{name}_float32") for name in FORMULAS]
    pipeline = device.pipeline(header + (tmp_path / "include/own/scalar.wgsl").read_text() + _shader(functions))
    values = scalar_law.values("float32")
    values = values[(values == 0) | (np.abs(values) >= np.finfo(np.float32).tiny) | np.isnan(values)]
    x, y = (part.ravel() for part in np.meshgrid(values, values))
    for which, (name, (_, value)) in enumerate(FORMULAS.items()):
        found = device.run(pipeline, which, [x, y], "float32")
        with np.errstate(all="ignore"):
            expected = value(x, y).astype(np.float32)
        ordinary = ~(np.abs(expected) < 4 * np.finfo(np.float32).tiny) | (expected == 0)
        same = (np.isnan(found) & np.isnan(expected)) | ((found == expected) & (np.signbit(found) == np.signbit(expected)))
        wrong = np.flatnonzero(~same & ordinary)
        assert not len(wrong), (name, [(x[i], y[i], found[i], expected[i]) for i in wrong[:5]])


def test_every_function_of_its_dtypes_is_in_the_header(header):
    lacking = [function.name for function in FUNCTIONS if f"fn {function.name}(" not in header]
    assert not lacking and len(FUNCTIONS) > 500
    assert "float64" not in header and "complex128" not in header
