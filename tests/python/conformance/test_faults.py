"""backplane conformance finds what is wrong with a backend, and says which op or law of the device it is and how.

The plugin is the simulated accelerator with one fault, tests/conformance/broken_plugin.cpp; each run is a process of its own.
"""

import json
import os
import pathlib
import re
import signal as signals
import subprocess
import sys

import pytest
from sanitized import SANITIZED, WHOLE

BUILD = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "/nonexistent"))
PLUGIN = BUILD / "tests" / "conformance" / "files" / "broken.so"

ENDED_BY_SANITIZER = ("promotion", "bool_bytes")  # before the kit looks: it reads beyond a smaller dtype's elements, or such a bool

# fault -> the op that is called, where it is found, the checks that find it, one of them first, what that says, the mode if it is not `test`
FAULTS = {
    "broadcast": ("add", "bp::add", "values|broadcast|elements", "found .*, expected"),
    "stride": ("subtract", "bp::subtract", "strided", "found .*, expected"),
    "long_line": ("sum", "bp::sum", "large", "found .*, expected"),
    "tail": ("multiply", "bp::multiply", "long|special values", "found .*, expected"),
    "first_items": ("tanh", "bp::tanh", "large", "found .*, expected"),
    "low_words": ("bitwise_xor", "bp::bitwise_xor", "large integers", "found .*, expected"),
    "long_minimum": ("min", "bp::min", "large", "found .*, expected"),
    "past_end": ("negative", "bp::negative", "long|special values", "behind the end of result 0"),
    "nan": ("maximum", "bp::maximum", "special values", "expected nan"),
    "promotion": ("atan2", "bp::atan2", "values|promotion", "found .*, expected"),
    "accuracy": ("exp", "bp::exp", "values", "found .*, expected"),
    "bool_bytes": ("less", "bp::less", "values", "left the byte 255"),
    "empty": ("sin", "bp::sin", "values|empty", "nothing to launch"),
    "no_message": ("tanh", "bp::tanh", "values", "no message"),
    "leak": ("floor", "bp::floor", "leak", "tensors of the device alive"),
    "behind_margins": ("erf", "bp::erf", "strided out|in place|leak", "found no margin"),
    "writes_argument": ("ceil", "bp::ceil", "values", "wrote into its argument 1"),
    "scratch_kept": ("negative", "bp::negative", "values|broadcast", "scratch memory of an earlier call"),
    "dense_result": ("expm1", "bp::expm1", "strided out", "written outside of it, into the gap"),
    "row_major": ("log", "bp::log", "transposed", "found .*, expected"),
    "no_negative_strides": ("trunc", "bp::trunc", "backward", "found .*, expected"),
    "aligned_argument": ("cos", "bp::cos", "offset", "found .*, expected"),
    "aligned_result": ("log1p", "bp::log1p", "out", "found .*, expected|written outside of it"),
    "argument_kept": ("round", "bp::round", "out", "found .*, expected"),
    "argument_reused": ("round", "bp::round", "offset", "its buffer was written to"),
    "one_place": ("atan", "bp::atan", "threads|streams", "found .*, expected", "stress"),
    "derivative": ("sin", "bp::sin", "gradient", "found .*, expected", "grad"),
    "broadcast_of_tangents": ("add", "bp::add", "forward", "found .*, expected", "grad"),
    "tail_of_batches": ("floor", "bp::floor", "batch", "found .*, expected", "grad"),
    "in_place": ("negative", "bp::negative", "in place", "found .*, expected"),
    "lost_error": ("index", "bp::index", "error", "found a result, expected DataError"),
    "flush": ("(device)", "(device)", "first work", "completed stays at 0 ten seconds after flush"),
    "flush_without_work": ("(device)", "(device)", "first work", r"completed stays at 1 ten seconds after flush\(2\), a ticket without work"),
    "completed_ahead": ("(device)", "(device)", "tickets", "completed is [0-9]+ where [0-9]+ was the last ticket"),
    "completed_early": ("(device)", "(device)", "ended work", "another stream read after `completed` had reached the ticket"),
    "null_stream": ("(device)", "(device)", "first work", "stream_create gave BP_OK and NULL"),
    "stream_wait": ("(device)", "(device)", "stream_wait", "a stream read"),
    "wait_with_a_ticket": ("(device)", "(device)", "tickets of waits", "completed fell from [1-9].* behind stream_wait"),
    "completed_falls": ("(device)", "(device)", "tickets", "completed fell from"),
    "deallocate": ("(device)", "(device)", "deallocate", "."),
    "null_memory": ("(device)", "(device)", "out of memory", "BP_OK"),
    "narrow_offset": ("(device)", "(device)", "large blocks", "at offset"),
    "bound_in_part": ("(device)", "(device)", "kernels in large blocks", "a kernel that wrote the last 64 numbers of a block of"),
    "copy_offset": ("(device)", "(device)", "offsets", "copy from an offset"),
    "no_name": ("(device)", "(device)", "properties", "the name is empty"),
    "short_blocks": ("(device)", "(device)", "blocks", "lie outside a block of"),
    "reads_late": ("(device)", "(device)", "copy_from_host", "whose source changed after it returned"),
    "promises_memory": ("(device)", "(device)", "a tensor too large", "a tensor of 2.50 bytes was made", "stress"),
    "timed_wait_early": ("(device)", "(device) streams", "timed waits", "wait_for: says that ticket [0-9]+ is complete"),
    "unheard_abort": ("(device)", "(device) reset", "abort", "expected BP_ERROR_DEVICE_LOST of one of them"),
    "priority_range": ("(device)", "(device) streams", "priorities", "found 1 to 3, expected a range that holds 0"),
    "foreign_order": ("(device)", "(device) streams", "streams of others", "read through the stream that import_handle made"),
    "time_unit": ("(device)", "(device) time", "stamps", "expected nanoseconds"),
    "time_early": ("(device)", "(device) time", "stamps", "expected when the device came there"),
    "callback_inline": ("(device)", "(device) callbacks", "order", "on the host's thread, inside notify"),
    "callback_early": ("(device)", "(device) callbacks", "order", "expected it after [0-9]+, the work before it"),
    "callback_twice": ("(device)", "(device) callbacks", "order", "2 calls of a function that was given once"),
    "callback_late": ("(device)", "(device) callbacks", "ticket", "complete before the function was over"),
    "ends_later": ("(device)", "(device) callbacks", "end", "stream_destroy returned before"),
    "pinned_offset": ("(device)", "(device) pinned", "copies", "pinned.copy_from_host to an offset"),
    "pinned_order": ("(device)", "(device) pinned", "copies", "pinned.copy_to_host from an offset, behind other work"),
    "peer_agrees": ("(device)", "(device) peer", "strangers", "no_such_backend"),
    "event_wait": ("(device)", "(device) events", "order", "behind an event of another stream"),
    "peer_wait": ("(device)", "(device) peer", "copies", "behind peer.stream_wait"),
    "kind_alignment": ("(device)", "(device) memory", "kinds", "expected a multiple of"),
    "kind_leak": ("(device)", "(device) memory", "deallocate", "bytes are in use after|there are [0-9]+ bytes"),
    "pool_early": ("(device)", "(device) memory", "pool", "a block that was given"),
    "feature_endless": ("(device)", "(device) features", "features", "comes twice"),
    "property_tag": ("(device)", "(device) features", "properties", "expected a bool, an int, a float or a string"),
    "capture_runs": ("(device)", "(device) capture", "replay", "what a replay writes|not replayed yet"),
    "replay_once": ("(device)", "(device) capture", "replay", "what a replay writes"),
    "give_up_runs": ("(device)", "(device) capture", "given up", "given up"),
    "profiler_ticket": ("(device)", "(device) profiler", "ranges", "is complete after ranges"),
    "reset_keeps": ("(device)", "(device) reset", "reset", "bytes are in use after it|the device is lost: it was given up"),
    "compiler": ("(device)", "(device) compiler", "graphs", "a compiled graph of float32 of .*found"),
    "compiler_shares": ("(device)", "(device) compiler", "threads", "that four threads run: .*found"),
    "compiler_forgets": ("(device)", "(device) compiler", "kept", "executables were read back, of .*found"),
    "no_order": ("(device)", "(device) memory order", "freed|passed on", "a tensor that 60 steps|what a s", "async"),
    "nothing_again": ("(device)", "(device) memory order", "freed|passed on|scratch", "given back is not there again", "async"),
    "one_lock": ("(device)", "(device) waiting", "copies to the host|copies from the host", "did not go on while another thread waited", "async"),
    "callback_refused": ("(device)", "(device) waiting", "copies to the host|copies from the host|callbacks", "notify", "async"),
    "late_error_lost": ("(device)", "(device) failures", "other streams", "found a result, expected DataError", "async"),
    "next_ticket": ("(device)", "(device) failures", "tickets", "found a result, expected DataError", "async"),
    "compiler_early": ("(device)", "(device) executables", "graphs|constants", "a compiled graph .*found", "async"),
    "no_abort": ("(device)", "(device) loss", "threads", "went on waiting", "async"),
    "stays_lost": ("(device)", "(device) loss", "threads|compiled", "the device is lost", "async"),
}  # fmt: skip


