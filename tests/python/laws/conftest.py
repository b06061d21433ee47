"""Counts what every law covered, and prints it after the run: cases passed and failed, entries exempted in writing.

The laws run on the CPU. BACKPLANE_LAW_DEVICE names another device, BACKPLANE_LAW_PLUGIN the plugins to load first, and
BACKPLANE_LAW_LACKS the dtypes, joined by commas, that the device has not.
"""

import os
import re
import sys
from collections import Counter, defaultdict

import pytest

# What a device says that lacks a dtype, when a law reaches it.
LACKING = re.compile(r"does not compute in|this kernel was not written for")

passed, failed, entries = Counter(), Counter(), defaultdict(set)


def pytest_configure(config):
    config.addinivalue_line("markers", "law(name): the law of the registry that a test states")
    import backplane as bp

    for plugin in filter(None, os.environ.get("BACKPLANE_LAW_PLUGIN", "").split(os.pathsep)):
        bp.load_plugin(plugin)


@pytest.fixture(autouse=True)
def _device_of_the_laws():
    import backplane as bp

    bp.set_default_device(os.environ.get("BACKPLANE_LAW_DEVICE", "cpu"))


def pytest_collection_modifyitems(items):
    """A law that concerns no entry has no test, rather than a skipped one; the summary shows its zero."""
    items[:] = [item for item in items if not (hasattr(item, "callspec") and item.get_closest_marker("skip") and not _case(item))]


def _case(item):
    return hasattr(item.callspec.params.get("case"), "entry")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    marker = item.get_closest_marker("law")
    if marker is None or report.when != "call":
        return
    if report.failed and os.environ.get("BACKPLANE_LAW_DEVICE") and LACKING.search(str(call.excinfo.value)):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, f"Skipped: {os.environ['BACKPLANE_LAW_DEVICE']} lacks a dtype of the law")
        return
    law = marker.args[0]
    (passed if report.passed else failed)[law] += 1
    entries[law].add(item.callspec.params["case"].entry.name)


def _write_refusals(write_line, found):
    """What entries refuse in writing, and those that batch by a loop."""
    refused = {(entry.name, rule): reason for entry in found for rule, reason in entry.rules["refusals"].items()}
    write_line(f"refused        {len(refused):4}, each with its reason")
    for (name, rule), reason in sorted(refused.items()):
        write_line(f"{'':15} {name}, {rule}: {reason}")
    batching = [entry for entry in found if entry.rules["batch"] != "none"]
    loops = sorted(entry.name for entry in batching if entry.rules["batch"] == "loop")
    write_line(f"batch: loop    {len(loops):4} of {len(batching)} entries that batch  {', '.join(loops)}")


def pytest_terminal_summary(terminalreporter):
    registry = sys.modules.get("law_registry")
    if registry is None or not (passed or failed):
        return
    cases = registry.registry()
    total = len({case.entry.name for case in cases})
    terminalreporter.section(f"laws over {total} entries, {len(cases)} samples")
    for law in registry.LAWS:
        line = f"{law:14} {len(entries[law]):4} entries  {passed[law]:5} passed  {failed[law]:4} failed"
        excused = registry.exempted.get(law, {})
        terminalreporter.write_line(line + (f"  {len(excused)} exempted" if excused else ""))
        for name, reason in sorted(excused.items()):
            terminalreporter.write_line(f"{'':15} {name}: {reason}")
    _write_refusals(terminalreporter.write_line, {case.entry.name: case.entry for case in cases}.values())
