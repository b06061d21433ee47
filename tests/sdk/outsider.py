"""What somebody does who has an installed SDK and nothing of this tree: makes backends and ops, without a kernel and with one in each language, builds, lints and
tries them, trains the demo on the backend, unloads it.

    python tests/sdk/outsider.py --prefix PREFIX --folder FOLDER [--short]

FOLDER is emptied first. Prints each step with its seconds, how long each backend took from the command to a passing conformance run, how
long it all took and how many lines stand in each project. The exit status is 0 where every step passed. The backend over OpenCL is
made where there is a loader, the one over Vulkan where there are a loader, a driver and glslc, the one over WebGPU where there are a driver of Vulkan and Python's package wgpu, the one over CUDA where there is nvcc, with the machine's driver or the
one in --cuda-driver. --short makes the backend in C++ alone, takes one sample per op, and trains only where scikit-learn, which has the
demo's digits, is installed.
"""

import argparse
import ctypes.util
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import time

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples/digits.py"
NOT_SOURCE = {"build", "__pycache__"}

# In a process of its own: everything of the plugin is gone when the names are, and then the plugin may go.
UNLOAD = """
import sys
import backplane as bp
name, path = sys.argv[1:]
bp.load_plugin(path)
x = bp.arange(6.0, device=name).requires_grad_()
(x * x).sum().backward()
assert [float(g) for g in bp.to_numpy(x.grad)] == [0, 2, 4, 6, 8, 10]
del x
bp.unload_plugin(name)
assert name not in [info.name.split(":")[0] for info in bp.devices()], "the device is still there"
"""


class Run:
    """The steps so far; stops at the first that fails."""

    def __init__(self, prefix, folder):
        self.prefix, self.folder = prefix, folder
        self.environment = {}  # of every step
        self.command = prefix / "bin/backplane"
        self.begun = time.monotonic()

    def step(self, what, *command):
        begun = time.monotonic()
        words = [str(word) for word in command]
        done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **self.environment}, cwd=self.folder)
        print(f"{time.monotonic() - begun:7.1f} s  {what}", flush=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)}\nexited with {done.returncode}:\n{(done.stdout + done.stderr)[-6000:]}")
        return done.stdout

    def project(self, kind, name, language, *options):
        """Makes, builds and tests a project. Gives the built plugin."""
        folder = self.folder / f"{name.split('::')[-1]}"
        what = f"{kind} {name} ({language or 'no kernel'})"
        begun = time.monotonic()
        words = (["--language", language] if language else []) + (["--kernel"] if kind == "op" and language else [])
        self.step(f"{what}: written", self.command, "new", kind, name, folder, *words)
        self.step(f"{what}: configured", "cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}", *options)
        self.step(f"{what}: built", "cmake", "--build", folder / "build", "--parallel", len(os.sched_getaffinity(0)))
        plugin = folder / f"build/lib/backplane/plugins/{folder.name}.so"
        if kind == "backend":
            self.step(f"{what}: conformance, a sample of each op", self.command, "conformance", "--device", name, "--plugin", plugin, "--short")
            print(f"{time.monotonic() - begun:7.1f} s  from `backplane new` to a passing conformance run", flush=True)
        self.step(f"{what}: linted", self.command, "lint", plugin)
        listed = self.step(f"{what}: conformance and the rest of its tests", "ctest", "--test-dir", folder / "build", "--output-on-failure", "--no-tests=error",
                           "--timeout", 3600)
        print("\n".join(f"{'':11}{line.strip()}" for line in listed.splitlines() if "Passed" in line), flush=True)
        return plugin


def left_out(language, missing, what="backend"):
    print(f"           the {what} over {language} is left out: no {missing}", flush=True)


def nvcc():
    return shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")


def vulkan_drivers():
    """The files that the loader uses to find drivers."""
    if named := os.environ.get("VK_DRIVER_FILES") or os.environ.get("VK_ICD_FILENAMES"):
        return named.split(":")
    return [path for folder in ("/usr/share", "/usr/local/share", "/etc") for path in pathlib.Path(folder, "vulkan/icd.d").glob("*.json")]