def conformance(tmp_path, fault, op, mode="test", *more, checked="0"):
    out = tmp_path / "report.json"
    words = ["conformance", "--device", "broken", "--plugin", PLUGIN, "--op", op, "--mode", mode, "--json", out, *more]
    environment = {**os.environ, "BROKEN_FAULT": fault, "BACKPLANE_CHECKED": checked}
    done = subprocess.run([BUILD / "bin" / "backplane", *words], capture_output=True, text=True, timeout=400, env=environment)  # a busy machine takes four times as long
    return done, json.loads(out.read_text()) if out.exists() else done.stderr


@pytest.mark.parametrize("op", sorted({row[0] for row in FAULTS.values()}))
def test_without_a_fault_all_pass(tmp_path, op):
    done, report = conformance(tmp_path, "", op)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {case["verdict"] for case in report["cases"]} <= {"pass", "not offered"} and "pass" in {case["verdict"] for case in report["cases"]}
    absent = {(case["op"], case["check"]) for case in report["cases"] if case["verdict"] == "not offered"}
    assert absent == ({("(device) compiler", "graphs"), ("(device) compiler", "threads"), ("(device) compiler", "kept"), ("(device) memory", "pool")} if op == "(device)" else set())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_by_name(tmp_path, fault):
    op, where, check, says, *mode = FAULTS[fault]
    if SANITIZED and not mode and list(FAULTS).index(fault) % 4:
        pytest.skip("one in four shows that the sanitizers find nothing in how the kit names a fault")
    done, report = conformance(tmp_path, fault, op, *mode)
    assert done.returncode == 1, done.stdout + done.stderr
    # What a fault does to memory the sanitizer may see before the kit does; of these it is known to.
    ended = SANITIZED and re.search("AddressSanitizer|runtime error", done.stderr)
    assert ended or not SANITIZED or fault not in ENDED_BY_SANITIZER
    if ended:
        return
    failures = [case for case in report["cases"] if case["verdict"] == "fail"]
    # A fault of the table shows in the extensions that stand on it, too; the first failure names the law that is about it.
    assert {case["op"].split()[0] for case in failures} == {where.split()[0]} and failures[0]["op"] == where
    assert set(check.split("|")) <= {case["check"] for case in failures}
    assert re.fullmatch(check, failures[0]["check"]) and re.search(says, failures[0]["text"]), failures[0]
    assert re.search(rf"{re.escape(where)} .*\n  FAIL ", done.stdout)


