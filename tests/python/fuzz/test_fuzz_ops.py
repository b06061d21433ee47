"""The short form of `./dev fuzz ops`: every op of the registry under a few fuzzed calls of a fixed seed, in processes of their own."""

import pathlib
import subprocess
import sys

import pytest
from sanitized import WHOLE

RUNNER = pathlib.Path(__file__).with_name("fuzz_ops.py")
CASES = 40 if WHOLE else 16
PARTS = 12  # so that several processes share the work


@pytest.mark.parametrize("part", range(PARTS))
def test_no_op_crashes_or_fails_without_saying_which(part):
    command = [sys.executable, RUNNER, "--cases", str(CASES), "--part", f"{part}/{PARTS}", "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_crash_names_its_op_its_case_and_its_seed(tmp_path):
    """The runner itself, on an op whose calls end the process."""
    script = tmp_path / "crashing.py"
    script.write_text(
        f"import os, sys\nsys.path.insert(0, {str(RUNNER.parent)!r})\n"
        "import fuzz_runner\n"
        "from fuzz_case import Case\n"
        "run = Case.run\n"
        "Case.run = lambda case: os.abort() if case.number == 3 else run(case)\n"
        "sys.argv = ['fuzz', '--op', 'negative', '--cases', '6', '--seed', '5', '--jobs', '1']\n"
        "fuzz_runner.main('ops', '', Case, 6)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "bp::negative, case 3, seed 5: bp::negative(" in done.stdout
    assert "killed the process" in done.stdout and "6 cases" in done.stdout
