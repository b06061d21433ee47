"""The table of the importer: (domain, op, opset version) -> the function that computes it with Backplane's ops.

A function takes the node's inputs by position (None for those left out), and the node's attributes as keyword arguments. An
attribute that it does not name is refused when the model is loaded. Its first parameter may be `node`, the node itself.
"""

import inspect

import backplane as bp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

MICROSOFT = "com.microsoft"


class Row:
    """A function of the table. static: the inputs that it takes as host values."""

    def __init__(self, function: "Callable[..., Any]", static: "Sequence[int]") -> None:
        self.function = function
        self.static = frozenset(static)
        parameters = list(inspect.signature(function).parameters.values())
        self.takes_node = bool(parameters) and parameters[0].name == "node"
        self.attributes = {p.name for p in parameters if p.kind == p.KEYWORD_ONLY}
        self.any_attribute = any(p.kind == p.VAR_KEYWORD for p in parameters)


_ROWS: "dict[tuple[str, str], dict[int, Row]]" = {}
_HOST: "dict[str, Callable[..., Any]]" = {}


def op(name: str, *versions: int, static: "Sequence[int]" = (), domain: str = "") -> "Callable[[Callable[..., Any]], Callable[..., Any]]":
    """Puts a function into the table, for the op's version and those after it, up to the next version there."""

    def put(function):
        row = Row(function, static)
        for version in versions or (1,):
            _ROWS.setdefault((domain, name), {})[version] = row
        return function

    return put


def on_host(*names: str) -> "Callable[[Callable[..., Any]], Callable[..., Any]]":
    """Registers a NumPy function for an op on small host values, such as sizes and axes."""

    def put(function):
        for name in names:
            _HOST[name] = function
        return function

    return put


def find_row(domain: str, name: str, opset: int) -> "Row | None":
    versions = _ROWS.get((domain, name), {})
    known = [version for version in versions if version <= opset]
    return versions[max(known)] if known else None


def find_host(domain: str, name: str) -> "Callable[..., Any] | None":
    return None if domain else _HOST.get(name)


def supported_ops() -> "dict[str, list[int]]":
    """The ops that the importer computes with functions of its own, and the opset versions at which a function begins."""
    return {(f"{domain}::" if domain else "") + name: sorted(versions) for (domain, name), versions in sorted(_ROWS.items())}


def refuse(text: str) -> "Any":
    raise bp.MissingRuleError(text)
