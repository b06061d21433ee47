"""A case that never ends is a failure of its op: its process is ended after the deadline, and the kit goes on with the next op.

The plugin is the simulated accelerator with one fault, tests/conformance/broken_plugin.cpp.
"""

import json
import os
import pathlib
import re
import subprocess

import pytest
from sanitized import SANITIZED

BUILD = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "/nonexistent"))
PLUGIN = BUILD / "tests" / "conformance" / "files" / "broken.so"
HANGS = ("bp::sqrt", "values", "float64", 0)
DEADLINE = "20" if SANITIZED else "3"


def conformance(fault, op, *words):
    command = [BUILD / "bin" / "backplane", "conformance", "--device", "broken", "--plugin", PLUGIN, "--op", op, "--deadline", DEADLINE, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, env={**os.environ, "BROKEN_FAULT": fault})


def keys_of(report):
    return [(case["op"], case["check"], case["dtype"], case["sample"]) for case in json.loads(report.read_text())["cases"]]


def failures_of(report):
    return {(case["op"], case["check"], case["dtype"]): case["text"] for case in json.loads(report.read_text())["cases"] if case["verdict"] == "fail"}


def test_the_hanging_case_is_named_and_what_passed_is_kept(tmp_path):
    report = tmp_path / "report.json"
    done = conformance("hangs", "sq*", "--json", report)
    assert done.returncode == 1, done.stdout + done.stderr
    failures = failures_of(report)
    assert set(failures) == {("bp::sqrt", "values", "float64")}
    assert f"did not end: {DEADLINE} seconds passed without a step" in failures["bp::sqrt", "values", "float64"]
    assert "FAIL bp::sqrt, values, sample 0, float64: did not end" in done.stderr
    whole = tmp_path / "whole.json"
    assert conformance("", "sq*", "--json", whole).returncode == 0
    found, expected = keys_of(report), keys_of(whole)
    assert found == [key for i, key in enumerate(expected) if key[0] != "bp::sqrt" or i <= expected.index(HANGS)]
    assert not pathlib.Path(f"{report}.partial").exists()


@pytest.mark.skipif(SANITIZED, reason="it waits for three deadlines, and takes no other way through the kit")
def test_a_law_that_hangs_is_named_and_the_next_law_is_tried(tmp_path):
    report = tmp_path / "report.json"
    done = conformance("hung_wait", "(device)*", "--json", report)
    assert done.returncode == 1 and "did not end" in done.stderr, done.stdout + done.stderr
    failures = failures_of(report)
    assert {("(device)", "tickets of waits", "-"), ("(device)", "stream_wait", "-"), ("(device) time", "stamps", "-")} == set(failures), failures
    assert all("did not end" in text for text in failures.values())
    assert any(case["op"] == "(device) reset" and case["verdict"] == "pass" for case in json.loads(report.read_text())["cases"])


@pytest.mark.skipif(SANITIZED, reason="it waits for three deadlines, and takes no other way through the kit")
def test_a_run_ends_where_nothing_works_any_more():
    done = conformance("hangs_always", "s[q-z]*")
    assert done.returncode == 1 and re.search("stopped: 3 times in a row, a case did not end and none passed", done.stdout), done.stdout
    assert re.search(r"STOPPED in .*: 3 cases of 3 ops, 0 passed, 3 failed", done.stdout), done.stdout


def test_a_deadline_is_a_number_of_seconds():
    done = conformance("", "sqrt", "--deadline", "-1")
    assert done.returncode != 0 and "--deadline" in done.stderr
