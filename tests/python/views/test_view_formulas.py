"""Views with formulas, one entry per word view.*: NumPy's values, shapes without data, shared memory, writes and gradients through them, and the laws."""

import os
import pathlib
import subprocess
import sys

import backplane as bp
import numpy as np
import pytest

FOLDER = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "")) / "tests/python/views"
FILE = FOLDER / "test_views.so"


@pytest.fixture(scope="module")
def views():
    if not FILE.exists():
        pytest.skip(f"{FILE.name} is not there; build the target test_views, and set BACKPLANE_BUILD")
    bp.load_plugin(str(FILE))
    return bp.ops.views


def _windows(x, size=2, step=1):
    starts = range(0, x.shape[-1] - 2 * (size - 1), step + 1)
    return np.stack([x[..., start : start + 2 * size - 1 : 2] for start in starts], axis=-2)


# Per op its NumPy reference, and samples: a shape and options.
CASES = {
    "sliced": (lambda x, start=0, step=1: x[..., start - 1 : -1, start::step],
               [((4, 5), {}), ((4, 5), {"start": 2, "step": 2}), ((2, 4, 5), {"start": -2}), ((1, 1), {"start": 3}), ((0, 3), {})]),
    "reversed": (lambda x, step=1: x[::-step], [((4, 2), {}), ((5,), {"step": 2}), ((1,), {"step": 9}), ((0, 2), {})]),
    "turned": (lambda x, back=False: x.transpose([1, 2, 0] if back else [2, 0, 1]), [((2, 3, 4), {}), ((2, 3, 4), {"back": True}), ((2, 0, 4), {})]),
    "repeated": (lambda x, n: np.broadcast_to(x, (n, *x.shape)), [((2, 3), {"n": 4}), ((), {"n": 2}), ((0, 2), {"n": 3}), ((2,), {"n": 0})]),
    "rows": (lambda x, width=2: x.reshape(-1, width), [((2, 6), {}), ((6,), {"width": 3}), ((0, 4), {})]),
    "from_end": (lambda x, back=1: x[..., -back], [((2, 3), {}), ((3, 2, 4), {"back": 4}), ((0, 3), {"back": 2})]),
    "pressed": (lambda x, axis: x.squeeze((axis, -1)), [((1, 3, 1), {"axis": 0}), ((2, 1, 1), {"axis": -2}), ((1, 0, 1), {"axis": 0})]),
    "opened": (lambda x, before=1: np.expand_dims(np.expand_dims(x, before), -1), [((2, 3), {}), ((), {"before": 0}), ((0, 2), {"before": 2})]),
    "crossed": (lambda x, offset=0: np.diagonal(x, offset + 1, -2, -1), [((3, 4), {}), ((4, 3), {"offset": -3}), ((2, 3, 3), {"offset": 1}), ((2, 2), {"offset": 9})]),
    "windows": (_windows, [((7,), {}), ((2, 9), {"size": 3, "step": 2}), ((3,), {}), ((0, 5), {})]),
}  # fmt: skip
SAMPLES = [(op, shape, options) for op, (_, samples) in CASES.items() for shape, options in samples]


@pytest.mark.parametrize(("op", "shape", "options"), SAMPLES)
def test_a_view_has_numpys_values_and_shares_memory(views, op, shape, options):
    function, reference = getattr(views, op), CASES[op][0]
    data = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    expected = reference(data, **options)
    x = bp.asarray(data.copy())
    view = function(x, **options)
    assert view.shape == expected.shape == function.infer(x, **options)[0][1]
    np.testing.assert_array_equal(view.numpy(), expected)
    x += 100
    np.testing.assert_array_equal(view.numpy(), reference(data + 100, **options))
    if len(set(expected.ravel())) < expected.size:  # elements that share one place are not written
        with pytest.raises(bp.ArgumentValueError, match="several elements share"):
            view[...] = -1
    if op in ("repeated", "windows"):  # of windows side by side, the core does not know that they share nothing
        return
    view[...] = -1
    left = data + 100
    np.testing.assert_array_equal(x.numpy(), np.where(np.isin(left, reference(left, **options)), -1, left))


@pytest.mark.parametrize(("op", "shape", "options"), SAMPLES)
def test_a_gradient_counts_how_often_an_element_is_shown(views, op, shape, options):
    x = bp.asarray(np.arange(np.prod(shape, dtype=float)).reshape(shape)).requires_grad_()
    getattr(views, op)(x, **options).sum().backward()
    seen = CASES[op][0](x.detach().numpy(), **options)
    counts = [(seen == value).sum() for value in x.detach().numpy().ravel()]
    np.testing.assert_array_equal(x.grad.numpy(), np.reshape(counts, shape))


def test_what_the_base_view_refuses_is_refused_with_the_name_of_the_op(views):
    for call in (lambda: views.from_end(bp.ones((2, 3)), back=4), lambda: views.pressed(bp.ones((2, 3)), 0), lambda: views.rows(bp.ones(5))):
        with pytest.raises((bp.ShapeError, IndexError), match="views::(from_end|pressed|rows)"):
            call()


def test_the_laws_hold(views):
    here = pathlib.Path(__file__).resolve().parents[1]
    environment = {**os.environ, "BACKPLANE_SAMPLES": str(FOLDER / "samples.json"), "BACKPLANE_LAW_PLUGIN": str(FILE)}
    files = [here / "laws" / f"test_law_{name}.py" for name in ("meta", "trace", "dynamic", "gradient", "batch")]
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files], capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and "laws over 10 entries" in done.stdout, done.stdout[-4000:] + done.stderr[-2000:]
