"""OpenBLAS takes kernels with the processor's vector instructions, even where it is older than the processor."""

import os
import pathlib
import subprocess
import sys

import pytest

REPORT = """
import ctypes, os
import backplane as bp
a = bp.asarray([[2.0, 1.0], [1.0, 3.0]], dtype=bp.float64)
assert bp.max(bp.abs(bp.linalg.inv(a) @ a - bp.eye(2, dtype=bp.float64))).item() < 1e-14
files = {line.split()[-1] for line in open("/proc/self/maps") if "openblas" in line}
library = ctypes.CDLL(next(file for file in files if "site-packages" not in file))
library.openblas_get_corename.restype = library.openblas_get_config.restype = ctypes.c_char_p
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
print(library.openblas_get_corename().decode(), b"DYNAMIC_ARCH" in library.openblas_get_config(), getenv(b"OPENBLAS_CORETYPE"), sep=",")
"""
CPUINFO = pathlib.Path("/proc/cpuinfo")
FLAGS = set(CPUINFO.read_text().split()) if CPUINFO.exists() else set()

pytestmark = pytest.mark.skipif("avx2" not in FLAGS, reason="the processor has no AVX2 (or is not an x86-64)")


def taken(**environment):
    kept = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    run = subprocess.run([sys.executable, "-c", REPORT], env=kept | environment, capture_output=True, text=True, check=True)
    name, chooses, left = run.stdout.strip().split(",")
    if chooses != "True":
        pytest.skip("this OpenBLAS was built for one processor")
    return name, left


def test_kernels_use_the_processor_s_vectors():
    name, left = taken()
    assert name.lower() not in ("prescott", "generic", "core2", "nehalem", "sandybridge")
    assert left == "None"  # no child of this process inherits the choice


def test_what_the_user_has_chosen_stays():
    assert taken(OPENBLAS_CORETYPE="Haswell") == ("Haswell", "b'Haswell'")