@pytest.mark.parametrize("fault, signal", [("segfault", "SIGSEGV"), ("abort", "SIGABRT")])
@pytest.mark.parametrize("checked", ["0", "1"])
def test_a_signal_that_ends_the_run_comes_with_the_case(tmp_path, fault, signal, checked):
    if SANITIZED:
        pytest.skip("the sanitizer handles the signals")
    done, _ = conformance(tmp_path, fault, "negative", checked=checked)
    assert done.returncode == -getattr(signals, signal)
    assert re.search(rf'ended by {signal} in bp::negative, check "values", sample 0, [a-z]+[0-9]+', done.stderr), done.stderr
    assert ("run it again with BACKPLANE_CHECKED=1" in done.stderr) == (checked == "0")


def test_a_device_whose_name_is_no_text_hides_no_other():
    program = "import sys, backplane as bp; bp.load_plugin(sys.argv[1]); print(*(info.name for info in bp.devices()))"
    done = subprocess.run([sys.executable, "-c", program, PLUGIN], capture_output=True, text=True, env={**os.environ, "BROKEN_FAULT": "name_of_bytes"})
    assert {"broken", "cpu"} <= set(done.stdout.split()), done.stderr


def test_what_was_found_before_a_signal_is_said(tmp_path, monkeypatch):
    if SANITIZED:
        pytest.skip("the sanitizer handles the signals")
    monkeypatch.setenv("BROKEN_KERNEL", "segfault")
    done, _ = conformance(tmp_path, "no_name", "*", "test", "--short")
    said = done.stderr.find("FAIL (device), properties, sample 0, -: properties: the name is empty")
    assert 0 <= said < done.stderr.find("ended by SIGSEGV in bp::negative"), done.stderr


