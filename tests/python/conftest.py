"""What the tests of the Python package share: one seed, and grad mode and default device as they were found."""

import backplane as bp
import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "alone: it measures its own process, and runs in one without workers")


@pytest.fixture(autouse=True)
def _same_start():
    bp.manual_seed(0)
    device = bp.default_device()
    yield
    bp.set_grad_enabled(True)
    bp.set_default_device(device)
