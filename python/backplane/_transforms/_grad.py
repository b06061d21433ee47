"""Recording on and off, and gradients without backward()."""

from __future__ import annotations

from .. import _core
from .._runtime._settings import RECORDING, Setting, changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._core import Function, Tensor

__all__ = ["enable_grad", "grad_enabled", "gradients", "inference_mode", "is_grad_enabled", "no_grad", "set_grad_enabled"]


def grad_enabled() -> bool:
    """Are calls recorded on this thread?"""
    return _core.grad_enabled()


is_grad_enabled = grad_enabled


def set_grad_enabled(enabled: bool) -> Setting:
    """Whether calls are recorded on this thread from now on, inside a block until its end; returns the old setting, which `with` sets
    back: then the change is of this context alone."""
    return changed("set_grad_enabled", "enabled", RECORDING, _core.recording(), enabled)


class _GradMode(_core.SettingBlock):
    """Sets recording for a block, or for a function where it decorates one."""

    __slots__ = ()
    _enabled = True

    def __new__(cls, function: Function | None = None) -> Any:
        made = super().__new__(cls, RECORDING, cls._enabled)
        return made if function is None else made(function)  # @no_grad, without parentheses

    def __call__(self, function: Function) -> Function:
        from ._block_wrappers import in_block

        return in_block(type(self), function)


class no_grad(_GradMode):
    """Calls inside are not recorded: `with no_grad(): ...` or `@no_grad()`.

    Of a generator or a coroutine that it decorates, each step runs so; the code between the steps does not.
    """

    __slots__ = ()
    _enabled = False


inference_mode = no_grad


class enable_grad(_GradMode):
    """Calls inside are recorded again: `with enable_grad(): ...` or `@enable_grad()`."""

    __slots__ = ()
    _enabled = True


def gradients(
    outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor],
    cotangents: Tensor | Sequence[Tensor | None] | None = None, *, retain_graph: bool = False,
    create_graph: bool = False
) -> Any:
    """The gradients of outputs with respect to inputs, without touching any tensor's grad.

    outputs, inputs: a Tensor or a sequence of them. cotangents: one per output, None for ones (of outputs with
    one element). create_graph: record the gradients themselves, for higher orders; it implies retain_graph.
    Returns a gradient per input, None where no output depends on it; a single one for a single input.
    """
    given = [] if cotangents is None else _several("cotangents", cotangents, type(None))
    found = _core.gradients(_several("outputs", outputs), _several("inputs", inputs), given, bool(retain_graph or create_graph), bool(create_graph))
    return found[0] if isinstance(inputs, _core.Tensor) else found


def _several(argument, value, *other):
    """A Tensor or a sequence of them as a list."""
    found = [value] if isinstance(value, _core.Tensor) or not hasattr(value, "__iter__") else list(value)
    for one in found:
        if not isinstance(one, (_core.Tensor, *other)):
            raise _core.ArgumentTypeError(f"gradients: argument {argument}: found {type(one).__name__}, expected a Tensor or a sequence of them")
    return found
