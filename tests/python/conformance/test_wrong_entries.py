"""backplane conformance finds what is wrong with an entry, also where the device and the reference do the same wrong.

The entries are tests/conformance/wrong/ops.yaml.
"""

import json
import os
import pathlib
import re
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "/nonexistent"))
PLUGIN = BUILD / "tests" / "conformance" / "wrong" / "wrong.so"

# op -> the mode that finds it, the check, what that says
MISTAKES = {
    "long_shape": ("test", "values", "the reference refuses the sample as well: .*wrong::long_shape"),
    "other_dtype": ("test", "values", "the reference refuses the sample as well: .*wrong::other_dtype"),
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
    "few_in_one_buffer": ("stress", "same op", "while other threads call the op with other numbers, .*found .*, expected"),
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
    assert failures[0]["check"] == check and re.search(says, failures[0]["text"], re.S), failures[0]
    assert not [case for case in cases if case["verdict"] == "pass" and case.get("runs") == "unsupported"]
