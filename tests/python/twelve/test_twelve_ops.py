"""The twelve ops of tests/sdk/twelve, built in this tree: the laws and the kit hold for them; sizes that depend on values; a view with formulas."""

import os
import pathlib
import shutil
import subprocess
import sys

import backplane as bp
import numpy as np
import pytest
from entries_plugin import entries  # noqa: F401

FOLDER = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "")) / "tests/python/twelve"
FILE = FOLDER / "test_twelve.so"
COMMAND = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "")) / "bin/backplane"
BOXES = [[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.5], [3.0, 3.0, 4.0, 4.0]]
SCORES = [0.75, 0.5, 0.875]


@pytest.fixture(scope="session")
def twelve():
    if not FILE.exists():
        pytest.skip(f"{FILE.name} is not there; build the target test_twelve, and set BACKPLANE_BUILD")
    bp.load_plugin(str(FILE))
    return bp.ops.twelve


def test_the_size_of_the_result_is_what_remains(twelve):
    boxes, scores = bp.asarray(BOXES), bp.asarray(SCORES)
    assert twelve.nms(boxes, scores).tolist() == [2, 0]
    assert twelve.nms(boxes, scores, overlap=0.8).tolist() == [2, 0, 1]
    rows, count = twelve.nms_padded(boxes, scores)
    assert rows.tolist() == [2, 0, 0] and int(count) == 2 and count.dtype is bp.int64
    assert twelve.nms(bp.zeros((0, 4)), bp.zeros(0)).shape == (0,)


def test_the_padded_form_is_compiled_exported_and_batched(twelve, tmp_path):
    boxes, scores = bp.asarray(BOXES), bp.asarray(SCORES)
    compiled = bp.compile(lambda b, s: twelve.nms_padded(b, s, overlap=0.8))
    rows, count = compiled(boxes, scores)
    assert rows.tolist() == [2, 0, 1] and int(count) == 3
    many = bp.stack([boxes, boxes * bp.asarray([1.0, 1.0, 1.0, 0.5])])
    rows, count = bp.vmap(twelve.nms_padded, in_axes=(0, None))(many, scores)
    assert rows.shape == (2, 3) and count.shape == (2,)
    for row, n, one in zip(rows, count, many):
        assert row[: int(n)].tolist() == twelve.nms(one, scores).tolist()
    graph = bp.make_graph(lambda b, s: twelve.nms_padded(b, s)[1])(boxes, scores)
    assert "nms_padded" in str(graph)


