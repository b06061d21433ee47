"""No code depends on the text of an error: it asks for the class or the status, or for a fact, so that a text can be rewritten.

Python: an `except` body does not search or compare `str(error)`, and a function does not do so with its argument `error`. C++: no message is
compared with a literal of several words, nor searched for one. The exceptions are listed with their reason; the list may only get shorter.
"""

import ast
import re

import source_tree

PYTHON = [name for name in source_tree.tracked_files() if name.startswith(("python/", "bridges/", "packages/")) and name.endswith(".py")]
CPP = [name for name in source_tree.tracked_files() if name.startswith(("dispatcher/", "python/bindings/", "conformance/", "backends/", "codegen/", "sdk/"))
       and name.endswith((".cpp", ".hpp", ".h"))]
SEARCHES = {"startswith", "endswith", "find", "index", "search", "match", "fullmatch", "count"}
ERRORS = {"error", "failure", "missing", "exception"}
A_TEXT = r'"[^"\n]*\w [^"\n]*"'
COMPARED = re.compile(rf"(?:what\(\)\)?|message|\btext)\s*(?:\.(?:find|starts_with|ends_with|contains)\({A_TEXT}|[!=]= {A_TEXT})")
KNOWN = {
    "conformance/trial.cpp": "the contract has no status of its own for a dtype that the device lacks",
    "python/bindings/transforms/model_file.cpp": "it only puts the model's name in place of the graph's",
    "python/backplane/_custom_ops/_opcheck.py": "opcheck sorts what the core's checks of a call report, which is one class of errors",
    "python/backplane/_custom_ops/_opcheck_derivatives.py": "opcheck asks whether the op itself, or an op below it, lacks a batch rule",
    "python/backplane/_custom_ops/_opcheck_values.py": "opcheck names the other op whose kernel a device lacks",
}


def is_text_of(node, names):
    """Is it str(error)?"""
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str" and len(node.args) == 1
    return is_call and isinstance(node.args[0], ast.Name) and node.args[0].id in names


def searched(tree):
    """The lines that search or compare the text of an error."""
    for scope in ast.walk(tree):
        if isinstance(scope, ast.ExceptHandler):
            names = {scope.name}
        elif isinstance(scope, ast.FunctionDef):
            names = {argument.arg for argument in scope.args.args} & ERRORS
        else:
            continue
        for node in (node for statement in scope.body for node in ast.walk(statement)):
            is_search = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SEARCHES
            if isinstance(node, ast.Compare) or is_search:
                parts = [node.left, *node.comparators] if isinstance(node, ast.Compare) else [node.func.value, *node.args]
                if any(is_text_of(part, names) for part in parts):
                    yield node.lineno


def read(name):
    return (source_tree.ROOT / name).read_text(encoding="utf-8")


def found():
    """{file: lines} of the whole tree."""
    lines = {name: sorted(set(searched(ast.parse(read(name))))) for name in PYTHON}
    lines |= {name: [text.count("\n", 0, match.start()) + 1 for match in COMPARED.finditer(text)] for name in CPP for text in [read(name)]}
    return {name: numbers for name, numbers in lines.items() if numbers}


def test_no_code_depends_on_the_text_of_an_error():
    assert {name: lines for name, lines in found().items() if name not in KNOWN} == {}


def test_the_list_of_exceptions_is_not_too_long():
    assert sorted(KNOWN) == sorted(name for name in found() if name in KNOWN)


def test_the_law_sees_what_it_forbids():
    for body in ('"no kernel" in str(e)', 'str(e).startswith("no kernel")', "PATTERN.search(str(e))", 'str(e) == "no kernel here"'):
        assert list(searched(ast.parse(f"try:\n f()\nexcept E as e:\n if {body}: pass\n"))) == [4], body
    assert list(searched(ast.parse("def f(error): return 'a b' in str(error)\n"))) == [1]
    assert list(searched(ast.parse("try:\n f()\nexcept E as e:\n raise F(str(e)) from None\n"))) == []
    for line in ('if (message.find("does not compute in") != npos)', 'std::string_view(error.what()).starts_with("no kernel")', 'found.text == "it has no rows"'):
        assert COMPARED.search(line), line
    for line in ('text == "true"', "message.find(name)", 'text_.find("  # ")'):
        assert not COMPARED.search(line), line
