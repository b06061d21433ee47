"""torch.autograd.Function: a function with a backward pass of its own, over custom_function."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._transforms._custom import custom_function

__all__ = ["Function"]


class FunctionContext:
    """What forward keeps for backward: tensors by save_for_backward, anything else as attributes."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.saved_tensors, self.needs_input_grad = (), needs_input_grad
        self.not_differentiable = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps tensors, arguments or results, for saved_tensors in backward."""
        self.saved_tensors = tensors

    save_for_forward = save_for_backward

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Says that these results have no gradient."""
        self.not_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros for a result without a gradient, or None."""
        self.materialize_grads = value

    def mark_dirty(self, *tensors: Any) -> None:
        """Refused: arguments of a Function are not changed in place."""
        raise _core.ArgumentTypeError("mark_dirty: found an argument that is changed in place, expected a new tensor as the result")


class Function:
    """A function with a backward pass of its own, called by apply.

    A subclass defines the static methods forward(ctx, *args) and backward(ctx, *gradients), or forward(*args), setup_context(ctx, inputs, output)
    and backward. backward returns a gradient for each argument, None for those that have none.
    """

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """forward of the arguments; gradients go through backward. Works in grad, vmap and compile too."""
        places = [place for place, value in enumerate(args) if isinstance(value, _core.Tensor) and "floating" in value.dtype.kind]
        ctx = FunctionContext(tuple(place in places for place in range(len(args))))
        has_setup = cls.setup_context is not Function.setup_context

        def called(*tensors):
            every = list(args)
            for place, tensor in zip(places, tensors):
                every[place] = tensor
            if not has_setup:
                return cls.forward(ctx, *every)
            output = cls.forward(*every)
            cls.setup_context(ctx, tuple(every), output)
            return output

        def fwd(*tensors):
            output = called(*tensors)
            return output, tuple(ctx.saved_tensors)

        def bwd(saved, cotangent):
            ctx.saved_tensors = tuple(saved)
            cotangents = tuple(cotangent) if isinstance(cotangent, (tuple, list)) else (cotangent,)
            found = cls.backward(ctx, *cotangents)
            found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
            if len(found) < len(args):
                raise _core.ArgumentValueError(f"{cls.__name__}.backward: found {len(found)} gradients, expected {len(args)}, one for each argument of forward")
            return tuple(found[place] for place in places)

        function = custom_function(called)
        function.defvjp(fwd, bwd)
        return function(*(args[place] for place in places))

    @staticmethod
    def forward(*args: Any) -> Any:
        """Computes the result. A subclass defines it."""
        raise NotImplementedError("Function: a subclass defines forward")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keeps what backward needs, for a forward without a context."""

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """The gradient of each argument. A subclass defines it."""
        raise NotImplementedError("Function: a subclass defines backward")
