"""Every spelling that an entry states: a word means its argument, and a signature means its call. It is selected before anything runs."""

import json
import pathlib
import re

import backplane as bp
import numpy as np
import pytest

REGISTRY = json.loads((pathlib.Path(bp.__file__).parent / "samples.json").read_text())["ops"]
SPELLINGS = [(entry, text, meaning) for entry in REGISTRY for text, meaning in entry.get("spellings", {}).items()]
WORDS = [row for row in SPELLINGS if "(" not in row[1]]
SIGNATURES = [row for row in SPELLINGS if "(" in row[1]]

M = bp.asarray([[1.5, -2.0, 4.0], [3.0, 0.5, -1.0]])
BOOLS = bp.asarray([[True, False], [True, True]])
# Values of the parameters, by type and name.
VALUES = {"Tensor x": M, "Tensor y": M + 1, "Tensor other": M[:, :1] * 2, "Tensor alpha": 3.0, "Tensor condition": M > 0, "Tensor input": M, "Tensor(bool) x": BOOLS, "Tensor(bool) y": BOOLS,
          "Tensor(complex) x": bp.asarray([[1 + 2j, 3 - 1j], [0.5j, 2 + 0j]]), "Axis dim": 1, "Axes dim": (0, 1), "Axes axis": 0, "bool keepdim": True, "bool keepdims": True,
          "bool unbiased": False, "bool descending": True, "bool stable": True, "Scalar correction": 1, "Dtype dtype": bp.float64, "none dim": None, "none dtype": None}  # fmt: skip
# Of the words: the arguments of a call, by the entry's own names.
VECTOR = bp.asarray([1.0, 2.0, 4.0])
CALLS = {
    "arange": {"start": 1, "stop": 5}, "broadcast_to": {"x": VECTOR, "shape": (2, 3)}, "clip": {"x": M, "min": 0.0, "max": 2.0},
    "diagonal": {"x": M, "axis1": 1, "axis2": 0}, "eye": {"n_rows": 2, "n_cols": 3}, "flip": {"x": M, "axis": 1}, "full": {"shape": (2,), "fill_value": 3},
    "heaviside": {"x": M, "y": 0.5}, "isin": {"x1": M, "x2": VECTOR}, "linspace": {"start": 0.0, "stop": 1.0, "num": 3}, "nanstd": {"x": M, "correction": 1},
    "nanvar": {"x": M, "correction": 1}, "ones": {"shape": (2, 1)}, "permute_dims": {"x": M, "axes": (1, 0)}, "pow": {"x": VECTOR, "y": 2.0},
    "roll": {"x": M, "shift": 1, "axis": 1}, "searchsorted": {"x1": VECTOR, "x2": M}, "std": {"x": M, "correction": 1}, "tile": {"x": M, "repetitions": (2, 1)},
    "tril": {"x": M, "k": 1}, "triu": {"x": M, "k": -1}, "var": {"x": M, "correction": 1}, "zeros": {"shape": (2, 1)},
}  # fmt: skip


def same(found, expected):
    for one, other in zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]:
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def name_of(entry):
    return entry["name"].removeprefix("bp::")


def ids(row):
    return row if isinstance(row, str) else name_of(row)


@pytest.mark.parametrize("entry, word, argument", WORDS, ids=ids)
def test_a_word_is_another_name_of_its_argument(entry, word, argument):
    function, arguments = getattr(bp.ops.bp, name_of(entry)), CALLS[name_of(entry)]
    spelled = {word if name == argument else name: value for name, value in arguments.items()}
    assert word in spelled and argument not in spelled
    same(function(**spelled), function(**arguments))
    with pytest.raises(TypeError, match=f"found {argument} and {word}, expected one of them"):
        function(**arguments, **{word: arguments[argument]})


def parameters(signature):
    """(name of the op, [(name, value, keyword only)])"""
    name, inside = re.fullmatch(r"(\w+)\((.*)\)", signature).groups()
    rows, is_keyword = [], False
    for part in inside.split(", "):
        if part == "*":
            is_keyword = True
            continue
        kind, word = part.split("=")[0].replace("?", "").rsplit(" ", 1)
        rows.append((word, VALUES[f"{kind} {word}"], is_keyword))
    return name, rows


def meaning_of(call, rows):
    """The value of a call, as the entry writes it."""
    return eval(call, {**vars(bp.ops.bp), **{op: getattr(bp.ops.bp, op) for op in re.findall(r"(\w+)\(", call)}, "float32": bp.float32, **{word: value for word, value, _ in rows}})


