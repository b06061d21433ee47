"""Builds the native part of the bridge, the device and the kernels of operators, for the installed PyTorch, once, and loads it.

The shared object lies in a cache, under a key of PyTorch's version, Python's, and the sources. `backplane-torch build` builds it
ahead of its first use.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import time

import torch

import backplane as bp

__all__ = ["build_native", "load_cached", "load_native"]

_SOURCES = pathlib.Path(__file__).parent / "native"


def _sdk():
    """(the folders of Backplane's headers, the folder of libbackplane)."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        loaded = next((line.split()[-1] for line in maps if "/libbackplane.so" in line), None)
    if loaded is None:
        raise bp.InternalError("backplane.torch: libbackplane is not loaded")
    library = pathlib.Path(loaded).parent
    listed = _SOURCES / "include_folders.txt"
    if listed.exists():  # a build tree
        return [pathlib.Path(line) for line in listed.read_text(encoding="utf-8").split("\n") if line], pathlib.Path(loaded)
    for folder in (library.parent / "include", library.parent.parent / "include", library.parent / "prefix/include"):
        if (folder / "backplane/storage_view.hpp").exists():
            return [folder], pathlib.Path(loaded)
    raise bp.BackplaneError("backplane.torch: Backplane's headers were not found. Fix: install the SDK beside the library")


def _compiler():
    found = os.environ.get("CXX") or next((name for name in ("g++", "c++", "clang++") if shutil.which(name)), None)
    if found is None:
        raise bp.BackplaneError("backplane.torch: the device needs a C++ compiler once, and none was found. Fix: apt-get install g++, or set CXX")
    return found.split()


def _command(output):
    from torch.utils.cpp_extension import include_paths, library_paths

    headers, library = _sdk()
    flags = ["-O2", "-std=c++20", "-fPIC", "-shared", "-fvisibility=hidden", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"]
    flags += [f"-I{folder}" for folder in headers]
    for folder in (*include_paths(), sysconfig.get_path("include")):
        flags += ["-isystem", str(folder)]
    links = [str(library), f"-Wl,-rpath,{library.parent}"]
    for folder in library_paths():
        links += [f"-L{folder}", f"-Wl,-rpath,{folder}"]
    links += ["-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python"]
    return [*_compiler(), *flags, str(output.with_suffix(".cpp")), "-o", str(output), *links]


def _sources():
    return sorted(_SOURCES.glob("*.cpp"))


def _output():
    """The path of the shared object: its folder is the key of all that it is made of."""
    key = hashlib.sha256()
    headers, library = _sdk()
    for part in (torch.__version__, sys.version, str(library), bp.__version__):
        key.update(part.encode())
    for path in sorted(_SOURCES.iterdir()):
        key.update(path.read_bytes() if path.is_file() else b"")
    for folder in headers:
        for path in sorted(folder.rglob("*.h*")):
            key.update(path.read_bytes())
    cache = os.environ.get("BACKPLANE_CACHE_DIR") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "backplane")
    return pathlib.Path(cache) / "torch" / key.hexdigest()[:24] / f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"


def build_native(verbose: bool = True) -> pathlib.Path:
    """Compiles the native part where the cache does not have it. Returns the path of the shared object.

    Errors: BackplaneError without a C++ compiler, or with the compiler's message where it fails.
    """
    output = _output()
    if output.exists():
        return output
    output.parent.mkdir(parents=True, exist_ok=True)
    with open(output.with_name("lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process that builds the same is waited for; the lock ends with its process
        return output if output.exists() else _built(output, verbose)


def _built(output, verbose):
    made = output.with_name(f"{os.getpid()}-{output.name}")  # in containers that share the cache, locks may not be seen
    unit = made.with_suffix(".cpp")
    unit.write_text("".join(f'#include "{source}"\n' for source in _sources()), encoding="utf-8")
    started = time.monotonic()
    if verbose:
        print(f"backplane.torch: compiling the native part for PyTorch {torch.__version__} (once, about a minute)", file=sys.stderr, flush=True)
    try:
        done = subprocess.run(_command(made), capture_output=True, text=True)
        if done.returncode != 0:
            ended = f"ended by signal {-done.returncode}" if done.returncode < 0 else "failed"
            raise bp.BackplaneError(f"backplane.torch: the compiler {ended}:\n{done.stderr[-4000:]}")
        os.replace(made, output)
    finally:
        unit.unlink(missing_ok=True)
        made.unlink(missing_ok=True)
    if verbose:
        print(f"backplane.torch: compiled in {time.monotonic() - started:.0f} s: {output}", file=sys.stderr, flush=True)
    return output


@functools.cache
def load_native():
    """The native module, built if need be."""
    return _load(os.environ.get("BACKPLANE_TORCH_NATIVE") or str(build_native()))


def load_cached():
    """The native module if it has been built, else None."""
    built = os.environ.get("BACKPLANE_TORCH_NATIVE") or _has_output()
    return load_native() if built else None


@functools.cache
def _has_output():
    try:
        return _output().exists()
    except bp.BackplaneError:  # no headers to build it with
        return False


def _load(path):
    spec = importlib.util.spec_from_file_location("backplane.torch._native", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
