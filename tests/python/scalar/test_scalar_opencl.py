"""The scalar functions of the registry in OpenCL C, run by PoCL or whatever OpenCL device there is."""

import ctypes

import numpy as np
import pytest
import scalar_law
from sanitized import SANITIZED
from words import by_op, from_words, to_words

pytestmark = pytest.mark.skipif(SANITIZED, reason="a driver compiles and runs these: nothing of them is sanitized")

TYPES = {"float32": "float", "float64": "double", "complex64": "float2", "complex128": "double2", "bool": "bool"}
TYPES |= {name: ("u" if name[0] == "u" else "") + {"8": "char", "16": "short", "32": "int", "64": "long"}[name.lstrip("uint")] for name in scalar_law.DTYPES if "int" in name}
READ = {"bool": "{0}.x != 0", "float32": "as_float({0}.x)", "float64": "as_double({0}.xy)", "complex64": "as_float2({0}.xy)", "complex128": "as_double2({0})"}
READ |= {name: f"as_{TYPES[name]}({{0}}.xy)" if "64" in name else f"({TYPES[name]}){{0}}.x" for name in TYPES if "int" in name}
WRITE = {"bool": "(uint4)({0} ? 1u : 0u, 0u, 0u, 0u)", "float32": "(uint4)(as_uint({0}), 0u, 0u, 0u)", "complex64": "(uint4)(as_uint2({0}), 0u, 0u)", "complex128": "as_uint4({0})"}
WRITE |= {name: "(uint4)(as_uint2({0}), 0u, 0u)" if "64" in name else "(uint4)((uint){0}, 0u, 0u, 0u)" for name in TYPES if "int" in name or name == "float64"}


def _kernel(op, functions):
    """One kernel per op, which a number tells the dtype."""
    cases = ""
    for which, function in enumerate(functions):
        args = ", ".join(READ[dtype].format(f"p{i}[n]") for i, dtype in enumerate(function.params))
        value = f"{TYPES[function.result]} value = {function.name}({args})"
        cases += f"    case {which}: {{ {value}; out[n] = {WRITE[function.result].format('value')}; break; }}\n"
    params = "".join(f", global const uint4* p{i}" for i in range(6))
    return f"kernel void run_{op}(uint which, global uint4* out{params}) {{\n  size_t n = get_global_id(0);\n  switch (which) {{\n{cases}  }}\n}}\n"


class Device:
    """The first OpenCL device, through the C interface of its loader."""

    def __init__(self):
        try:
            self.cl = ctypes.CDLL("libOpenCL.so.1")
        except OSError as error:
            pytest.skip(f"OpenCL: {error}")
        for name in ("clCreateContext", "clCreateCommandQueue", "clCreateProgramWithSource", "clCreateKernel", "clCreateBuffer"):
            getattr(self.cl, name).restype = ctypes.c_void_p
        platform, device = ctypes.c_void_p(), ctypes.c_void_p()
        found = self.cl.clGetPlatformIDs(1, ctypes.byref(platform), None) == 0 and (
            self.cl.clGetDeviceIDs(platform, ctypes.c_uint64(0xFFFFFFFF), 1, ctypes.byref(device), None) == 0
        )
        if not found:
            pytest.skip("OpenCL: no platform with a device (Debian: pocl-opencl-icd)")
        self.device = device
        self.context = ctypes.c_void_p(self.cl.clCreateContext(None, 1, ctypes.byref(device), None, None, None))
        self.queue = ctypes.c_void_p(self.cl.clCreateCommandQueue(self.context, device, ctypes.c_uint64(0), None))

    def build(self, source, include):
        text = ctypes.c_char_p(source.encode())
        program = ctypes.c_void_p(self.cl.clCreateProgramWithSource(self.context, 1, ctypes.byref(text), None, None))
        status = self.cl.clBuildProgram(program, 1, ctypes.byref(self.device), f"-I {include} -cl-std=CL1.2".encode(), None, None)
        if status != 0:
            log = ctypes.create_string_buffer(20000)
            self.cl.clGetProgramBuildInfo(program, self.device, 0x1183, ctypes.c_size_t(len(log)), log, None)
            raise AssertionError(f"status {status}: {log.value.decode()}")
        return program

    def _buffer(self, words):
        # Read and write, a copy of the host's.
        return ctypes.c_void_p(self.cl.clCreateBuffer(self.context, ctypes.c_uint64(1 | 32), ctypes.c_size_t(words.nbytes), ctypes.c_void_p(words.ctypes.data), None))

    def run(self, program, op, which, arrays, result):
        out = np.zeros((len(arrays[0]), 4), np.uint32)
        words = [to_words(array) for array in arrays]
        buffers = [self._buffer(each) for each in (out, *words)]
        kernel = ctypes.c_void_p(self.cl.clCreateKernel(program, f"run_{op}".encode(), None))
        number = ctypes.c_uint(which)
        self.cl.clSetKernelArg(kernel, 0, ctypes.c_size_t(4), ctypes.byref(number))
        for i in range(7):
            buffer = buffers[min(i, len(buffers) - 1)]
            self.cl.clSetKernelArg(kernel, i + 1, ctypes.c_size_t(8), ctypes.byref(buffer))
        size = ctypes.c_size_t(len(out))
        assert self.cl.clEnqueueNDRangeKernel(self.queue, kernel, 1, None, ctypes.byref(size), None, 0, None, None) == 0
        read = self.cl.clEnqueueReadBuffer(self.queue, buffers[0], 1, ctypes.c_size_t(0), ctypes.c_size_t(out.nbytes), ctypes.c_void_p(out.ctypes.data), 0, None, None)
        assert read == 0
        for buffer in buffers:
            self.cl.clReleaseMemObject(buffer)
        self.cl.clReleaseKernel(kernel)
        return from_words(out, result)


@pytest.fixture(scope="module")
def device():
    return Device()


@pytest.fixture(scope="module")
def include(tmp_path_factory):
    return scalar_law.write_headers(tmp_path_factory.mktemp("scalar"), "opencl")


GROUPS = by_op(scalar_law.functions())


@pytest.mark.one_in(3)  # the driver compiles a program for each
@pytest.mark.parametrize("op", GROUPS)
def test_scalar_function_is_the_cpu_backends(device, include, op):
    program = device.build('#include "backplane/scalar.cl"\n' + _kernel(op, GROUPS[op]), include)
    wrong = []
    for which, function in enumerate(GROUPS[op]):
        arrays = scalar_law.arguments(function)
        found = device.run(program, op, which, arrays, function.result)
        wrong += scalar_law.mistakes(function, arrays, found, units=16)
    assert not wrong, f"{len(wrong)}: {wrong[:12]}"
