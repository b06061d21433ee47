"""trace: the graph of a call = the call, on new data, with the same random numbers. Every op and every dtype of its arguments.

So do the graph of an op's gradient (forward and backward in one), and the graph of the op over a batch.
"""

import backplane as bp
import pytest
from law_inputs import arrays_of, tensors_of
from law_registry import cases
from law_running import assert_same, call, to_array
from test_law_gradient import has_gradient
from test_law_meta import dtypes_of, inferable
from test_law_transforms import Functional, batches, functionals, pulled, rows_of


def generators_of(arguments):
    return [value for value in arguments.values() if isinstance(value, bp.Generator)]


def new_arguments(case, dtype, like):
    """Tensors of other values, and the same Generators: those are static."""
    found = tensors_of(case, arrays_of(case, dtype, drawing=1))
    return {name: like[name] if isinstance(like[name], bp.Generator) else value for name, value in found.items()}


def assert_all_same(case, found, expected):
    assert len(found) == len(expected)
    for ours, eager in zip(found, expected):
        assert ours.dtype is eager.dtype
        inexact = ours.dtype.kind in ("real floating", "complex floating")
        assert_same(case, to_array(ours), to_array(eager), ours.dtype if inexact else bp.float32)


def refused(case, dtype):
    """The class of the error that the call raises, or None."""
    try:
        call(case, tensors_of(case, arrays_of(case, dtype)))
    except bp.BackplaneError as error:
        return type(error)
    return None


@pytest.mark.parametrize("case", cases("trace", inferable))
def test_a_graph_does_what_the_call_does(case):
    for dtype in dtypes_of(case):
        first = tensors_of(case, arrays_of(case, dtype))
        refusal = refused(case, dtype)
        if refusal:  # a sample states a dtype that does not go with this one
            with pytest.raises(refusal):
                bp.make_graph(lambda arguments: call(case, arguments))(first)
            continue
        starts = [generator.state for generator in generators_of(first)]
        graph = bp.make_graph(lambda arguments: call(case, arguments))(first)
        assert [generator.state for generator in generators_of(first)] == starts, "tracing took random numbers"
        arguments = new_arguments(case, dtype, first)
        expected = call(case, arguments)
        ends = [generator.state for generator in generators_of(arguments)]
        for generator, start in zip(generators_of(arguments), starts):
            generator.state = start
        assert_all_same(case, graph(arguments), expected)
        assert [generator.state for generator in generators_of(arguments)] == ends, "a replay takes what the call takes"
        assert all(node.line for node in graph)


@pytest.mark.parametrize("case", cases("trace", lambda case: has_gradient(case) and inferable(case)))
def test_a_graph_of_a_gradient_is_the_gradient(case):
    for f in functionals(case):
        loss = f.loss(f.drawn_like(f(*f.inputs), 7))
        graph = bp.make_graph(lambda *inputs: pulled(loss, inputs))(*f.inputs)
        inputs = Functional(case, arrays_of(case, f.inputs[0].dtype.name, own_dtype=False, drawing=1)).inputs
        if [(x.dtype, x.shape) for x in inputs] != [(x.dtype, x.shape) for x in f.inputs]:
            inputs = f.inputs
        for found, expected in zip(graph(*inputs), pulled(loss, inputs)):
            assert_all_same(case, [found], [expected])


@pytest.mark.parametrize("case", cases("trace", lambda case: batches(case) and inferable(case)))
def test_a_graph_of_a_batch_is_the_batch(case):
    for f in functionals(case):
        batched = bp.vmap(f, randomness="same")
        rows = rows_of(f)
        graph = bp.make_graph(batched)(*rows)
        rows = [row * 0.95 for row in rows]
        assert_all_same(case, graph(*rows), batched(*rows))
