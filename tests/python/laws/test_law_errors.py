"""Every error that an entry documents is raised: by a sample, by one bad argument in the place of a good one, or as the table says."""

import json

import backplane as bp
import numpy as np
import pytest
from law_registry import DEVICE, registry, samples_path
from law_running import INTERNALS
from test_law_values import ERRORS, arrays_of, call_and_wait, first_dtype, is_array, reshaped, tensors_of

CASES = {}
for case in registry():
    CASES.setdefault(case.entry.name, []).append(case)

BAD = {
    "Axis": [99, -99], "Axes": [[99], [-99], [0, 0], [0, 1, 0]], "Index": [99999, -99999], "Size": [10**6, 0], "Shape": [[7, 11, 13], [-3]],
    "Scalar": [-1, 0, 2, float("nan")], "str": ["nonsense"],
}  # fmt: skip


def bad_arrays(x):
    extreme = min(99999, np.iinfo(x.dtype).max) if x.dtype.kind in "iu" else -5 if x.dtype.kind in "fc" else 1
    strange = np.nan if x.dtype.kind in "fc" else 1
    shapes = [np.zeros(shape, x.dtype) for shape in ((5, 7), (), (0,))]
    return [*reshaped(x), x[None], *shapes, np.full(x.shape, extreme, x.dtype), np.full(x.shape, strange, x.dtype), np.zeros_like(x)]


def with_a_bad_argument(case):
    arrays = arrays_of(case, first_dtype(case))
    for arg in case.entry.args:
        value = arrays.get(arg.name)
        others = bad_arrays(np.asarray(value)) if arg.is_tensor and is_array(value) else BAD.get(arg.type, [])
        yield from ({**arrays, arg.name: other} for other in others)


@pytest.mark.parametrize("name", CASES)
def test_no_error_shows_a_formulas_internals(name):
    for case in (case for case in CASES[name] if not case.error):
        for arguments in with_a_bad_argument(case):
            try:
                call_and_wait(case, tensors_of(case, arguments))
            except (bp.BackplaneError, ValueError) as error:
                assert not INTERNALS.search(str(error)), str(error)
                assert len(str(error).splitlines()) <= 10


def singular():
    return bp.zeros((2, 2), dtype=bp.float64)


def second_run_differs():
    runs = []

    def function(x):
        runs.append(1)
        return x if len(runs) == 1 else (x, x)

    bp.grad(lambda x: bp.sum(bp.checkpoint(function)(x)))(bp.ones(2))


def rule_is_missing():
    double = bp.custom_function(lambda x: x * 2)
    double.defvjp(lambda x: (x * 2, None), lambda kept, g: (g * 2,))
    bp.jvp(double, (bp.ones(1),), (bp.ones(1),))


# What takes integers, lists, a derivative or a function.
CALLS = {
    ("bp::floor_divide", "DataError"): lambda: bp.floor_divide(bp.asarray([1]), bp.asarray([0])),
    ("bp::remainder", "DataError"): lambda: bp.remainder(bp.asarray([1]), bp.asarray([0])),
    ("bp::fmod", "DataError"): lambda: bp.fmod(bp.asarray([1]), bp.asarray([0])),
    ("bp::pow", "DataError"): lambda: bp.pow(bp.asarray([2]), bp.asarray([-1])),
    ("bp::adjugate", "DataError"): lambda: bp.grad(lambda x: bp.sum(bp.adjugate(x)))(singular()),
    ("bp::lu_factor", "DataError"): lambda: bp.grad(lambda x: bp.sum(bp.linalg.lu_factor(x).LU))(singular()),
    ("bp::qr_reduced", "DataError"): lambda: bp.grad(lambda x: bp.sum(bp.linalg.qr(x).R))(singular()),
    ("bp::tile", "ShapeError"): lambda: bp.tile(bp.ones(2), (-1,)),
    ("bp::unfold", "ValueError"): lambda: bp.unfold(bp.ones(3), 0, 4),
    ("bp::concat", "ShapeError"): lambda: bp.concat([bp.ones((2, 3)), bp.ones((2, 4))]),
    ("bp::concat", "ValueError"): lambda: bp.concat([]),
    ("bp::stack", "ShapeError"): lambda: bp.stack([bp.ones(2), bp.ones(3)]),
    ("bp::stack", "ValueError"): lambda: bp.stack([]),
    ("bp::index", "ShapeError"): lambda: bp.ones((4, 4))[bp.asarray([0, 1]), bp.asarray([0, 1, 2])],
    ("bp::ctc_loss", "IndexError"): lambda: bp.nn.functional.ctc_loss(bp.ones((0, 1, 2)), bp.asarray([[1]]), bp.asarray([0]), bp.asarray([1])),
    ("bp::checkpoint", "ValueError"): second_run_differs,
    ("bp::custom_function", "NotImplementedError"): rule_is_missing,
    ("bp::cond", "TypeError"): lambda: bp.cond(bp.asarray([True, False]), lambda x: x, lambda x: -x, bp.ones(1)),
    ("bp::while_loop", "ShapeError"): lambda: bp.while_loop(lambda x: bp.sum(x) < 3, lambda x: bp.concat([x, x]), bp.ones(1)),
    ("bp::scan", "ShapeError"): lambda: bp.scan(lambda carry, x: (bp.concat([carry, carry]), x), bp.ones(1), bp.ones(3))[0],
}


# Their decompositions compare each index with all positions, so that one out of range meets none and is left out. To refuse it would
# cost a read of the indices that the comparison spares.
LEFT_OUT_ON_PRIMITIVES = {("bp::scatter_max", "DataError"), ("bp::scatter_min", "DataError"), ("bp::scatter_prod", "DataError")}


def documented():
    entries = json.loads(samples_path().read_text())["ops"]
    pairs = [(entry["name"], error) for entry in entries for error in entry.get("errors") or {}]
    return [pair for pair in pairs if DEVICE == "cpu" or pair not in LEFT_OUT_ON_PRIMITIVES]


@pytest.mark.parametrize("name, error", documented())
def test_a_documented_error_is_raised(name, error):
    if (name, error) in CALLS:
        with pytest.raises(ERRORS[error]) as raised:
            float(bp.sum(bp.asarray(CALLS[name, error]())))
        assert isinstance(raised.value, bp.BackplaneError)
        return
    if any(case.error == error for case in CASES.get(name, [])):
        return  # test_bad_arguments_raise_the_stated_error makes that call
    for case in (case for case in CASES[name] if not case.error):
        for arguments in with_a_bad_argument(case):
            try:
                call_and_wait(case, tensors_of(case, arguments))
            except ERRORS[error]:
                return
            except bp.BackplaneError:
                pass
    pytest.fail(f"{name} documents {error}, which no bad argument raised; name a call in CALLS, or take it out of the entry")
