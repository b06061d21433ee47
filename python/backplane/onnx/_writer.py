"""What save writes with: the nodes and constants of a model in ONNX's format, and the table op -> function that writes it.

A function of the table takes the writer, the node, and the node's arguments by the names of the registry's signature: tensors as
names of values, all others as Python values. It returns the names of the results.
"""

import ast
import itertools
import operator
import re

import numpy as np

import backplane as bp

from ._table import refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

ROWS: "dict[str, Callable[..., Any]]" = {}
TYPES = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11, "uint32": 12,
    "uint64": 13, "bfloat16": 16,
}  # fmt: skip


def writes(*names: str) -> "Callable[[Callable[..., Any]], Callable[..., Any]]":
    """Puts a function into the table, for ops of Backplane's own namespace."""

    def put(function):
        for name in names:
            ROWS[f"bp::{name}"] = function
        return function

    return put


class Value(str):
    """The name of a value in the graph's text."""


class Size:
    """A size that is an expression of dynamic sizes."""

    def __init__(self, text: str) -> None:
        self.text = text


def parsed(text: str) -> "Any":
    """An argument of a node's text as a Python value."""
    text = text.strip()
    words = {"none": None, "true": True, "false": False, "inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}
    if text in words:
        return words[text]
    if text.startswith("%"):
        return Value(text)
    if match := re.fullmatch(r"(?:values|floats|bools)?\[(.*)\]", text, re.DOTALL):
        return [parsed(part) for part in _parts(match[1])]
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", text):
        return float(text)
    if text.startswith('"'):
        return text[1:-1]
    if match := re.fullmatch(r"float\((-?[\d.e+-]+)\)", text):
        return float(match[1])
    if text in TYPES or text in ("complex64", "complex128") or text.startswith(("device(", "graph(", "draw(")):
        return text
    return Size(text)


def _parts(text):
    """The parts between commas that are not within brackets."""
    parts, depth, begin = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and depth == 0:
            parts.append(text[begin:i])
            begin = i + 1
    return [part for part in [*parts, text[begin:]] if part.strip()]


class Writer:
    """The model so far. types, shapes: of the values by name; shapes hold numbers and Size. graphs: the functions of control flow."""

    def __init__(self, symbols: "dict[str, tuple[str, int]]") -> None:
        self.graphs: list[Any] = []
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.types: dict[str, str] = {}
        self.shapes: dict[str, list[Any]] = {}
        self.names: dict[str, str] = {}
        self._symbols = symbols
        self._sizes: dict[str, str] = {}
        self._constants: dict[Any, str] = {}
        self._numbers = itertools.count(1)

    def inside(self, inline: bool = False) -> "Writer":
        """A writer for a graph within: its nodes are a body of their own, or inline. It sees the constants that there are."""
        if self._symbols:
            refuse("control flow with dynamic sizes is not supported")
        inner = Writer({})
        inner._numbers = self._numbers
        if inline:
            inner.nodes, inner.initializers, inner._constants, inner._sizes = self.nodes, self.initializers, self._constants, self._sizes
        else:
            inner._constants = dict(self._constants)
        return inner

    def fresh(self, hint: str) -> str:
        return f"/{hint}_{next(self._numbers)}"  # no name of an argument begins so

    def emit(self, op: str, inputs: "Sequence[str]", outputs: int = 1, **attributes: "Any") -> "Any":
        """Writes a node of ai.onnx; gives the name of its output, or the list of several."""
        import onnx

        names = [self.fresh(op.lower()) for _ in range(outputs)]
        attributes = {name: value for name, value in attributes.items() if value is not None}
        self.nodes.append(onnx.helper.make_node(op, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, array: "Any", hint: str = "constant") -> str:
        import onnx

        array = np.asarray(array)
        key = (array.dtype.str, array.shape, array.tobytes()) if array.size <= 64 else None
        if key in self._constants:
            return self._constants[key]
        name = self.fresh(hint)
        self.initializers.append(onnx.numpy_helper.from_array(array, name))
        if key is not None:
            self._constants[key] = name
        return name

    def number(self, value: "Any", dtype: str) -> str:
        """A constant without axes; bfloat16 by a cast, as NumPy has no such dtype."""
        if isinstance(value, Size):
            return self.cast(self.emit("Squeeze", [self.size(value)]), "int64", dtype)
        if dtype == "bfloat16":
            return self.cast(self.constant(np.float32(value)), "float32", dtype)
        return self.constant(np.array(value, dtype=dtype))

    def name(self, value: Value) -> str:
        return self.names[value]

    def cast(self, name: str, old: str, new: str) -> str:
        return name if old == new else self.emit("Cast", [name], to=TYPES[new])

    def operand(self, value: "Any", dtype: str) -> str:
        """A tensor or a number in a dtype."""
        if isinstance(value, Value):
            return self.cast(self.names[value], self.types[value], dtype)
        return self.number(value, dtype)

    def common(self, *values: "Any") -> str:
        """The dtype to which tensors and numbers are promoted."""
        tensors = [getattr(bp, self.types[value]) for value in values if isinstance(value, Value)]
        found = str(bp.result_type(*tensors, *(value for value in values if not isinstance(value, Value))))
        return found.rpartition(".")[2]

    def size(self, value: "Any") -> str:
        """A size as an int64 tensor of one element."""
        if not isinstance(value, Size):
            return self.constant(np.array([value], np.int64))
        if value.text not in self._sizes:
            self._sizes[value.text] = self._expression(ast.parse(value.text.strip(), mode="eval").body)
        return self._sizes[value.text]

    def _expression(self, tree):
        if isinstance(tree, ast.Constant):
            return self.constant(np.array([tree.value], np.int64))
        if isinstance(tree, ast.Name):
            return self._symbol(tree.id)
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
            return self.emit("Neg", [self._expression(tree.operand)])
        names = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.FloorDiv: "Div", ast.Mod: "Mod"}
        if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.FloorDiv) and _may_be_negative(tree.left):
            left, right = self._expression(tree.left), self._expression(tree.right)  # Div rounds towards 0, Mod downwards
            return self.emit("Div", [self.emit("Sub", [left, self.emit("Mod", [left, right])]), right])
        if isinstance(tree, ast.BinOp) and type(tree.op) in names:
            return self.emit(names[type(tree.op)], [self._expression(tree.left), self._expression(tree.right)])
        if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Pow):
            return self.emit("Pow", [self._expression(tree.left), self._expression(tree.right)])
        return refuse(f"the size {ast.unparse(tree)} is not supported")

    def _symbol(self, symbol):
        if symbol not in self._sizes:
            value, axis = self._symbols[symbol]
            self._sizes[symbol] = self.emit("Shape", [self.names[value]], start=axis, end=axis + 1)
        return self._sizes[symbol]

    def shape(self, sizes: "Sequence[Any]") -> str:
        """Sizes as an int64 vector: a constant, or computed where they are dynamic."""
        if all(isinstance(size, int) for size in sizes):
            return self.constant(np.array(sizes, np.int64).reshape(-1))
        return self.emit("Concat", [self.size(size) for size in sizes], axis=0)


