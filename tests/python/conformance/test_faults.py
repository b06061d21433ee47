"""backplane conformance finds what is wrong with a backend, and says which op or law of the device it is and how.

The plugin is the simulated accelerator with one fault, tests/conformance/broken_plugin.cpp; each run is a process of its own.
"""

import json
import os
import pathlib
import re
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "/nonexistent"))
PLUGIN = BUILD / "tests" / "conformance" / "files" / "broken.so"

SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
ENDED_BY_SANITIZER = ("promotion", "bool_bytes")  # before the kit looks: it reads beyond a smaller dtype's elements, or such a bool

# fault -> the op that is called (*: the laws of the device too), where it is found, the check that finds it first, what it says
FAULTS = {
    "broadcast": ("add", "bp::add", "values|broadcast", "found .*, expected"),
    "stride": ("subtract", "bp::subtract", "strided", "found .*, expected"),
    "tail": ("multiply", "bp::multiply", "long|special values", "found .*, expected"),
    "past_end": ("negative", "bp::negative", "long|special values", "behind the end of result 0"),
    "nan": ("maximum", "bp::maximum", "special values", "expected nan"),
    "promotion": ("atan2", "bp::atan2", "values|promotion", "found .*, expected"),
    "accuracy": ("exp", "bp::exp", "values", "found .*, expected"),
    "bool_bytes": ("less", "bp::less", "values", "left the byte 255"),
    "empty": ("sin", "bp::sin", "values|empty", "nothing to launch"),
    "no_message": ("tanh", "bp::tanh", "values", "no message"),
    "leak": ("floor", "bp::floor", "leak", "tensors of the device alive"),
    "writes_argument": ("ceil", "bp::ceil", "values", "wrote into its argument 1"),
    "scratch_kept": ("negative", "bp::negative", "values|broadcast", "scratch memory of an earlier call"),
    "lost_error": ("index", "bp::index", "error", "found a result, expected DataError"),
    "stream_wait": ("(device)", "(device)", "stream_wait", "a stream read"),
    "completed_falls": ("(device)", "(device)", "tickets", "completed fell from"),
    "deallocate": ("(device)", "(device)", "deallocate", "."),
    "null_memory": ("(device)", "(device)", "out of memory", "BP_OK"),
    "copy_offset": ("(device)", "(device)", "offsets", "copy from an offset"),
}  # fmt: skip


def conformance(tmp_path, fault, op):
    out = tmp_path / "report.json"
    words = ["conformance", "--device", "broken", "--plugin", PLUGIN, "--op", op, "--json", out]
    environment = {**os.environ, "BROKEN_FAULT": fault}
    done = subprocess.run([BUILD / "bin" / "backplane", *words], capture_output=True, text=True, timeout=120, env=environment)
    return done, json.loads(out.read_text()) if out.exists() else done.stderr


@pytest.mark.parametrize("op", sorted({row[0] for row in FAULTS.values()}))
def test_without_a_fault_all_pass(tmp_path, op):
    done, report = conformance(tmp_path, "", op)
    assert done.returncode == 0, done.stdout + done.stderr
    assert report["cases"] and all(case["verdict"] == "pass" for case in report["cases"])


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_by_name(tmp_path, fault):
    op, where, check, says = FAULTS[fault]
    done, report = conformance(tmp_path, fault, op)
    assert done.returncode == 1, done.stdout + done.stderr
    if SANITIZED and fault in ENDED_BY_SANITIZER:
        assert re.search("AddressSanitizer|runtime error", done.stderr)
        return
    failures = [case for case in report["cases"] if case["verdict"] == "fail"]
    assert {case["op"] for case in failures} == {where}
    assert re.fullmatch(check, failures[0]["check"]) and re.search(says, failures[0]["text"]), failures[0]
    assert re.search(rf"{re.escape(where)} .*\n  FAIL ", done.stdout)
