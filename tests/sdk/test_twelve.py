"""The twelve ops of tests/sdk/twelve as a project of the installed SDK: the kit, the calls from C++ and the laws in Python, on the CPU and on Vulkan.

Needs an installed SDK (BACKPLANE_PREFIX, set by ./dev), and runs in `./dev test sdk`; tests/python/twelve/test_twelve_ops.py is the short form.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from outsider import vulkan_drivers

HERE = pathlib.Path(__file__).resolve().parent
LAWS = HERE.parent / "python/laws"
PREFIX = os.environ.get("BACKPLANE_PREFIX", "")
DEVICES = ["cpu", "vulkan"] if vulkan_drivers() else ["cpu"]

pytestmark = pytest.mark.skipif(not PREFIX or not os.environ.get("BACKPLANE_SDK_WHOLE"), reason="./dev test sdk runs it")


def run(*command, **environment):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=os.environ | environment)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    source = tmp_path_factory.mktemp("twelve") / "twelve"
    shutil.copytree(HERE / "twelve", source)
    run("cmake", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={PREFIX}", f"-DMORE_DEVICES={';'.join(DEVICES[1:])}")
    run("cmake", "--build", source / "build", "--parallel", len(os.sched_getaffinity(0)))
    return source / "build"


def test_the_kit_lint_and_calls_from_cpp_pass(build):
    run("ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error", "--timeout", 1800)


@pytest.mark.parametrize("device", DEVICES)
def test_the_laws_hold(build, device):
    environment = {"BACKPLANE_SAMPLES": build / "twelve_ops/samples.json", "BACKPLANE_LAW_PLUGIN": build / "lib/backplane/plugins/twelve.so"}
    environment = {name: str(path) for name, path in environment.items()} | {"BACKPLANE_LAW_DEVICE": device}
    printed = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", LAWS, **environment)
    assert "laws over 14 entries" in printed
