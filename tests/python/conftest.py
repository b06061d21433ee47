"""What the tests of the Python package share: one seed, grad mode and default device as they were found, the simulated accelerator."""

import collections
import ctypes
import faulthandler
import functools
import os
import pathlib
import sys
import time

import backplane as bp
import numpy as np
import pytest
from sanitized import SANITIZED, WHOLE


@pytest.hookimpl(trylast=True)  # after pytest's own handler of crashes
def pytest_configure(config):
    config.addinivalue_line("markers", "alone: it measures its own process, and runs in one without workers")
    config.addinivalue_line("markers", "one_in(n): the short form runs every nth of its cases, ./dev test whole all of them")
    if hasattr(config, "workerinput") and "BACKPLANE_CRASH_REPORTS" in os.environ:
        _report_crashes(pathlib.Path(os.environ["BACKPLANE_CRASH_REPORTS"]))


def _report_crashes(folder):
    """The fault that ends a worker goes to files crash-*; count_results.py shows their beginning. A worker's output is lost."""
    report = str(folder / f"crash-{os.getpid()}")
    faulthandler.enable(open(report, "w"))
    if set_path := getattr(ctypes.CDLL(None), "__sanitizer_set_report_path", None):
        set_path(report.encode())


_stale_kinds = collections.Counter()  # outcome of the catalogue of staleness -> kinds


def pytest_runtest_logreport(report):
    """Here rather than beside the catalogue, since a conftest below is unknown to the process that hands out the tests."""
    if report.when == "call":
        _stale_kinds.update(value for name, value in report.user_properties if name == "staleness")


def pytest_terminal_summary(terminalreporter):
    if _stale_kinds:
        terminalreporter.section(f"staleness: {_stale_kinds.total()} kinds")
        shown = dict.fromkeys(("guarded", "state", "refused", "silent"), 0) | _stale_kinds
        terminalreporter.write_line("  ".join(f"{count} {outcome}" for outcome, count in shown.items()))


def pytest_collection_modifyitems(config, items):
    """What the short form leaves out is counted as deselected."""
    if WHOLE:
        return
    numbers, left = collections.Counter(), []
    for item in items:
        marker = item.get_closest_marker("one_in")
        step = marker.args[0] if marker else 4 if SANITIZED and "laws" in item.path.parts else 1
        test = (item.path, item.cls, getattr(item, "originalname", item.name))
        if numbers[test] % step:
            left.append(item)
        numbers[test] += 1
    if left:
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [item for item in items if item not in gone]


@functools.cache
def _generators_of(name):
    return [value for value in vars(sys.modules[name]).values() if isinstance(value, np.random.Generator)]


def pytest_runtest_setup(item):
    """.ci/run has a limit of time, and names the moment from which nothing more may begin."""
    if time.time() > float(os.environ.get("BACKPLANE_TESTS_UNTIL") or "inf"):
        pytest.skip("the time of this run is over")


@pytest.fixture(autouse=True)
def _same_start(request):
    """A test draws the same numbers alone and after others, from generators of its module and of helpers that it shares too."""
    bp.manual_seed(0)
    for name in (request.module.__name__, "device_calls", "device_regions"):
        for generator in _generators_of(name) if name in sys.modules else ():
            generator.bit_generator.state = np.random.default_rng(0).bit_generator.state
    device = bp.default_device()
    yield
    bp.set_grad_enabled(True)
    bp.set_default_device(device)


@pytest.fixture(scope="module")
def simulator():
    """The plugin's path; it is loaded."""
    path = pathlib.Path(os.environ.get("BACKPLANE_EXAMPLE_PLUGINS", "/nonexistent")) / "simulator.so"
    if not path.exists():
        pytest.skip("device 'sim': BACKPLANE_EXAMPLE_PLUGINS names no folder with simulator.so")
    if not any(plugin.name == "simulator" and plugin.state == "loaded" for plugin in bp.plugins()):
        bp.load_plugin(path)
    return path


def _device_or_skip(name):
    try:
        return bp.device(name)
    except (ValueError, bp.DeviceError) as error:
        pytest.skip(f"device '{name}': {error}")


@pytest.fixture(scope="session")
def vulkan():
    return _device_or_skip("vulkan")


@pytest.fixture(scope="session")
def cuda():
    """`./dev test cuda` has an emulated one."""
    return _device_or_skip("cuda")


@pytest.fixture(autouse=True)
def _has_device(request):
    """Skips a case whose parameter `device` is "cuda" or "vulkan" where there is none."""
    device = request.node.callspec.params.get("device") if getattr(request.node, "callspec", None) else None
    if device in ("cuda", "vulkan"):
        request.getfixturevalue(device)
