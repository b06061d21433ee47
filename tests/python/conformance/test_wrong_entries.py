"""backplane conformance finds what is wrong with an entry, also where the device and the reference do the same wrong.

The entries are tests/conformance/wrong/ops.yaml.
"""

import json
import os
import pathlib
import re
import signal
import subprocess

import backplane as bp
import pytest
from sanitized import SANITIZED

BUILD = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "/nonexistent"))
PLUGIN = BUILD / "tests" / "conformance" / "wrong" / "wrong.so"

# op -> the mode that finds it, the check, what that says
MISTAKES = {
    "long_shape": ("test", "values", "found the error .*wrong::long_shape.*, which the reference gives as well; if the call must fail, state `error`"),
    "other_dtype": ("test", "values", "found the error .*wrong::other_dtype.*, which the reference gives as well; if the call must fail, state `error`"),
    "other_reverse": ("grad", "gradient", "found .*, the finite difference is"),
    "other_forward": ("grad", "forward", "found .*, the gradient says"),
    "unset_number": ("grad", "gradient", "found .*, the finite difference is"),
    "unset_flag": ("grad", "gradient", "found .*, the finite difference is"),
    "unused_word": ("grad", "gradient", "found .*, the finite difference is"),
    "fuzzed_number": ("grad", "gradient", "found .*, the finite difference is"),
    "second_derivative": ("grad", "second order", "second derivative 0 along a direction: found .*, the finite difference is"),
    "float32_reverse": ("grad", "gradient", "found .*, the finite difference is"),
    "float16_reverse": ("grad", "gradient", "found .*, the finite difference is"),
    "complex64_reverse": ("grad", "gradient", "found .*, the finite difference is"),
    "computes": ("test", "moves", "which is not an element of an argument, but the entry says `moves: true`"),
    "same_memory": ("test", "values", "is a view of argument x"),
    "kept_float64": ("test", "leak", "4 calls left 4 tensors of the device alive"),
    "raced": ("test", "values", r"wrote byte \d+ of result 0 in pieces 0 and 1 of its parallel_for"),
    "lost_nans": ("test", "special values", "found 0, expected nan"),
    "read_beyond": ("test", "values", "found nan, expected"),
    "one_buffer": ("stress", "same op", "while other threads call the op with other numbers, .*found .*, expected"),
    "few_in_one_buffer": ("stress", "threads|same op", "found .*, expected"),
    "lost_nans_in_all": ("test", "special values", "found 0, expected nan"),
    "not_elementwise": ("test", "elements", "element 0 of the result alone: at .* found .*, expected .*depends on the elements at its place alone"),
    "rows_of_the_batch": ("grad", "batch", "found .*, expected"),
    "one_cotangent": ("grad", "gradient", "the sum of the gradients for each result's cotangent alone: .*found .*, expected"),
    "order_in_place": ("test", "in place", "found .*, expected"),
    "forgotten_axis": ("grad", "gradient", "wrong::forgotten_axis"),
    "tail_of_a_line": ("test", "long", "found 0, expected"),
    "nothing_refused": ("test", "empty", "nothing to do"),
    "through_double": ("test", "large integers", "found .*, expected"),
    "greatest": ("test", "special values", "found .*, expected nan"),
    "other_batch": ("grad", "batch", "its batch formula gave a result whose axis 0 is not the batch"),
}


def conformance(tmp_path, op, mode):
    out = tmp_path / "report.json"
    words = ["--device", "cpu", "--plugin", PLUGIN, "--op", f"wrong::{op}", "--mode", mode, "--json", out]
    done = subprocess.run([BUILD / "bin" / "backplane", "conformance", *words], capture_output=True, text=True, timeout=120)
    return done, json.loads(out.read_text())["cases"] if out.exists() else done.stderr


@pytest.mark.parametrize(("op", "mode"), [
    *(("right", mode) for mode in ("test", "grad", "stress", "support")),
    *(("right_*", mode) for mode in ("test", "grad")),
])  # fmt: skip
def test_an_entry_without_a_mistake_passes(tmp_path, op, mode):
    done, cases = conformance(tmp_path, op, mode)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {case["verdict"] for case in cases} == {"pass"}


@pytest.mark.parametrize("op", MISTAKES)
def test_a_mistake_is_found(tmp_path, op):
    mode, check, says = MISTAKES[op]
    done, cases = conformance(tmp_path, op, mode)
    assert done.returncode == 1, done.stdout + done.stderr
    failures = [case for case in cases if case["verdict"] == "fail"]
    assert re.fullmatch(check, failures[0]["check"]) and re.search(says, failures[0]["text"], re.S), failures[0]
    assert not [case for case in cases if case["verdict"] == "pass" and case.get("runs") == "unsupported"]


@pytest.mark.parametrize("op", ["ends_the_process", "ends_the_process_at_once"])
def test_a_kernel_that_ends_the_process_is_found(tmp_path, op):
    done, said = conformance(tmp_path, op, "test")
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(rf'ended with status 0 in or after wrong::{op}, check "values", sample 0, float32, before the run was over', said), said


@pytest.mark.skipif(SANITIZED, reason="the sanitizer handles the signals")
def test_a_signal_in_the_reference_comes_with_the_case(tmp_path):
    done, said = conformance(tmp_path, "crashes_in_the_reference", "test")
    assert done.returncode == -signal.SIGSEGV
    assert 'ended by SIGSEGV in wrong::crashes_in_the_reference, check "values of the reference", sample 0, float32' in said, said


def test_where_nothing_has_a_derivative_mode_grad_says_so(tmp_path):
    done, cases = conformance(tmp_path, "noise", "grad")
    assert done.returncode == 0 and cases == [], done.stdout + done.stderr
    assert "nothing to try: the ops have no derivative and no batch rule" in done.stdout


def test_what_an_entry_excepts_is_counted_with_its_reason(tmp_path):
    done, cases = conformance(tmp_path, "excepted", "grad")
    assert done.returncode == 0 and {case["verdict"] for case in cases} == {"pass", "excepted"}
    assert "  excepted gradient: a reason to show\n" in done.stdout and ", 1 laws excepted\n" in done.stdout


@pytest.mark.parametrize(("op", "check", "says"), [
    ("not_elementwise", "elementwise", "element 0 alone against the same element of the sample"),
    ("rows_of_the_batch", "batch", "vmap over axis"),
])  # fmt: skip
def test_opcheck_finds_it_too(op, check, says):
    bp.load_plugin(str(PLUGIN))
    report = bp.opcheck(f"wrong::{op}", (bp.randn(2, 3),), raise_exception=False)
    failed = [row for row in report.rows if row.verdict == "failed" and row.check == check]
    assert failed and says in failed[0].text, report


def test_opcheck_passes_an_op_of_dynamic_size_without_a_derivative():
    bp.load_plugin(str(PLUGIN))
    report = bp.opcheck("wrong::right_dynamic", (bp.randn(5),), raise_exception=False)
    assert report, report
