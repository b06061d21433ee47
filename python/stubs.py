"""Writes the two stubs of the package from where each fact stands once; all else is annotated in the Python sources.

    python stubs.py core bindings/core.pyi OUT SOURCE...    the extension module's, with the documentation of the C++ sources
    python stubs.py registry REGISTRY.pyi OUT __init__.py   the ops', without those that the package has a function for
"""

import ast
import pathlib
import re
import sys

DOC = re.compile(r'R"\((\w+)\([^\n]*\)\n--\n\n(.*?)\)";', re.DOTALL)
FUNCTION = re.compile(r"^(def (\w+)\((?:[^()]|\([^()]*\))*\) -> [^\n]*:) \.\.\.\n", re.MULTILINE)


def core(stub, sources):
    docs = {name: text for source in sources for name, text in DOC.findall(source.read_text(encoding="utf-8"))}

    def documented(match):
        if match[2] not in docs:
            return match[0]
        text = "\n".join("    " + line if line else "" for line in docs.pop(match[2]).split("\n"))
        return f'{match[1]}\n    """{text.strip()}\n    """\n'

    stub = FUNCTION.sub(documented, stub)
    if docs:
        raise SystemExit(f"stubs.py: found documentation of {', '.join(docs)}, expected functions of these names in core.pyi")
    return stub


def public(path):
    """What `from MODULE import *` gives."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "__all__":
            return ast.literal_eval(node.value)
    raise SystemExit(f"stubs.py: {path}: found no __all__, expected one in a module that __init__.py imports with *")


def imported(init):
    """The names that the package's __init__.py imports from its modules."""
    names = set()
    for node in ast.parse(init.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            found = [alias.name for alias in node.names]
            names.update(public(init.parent / f"{node.module}.py") if found == ["*"] else found)
    return names


def registry(stub, init):
    """A type checker takes either the first or the last of two definitions; so there is one."""
    lines, own = stub.split("\n"), imported(init)
    for node in reversed(ast.parse(stub).body):
        if isinstance(node, ast.FunctionDef) and node.name in own:
            del lines[node.lineno - 1 : node.end_lineno + 1]
    return "\n".join(lines)


if __name__ == "__main__":
    _, kind, given, out, *rest = sys.argv
    text, paths = pathlib.Path(given).read_text(encoding="utf-8"), [pathlib.Path(name) for name in rest]
    pathlib.Path(out).write_text(core(text, paths) if kind == "core" else registry(text, paths[0]), encoding="utf-8")
