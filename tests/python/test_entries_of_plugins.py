"""Entries of a plugin: their decompositions are compared with their statements, and Python has all that stubs and pages promise."""

import ast
import inspect

import backplane as bp
import numpy as np
import pytest
from entries_plugin import FILE, entries  # noqa: F401

MATRIX = [[1.0, -2.0, 3.0], [4.0, 5.0, 6.0]]


@pytest.fixture
def x():
    return bp.asarray(MATRIX)


# ---- decompositions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["turned", "handed_on"])
def test_a_result_shares_no_memory_with_an_argument(entries, x, op):
    y = getattr(entries, op)(x)
    y += 100
    assert x.tolist() == MATRIX


@pytest.mark.parametrize("op", ["turned", "handed_on"])
def test_nor_does_it_inside_transforms(entries, x, op):
    def function(x):
        y = getattr(entries, op)(x)
        y *= 0
        return (x * x).sum()

    assert bp.grad(function)(x).tolist() == (2 * np.asarray(MATRIX)).tolist()
    assert bp.vmap(function)(x[None]).tolist() == [np.sum(np.square(MATRIX))]
    assert bp.jvp(function, (x,), (bp.ones_like(x),))[1].item() == 2 * np.sum(MATRIX)


@pytest.mark.parametrize("op", ["turned", "handed_on"])
def test_nor_a_history(entries, x, op):
    leaf = x.requires_grad_()
    y = getattr(entries, op)(leaf)
    y *= 0
    assert leaf.is_leaf and leaf.tolist() == MATRIX
    y.sum().backward()
    assert leaf.grad.tolist() == np.zeros((2, 3)).tolist()


MISTAKES = {
    "other_shape": r"other_shape: its decomposition made result 0 float32 of shape \((1, )?2, 2\); its shape rule says float32 of shape \((1, )?2, 3\)",
    "other_dtype": r"other_dtype: its decomposition made result 0 bool of shape \((1, )?2, 3\); its shape rule says float32 of shape \((1, )?2, 3\)",
    "composed": r"composed: its decomposition made result 0 float32 of shape \(\); its shape rule says float32 of shape \((1, )?2, 3\)",
}


@pytest.mark.parametrize("op", MISTAKES)
def test_a_result_is_what_the_entry_says(entries, x, op):
    function = getattr(entries, op)
    followed = [lambda: function(x), lambda: bp.vmap(function)(x[None]), lambda: function(bp.asarray(MATRIX).requires_grad_())]
    for way in followed + [lambda: bp.grad(lambda v: function(v).sum())(x)]:
        with pytest.raises(bp.ShapeError, match=f"entries::{MISTAKES[op]}"):
            way()


# ---- opcheck -----------------------------------------------------------------------------------------------------


def test_opcheck_fails_a_wrong_gradient_of_an_op_that_hands_its_argument_on(entries, x):
    with pytest.raises(bp.OpCheckError, match="gradient +failed: the gradient of 'x'"):
        bp.opcheck(entries.handed_on, (x,))


def test_opcheck_fails_a_wrong_put_of_a_view(entries, x):
    with pytest.raises(bp.OpCheckError, match="gradient +failed: the gradient of 'x' through a write into the view, by put"):
        bp.opcheck(entries.put_wrong, (x, 0, 1))


def test_opcheck_passes_what_is_sound(entries, x):
    assert bp.opcheck(entries.turned, (x,)) and bp.opcheck(entries.doubled, (x,))


# ---- the promises ------------------------------------------------------------------------------------------------


def promised():
    stub = FILE.parent / "entries.pyi"
    body = ast.parse(stub.read_text(encoding="utf-8")).body
    names = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    return body, names | {target.id for node in body if isinstance(node, ast.Assign) for target in node.targets} - {"Number"}


