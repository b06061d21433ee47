"""Laws of the algebraic rules (ops/rewrites.yaml): each fires on some arguments, and on all of them the compiled function gives the bits of
the eager one, and tensors that share no memory with others where the eager ones share none."""

import itertools
import pathlib
import random
import re

import backplane as bp
import numpy as np
import pytest

TABLE = pathlib.Path(__file__).resolve().parents[3] / "ops/rewrites.yaml"
RULES = [tuple(part.strip("'") for part in found) for found in
         re.findall(r"^  - \{from: (.*?), to: (.*?)(?:, when: .*)?\}$", TABLE.read_text(), re.MULTILINE)]
DTYPES = [bp.bool, bp.int8, bp.uint8, bp.int32, bp.float16, bp.float32, bp.float64, bp.complex64]
AXES = [(0, 1), (1, 0), (-2, -1), (-1, 0), (0,), (1,), (-1,)]
SHAPES = [(3, 4), (4, 3), (12,), (2, 6), (1, 3, 4), (2, 3, 4)]
NUMBERS = [1, 2, 4.0, 3.0, 0.25, -0.5, 0]
SPECIAL = [0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 100.0]
ops = bp.ops.bp


def tensor(dtype, draw):
    values = np.array([draw.choice(SPECIAL) for _ in range(12)]).reshape(3, 4)
    if dtype in (bp.float16, bp.float32, bp.float64, bp.complex64):
        return bp.asarray(values).astype(dtype)
    return bp.asarray(np.array([draw.randrange(2 if dtype is bp.bool else 100) for _ in range(12)]).reshape(3, 4)).astype(dtype)


def candidates(name, rule, draw):
    if name in ("x", "y", "condition"):
        return [tensor(dtype, draw) for dtype in DTYPES]
    if name == "c":
        return NUMBERS
    if name == "dtype" or (name == "middle" and rule.startswith("cast")):
        return DTYPES
    return SHAPES if name in ("shape", "middle") else AXES


def calls(text):
    return sorted(re.findall(r"bp::(\w+)\(", text))


def bits(result):
    array = result.numpy() if result.dtype is not bp.bfloat16 else result.astype(bp.float32).numpy()
    array = np.where(array != array, np.zeros_like(array), array)
    return result.dtype, result.shape, array.tobytes()


def test_the_table_was_read():
    assert len(RULES) == TABLE.read_text().count("- {from:")


@pytest.mark.parametrize("rule", [text for text, _ in RULES])
def test_a_rule_fires_and_keeps_the_bits(rule):
    draw = random.Random(rule)
    names = sorted({name for name in re.findall(r"[a-z_]+(?!\w*\()", rule) if not hasattr(ops, name)})
    choices = list(itertools.product(*(candidates(name, rule, draw) for name in names)))
    draw.shuffle(choices)
    source = eval(f"lambda {', '.join(names)}: {rule}", {name: getattr(ops, name) for name in dir(ops)})
    fired = tried = 0
    for choice in choices:
        if tried == 120:
            break
        places = [i for i, value in enumerate(choice) if isinstance(value, bp.Tensor)]

        def function(*tensors, join=True):
            arguments = list(choice)
            for place, value in zip(places, tensors):
                arguments[place] = value
            result = source(*arguments)
            return bp.concat([result, result]) if join else result

        tensors = [choice[i] for i in places]
        try:
            expected = function(*tensors)
        except bp.BackplaneError:
            continue  # an op does not take these
        tried += 1
        with np.errstate(all="ignore"):
            assert bits(bp.compile(function)(*tensors)) == bits(expected), choice
        graph = bp.make_graph(function)(*tensors)
        fired += calls(graph.explain(*tensors)) != calls(str(graph))
        check_memory(lambda *values: function(*values, join=False), tensors)
    assert fired > 0, f"{rule} applied to none of {len(choices)} choices"


def check_memory(function, tensors):
    """The result shares memory with an argument where the eager one does, and else not."""
    eager, compiled = function(*tensors), bp.compile(function)(*tensors)
    for tensor in tensors:
        shared = np.shares_memory(tensor.numpy(), eager.numpy())
        assert np.shares_memory(tensor.numpy(), compiled.numpy()) == shared


def test_results_that_are_equal_are_tensors_of_their_own():
    x = bp.ones((3,))
    one, other = bp.compile(lambda x: (x * 1, x + 0.5 - 0.5))(x)
    one += 1
    assert x.tolist() == [1.0, 1.0, 1.0] and other.tolist() == [1.0, 1.0, 1.0]
    one, other = bp.compile(lambda x: (x + 1, x + 1))(x)
    one += 1
    assert other.tolist() == [2.0, 2.0, 2.0]


def test_a_constant_result_is_made_anew():
    compiled = bp.compile(lambda x: (x, bp.zeros((2,)) + 1))
    compiled(bp.ones((2,)))[1].__iadd__(1)
    assert compiled(bp.ones((2,)))[1].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("shape", [(5, 7), (2, 5, 7)])
def test_elementwise_ops_of_transposes_run_as_these_lie(shape):
    x, w = (bp.asarray(np.random.default_rng(3).standard_normal(sizes).astype("float32")) for sizes in (shape, (5, 3)))

    def function(x):
        turned = x.mT
        return bp.tanh(turned * 2 + turned) @ w

    np.testing.assert_array_equal(bp.compile(function)(x).numpy(), function(x).numpy())
    text = bp.explain_plan(function)(x)
    assert text.index("bp::tanh") < text.index("bp::permute_dims"), text
    gradient = bp.grad(lambda x: function(x).sum())
    np.testing.assert_allclose(bp.compile(gradient)(x).numpy(), gradient(x).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_transposes_before_products_keep_the_meaning(seed):
    x, y = (bp.asarray(np.random.default_rng(seed + k).standard_normal((4, 4)).astype("float32")) for k in range(2))

    def function(x, y):
        choose = random.Random(seed)
        values, results = [x, y, x.mT, y.mT], []
        for _ in range(choose.randrange(5, 25)):
            a, b = choose.choice(values), choose.choice(values)
            made = [lambda: a + b, lambda: a * b, lambda: -a, lambda: a * 0.5, lambda: a.mT, lambda: bp.maximum(a, b)][choose.randrange(6)]()
            values.append(made)
            if choose.random() < 0.3:
                results.append(made @ choose.choice(values))
            if choose.random() < 0.1:
                results.append(made)
        return results

    for ours, eager in zip(bp.compile(function)(x, y), function(x, y), strict=True):
        np.testing.assert_allclose(ours.numpy(), eager.numpy(), rtol=1e-5, atol=1e-6)
