"""Imports within python/backplane are acyclic, those inside functions included: a module can be read after the modules that it imports.

The package itself counts as a module: what `__init__.py` imports does not import `backplane`. Modules that are built on the public functions
(`nn`, `optim`, ...) do; `__init__.py` loads these at first use, by name. What only type checkers see is left out.
"""

import ast
import pathlib
import re

import pytest
import source_tree

PACKAGE = "python/backplane/"
BINDINGS = [name for name in source_tree.tracked_files() if name.startswith("python/bindings/") and name.endswith((".cpp", ".hpp"))]


def modules(files):
    """{dotted name: path} of the package's files."""
    named = {name.removeprefix("python/").removesuffix(".py").replace("/", "."): name for name in files if name.startswith(PACKAGE) and name.endswith(".py")}
    return {name.removesuffix(".__init__"): path for name, path in named.items()}


def runs(node):
    """The nodes below that run: without the branches for type checkers."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            for other in child.orelse:
                yield other
                yield from runs(other)
            continue
        yield child
        yield from runs(child)


def imported(name, path, text, known):
    """(module, line) of each import of a module of the package."""
    package = name if path.endswith("__init__.py") else name.rpartition(".")[0]
    for node in runs(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] if node.level else ""
            base = ".".join(filter(None, (base, node.module)))
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                if inner in known:
                    yield inner, node.lineno
                elif base in known and not (base == "backplane" and alias.name in ("_core", "_registry")):
                    yield base, node.lineno


def reached(graph, start):
    seen, open_ = set(), [start]
    while open_:
        for target in graph.get(open_.pop(), {}):
            if target not in seen:
                seen.add(target)
                open_.append(target)
    return seen


def cycles(texts):
    """A line for each import from which a way leads back. texts: {path: text}."""
    known = modules(texts)
    graph = {}
    for name, path in known.items():
        graph[name] = {target: line for target, line in imported(name, path, texts[path], known) if target != name}
    far = {start: reached(graph, start) for start in graph}
    return [f"{known[source]}:{line}: imports {target}, which leads back"
            for source in graph for target, line in graph[source].items() if source in far[target]]  # fmt: skip


def test_no_module_is_imported_by_what_it_imports():
    names = modules(source_tree.tracked_files()).values()
    assert cycles({name: (source_tree.ROOT / name).read_text(encoding="utf-8") for name in names}) == []


@pytest.mark.parametrize(("a", "b", "caught"), [
    ("from . import b", "from .a import x", 2),
    ("from . import b", "def f():\n from .a import x", 2),
    ("from .b import x", "import backplane.a", 2),
    ("from .b import x", "TYPE_CHECKING = False\nif TYPE_CHECKING:\n from .a import x", 0),
    ("from .b import x", "import backplane", 2),
    ("from .b import x", "from . import _core", 0),
])  # fmt: skip
def test_a_cycle_is_caught(a, b, caught):
    start = "from . import a" if b == "import backplane" else ""
    found = cycles({f"{PACKAGE}__init__.py": start, f"{PACKAGE}a.py": a, f"{PACKAGE}b.py": b})
    assert len(found) == (3 if start else caught)


def test_modules_that_the_extension_imports_exist():
    known = modules(source_tree.tracked_files())
    names = {}
    for path in BINDINGS:
        text = pathlib.Path(source_tree.ROOT, path).read_text(encoding="utf-8")
        names.update(dict.fromkeys(re.findall(r'(?:imported_module|Forms)\("(backplane\.[\w.]+)"\)', text), path))
    assert len(names) >= 6
    assert {name: path for name, path in names.items() if name not in known} == {}


def test_files_that_the_extension_names_exist():
    """Comments, errors and tables of paths name files of the package by their place in it."""
    for path in BINDINGS:
        text = pathlib.Path(source_tree.ROOT, path).read_text(encoding="utf-8")
        for name in re.findall(r"\bbackplane/[\w/]+\.py\b", text):
            assert (source_tree.ROOT / "python" / name).is_file(), f"{path} names {name}"
