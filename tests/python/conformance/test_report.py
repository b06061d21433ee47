"""backplane conformance: its output and files, its options, and the samples of a plugin's ops."""

import json
import os
import pathlib
import re
import subprocess

import pytest

TOOL = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "/nonexistent")) / "bin" / "backplane"
EXAMPLES = pathlib.Path(os.environ.get("BACKPLANE_EXAMPLE_PLUGINS", "/nonexistent"))
MODES = ("test", "grad", "perf", "support", "stress")


def conformance(*words):
    return subprocess.run([TOOL, "conformance", *map(str, words)], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_passes_on_the_cpu_and_writes_its_files(tmp_path, mode):
    page, report = tmp_path / "page.html", tmp_path / "report.json"
    done = conformance("--device", "cpu", "--op", "m*", "--short", "--mode", mode, "--html", page, "--json", report)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith(f"conformance {mode} of cpu (")
    cases = json.loads(report.read_text())["cases"]
    assert {case["verdict"] for case in cases} == {"pass"} and "bp::maximum" in {case["op"] for case in cases}
    assert re.search('bp::maximum<.*class="(native|pass)"', page.read_text())
    if mode == "perf":
        assert all(case["seconds"] > 0 and case["ratio"] > 0 for case in cases)


def test_the_ways_of_a_sample_and_its_dtypes_are_in_the_report(tmp_path):
    report = tmp_path / "report.json"
    assert conformance("--device", "cpu", "--op", "add", "--json", report).returncode == 0
    cases = json.loads(report.read_text())["cases"]
    ways = {"values", "out", "strided out", "strided", "transposed", "offset", "backward", "broadcast", "long", "empty"}
    for dtype in ("int8", "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"):
        assert ways <= {case["check"] for case in cases if case["dtype"] == dtype}
    assert {"special values", "promotion", "leak"} <= {case["check"] for case in cases}


def test_what_a_device_need_not_offer_has_rows_of_its_own(tmp_path):
    page, report = tmp_path / "page.html", tmp_path / "report.json"
    done = conformance("--device", "cpu", "--op", "(device)", "--html", page, "--json", report)
    assert done.returncode == 0, done.stdout + done.stderr
    verdicts = {(case["op"], case["check"]): case["verdict"] for case in json.loads(report.read_text())["cases"]}
    assert verdicts["(device) compiler", "graphs"] == "pass" and verdicts["(device) compiler", "kept"] == "not offered"
    assert {verdict for (op, _), verdict in verdicts.items() if op == "(device) streams"} == {"not offered"}
    assert re.search(r"\(device\) streams +0 +0 +0  not offered", done.stdout)
    assert re.search(r"\(device\) streams<.*>not offered<", page.read_text())


def test_ops_of_a_plugin_are_tried_with_the_samples_beside_its_manifest(tmp_path):
    plugin, report = EXAMPLES / "axpby.so", tmp_path / "report.json"
    if not plugin.exists():
        pytest.skip("BACKPLANE_EXAMPLE_PLUGINS names no folder with axpby.so")
    for mode in ("test", "grad"):
        done = conformance("--device", "cpu", "--plugin", plugin, "--op", "example::*", "--mode", mode, "--json", report)
        assert done.returncode == 0, done.stdout + done.stderr
        assert {case["op"] for case in json.loads(report.read_text())["cases"]} == {"example::axpby"}


@pytest.mark.parametrize("words, says", [
    (["--device", "nowhere"], "nowhere"),
    (["--device", "cpu", "--op", "no_such_op"], 'no op matches "no_such_op"'),
    (["--device", "cpu", "--mode", "wild"], "wild"),
    (["--device", "cpu", "--op", "add", "--json", "/nonexistent/report.json"], "/nonexistent/report.json: cannot be written"),
])  # fmt: skip
def test_what_cannot_be_done_is_said(words, says):
    done = conformance(*words)
    assert done.returncode != 0 and says in done.stderr + done.stdout