@pytest.mark.parametrize("entry, signature, call", SIGNATURES, ids=ids)
def test_a_signature_means_its_call(entry, signature, call):
    name, rows = parameters(signature)
    if "none" in signature:  # None is no argument of the call
        rows = [row for row in rows if row[1] is not None]
    try:
        expected = meaning_of(call, rows)
    except bp.DtypeError:  # of bools: refused with alpha as without it
        with pytest.raises(bp.DtypeError):
            getattr(bp, name)(**{word: value for word, value, _ in rows})
        return
    given = [row for row in rows if not row[2]]
    more = {word: value for word, value, is_keyword in rows if is_keyword}
    own = {arg["name"] for arg in entry["args"]}
    function = getattr(bp, name)
    same(function(**{word: value for word, value, _ in rows}), expected)
    if set(more) - own:  # one of them selects the signature
        same(function(*(value for _, value, _ in given), **more), expected)
        method = getattr(bp.Tensor, name, None)
        if isinstance(method, bp.Op):
            same(method(*(value for _, value, _ in given), **more), expected)


@pytest.mark.parametrize("function, arguments", [
    (bp.max, {"dim": (0, 1)}), (bp.max, {"dim": 1, "keepdims": True}), (bp.min, {"dim": "a"}), (bp.sort, {"dim": None}), (bp.std, {"dim": 0, "ddof": 1}),
    (bp.var, {"dim": 0, "unbiased": True, "correction": 0}), (bp.softmax, {"dtype": 3}), (bp.add, {"alpha": 2}),
])  # fmt: skip
def test_a_call_that_fits_no_signature_lists_all_of_them(function, arguments):
    with pytest.raises(TypeError) as failure:
        function(M, **arguments)
    text = str(failure.value)
    name = function.__name__
    found = ", ".join(f"{word}={type(value).__name__}" for word, value in arguments.items())
    assert text.startswith(f"{name}: found (Tensor, {found}), expected the arguments of one of these signatures: {name}(x")
    stated = next(entry["spellings"] for entry in REGISTRY if entry["name"] == f"bp::{name}")
    assert text.count(f"{name}(") == 1 + sum(key.startswith(f"{name}(") for key in stated)


def test_help_lists_the_further_signatures():
    assert "Further signatures: max(x, dim, *, keepdim=False); max(x, dim=None, *, keepdim=False); max(x, other)" in bp.max.__doc__
    assert "Further signatures" not in bp.amax.__doc__


def test_a_selected_call_runs_its_ops_once():
    x = bp.asarray([[1.0, 3.0]]).requires_grad_()
    graph = bp.make_graph(lambda x: x.max(dim=1).values)(M)
    assert sum("max_with_indices" in str(node) for node in graph.nodes) == 1
    bp.sum(bp.add(x, x, alpha=3.0)).backward()
    assert x.grad.tolist() == [[4.0, 4.0]]


def test_in_place_forms_have_the_signatures_whose_meaning_is_the_op():
    x = bp.asarray([1.0, 2.0])
    assert x.add_(x, alpha=2) is x and x.tolist() == [3.0, 6.0]
    assert x.sub_(bp.asarray([1.0, 1.0]), alpha=3) is x and x.tolist() == [0.0, 3.0]


def test_signatures_keep_their_words_to_themselves():
    """`dim` of max selects a pair, so no other argument takes it for axis."""
    with pytest.raises(TypeError):
        bp.max(M, dim=0, axis=0)
    assert bp.sum(M, dim=0).tolist() == bp.sum(M, axis=0).tolist()


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "argmax", "nansum", "logsumexp", "count_nonzero"])
def test_a_reduction_takes_the_axis_of_a_number(name):
    x = bp.asarray(2.0) if name not in ("any", "all") else bp.asarray(True)
    function = getattr(bp, name)
    for axis in (0, -1):
        same(function(x, axis=axis), function(x))
    with pytest.raises(IndexError):
        function(x, axis=1)


@pytest.mark.parametrize("name", ["mean", "std", "var"])
def test_a_moment_takes_the_axis_of_a_number_as_dim_alone(name):
    """As NumPy and PyTorch do."""
    x, function = bp.asarray(2.0), getattr(bp, name)
    np.testing.assert_array_equal(function(x, dim=0).numpy(), function(x, **({} if name == "mean" else {"correction": 1})).numpy())
    with pytest.raises(IndexError):
        function(x, axis=0)


def test_the_dtype_selects_a_signature_under_every_word():
    x = bp.asarray([1 + 2j, 3 - 1j])
    assert float(bp.std(x, ddof=1)) == pytest.approx(np.std(x.numpy(), ddof=1)) == pytest.approx(float(x.std(dim=0)))
    assert bp.isnan([True, False]).tolist() == [False, False] and abs(bp.asarray([True])).dtype == bp.bool