def _may_be_negative(tree):
    return any(isinstance(part, (ast.Sub, ast.USub)) for part in ast.walk(tree))


_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow}


def _evaluated(tree, numbers):
    """A size with numbers for its names."""
    if isinstance(tree, ast.Constant):
        return tree.value
    if isinstance(tree, ast.Name):
        return numbers[tree.id]
    if isinstance(tree, ast.UnaryOp):
        return -_evaluated(tree.operand, numbers)
    return _OPERATORS[type(tree.op)](_evaluated(tree.left, numbers), _evaluated(tree.right, numbers))


def number_of(function: "Callable[..., int]", sizes: "Sequence[Any]", what: str) -> int:
    """function(*sizes), if it is the same number for every value of the dynamic sizes; refused otherwise."""
    trees = [ast.parse(size.text.strip(), mode="eval").body if isinstance(size, Size) else ast.Constant(size) for size in sizes]
    names = sorted({part.id for tree in trees for part in ast.walk(tree) if isinstance(part, ast.Name)})
    found = set()
    for turn in range(8):
        numbers = {name: 3 + 5 * turn**2 + (7 + turn) * place for place, name in enumerate(names)}
        found.add(function(*(_evaluated(tree, numbers) for tree in trees)))
    if len(found) != 1:
        refuse(f"{what} whose padding depends on a dynamic size is not supported")
    return found.pop()


class GraphNode:
    """A node of the graph for a function of the table: its results, and which of them anything uses."""

    def __init__(self, results: "list[Value]", described: "list[Any]", used: "set[str]") -> None:
        self.results = results
        self.dtype = described[0].dtype if described else ""
        self.shape = [parsed(size) for size in described[0].dims] if described else []
        self.used = used

    def uses(self, i: int) -> bool:
        return i < len(self.results) and self.results[i] in self.used


def static(sizes: "Sequence[Any]", what: str) -> "list[int]":
    """Sizes that have to be numbers."""
    if any(isinstance(size, Size) for size in sizes):
        refuse(f"{what} with dynamic sizes is not supported")
    return list(sizes)