def test_several_results_of_one_count_are_differentiated(entries):
    x = bp.asarray([-1.0, 2.0, 0.0, 3.0]).requires_grad_()
    values, rows = entries.positives(x)
    assert values.tolist() == [2, 3] and rows.tolist() == [[1, 4], [3, 4]]
    (values * bp.asarray([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [0, 1, 0, 10]
    _, tangent = bp.jvp(lambda x: entries.positives(x)[0], (x.detach(),), (bp.asarray([5.0, 6.0, 7.0, 8.0]),))
    assert tangent.tolist() == [6, 8]
    total = bp.compile(bp.grad(lambda x: entries.positives_padded(x)[0].sum()))
    assert total(x.detach()).tolist() == [0, 1, 0, 1]
    _, rows, counts = bp.vmap(entries.positives_padded)(bp.asarray([[1.0, -1.0], [2.0, 3.0]]))
    assert counts.tolist() == [1, 2] and rows.tolist() == [[[0, 2], [0, 0]], [[0, 2], [1, 2]]]


@pytest.mark.parametrize("transform", [bp.compile, lambda f: bp.vmap(f, in_axes=(0, None))])
def test_the_op_itself_is_refused_with_the_name_of_its_padded_form(twelve, transform):
    boxes = bp.asarray(BOXES) if transform is bp.compile else bp.asarray([BOXES])
    with pytest.raises(bp.MissingRuleError, match=r"twelve::nms.*call twelve::nms_padded, which gives all rows and their count"):
        transform(twelve.nms)(boxes, bp.asarray(SCORES))


def test_a_view_with_formulas_shares_memory(twelve):
    x = bp.arange(10.0).reshape((2, 5))
    view = twelve.every_second(x, which=1)
    assert view.tolist() == [[1, 3], [6, 8]] and twelve.every_second.infer(x, which=1)[0][1] == (2, 2)
    view[...] = 0
    assert x.tolist() == [[0, 0, 2, 0, 4], [5, 0, 7, 0, 9]]
    x = bp.ones((2, 5)).requires_grad_()
    twelve.every_second(x, which=-2).sum().backward()
    assert x.grad.tolist() == [[0, 0, 0, 1, 0]] * 2


def test_shapes_of_views_with_formulas_are_those_of_slices(twelve):
    for size in range(6):
        for which in range(-7, 8):
            x = bp.arange(size)
            assert twelve.every_second.infer(x, which=which)[0][1] == (len(range(size)[which::2]),)
            assert twelve.every_second(x, which=which).tolist() == list(range(size))[which::2]


def test_random_and_changing_ops(twelve):
    bp.manual_seed(1)
    first, second = twelve.noisy(bp.zeros(1000)), twelve.noisy(bp.zeros(1000))
    assert abs(float(first.std()) - 1) < 0.1 and not bool(bp.all(first == second))
    p, m, v = bp.ones(3), bp.zeros(3), bp.zeros(3)
    expected = twelve.adamw(p, bp.ones(3), m, v)
    twelve.adamw_(p, bp.ones(3), m, v)
    assert p.tolist() == expected.p.tolist() and m.tolist() == expected.m.tolist() and v.tolist() == expected.v.tolist()


def test_the_angles_are_those_of_the_formula(twelve):
    x = np.random.default_rng(0).random((5, 6))
    angles = np.arange(5)[:, None] * 100.0 ** (-2 * np.arange(3) / 6)
    turned = (x[:, :3] + 1j * x[:, 3:]) * np.exp(1j * angles)
    np.testing.assert_allclose(twelve.rotary(bp.asarray(x), base=100).numpy(), np.hstack([turned.real, turned.imag]), atol=1e-12)


def test_the_window_hides_what_lies_outside(twelve):
    draw = np.random.default_rng(1)
    q, k, v = (draw.random((6, 4)) for _ in range(3))
    scores = q @ k.T / 2
    scores[abs(np.arange(6)[:, None] - np.arange(6)) > 2] = -np.inf
    weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    found = twelve.windowed_attention(*(bp.asarray(x) for x in (q, k, v)), window=2)
    np.testing.assert_allclose(found.numpy(), weights @ v, atol=1e-12)


@pytest.mark.parametrize("mode", ["test", "grad", "stress"])
@pytest.mark.skipif(not COMMAND.exists(), reason="needs the command backplane")
def test_the_kit_finds_nothing(twelve, tmp_path, mode):
    plugin = shutil.copy(FILE, tmp_path)
    shutil.copy(FOLDER / "samples.json", tmp_path / "test_twelve.samples.json")
    done = subprocess.run([COMMAND, "conformance", "--device", "cpu", "--plugin", plugin, "--mode", mode, "--op", "twelve::*"], capture_output=True, text=True)
    assert done.returncode == 0 and " 0 failed" in done.stdout and "twelve::nms_padded" in done.stdout, done.stdout + done.stderr


def test_the_laws_hold(twelve):
    here = pathlib.Path(__file__).resolve().parents[1]
    environment = {**os.environ, "BACKPLANE_SAMPLES": str(FOLDER / "samples.json"), "BACKPLANE_LAW_PLUGIN": str(FILE)}
    files = [here / "laws" / f"test_law_{name}.py" for name in ("stated", "values", "meta", "trace", "variants", "gradient")]
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
