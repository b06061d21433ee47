"""dynamic: the graph of a call for any size of its tensors' first axes = the call, at other sizes than it was traced with.

An op that has to know such a size, or takes no other one (a square matrix, an axis that goes with numbers among the arguments), says
so by the size's name: those cases are counted as refused, and those without a first axis of two elements as unsized.
"""

import re

import backplane as bp
import numpy as np
import pytest
from law_inputs import arrays_of, is_array, is_array_list, tensors_of
from law_registry import cases, widest
from law_running import call
from test_law_meta import dtypes_of, inferable
from test_law_trace import assert_all_same, generators_of

REFUSED = r'the size "\w+" cannot be dynamic|relies on|would be|by the op\'s rules|expected \w+ = '


def grow(array, by):
    """More rows of the values that are there: indices stay in range."""
    return np.concatenate([array, np.resize(array, (by, *array.shape[1:]))]) if array.ndim and array.shape[0] > 1 else array


def grown(arrays, by):
    def each(value):
        if is_array_list(value):
            return [item if item is None else grow(np.asarray(item), by) for item in value]
        return grow(np.asarray(value), by) if is_array(value) else value

    return {name: each(value) for name, value in arrays.items()}


def names_of_sizes(arguments):
    """A name for the first axis of each tensor."""
    found = {}
    for name, value in arguments.items():
        for position, item in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(item, bp.Tensor) and item.ndim and item.shape[0] > 1:
                path = f"arguments['{name}']" + ("" if position is None else f"[{position}]")
                found[path] = {0: f"n{len(found)}"}
    return found


def eager(case, arrays):
    try:
        arguments = tensors_of(case, arrays)
        results = call(case, arguments)
        bp.synchronize()  # what a device finds in the data it may say later
        return results, [generator.state for generator in generators_of(arguments)]
    except bp.BackplaneError:
        return None


def traced(case, arrays):
    """For as many of the names as go, and the error where none does."""
    arguments = tensors_of(case, arrays)
    names = names_of_sizes(arguments)
    refusal = None
    for some in [names, *({path: axes} for path, axes in names.items())] if names else []:
        try:
            return bp.make_graph(lambda arguments: call(case, arguments), dynamic=some)(arguments), arguments, refusal
        except bp.ShapeError as error:
            refusal = str(error)
    return None, arguments, refusal


def traceable(case):
    return inferable(case) and "trace" not in case.entry.exempt


@pytest.mark.parametrize("case", cases("dynamic", traceable))
def test_a_graph_of_any_size_does_what_the_call_does(case, record_property):
    arrays = arrays_of(case, widest(dtypes_of(case)))
    if eager(case, arrays) is None:
        return  # a sample states a dtype that does not go with this one
    graph, first, refusal = traced(case, arrays)
    if graph is None:
        assert refusal is None or re.search(REFUSED, refusal), refusal
        record_property("law_outcome", "refused" if refusal else "unsized")
        return
    ran = 0
    for by in (1, 2, 4, 6, 12):
        expected = eager(case, grown(arrays, by))
        if expected is None:
            continue
        arguments = tensors_of(case, grown(arrays, by))
        for name, value in first.items():
            if isinstance(value, bp.Generator):  # it is static
                value.state = arrays[name]
                arguments[name] = value
        try:
            found = graph(arguments)
        except ValueError as error:
            assert re.search(REFUSED, str(error)) or "shape" in str(error), error
            continue
        ran += 1
        assert_all_same(case, found, expected[0])
        assert [generator.state for generator in generators_of(arguments)] == expected[1]
    record_property("law_outcome", "passed" if ran else "refused")