def test_stubs_promise_what_there_is(entries):
    body, names = promised()
    assert names == set(dir(entries)) and {"doubled_", "twice_"} <= names
    assert not any(isinstance(node, ast.ClassDef) for node in body), "Tensor has no methods of a plugin's ops"
    for node in body:
        if isinstance(node, ast.FunctionDef):
            stated = [arg.arg for arg in node.args.posonlyargs + node.args.args + node.args.kwonlyargs]
            assert stated == [row[0] for row in getattr(entries, node.name).parameters], node.name


def test_an_in_place_form_is_a_function_of_its_namespace(entries, x):
    assert entries.doubled_(x, by=3) is x and x.tolist() == (3 * np.asarray(MATRIX)).tolist()
    assert entries.twice_(x).tolist() == (6 * np.asarray(MATRIX)).tolist()
    assert bp.ops.bp.add_(x, 1) is x
    for missing in ("turned_", "nothing_", "_"):
        with pytest.raises(AttributeError, match=f"no op 'entries::{missing}'"):
            getattr(entries, missing)


def test_pages_promise_what_there_is(entries):
    page = (FILE.parent / "docs/ops/doubled.md").read_text(encoding="utf-8")
    assert "`backplane.ops.entries.doubled_` (C++: `doubled_`) writes the result into its first argument." in page


def test_explain_states_the_defaults(entries):
    line = bp.explain(entries.doubled).splitlines()[0]
    assert line == (
        "entries::doubled(Tensor x, *, Scalar by=2, Scalar? plus=none, str mode='plain', Size[] sizes=[1, 2], "
        "Dtype? dtype=none, bool exact=true) -> out"
    )
    assert "float dtype" not in line and "…" not in bp.explain("sum") + bp.explain("linspace")


def test_help_names_the_words_of_a_text(entries):
    assert "    mode: str. plain or careful.\n" in inspect.getdoc(entries.doubled)
    for op, words in (("pad_edges", "mode: str. replicate, reflect, symmetric or circular."), ("searchsorted", "side: str. The side of equal elements. left or right.")):
        assert f"\n    {words}\n" in getattr(bp.ops.bp, op).__doc__.partition("Arguments:")[2]


# ---- ints of formulas --------------------------------------------------------------------------------------------


def test_a_constant_reaches_the_end_of_uint64(entries):
    x = bp.asarray([1, 2**64 - 2], dtype=bp.uint64)
    assert entries.largest(x).tolist() == [2**64 - 1] * 2


def test_what_depends_on_the_call_is_refused_by_the_op(entries):
    x = bp.arange(6)
    assert entries.portion(x, 2, 0).shape == (3,)
    for call, found in [((0, 0), "divides 6 by 0"), ((2, 3), "index 3 .* is out of range for a list of 1")]:
        with pytest.raises((ValueError, IndexError), match=f"entries::portion: .* in its formula.*|{found}") as refused:
            entries.portion(x, *call)
        assert all(word in str(refused.value) for word in ("entries::portion", "in its formula"))


# ---- errors of rules ---------------------------------------------------------------------------------------------


RULES = {
    "gradient": (lambda f, x: bp.grad(lambda x: f(x).sum())(x), "derivative"),
    "backward": (lambda f, x: f(x.requires_grad_()).sum().backward(), "derivative"),
    "tangent": (lambda f, x: bp.jvp(f, (x,), (bp.ones_like(x),)), "derivative"),
    "batch": (lambda f, x: bp.vmap(f)(x), "batch rule"),
}


@pytest.mark.parametrize("rule", RULES)
def test_what_a_rule_refuses_names_the_op_that_was_called(entries, x, rule):
    run, words = RULES[rule]
    with pytest.raises((ValueError, IndexError), match=rf"^entries::sided: found x.*sizes=\(5,\).*, for which its {words} has no result; its documentation"):
        run(lambda x: entries.sided(x, sizes=[5]), x)
    with pytest.raises(ValueError, match=rf"^entries::sided: its {words}: bp::reshape: "):
        run(lambda x: entries.sided(x, rows=[2]), x)
