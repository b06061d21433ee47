"""Loads what the laws run on, and hands every law's outcome to the table that ends the run.

The laws run on the CPU. BACKPLANE_LAW_DEVICE names another device, BACKPLANE_LAW_PLUGIN the plugins to load first, and
BACKPLANE_LAW_LACKS the dtypes, joined by commas, that the device has not. What another device may leave to the
host is what entries say that are `host: true`; they are named.
"""

import os
import re

import pytest

# What a device says that lacks a dtype, when a law reaches it.
LACKING = re.compile(r"does not compute in|this kernel was not written for")


def pytest_configure(config):
    config.addinivalue_line("markers", "law(name): the law of the registry that a test states")
    import backplane as bp

    for plugin in filter(None, os.environ.get("BACKPLANE_LAW_PLUGIN", "").split(os.pathsep)):
        bp.load_plugin(plugin)


@pytest.fixture(autouse=True)
def _device_of_the_laws():
    import backplane as bp
    import law_registry

    bp.set_default_device(law_registry.DEVICE)


def pytest_collection_modifyitems(items):
    """A law that concerns no entry has no test, rather than a skipped one; the summary shows its zero."""
    items[:] = [item for item in items if not (hasattr(item, "callspec") and item.get_closest_marker("skip") and not _case(item))]


def _case(item):
    return hasattr(item.callspec.params.get("case"), "entry")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A report carries its law and its entry: it may be read in another process than the test's."""
    outcome = yield
    report = outcome.get_result()
    marker = item.get_closest_marker("law")
    if marker is None or report.when != "call":
        return
    if report.failed and os.environ.get("BACKPLANE_LAW_LACKS") and LACKING.search(str(call.excinfo.value)):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, f"Skipped: {os.environ['BACKPLANE_LAW_DEVICE']} lacks a dtype of the law")
    report.law, report.entry = marker.args[0], item.callspec.params["case"].entry.name


def pytest_runtest_logreport(report):
    import law_summary

    if hasattr(report, "law"):
        # A law may say of a case that passed what became of it.
        said = dict(report.user_properties).get("law_outcome", report.outcome)
        law_summary.count(report.law, report.entry, said if report.passed else report.outcome)


def pytest_sessionfinish(session):
    import law_registry

    if hasattr(session.config, "workeroutput"):  # a worker of pytest-xdist collects; its parent does not
        session.config.workeroutput["exempted"] = law_registry.exempted


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    import law_registry

    law_registry.exempted.update(getattr(node, "workeroutput", {}).get("exempted", {}))


def pytest_terminal_summary(terminalreporter):
    import law_summary

    if law_summary.outcomes:
        law_summary.write(terminalreporter)