def test_a_law_that_fails_leaves_no_work_on_freed_memory(tmp_path):
    _, report = conformance(tmp_path, "completed_ahead", "(device)")
    lost = [case for case in report["cases"] if "the device is lost" in case.get("text", "")]
    assert not [case for case in lost if case["op"] != "(device) reset"], lost  # whose laws give the device up


@pytest.mark.parametrize("checked", ["0", "1"])
def test_the_environment_puts_all_checks_into_checked_mode(tmp_path, checked):
    done, report = conformance(tmp_path, "writes_argument", "ceil", checked=checked)
    assert done.returncode == 1
    texts = [case["text"] for case in report["cases"] if case["verdict"] == "fail" and case["check"] == "out"]
    assert texts and all(("the kernel of plugin" in text) == (checked == "1") for text in texts), texts


@pytest.mark.parametrize("fault", ["", "handles"])
def test_a_right_device_passes_in_checked_mode(tmp_path, fault):
    done, _ = conformance(tmp_path, fault, "m*", "test", "--short", checked="1")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("fault", ["lacks", "lacks_more"])
@pytest.mark.parametrize("mode", ["test", "grad", "stress", "support"])
def test_a_device_that_lacks_dtypes_passes(tmp_path, fault, mode):
    if SANITIZED and fault == "lacks_more":
        pytest.skip("its runs take no other way through the kit than those of `lacks`")
    is_long = fault != "lacks" or (mode == "test" and not WHOLE)
    ops = "[i-m]*" if is_long else "*"  # the second fault tries other dtypes on the same way through the kit
    done, report = conformance(tmp_path, fault, ops, mode, "--short")
    assert done.returncode == 0, "\n".join(line for line in done.stdout.splitlines() if "FAIL" in line)
    assert {"pass", "unsupported"} <= {case["verdict"] for case in report["cases"]} <= {"pass", "unsupported", "not offered", "excepted"}


@pytest.mark.parametrize("fault, without, op", [("", "bp::index", "index"), ("compiler", "bp::maximum", "(device)")])
def test_an_op_without_a_kernel_fails_nothing_where_that_is_asked_for(tmp_path, monkeypatch, fault, without, op):
    """Nor do a sample that states an error, and laws that call it."""
    monkeypatch.setenv("BROKEN_WITHOUT", without)
    for partial, verdict in (([], "fail"), (["--partial"], "unsupported")):
        _, report = conformance(tmp_path, fault, op, "test", *partial)
        of_it = [case["verdict"] for case in report["cases"] if f"{without}: no kernel" in case.get("text", "")]
        assert of_it and set(of_it) == {verdict}, report
        assert partial == [] or "fail" not in {case["verdict"] for case in report["cases"]}, report


