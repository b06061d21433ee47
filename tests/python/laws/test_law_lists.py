"""Lists of another length than an op wants (one entry for all axes, none, one too many) are taken or refused in the caller's words.

On arrays as the samples have them and on none of them, by kernels and by decompositions, in the result and in its gradient: where a
kernel never sees a list, because there is nothing to compute, a formula may.
"""

import backplane as bp
import pytest
from backplane import _core
from law_registry import registry
from law_running import INEXACT, INTERNALS, call, differentiable_results, to_array
from test_law_values import arrays_of, first_dtype, is_array, setting, tensors_of

LISTS = {}
for case in registry():
    listed = [arg.name for arg in case.entry.args if not arg.is_tensor and (arg.is_list or arg.type in ("Shape", "Axes"))]
    if listed and not case.error and "higher_order" not in case.entry.flags:
        LISTS.setdefault(case.entry.name, []).append((case, listed))


def other_lists(values):
    yield list(values[:1])
    yield []
    yield [*values, *(values[:1] or [1])]


def empty(arrays):
    return {name: value[:0] if is_array(value) and value.ndim > 0 else value for name, value in arrays.items()}


def with_another_list(case, listed):
    arrays = arrays_of(case, first_dtype(case))
    for some in (arrays, empty(arrays)):
        for name in listed:
            values = arrays.get(name)
            values = list(values) if isinstance(values, list | tuple) else [1, 1]
            yield from ({**some, name: other} for other in other_lists(values))


def run_with_gradient(case, arrays):
    tensors = tensors_of(case, arrays)
    for arg in case.entry.differentiable:
        tensor = tensors.get(arg.name)
        if isinstance(tensor, bp.Tensor) and tensor.dtype.name in INEXACT:
            tensor.requires_grad = True
    results = call(case, tensors)
    for result in results:
        to_array(result)
    for result in differentiable_results(case, results):
        if result.requires_grad:
            result.backward(bp.ones_like(result), retain_graph=True)


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize("name", LISTS)
def test_no_list_meets_a_formulas_words(name, decomposed):
    for case, listed in LISTS[name]:
        for arrays in with_another_list(case, listed):
            shapes = {key: value.shape if is_array(value) else value for key, value in arrays.items()}
            try:
                with setting(_core.force_decomposition, decomposed):
                    run_with_gradient(case, arrays)
            except (bp.BackplaneError, ValueError) as error:
                assert not INTERNALS.search(str(error)), f"{shapes}: {error}"
