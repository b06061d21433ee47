"""BACKPLANE_LOG: each kind of report, the same results with and without reports, and silence without the variable."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import backplane as bp

x, row = bp.arange(6.0).reshape(2, 3), bp.ones(3)
print((x + x).tolist(), (x + row).tolist(), x.T.shape, x.max(dim=1).indices.tolist())
leaf = bp.ones((2, 3)).requires_grad_()
(leaf * 2).sum().backward()
print(leaf.grad.tolist())
f = bp.compile(lambda a: bp.sin(a) * 2 + 1)
print([float(f(a).sum()) for a in (x, x, bp.ones((4, 4)))])
"""


def run(topics, program=PROGRAM):
    environment = {name: value for name, value in os.environ.items() if name != "BACKPLANE_LOG"}
    environment |= {"BACKPLANE_LOG": topics} if topics is not None else {}
    done = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True)
    return done.stdout, done.stderr.splitlines()


@pytest.fixture(scope="module")
def all_topics():
    return run("dispatch,plan,guard,fuse,loader")


def test_reports_change_no_result(all_topics):
    results, silence = run(None)
    assert results == all_topics[0] and results
    assert silence == []


@pytest.mark.parametrize("words", [
    ("dispatch: bp::add(float32[2, 3], float32[2, 3]): fast path; the row of plugin",),
    ("dispatch: bp::add(float32[2, 3], float32[3]): no fast path: the tensors differ",),
    ("dispatch: bp::add: device cpu, computed in float32; the row of plugin", ".cpp:"),
    ("dispatch: bp::permute_dims(", "fast path; a view"),
    ("dispatch: bp::max_with_indices(float32[2, 3], ", "fast path; the row of plugin"),
    ("dispatch: bp::sum(", 'no fast path: key "autograd" intercepts it; slot: '),
    ("guard: <lambda>: traced, 3 nodes: first call",),
    ("guard: <lambda>: kept trace 1 of 1 answers",),
    ("guard: <lambda>: kept trace 1 of 1 does not fit: a: found shape (4, 4), had (2, 3)",),
    ("plan: graph ", "none of 0 kept plans fits ([2, 3])"),
    ("plan: graph ", "a kept plan answers for ([2, 3])"),
    ("fuse: node 0 (bp::sin) on cpu: region 0",),
    ("fuse: a region on cpu: ",),
    ("loader: folder ", ": searched"),
    ("loader: plugin backplane_cpu: found, ",),
    ("loader: plugin backplane_cpu: opened, ",),
], ids=lambda words: words[0].split(":")[0] + words[-1][:30])  # fmt: skip
def test_a_line_of_each_kind(all_topics, words):
    assert any(line.startswith("backplane: " + words[0]) and all(word in line for word in words) for line in all_topics[1])


@pytest.mark.parametrize("topic", ["dispatch", "plan", "guard", "fuse", "loader"])
def test_a_topic_is_reported_alone(all_topics, topic):
    assert {line.split(": ")[1] for line in run(topic)[1]} == {topic}
    assert {line.split(": ")[1] for line in all_topics[1]} == {"dispatch", "plan", "guard", "fuse", "loader"}


def test_the_reasons_of_slow_calls():
    program = """
import backplane as bp
x = bp.ones((3, 4))
x.T + x.T.clone()
x + bp.ones((3, 4), dtype="float64")
bp.add(x, x, out=bp.empty((3, 4), dtype="float64"))
bp.ones(3)
"""
    lines = [line for line in run("dispatch", program)[1] if "no fast path" in line]
    assert any("bp::ones(" in line and line.endswith("the op has none") for line in lines)
    assert any("float32[3, 4], float64[3, 4]" in line and "differ in device, dtype or shape" in line for line in lines)


def test_a_refused_plugin_is_reported(tmp_path):
    (tmp_path / "broken.backplane.json").write_text("{")
    program = f"import backplane as bp\nbp.add_plugin_path({str(tmp_path)!r})"
    assert any("loader: plugin broken: refused: " in line for line in run("loader", program)[1])


def test_an_unknown_word_is_a_warning_with_the_known_ones():
    (line,) = run("dispach,error", "import backplane as bp; bp.ones(2) + 1")[1]
    assert line.startswith('backplane: warning: BACKPLANE_LOG: found "dispach", expected ') and "dispatch, plan, guard, fuse and loader" in line
