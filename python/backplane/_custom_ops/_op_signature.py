"""Signatures of custom ops: from type hints, or from a string in the form of a registry file.

Both end in an OpSignature: arguments and results in the terms of the contract (abi/op.h). Imported when the first
custom op is defined.
"""

import inspect
import re
import typing

from .. import _core, types
from .._api._data_type_functions import DTYPES

# BP_TYPE_* by the registry's word. A Graph brings its own rules, which an op of Python's could not ask for.
TYPES = {word: number for word, number in _core.type_words().items() if word != "Graph"}
OPTIONAL, LIST, OPTIONAL_ELEMENTS, KEYWORD_ONLY, HAS_DEFAULT = 1, 2, 4, 8, 16

# Annotations that are a class of Python's or ours.
_OF_CLASS = {
    _core.Tensor: "Tensor", _core.DType: "Dtype", _core.Device: "Device", _core.Generator: "Generator",
    bool: "bool", str: "str", int: "Index", float: "Scalar", complex: "Scalar",
}  # fmt: skip


class Argument:
    """One argument: name, the registry's word for its type, BP_ARG_* flags, default."""

    def __init__(self, name, word, flags=0, default=None):
        self.name, self.word, self.flags, self.default = name, word, flags, default

    @property
    def is_tensor(self):
        return self.word == "Tensor"

    @property
    def is_list(self):
        return bool(self.flags & LIST)


class OpSignature:
    """Arguments in order, and results as (name, is a list); no result: the op changes its first argument."""

    def __init__(self, arguments, results):
        self.arguments, self.results = arguments, results

    def index(self, name):
        return next((i for i, argument in enumerate(self.arguments) if argument.name == name), None)

    @property
    def tensors(self):
        return [i for i, argument in enumerate(self.arguments) if argument.is_tensor]


def _fail(op, what, found, expected):
    raise _core.ArgumentTypeError(f"custom_op {op}: {what}: found {found}, expected {expected}")


# ---- from type hints ---------------------------------------------------------------------------------------------

_EXPECTED = (
    "bp.Tensor, a type of bp.types, bool, int, float, complex, str, bp.DType, bp.Device, bp.Generator, "
    "or Optional or list of one of them"
)


def _without_none(hint):
    """(T, may it be None) of Optional[T] and T | None."""
    options = typing.get_args(hint)
    if type(None) not in options or typing.get_origin(hint) in (list, tuple, typing.Annotated):
        return hint, False
    rest = [option for option in options if option is not type(None)]
    return (rest[0] if len(rest) == 1 else typing.Union[tuple(rest)]), True


def _word_of(op, name, hint):
    """The registry's word of a hint that is not optional and not a list."""
    for mark in getattr(hint, "__metadata__", ()):
        if isinstance(mark, types.Meaning):
            return mark.word
    try:
        return _OF_CLASS[hint]
    except (KeyError, TypeError):
        return _fail(op, f"the type hint of '{name}'", getattr(hint, "__name__", hint), _EXPECTED)


def _element_of(hint):
    """T of list[T], Sequence[T] and tuple[T, ...]; None for any other hint."""
    origin = typing.get_origin(hint)
    if origin is None or not isinstance(origin, type) or not hasattr(origin, "__getitem__") or origin is dict:
        return None
    elements = [element for element in typing.get_args(hint) if element is not Ellipsis]
    return elements[0] if len(elements) == 1 and not hasattr(hint, "__metadata__") else None


def _argument_of_hint(op, name, hint):
    hint, optional = _without_none(hint)
    flags = OPTIONAL if optional else 0
    element = _element_of(hint)
    if element is None:
        return Argument(name, _word_of(op, name, hint), flags)
    element, absent = _without_none(element)
    return Argument(name, _word_of(op, name, element), flags | LIST | (OPTIONAL_ELEMENTS if absent else 0))


def _results_of_hint(op, hint):
    if hint is type(None) or hint is None:
        return []
    if hint is _core.Tensor:
        return [("out", False)]
    parts = typing.get_args(hint)
    if typing.get_origin(hint) is list and parts == (_core.Tensor,):
        return [("out", True)]
    if typing.get_origin(hint) is tuple and parts and all(part is _core.Tensor for part in parts):
        return [(f"out{i}", False) for i in range(len(parts))]
    return _fail(op, "the type hint of the result", hint, "bp.Tensor, tuple[bp.Tensor, ...], list[bp.Tensor] or None")


