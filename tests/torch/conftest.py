"""The bridge to PyTorch runs in .venv-torch. BACKPLANE_TORCH_WHOLE: everything; else the short form."""

import os
import subprocess
import sys
import warnings

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: ./dev test torch")
warnings.filterwarnings("ignore", category=FutureWarning)

WHOLE = bool(os.environ.get("BACKPLANE_TORCH_WHOLE"))


if WHOLE:  # before anything imports the bridge: it takes native kernels where they have been built
    subprocess.run([sys.executable, "-m", "backplane.torch", "build"], check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)
    torch._dynamo.reset()


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("whole") and not WHOLE:
            item.add_marker(pytest.mark.skip(reason="the short form: BACKPLANE_TORCH_WHOLE is not set"))


def pytest_configure(config):
    config.addinivalue_line("markers", "whole: runs in ./dev test torch alone")