def backends(short, cuda_driver):
    """(name, language, environment) of each."""
    yield "acme", "c++", {}
    if short:
        print("           the backends in other languages are left out: ./dev test sdk", flush=True)
        return
    yield "acmec", "c", {}
    if ctypes.util.find_library("OpenCL"):
        yield "opencl", "opencl", {}
    else:
        left_out("OpenCL", "loader here (Debian: ocl-icd-opencl-dev, pocl-opencl-icd)")
    if not shutil.which("glslc") or not ctypes.util.find_library("vulkan"):
        left_out("Vulkan", "glslc or no loader here (Debian: glslc, libvulkan-dev)")
    elif not vulkan_drivers():
        left_out("Vulkan", "driver here (Debian: mesa-vulkan-drivers)")
    else:
        yield "acmevk", "vulkan", {}
    if not (wgpu := importlib.util.find_spec("wgpu")):
        left_out("WebGPU", "package wgpu in this Python (pip install wgpu)")
    elif not vulkan_drivers():
        left_out("WebGPU", "driver of Vulkan here (Debian: mesa-vulkan-drivers)")
    else:
        yield "acmegpu", "webgpu", {"WEBGPU_DIR": str(pathlib.Path(wgpu.origin).with_name("resources"))}
    if not nvcc():
        left_out("CUDA", "nvcc here (Debian: nvidia-cuda-toolkit)")
    elif ctypes.util.find_library("cuda"):
        yield "acmecu", "cuda", {}
    elif cuda_driver and (cuda_driver / "libcuda.so.1").exists():
        folders = filter(None, [str(cuda_driver), os.environ.get("LD_LIBRARY_PATH")])
        yield "acmecu", "cuda", {"LD_LIBRARY_PATH": ":".join(folders)}
    else:
        left_out("CUDA", "driver here, and none in --cuda-driver")


def ops(run):
    """(name, language of its kernel, environment) of each. The one over CUDA uses the SDK's emulated driver where there is no other."""
    yield "mine::wave", "", {}
    yield "mine_too::ripple", "c++", {}
    yield "acme_ops::swell", "c", {}
    if nvcc() and (ctypes.util.find_library("cuda") or any(run.prefix.glob("lib*/**/emulated_driver/libcuda.so.1"))):
        yield "mine_cuda::surge", "cuda", {}
    else:
        print("           the op over CUDA is left out: no nvcc, or no driver here", flush=True)
    if shutil.which("glslc") and ctypes.util.find_library("vulkan") and vulkan_drivers():
        yield "mine_vk::roller", "vulkan", {}
    else:
        left_out("Vulkan", "glslc, loader or driver here (Debian: glslc, libvulkan-dev, mesa-vulkan-drivers)", "op")
    if (run.folder / "opencl").exists():
        yield "mine_cl::tide", "opencl", {"BACKPLANE_PLUGIN_PATH": str(run.folder / "opencl/build/lib/backplane/plugins")}


def lines_of(project):
    """{file: lines} of what was written, with the folders in order."""
    files = (path for path in sorted(project.rglob("*")) if path.is_file() and not NOT_SOURCE & set(path.relative_to(project).parts))
    return {path.relative_to(project).as_posix(): len(path.read_text(encoding="utf-8").splitlines()) for path in files}


def print_lines(folder):
    for project in sorted(path for path in folder.iterdir() if path.is_dir()):
        lines = lines_of(project)
        code = sum(count for name, count in lines.items() if name.endswith((".c", ".h", ".cpp", ".hpp", ".cl", ".cu", ".cuh", ".comp", ".glsl", ".wgsl")))
        device = sum(count for name, count in lines.items() if name.startswith("device."))
        parts = f", device table {device}" if device else ""
        print(f"  {project.name}: {sum(lines.values())} lines in {len(lines)} files; code {code}{parts}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=pathlib.Path, required=True, help="where the SDK is installed")
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="is emptied")
    parser.add_argument("--cuda-driver", type=pathlib.Path, help="a folder with a libcuda.so.1, for machines without one")
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    run = Run(options.prefix.resolve(), options.folder.resolve())

    for name, language, environment in backends(options.short, options.cuda_driver and options.cuda_driver.resolve()):
        run.environment = environment
        whole = [] if options.short else [f"-D{name.upper()}_WHOLE=ON"]
        plugin = run.project("backend", name, language, *whole)
        if options.short and not importlib.util.find_spec("sklearn"):
            print("           the demo is left out: no scikit-learn here (./dev demo installs it)", flush=True)
        elif "LD_LIBRARY_PATH" in environment:
            print("           the demo is left out on this driver", flush=True)
        else:
            run.step(f"backend {name}: the demo trained for an epoch", sys.executable, DIGITS, "--device", name, "--plugin", plugin,
                     "--epochs", 1, "--out", run.folder / name / "build/demo")
        run.step(f"backend {name}: unloaded", sys.executable, "-c", UNLOAD, name, plugin)
    for name, language, environment in ops(run):
        run.environment = environment
        run.project("op", name, language)

    print(f"{time.monotonic() - run.begun:7.1f} s  in all\nlines written:")
    print_lines(run.folder)


if __name__ == "__main__":
    main()