def of_function(op, function):
    """The signature that a function's type hints say."""
    hints = typing.get_type_hints(function, include_extras=True)
    arguments = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            _fail(op, f"the argument '{name}'", "a variable number of arguments", "one of a stated type")
        if name not in hints:
            _fail(op, f"the argument '{name}'", "no type hint", _EXPECTED)
        argument = _argument_of_hint(op, name, hints[name])
        if parameter.kind is parameter.KEYWORD_ONLY:
            argument.flags |= KEYWORD_ONLY
        if parameter.default is not parameter.empty:
            _set_default(argument, parameter.default)
        arguments.append(argument)
    if "return" not in hints:
        _fail(op, "the result", "no type hint", "bp.Tensor, tuple[bp.Tensor, ...], list[bp.Tensor] or None")
    return _checked(op, OpSignature(arguments, _results_of_hint(op, hints["return"])))


# ---- from a string -----------------------------------------------------------------------------------------------

_ARGUMENT = re.compile(r"(\w+)((?:\?|\[\])*)\s+(\w+)\s*(?:=\s*(.+))?$")
_MARKS = {"": 0, "?": OPTIONAL, "[]": LIST, "?[]": LIST | OPTIONAL_ELEMENTS, "[]?": LIST | OPTIONAL,
          "?[]?": LIST | OPTIONAL_ELEMENTS | OPTIONAL}  # fmt: skip
_CONSTANTS = {"true": True, "false": False, "none": None, "null": None}


def _split(text):
    """The parts between commas that stand in no bracket or quotes."""
    parts, depth, quoted, start = [], 0, False, 0
    for i, character in enumerate(text):
        if character == "'":
            quoted = not quoted
        elif not quoted:
            depth += (character in "[(") - (character in "])")
            if character == "," and depth == 0:
                parts.append(text[start:i].strip())
                start = i + 1
    return [part for part in [*parts, text[start:].strip()] if part]


def _constant(op, name, text):
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text.startswith("'") and text.endswith("'") and len(text) > 1:
        return text[1:-1]
    if text.startswith("[") and text.endswith("]"):
        return [_constant(op, name, part) for part in _split(text[1:-1])]
    if text in DTYPES:
        return DTYPES[text]
    for number in (int, float, complex):
        try:
            return number(text)
        except ValueError:
            continue
    return _fail(op, f"the default of '{name}'", text, "a number, true, false, none, 'text', [1, 2] or a dtype's name")


def _argument_of_text(op, text):
    found = _ARGUMENT.match(text)
    if not found or found[2] not in _MARKS or found[1] not in TYPES:
        _fail(op, "an argument of the signature", repr(text), f"TYPE name, of one of the types {', '.join(TYPES)}")
    argument = Argument(found[3], found[1], _MARKS[found[2]])
    if found[4] is not None:
        _set_default(argument, _constant(op, found[3], found[4].strip()))
    return argument


def _results_of_text(op, text):
    if text in ("()", "None", "none"):
        return []
    if text.startswith("(") and text.endswith(")"):
        pairs = [part.split() for part in _split(text[1:-1])]
        if all(len(pair) == 2 and pair[0] == "Tensor" for pair in pairs):
            return [(name, False) for _, name in pairs]
    elif text in ("Tensor", "Tensor[]"):
        return [("out", text != "Tensor")]
    return _fail(op, "the results of the signature", repr(text), "Tensor, Tensor[], (Tensor a, Tensor b) or ()")


def of_text(op, text):
    """The signature that a string says: "scale(Tensor x, Scalar factor) -> Tensor"."""
    found = re.match(r"\s*([\w.]+)\s*\((.*)\)\s*->\s*(.+?)\s*$", text, re.DOTALL)
    if not found:
        _fail(op, "the signature", repr(text), "the form name(TYPE argument, ...) -> Tensor")
    base = op.partition("::")[2]
    if found[1] != base:
        _fail(op, "the name in the signature", repr(found[1]), repr(base))
    arguments, keyword_only = [], False
    for part in _split(found[2]):
        if part == "*":
            keyword_only = True
            continue
        argument = _argument_of_text(op, part)
        argument.flags |= KEYWORD_ONLY if keyword_only else 0
        arguments.append(argument)
    return _checked(op, OpSignature(arguments, _results_of_text(op, found[3])))


# ---- both --------------------------------------------------------------------------------------------------------


def _set_default(argument, default):
    argument.flags |= HAS_DEFAULT
    argument.default = default
    if default is None:
        argument.flags |= OPTIONAL


_RESERVED = ("g", "out", "needs", "batched")


def _checked(op, signature):
    for argument in signature.arguments:
        if argument.name in _RESERVED or argument.name.startswith("t_"):
            _fail(op, "the name of an argument", repr(argument.name), f"another: {', '.join(_RESERVED)} and t_… mean "
                  "cotangent, result and tangents in rules")  # fmt: skip
    return signature
