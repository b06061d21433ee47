"""Programs of several devices: what ran where, and whether the host may stand in, per thread and from the environment."""

import os
import pathlib
import subprocess
import sys
import threading

import backplane as bp
import pytest

SIMULATOR = pathlib.Path(os.environ.get("BACKPLANE_EXAMPLE_PLUGINS", "nowhere"), "simulator.so")
COMMAND = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "nowhere"), "bin", "backplane")
needs_simulator = pytest.mark.skipif(not SIMULATOR.exists(), reason="needs the simulator (BACKPLANE_EXAMPLE_PLUGINS)")


def places(report):
    return {(row.op, row.device, row.how): row.calls for row in report.rows}


def test_a_report_counts_each_kernel():
    x = bp.ones((2, 3))
    with bp.placement() as report:
        for _ in range(3):
            bp.add(x, x)
        bp.sin(x)
    found = places(report)
    assert found["bp::add", "cpu", "kernel"] == 3 and found["bp::sin", "cpu", "kernel"] == 1
    assert {row.plugin for row in report.rows if row.how == "kernel"} == {"backplane_cpu"}
    assert "bp::add" in str(report) and str(report).splitlines()[0].split() == ["op", "device", "how", "plugin", "calls"]


def test_a_report_ends_with_its_block():
    x = bp.ones(2)
    with bp.placement() as report:
        bp.add(x, x)
        inside = places(report)
    bp.add(x, x)
    assert places(report) == inside == {("bp::add", "cpu", "kernel"): 1}


def test_reports_nest():
    x = bp.ones(2)
    with bp.placement() as outer:
        bp.add(x, x)
        with bp.placement() as inner:
            bp.add(x, x)
        bp.add(x, x)
    assert places(inner)["bp::add", "cpu", "kernel"] == 1 and places(outer)["bp::add", "cpu", "kernel"] == 3


def test_calls_are_fast_again_afterwards():
    """Results and counts are those of calls that nobody watches."""
    x = bp.asarray([1.0, 2.0])
    before = bp.call_counts().kernels
    with bp.placement():
        watched = bp.multiply(x, 3.0).tolist()
    assert watched == bp.multiply(x, 3.0).tolist() == [3.0, 6.0]
    assert bp.call_counts().kernels > before


def test_threads_are_counted_together():
    x = bp.ones(4)
    with bp.placement() as report:
        threads = [threading.Thread(target=lambda: [bp.add(x, x) for _ in range(50)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert places(report)["bp::add", "cpu", "kernel"] == 200


DECOMPOSED = """
import os, backplane as bp
bp.load_plugin(os.environ["SIMULATOR"])
x = bp.asarray([[2.0, 1.0], [1.0, 3.0]], device="sim")
with bp.placement() as report:
    bp.softmax(x, -1)
    try:
        bp.linalg.inv(x)
    except bp.BackplaneError as error:
        print("refused", str(error).splitlines()[0])
print(sorted({(row.device, row.how) for row in report.rows}))
print(bp.host_fallback())
"""


def on_simulator(**variables):
    return subprocess.run([sys.executable, "-c", DECOMPOSED], check=True, capture_output=True, text=True,
                          env={**os.environ, "SIMULATOR": str(SIMULATOR), **variables})  # fmt: skip


@needs_simulator
def test_decompositions_and_the_host_are_reported():
    run = on_simulator()
    assert "('sim', 'decomposition')" in run.stdout and "('sim', 'host fallback')" in run.stdout
    assert "('cpu', 'kernel')" in run.stdout and "runs on the host for device sim" in run.stderr


@needs_simulator
@pytest.mark.parametrize("policy", ["allow", "warn", "forbid"])
def test_the_environment_sets_the_policy(policy):
    run = on_simulator(BACKPLANE_HOST_FALLBACK=policy)
    assert run.stdout.split()[-1] == policy
    assert ("refused" in run.stdout) == (policy == "forbid")
    assert ("runs on the host" in run.stderr) == (policy == "warn")


@needs_simulator
def test_a_policy_that_is_none_is_reported_and_ignored():
    run = on_simulator(BACKPLANE_HOST_FALLBACK="perhaps")
    assert run.stdout.split()[-1] == "warn" and "expected allow, warn or forbid" in run.stderr


def test_a_policy_is_the_threads_own():
    assert bp.host_fallback() == "warn"
    with bp.host_fallback("forbid"):
        assert bp.host_fallback() == "forbid"
        seen = []
        other = threading.Thread(target=lambda: seen.append(bp.host_fallback()))
        other.start()
        other.join()
        with bp.host_fallback("allow"):
            assert bp.host_fallback() == "allow"
        assert bp.host_fallback() == "forbid"
    assert seen == ["warn"] and bp.host_fallback() == "warn"


@pytest.mark.parametrize(("bad", "error"), [("never", ValueError), (True, TypeError), (b"warn", TypeError)])
def test_a_policy_is_one_of_three_words(bad, error):
    with pytest.raises(error, match="host_fallback: argument policy: found .*expected 'allow', 'warn' or 'forbid'"):
        bp.host_fallback(bad)
    assert bp.host_fallback() == "warn"


def explain_placement(*words):
    return subprocess.run([COMMAND, "--plugin-path", SIMULATOR.parent, "explain", "--placement", *words], capture_output=True, text=True)


@needs_simulator
def test_the_command_calls_a_sample_and_says_what_ran_where():
    done = explain_placement("softmax", "--device", "cpu", "--device", "sim")
    assert done.returncode == 0, done.stderr
    cpu, sim = done.stdout.split("bp::softmax on sim\n")
    assert cpu.splitlines()[0] == "bp::softmax on cpu" and ["bp::softmax", "cpu", "kernel", "backplane_cpu", "1"] in [line.split() for line in cpu.splitlines()]
    rows = [line.split() for line in sim.splitlines()]
    assert ["bp::exp", "sim", "kernel", "simulator", "1"] in rows and ["bp::softmax", "sim", "decomposition", "1"] in rows
    assert "a view: nothing is computed" in explain_placement("reshape", "--device", "sim").stdout


@needs_simulator
def test_the_command_refuses_a_device_and_an_op_that_are_not_there():
    for words, says in ((["add", "--device", "nowhere"], "nowhere"), (["no_such_op"], "no_such_op")):
        done = explain_placement(*words)
        assert done.returncode == 1 and says in done.stderr
