"""The text of a graph (docs/reference/graph-format.md) as statements: what to_torch reads.

Values go by their numbers in the text. Arguments stay text; `compiled` turns them into code over the values and the named sizes.
"""

from __future__ import annotations

import dataclasses
import re

__all__ = ["GraphText", "Node", "Value", "compiled"]

_VALUE = re.compile(r"%(\d+)(?: \"((?:[^\"\\]|\\.)*)\")?: (\w+)\[(.*?)\] \"")
_LIST = re.compile(r"\b(?:values|floats|bools)\[")
_WORDS = re.compile(r"\"(?:[^\"\\]|\\.)*\"|%\d+|\b(?:none|true|false)\b")
_PYTHON = {"none": "None", "true": "True", "false": "False"}


@dataclasses.dataclass
class Value:
    """A value's number, its name (of inputs and constants), its dtype's name and its sizes as text."""

    number: int
    name: str
    dtype: str
    dims: list[str]


@dataclasses.dataclass
class Node:
    """A call: results, the op's full name, arguments as (name or None, text), and the line of the user's program."""

    results: list[Value]
    op: str
    arguments: list[tuple[str | None, str]]
    line: str


class GraphText:
    """One graph of a text, with the graphs inside it. `elements`: the text of a constant's elements, or None where it is too long."""

    def __init__(self, text: str):
        lines = text.splitlines()
        self._begin(lines[0])
        self._read(iter(lines[1:]))

    @classmethod
    def _inner(cls, first, lines):
        made = cls.__new__(cls)
        made._begin(first)
        made._read(lines)
        return made

    def _begin(self, first):
        self.name = first.strip().removeprefix("graph ").removesuffix(" {").strip('"')
        self.symbols, self.inputs, self.constants, self.elements, self.graphs = {}, [], [], [], []
        self.nodes, self.constraints, self.updates, self.outputs, self.own_rules = [], [], [], [], False

    def _read(self, lines):
        for line in lines:
            line = line.strip()
            word, _, rest = line.partition(" ")
            if line == "}":
                return
            if word == "graph":
                self.graphs.append(GraphText._inner(line, lines))
            elif word == "symbol":
                name, number, axis, example = re.fullmatch(r"(\S+)(?: of %(\d+) axis (\d+))? example (\d+)", rest).groups()
                self.symbols[name] = (None if number is None else int(number), int(axis or 0), int(example))
            elif word == "input":
                self.inputs.append(_value(rest))
            elif word == "constant":
                self.constants.append(_value(rest))
                found = re.search(r" = \{(.*)\}$", rest)
                self.elements.append(None if found is None else found[1])
            elif word == "constraint":
                self.constraints.append(re.match(r"(.*?) (==|!=|<=|<|divisible by) (.*?) \"", rest).groups())
            elif word == "update":
                target, value = re.findall(r"%(\d+)", rest)
                self.updates.append((int(target), int(value)))
            elif word == "output":
                self.outputs = [int(number) for number in re.findall(r"%(\d+)", rest)]
            elif word == "own_rules":
                self.own_rules = True
            elif line.startswith(("%", "=")):
                self.nodes.append(_node(line))


def _value(text):
    number, name, dtype, dims = _VALUE.match(text).groups()
    return Value(int(number), name or "", dtype, _parts(dims))


def _node(line):
    call, _, where = _uncommented(line)
    results, _, call = call.partition("= ")
    op, _, arguments = call.removeprefix("recomputed ").partition("(")
    named = []
    for part in _parts(arguments.strip()[:-1]):
        found = re.match(r"([A-Za-z_]\w*)=", part)
        named.append((found[1], part[found.end() :]) if found else (None, part))
    return Node([_value(part) for part in re.findall(r"%\d+: \w+\[.*?\] \"[^\"]*\"", results)], op.strip(), named, where)


def _uncommented(line):
    """The line without its comment, which says where the user's program called the op."""
    quoted = False
    for i, letter in enumerate(line):
        quoted ^= letter == '"' and line[i - 1] != "\\"
        if not quoted and line.startswith("  # ", i):
            return line[:i], "  # ", line[i + 4 :]
    return line, "", ""


def _parts(text):
    """The parts between the commas that are outside brackets and quotes."""
    parts, depth, begin, quoted = [], 0, 0, False
    for i, letter in enumerate(text):
        quoted ^= letter == '"' and (i == 0 or text[i - 1] != "\\")
        if quoted:
            continue
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and depth == 0:
            parts.append(text[begin:i])
            begin = i + 1
    return [part.strip() for part in [*parts, text[begin:]] if part.strip()]


def compiled(text: str):
    """Code of an argument: an expression of `v`, the values by number, and of the names of dtypes and sizes."""

    def word(match):
        found = match[0]
        return f"v[{found[1:]}]" if found.startswith("%") else _PYTHON.get(found, found)

    return compile(_WORDS.sub(word, _LIST.sub("[", text)), "<graph>", "eval")
