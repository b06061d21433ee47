"""The stub of the extension module, gathered from its sources and the package's. Where a fact stands:

functions, methods     the declaration that opens their documentation (bindings/interpreter/declared.hpp)
attributes             the type that opens their documentation: "int: Bytes of its elements."
what has none          a comment: "// Python: Tensor.__len__(self) -> int"
operators              the table in backplane/_calls/_syntax.py
what Python adds       the classes that backplane/_tensors/_members.py gives to a type: for type checkers its bases
errors and dtypes      the tables that make them
"""

import ast
import re

STRINGS = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
DECLARED = re.compile(r'R"\(([\w.]+\([^\n]*)\n--\n\n(.*?)\)"', re.DOTALL)
NOTED = re.compile(r"^ *// Python: (.*)$", re.MULTILINE)
TYPE = re.compile(r'PyModule_AddObjectRef\(module, "([A-Z]\w+)"')
ATTRIBUTES = re.compile(r"PyGetSetDef (\w+)_getset\[\] = (.*?)\{nullptr,", re.DOTALL)
ATTRIBUTE = re.compile(r'\{"(\w+)",\s*\w+,\s*(\w+),\s*' + STRINGS)
BOUND_TYPE = re.compile(r'py::class_<[^(]*\(module, "(\w+)"(.*?)(?=py::class_|^\})', re.DOTALL | re.MULTILINE)
BOUND_ATTRIBUTE = re.compile(r'\.def_(?:property_)?readonly\(\s*"(\w+)",(?:(?!\.def).)*?,\s*' + STRINGS + r"\)", re.DOTALL)
TYPED = re.compile(r"([\w.\[\], |]+): (.*)", re.DOTALL)
ERROR = re.compile(r'\{BP_ERROR_\w+, "(\w+)", &PyExc_(\w+), ' + STRINGS + r"(?:,\s*&PyExc_(\w+))?")
DTYPE = re.compile(r'^  X\([A-Z0-9]+, \d+, "(\w+)",', re.MULTILINE)
GIVEN = re.compile(r"^extend\((?:_core\.)?(\w+), (\w+)\)", re.MULTILINE)
UNARY = {"__neg__", "__pos__", "__abs__", "__invert__"}
COMPARISONS = {"__lt__", "__le__", "__gt__", "__ge__"}
OPENING = """\
# Types of what the extension module has. Made by python/stubs from the sources; edit those instead.
import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

{modules}
from ._registry import TensorMethods

Function = TypeVar("Function", bound=Callable[..., Any])
Number = builtins.bool | int | float | complex
Operand = Tensor | Number
DynamicSizes = Mapping[str, Mapping[int, str]] | Sequence[Mapping[int, str] | None] | builtins.bool

# What the package's own modules call.
def __getattr__(name: str) -> Any: ...
"""


def indented(text):
    return "\n".join("    " + line if line else "" for line in text.split("\n"))


def documented(declaration, doc=""):
    """A function or a class. bool is a dtype of the module, so that Python's goes by its full name."""
    declaration = re.sub(r"(?<![\w.])bool\b", "builtins.bool", declaration)
    if not doc:
        return f"{declaration}: ..."
    return f"{declaration}:\n" + indented(f'"""{doc}' + ("\n" if "\n" in doc else "") + '"""')


def declared(declaration, doc=""):
    """(type or "" for the module, line) of a declaration; a constructor is written Device(name: str)."""
    owner, name, rest = re.fullmatch(r"(?:(\w+)\.)?((?:class )?\w+)(.*)", declaration).groups("")
    if name.startswith("class ") or "->" in rest:
        return owner, documented(("" if name.startswith("class ") else "def ") + name + rest, doc)
    if rest.startswith("("):
        return name, documented(f"def __init__(self, {rest[1:]} -> None", doc)
    return owner, name + rest


def attribute(name, settable, doc):
    """The lines of an attribute: one where its documentation opens with a type, else none, since no user meets it."""
    typed = TYPED.fullmatch(ast.literal_eval(f"({doc})"))
    if typed is None:
        return []
    read = "@property\n" + documented(f"def {name}(self) -> {typed[1]}", typed[2])
    write = "\n" + f"@{name}.setter\n" + documented(f"def {name}(self, value: {typed[1]}, /) -> None")
    return [read + write if settable else read]


def members(text, types):
    """(type or "" for the module, line) of what a source of the extension module says. types: by their names in lower case."""
    yield from (("", f"{name}: DType") for name in DTYPE.findall(text))
    yield from (declared(note) for note in NOTED.findall(text))
    for name, builtin, doc, other in ERROR.findall(text):
        yield "", documented(f"class {name}({', '.join(filter(None, ('BackplaneError', builtin, other)))})", ast.literal_eval(doc))
    for owner, rows in ATTRIBUTES.findall(text):
        for name, setter, doc in ATTRIBUTE.findall(rows):
            yield from ((types[owner], line) for line in attribute(name, setter != "nullptr", doc))
    for owner, rows in BOUND_TYPE.findall(text):
        for name, doc in BOUND_ATTRIBUTE.findall(rows):
            yield from ((owner, line) for line in attribute(name, False, doc))
    yield from (declared(declaration, doc) for declaration, doc in DECLARED.findall(text))


def operators(syntax):
    """The methods of Tensor through which Python's operators call ops."""
    for name in (key for key in ast.literal_eval(syntax) if key.startswith("__")):
        if name in UNARY:
            yield f"def {name}(self) -> Tensor: ..."
        elif name in ("__eq__", "__ne__"):
            yield f"def {name}(self, other: object, /) -> Tensor: ...  # type: ignore[override]"
        elif name == "__matmul__":  # numbers have none
            yield f"def {name}(self, other: Tensor, /) -> Tensor: ..."
        else:
            reflected = [] if name in COMPARISONS else [f"__r{name[2:]}"]
            yield from (f"def {one}(self, other: Operand, /) -> Tensor: ..." for one in [name, *reflected])


def stub(sources, modules):
    """sources: texts of the extension module's sources; modules: dotted name -> text of the package's."""
    types, own, bases = {}, [], {}
    names = {name.lower(): name for text in sources for name in TYPE.findall(text)}
    for text in sources:
        for owner, line in members(text, names):
            (types.setdefault(owner, []) if owner else own).append(line)
    table = next(node for node in ast.parse(modules["_calls._syntax"]).body if isinstance(node, ast.Assign))
    types["Tensor"] += operators(ast.unparse(table.value))
    extending = []
    for module, text in modules.items():
        folder, _, file = module.rpartition(".")
        for owner, name in GIVEN.findall(text):
            bases.setdefault(owner, []).append(f"{file}.{name}")
            extending.append(f"from .{folder} import {file}")
    bases["Tensor"].append("TensorMethods")
    lines = [OPENING.format(modules="\n".join(sorted(set(extending))))]
    for name, body in types.items():
        lines.append(f"class {name}" + (f"({', '.join(bases[name])})" if name in bases else "") + ":\n" + indented("\n".join(body)) + "\n")
    return "\n".join([*lines, *own]) + "\n"