def test_what_is_unsupported_in_part_is_counted(tmp_path):
    done, report = conformance(tmp_path, "lacks_more", "linspace")
    verdicts = [case["verdict"] for case in report["cases"]]
    counts = [verdicts.count(word) for word in ("pass", "fail", "unsupported")]
    assert counts[0] > 0 and counts[1] == 0 and counts[2] > 0
    assert re.search("bp::linspace +{} +{} +{}  native; unsupported\n  unsupported .*does not compute in".format(*counts), done.stdout, re.S), done.stdout


def test_every_check_is_seen_to_fail(tmp_path):
    """Of a check that no planted fault trips, nothing shows that it can fail."""
    if SANITIZED:
        pytest.skip("it is about the lists of this file")
    tried = set()
    ops = ["*"] if WHOLE else ["[a-c]*", "(device)*"]  # of these every check is tried, too
    for mode, some in [(mode, one) for mode in ("test", "grad", "stress") for one in ops] + [("async", "(device)*")]:
        done, report = conformance(tmp_path, "", some, mode, "--short")
        assert done.returncode == 0, done.stdout
        tried |= {(case["op"] if case["op"].startswith("(device)") else "an op", case["check"]) for case in report["cases"] if case["verdict"] != "excepted"}
    seen = {(where if where.startswith("(device)") else "an op", one) for _, where, check, *_ in FAULTS.values() for one in check.split("|")}
    assert tried - seen == set()


def test_the_table_shows_the_failure_that_names_the_cause(tmp_path):
    done, report = conformance(tmp_path, "without_power", "sign")
    texts = [case["text"] for case in report["cases"] if case["verdict"] == "fail"]
    assert any("found" in text for text in texts) and any("the device has no power" in text for text in texts)
    assert re.search(r"bp::sign +\d+ +\d+ +0  native\n  FAIL .*the device has no power", done.stdout), done.stdout


@pytest.mark.parametrize("op, arguments", [("index_put", "x, [i], v"), ("take_put", "x, i, v"), ("put_along_axis", "x, i, v")])
def test_a_device_moves_dtypes_that_it_lacks_and_adds_none(op, arguments):
    """Writing where indices point moves elements; adding there computes."""
    program = f"""if True:
        import sys, backplane as bp
        bp.load_plugin(sys.argv[1])
        x, i, v = (bp.asarray(a, dtype=d).to("broken") for a, d in (([1, 2, 3], bp.float64), ([0, 2], bp.int64), ([4, 5], bp.float64)))
        print(bp.ops.bp.{op}({arguments}).to("cpu").tolist())
        try:
            print(bp.ops.bp.{op}({arguments}, accumulate=True).to("cpu").tolist())
        except NotImplementedError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", program, PLUGIN], capture_output=True, text=True, env={**os.environ, "BROKEN_FAULT": "lacks"})
    assert done.stdout.startswith("[4.0, 2.0, 5.0]\n") and "the device does not compute in float64" in done.stdout, done.stdout + done.stderr


def test_a_power_is_differentiated_where_the_device_lacks_int64():
    """The exponent is an integer of Python, which takes the dtype of the base."""
    program = """if True:
        import sys, backplane as bp
        bp.load_plugin(sys.argv[1])
        x = bp.asarray([0, 2, 3], dtype=bp.float32).to("broken")
        for power in (0, 1, 2, 3):
            print(bp.grad(lambda x: (x ** power).sum())(x).tolist(), bp.jvp(lambda x: x ** power, (x,), (x,))[1].tolist())
        print(bp.grad(lambda x: bp.grad(lambda x: (x ** 3).sum())(x).sum())(x).tolist())
    """
    done = subprocess.run([sys.executable, "-c", program, PLUGIN], capture_output=True, text=True, env={**os.environ, "BROKEN_FAULT": "lacks_int64"})
    assert done.stdout.splitlines() == [
        "[0.0, 0.0, 0.0] [0.0, 0.0, 0.0]", "[1.0, 1.0, 1.0] [0.0, 2.0, 3.0]", "[0.0, 4.0, 6.0] [0.0, 8.0, 18.0]",
        "[0.0, 12.0, 27.0] [0.0, 24.0, 81.0]", "[0.0, 12.0, 18.0]"], done.stdout + done.stderr  # fmt: skip
