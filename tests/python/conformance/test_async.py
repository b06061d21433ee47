"""backplane conformance --mode async: on the simulated devices, the kind ones and those that do all that the contract allows."""

import json
import os
import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "/nonexistent"))
UNKIND = BUILD / "tests" / "unkind" / "files" / "unkind.so"
SIMULATOR = pathlib.Path(os.environ.get("BACKPLANE_EXAMPLE_PLUGINS", "/nonexistent")) / "simulator.so"

PLANS = ("seed=1", "seed=2", "seed=3,pace=eager")


def run(device, plugin, *more, **environment):
    if not plugin.exists():
        pytest.skip(f"{plugin} is not built")
    words = [BUILD / "bin" / "backplane", "conformance", "--device", device, "--plugin", plugin, "--mode", "async", *more]
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=120, env={**os.environ, **environment})


@pytest.mark.parametrize("device", ["sim", "simh"])
def test_the_simulator_passes(device):
    done = run(device, SIMULATOR)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("device", ["unkind", "unkindh"])
def test_no_rule_is_broken_on_a_device_that_looks(device, plan):
    done = run(device, UNKIND, BACKPLANE_UNKIND=plan)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "unkind:" not in done.stderr


@pytest.mark.parametrize("device", ["unkind", "unkindh"])
def test_memory_is_in_order_where_every_third_allocation_finds_none(device, tmp_path):
    report = tmp_path / "report.json"
    done = run(device, UNKIND, "--json", report, BACKPLANE_UNKIND="seed=4,oom_every=3")
    rows = [case for case in json.loads(report.read_text())["cases"] if case["op"] == "(device) memory order"]
    assert len(rows) == 3 and {case["verdict"] for case in rows} == {"pass"}, done.stdout
    assert "unkind:" not in done.stderr
