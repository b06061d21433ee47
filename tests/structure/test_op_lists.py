"""A property of ops stands in the registry: no code lists the names of ops that have it, except in rows of kernels.

A list is five or more names of ops in one string, or in strings beside each other. `__all__` is not one. The other lists have a reason here;
a new one needs a key in the entries (docs/reference/ops-yaml.md) instead.
"""

import ast
import re

import source_tree

LEAST = 5
ROWS = re.compile(r"backends/\w+/(kernels|lists?)/|backends/\w+/.*(elementwise|kernels|rows)")
CODE = [name for name in source_tree.tracked_files() if name.startswith(("dispatcher/", "codegen/", "conformance/", "backends/", "sdk/", "python/"))
        and name.endswith((".cpp", ".hpp", ".h", ".c", ".py")) and not ROWS.search(name)]
LISTS = {
    "codegen/emit/scalar_dialects.cpp": "functions of C, CUDA C++, OpenCL C and GLSL",
    "codegen/emit/wgsl.cpp": "functions of WGSL",
    "python/bindings/guards/recorder/number_calls.cpp": "functions of Python",
    "python/bindings/guards/recorder/recorder_arrays.cpp": "methods of NumPy's arrays",
    "python/backplane/_api/_indexing_functions.py": "the words of `reduce=`",
    "python/backplane/_calls/_creation_forms.py": "forms in Python of these functions",
    "python/backplane/_calls/_ops.py": "ops that only other functions call",
    "python/backplane/_calls/_other_forms.py": "forms in Python of these functions",
    "python/backplane/_calls/_reduction_forms.py": "forms in Python of these functions",
    "python/backplane/_calls/_syntax.py": "the ops behind Python's syntax, by slot",
    "python/backplane/_dims/_calls.py": "functions whose `axis` takes a named dimension",
    "python/backplane/_tensors/_numpy_protocol.py": "ufuncs of NumPy and their reductions",
    "python/backplane/compat/_torch_edits.py": "the words of `reduce=`",
    "python/backplane/compat/_ufuncs.py": "ufuncs of NumPy, their reductions and dtypes",
    "python/backplane/distributed/_devices.py": "the words of `op=`",
    "python/backplane/distributed/_sharded_ops.py": "ops along one axis",
    "python/backplane/distributed/_sharded_sums.py": "the words of `op=` that combine reductions over ranks",
    "python/backplane/linalg.py": "names of the array API that are shared with the main namespace",
    "python/stubs/registry.py": "functions whose stubs take more forms",
}
STRINGS = re.compile(r'"(?:\w+::)?[a-z_0-9]+"(?:[\s,:{}()\[\]]*"(?:\w+::)?[a-z_0-9]+")+|"[a-z_0-9]+(?: [a-z_0-9]+)+ ?"')


def without_all(text):
    """The text of a module with blanks in place of `__all__`."""
    lines = text.split("\n")
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign | ast.AugAssign) and "__all__" in ast.unparse(node).split("=")[0]:
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    return "\n".join(lines)


def lists(text, ops):
    """(line, names) of each list of ops in the text."""
    for match in STRINGS.finditer(text):
        words = re.findall(r"(?:\w+::)?([a-z_0-9]+)", match[0])
        named = [word for word in words if word in ops]
        if len(named) >= LEAST and len(named) >= 0.7 * len(words):
            yield text.count("\n", 0, match.start()) + 1, named


def found():
    ops, listed = source_tree.op_names(), {}
    for name in CODE:
        text = (source_tree.ROOT / name).read_text(encoding="utf-8")
        if lines := list(lists(without_all(text) if name.endswith(".py") else text, ops)):
            listed[name] = lines
    return listed


def test_no_code_lists_ops():
    listed = found()
    assert {name: lines for name, lines in listed.items() if name not in LISTS} == {}
    assert sorted(LISTS) == sorted(listed), "a list that is gone leaves LISTS"


def test_the_law_sees_what_it_forbids():
    ops = {"sin", "cos", "tan", "exp", "log"}
    for text in ('f = {"sin", "cos", "tan", "exp", "log"};', 'ONE = "sin cos tan exp log".split()', '{"bp::sin", "bp::cos", "bp::tan"},\n {"bp::exp", "bp::log"}'):
        assert list(lists(text, ops)) == [(1, ["sin", "cos", "tan", "exp", "log"])], text
    assert list(lists('{"bp::sin", "bp::cos"}', ops)) == []
    assert list(lists('"sin", "cos", "a", "b", "c", "d", "tan", "exp", "log"', ops)) == []
    assert list(lists(without_all('__all__ = ["sin", "cos", "tan", "exp", "log"]\n'), ops)) == []
