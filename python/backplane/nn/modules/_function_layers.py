"""Layers that are one function of nn.functional with options: the form that activations, pooling, dropout and losses share."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import backplane as bp

from .. import functional as F
from ._module import Module

__all__ = []

_REQUIRED = object()


class FunctionLayer(Module):
    """A function of nn.functional, whose options the constructor takes."""

    function: ClassVar[str]
    options: ClassVar[dict[str, Any]]  # name -> default, in order
    reads_training: ClassVar[bool] = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        name = type(self).__name__
        if len(args) > len(self.options):
            raise bp.ArgumentTypeError(f"{name}: found {len(args)} arguments, expected at most {len(self.options)}: {', '.join(self.options)}")
        given = dict(zip(self.options, args))
        for word, value in kwargs.items():
            if word not in self.options or word in given:
                raise bp.ArgumentTypeError(f"{name}: found an argument {word!r}, expected each of {', '.join(self.options) or 'none'} at most once")
            given[word] = value
        for word, default in self.options.items():
            if word not in given and default is _REQUIRED:
                raise bp.ArgumentTypeError(f"{name}: argument {word}: missing")
            value = given.get(word, default)
            if isinstance(value, bp.Tensor):
                self.register_buffer(word, value)
            else:
                setattr(self, word, value)

    def forward(self, *inputs: Any, **more: Any) -> Any:
        options = {word: getattr(self, word) for word in self.options}
        if self.reads_training:
            options["training"] = self.training
        return getattr(F, self.function)(*inputs, **options, **more)

    def extra_repr(self) -> str:
        shown = [word for word in self.options if self.options[word] is _REQUIRED or vars(self)[word] is not self.options[word]]
        return ", ".join(f"{word}={vars(self)[word]!r}" for word in shown)


def layers(module, table, base=FunctionLayer):
    """Defines a class per line "Name = function(option, option)" of the table in a module's namespace; returns their names.

    An option has the function's default, or is required.
    """
    names = []
    for line in table.strip().splitlines():
        name, _, call = (part.strip() for part in line.partition("="))
        function, _, words = call.rstrip(")").partition("(")
        parameters = inspect.signature(getattr(F, function)).parameters
        options = {word: _default(parameters[word]) for word in words.replace(",", " ").split()}
        doc = f"{function} of nn.functional, with the same options. {inspect.getdoc(getattr(F, function)) or ''}".strip()
        reads_training = "training" in parameters
        body = {"__doc__": doc, "__module__": module["__name__"], "function": function, "options": options, "reads_training": reads_training}
        module[name] = type(base)(name, (base,), body)
        names.append(name)
    return names


def _default(parameter):
    return _REQUIRED if parameter.default is inspect.Parameter.empty else parameter.default
