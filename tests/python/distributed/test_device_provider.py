"""Collectives between CUDA devices: the provider over NCCL, on the emulated driver and a stand-in for the library."""

import os
import pathlib
import subprocess
import sys

import device_program
import pytest

import backplane as bp

HERE = pathlib.Path(__file__).parent
BUILD = pathlib.Path(os.environ.get("BACKPLANE_BUILD", ""))
LIBRARIES = [BUILD / "emulated_driver" / "libcuda.so.1", BUILD / "emulated_libraries" / "libnccl.so.2"]


def has_provider():
    plugin = next(p for p in bp.plugins() if p.name == "backplane_collectives")
    return (pathlib.Path(plugin.path).parents[1] / "collectives" / "nccl.so").exists() and all(library.exists() for library in LIBRARIES)


emulated = pytest.mark.skipif(not has_provider() or "san.so" in os.environ.get("LD_PRELOAD", ""), reason="the emulated driver is not built (no nvcc), or a sanitizer is loaded")


def run(*words, libraries=LIBRARIES):
    folders = ":".join([*(str(library.parent) for library in libraries), os.environ.get("LD_LIBRARY_PATH", "")]).rstrip(":")
    env = {**os.environ, "LD_LIBRARY_PATH": folders, "BACKPLANE_CUDA_EXACT_MEMORY": "1"}
    done = subprocess.run([sys.executable, *map(str, words)], env=env, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


@emulated
def test_ranks_on_devices():
    code, output = run(HERE / "device_program.py")
    assert code == 0 and output.count(" passed") == len(device_program.CHECKS), output[-4000:]


@emulated
def test_says_what_is_missing():
    code, output = run("-c", "import backplane as bp; bp.distributed.init(devices='nccl')", libraries=LIBRARIES[:1])
    assert code != 0 and "init: argument devices: NCCL: libnccl.so.2" in output and "nvidia-nccl-cu13" in output, output


def test_refuses_another_shared_object():
    plugin = next(p for p in bp.plugins() if p.name == "backplane_collectives")
    with pytest.raises(bp.ArgumentValueError, match="exports no bp_collective_device_provider_query"):
        bp.distributed.run_threads(1, bp.distributed.rank, devices=plugin.path)
