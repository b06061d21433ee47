"""A run of the kit that is stopped shows what it found, and another one goes on from there; patterns choose rows of laws."""

import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

BUILD = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "/nonexistent"))
OPS = "[a-b]*"


def command(*words):
    return [BUILD / "bin" / "backplane", "conformance", "--device", "cpu", *map(str, words)]


def run(*words):
    return subprocess.run(command(*words), capture_output=True, text=True, timeout=300)


def keys_of(path):
    return [(case["op"], case["check"], case["dtype"], case["sample"]) for case in json.loads(path.read_text())["cases"]]


def stop_in_the_middle(report, *words):
    started = subprocess.Popen(command("--op", OPS, "--json", report, *words), stdout=subprocess.PIPE, text=True)
    parts = pathlib.Path(f"{report}.partial")
    while started.poll() is None and not (parts.exists() and parts.read_text().count('"done"') >= 2):
        time.sleep(0.005)
    started.send_signal(signal.SIGTERM)
    text, _ = started.communicate(timeout=60)
    return started.returncode, text


def test_a_stopped_run_prints_its_table_and_is_resumed(tmp_path):
    report, whole = tmp_path / "report.json", tmp_path / "whole.json"
    status, text = stop_in_the_middle(report)
    assert status == 128 + signal.SIGTERM
    assert ": STOPPED in" in text and "stopped by SIGTERM in or after bp::" in text and ', check "' in text and "\nbp::a" in text, text
    assert not report.exists()
    assert run("--op", OPS, "--json", whole).returncode == 0
    resumed = run("--op", OPS, "--json", report, "--resume")
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert sorted(keys_of(report)) == sorted(keys_of(whole))
    assert not pathlib.Path(f"{report}.partial").exists()


def test_a_run_with_other_options_is_not_resumed(tmp_path):
    report = tmp_path / "report.json"
    stop_in_the_middle(report)
    other = run("--op", OPS, "--json", report, "--resume", "--mode", "support")
    assert other.returncode != 0 and "belongs to another run" in other.stderr, other.stderr


@pytest.mark.parametrize("words, says", [(["--resume"], "--resume needs --json FILE"), (["--resume", "--json", "none.json"], "found no none.json.partial")])
def test_what_cannot_be_resumed_is_refused(words, says):
    done = run("--op", "add", *words)
    assert done.returncode != 0 and says in done.stderr, done.stderr


def test_patterns_choose_rows_of_laws(tmp_path):
    rows = {}
    for pattern in ("(device)", "(device)*", "(device) com*"):
        report = tmp_path / "report.json"
        assert run("--op", pattern, "--json", report).returncode == 0, pattern
        rows[pattern] = {key[0] for key in keys_of(report)}
    assert rows["(device)*"] == rows["(device)"] > rows["(device) com*"] == {"(device) compiler"}
    none = run("--op", "(device) none")
    assert none.returncode != 0 and "no row of laws matches" in none.stderr
