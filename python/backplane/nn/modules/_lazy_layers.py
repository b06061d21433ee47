"""Layers that learn the size of their input from the first one: each becomes the plain layer then."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, NoReturn

import backplane as bp
from backplane import Tensor

from .._parameter import is_plain
from ._convolution_layers import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ._layer_arguments import floating
from ._linear_layers import Linear
from ._module import Module
from ._normalization_layers import BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d

__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d",
    "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear",
]  # fmt: skip


class _Lazy(Module):
    """A layer without the size of its input, which its first call, or a state that it loads, tells. It takes the other arguments of
    the plain layer. With it the layer draws its parameters, and becomes the plain layer.

    Before that it has no parameters: parameters(), state_dict() and transforms refuse it. So call the model once before you make
    an optimiser. to() says where the parameters will be.
    """

    is_sized = False
    __signature__: ClassVar[inspect.Signature]
    _layer: ClassVar[type[Module]]
    _axis: ClassVar[int]  # of the input, whose size it takes
    _sizes: ClassVar[tuple[tuple[str, int], ...]]  # names and axes of tensors of a state, of which the first has it

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not hasattr(cls, "_layer") and len(cls.__bases__) == 2:  # the form of the size, and the plain layer
            cls._layer = cls.__bases__[1]
            whole = inspect.signature(cls._layer)
            cls.__signature__ = whole.replace(parameters=list(whole.parameters.values())[1:])
            cls.__doc__ = f"{cls._layer.__name__} without its first argument.\n\n{inspect.cleandoc(_Lazy.__doc__ or '')}"

    def __init__(self, *args: Any, **options: Any) -> None:
        try:
            given = inspect.signature(type(self)).bind(*args, **options).arguments
        except TypeError as error:
            raise bp.ArgumentTypeError(f"{type(self).__name__}: {error}") from None
        how = {"dtype": floating(given.pop("dtype", None)), "device": given.pop("device", None)}
        vars(self)["_arguments"] = given
        self.register_buffer("_place", bp.empty((0,), **how), persistent=False)  # which to() moves

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        first = args[0] if args else kwargs.get("input")
        if not isinstance(first, Tensor) or not is_plain(first):
            found = "a tensor of a trace or a transform" if isinstance(first, Tensor) else type(first).__name__
            raise bp.ArgumentTypeError(f"{type(self).__name__}: argument input: found {found}, expected for the first call a tensor with values")
        if not -first.ndim <= self._axis < first.ndim:
            raise bp.ShapeError(f"{type(self).__name__}: argument input: found {first.ndim} axes, expected one at {self._axis}, whose size the layer takes")
        self._become(first.shape[self._axis])
        return self(*args, **kwargs)

    def _become(self, size):
        made = self._layer(size, **self._arguments, dtype=self._place.dtype, device=self._place.device)
        attributes = vars(self)
        del attributes["_arguments"], attributes["_place"]
        attributes.update({name: value for name, value in vars(made).items() if name not in ("training", "_hooks")})
        object.__setattr__(self, "__class__", self._layer)

    def prepare_to_load(self, path: str, state: Mapping[str, Any]) -> None:
        """Takes the size from the tensors of a state."""
        for name, axis in self._sizes:
            found = state.get(f"{path}.{name}" if path else name)
            if found is not None and axis < len(found.shape):
                self._become(found.shape[axis] * (self._arguments.get("groups", 1) if name == "weight" and axis else 1))
                return

    def refuse_unsized(self) -> NoReturn:
        raise bp.ArgumentValueError(
            f"{type(self).__name__}: found a layer that has not seen an input, and so has no parameters yet. Fix: call the model once, with an input, before"
        )

    def __getattr__(self, name):
        if name in ("weight", "bias", "running_mean", "running_var"):
            raise AttributeError(f"{type(self).__name__} has no {name} before its first call")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self._arguments.items())


class LazyLinear(_Lazy, Linear):
    _axis, _sizes = -1, (("weight", 1),)


class _LazyConv(_Lazy):
    _sizes = (("weight", 1),)


class LazyConv1d(_LazyConv, Conv1d):
    _axis = -2


class LazyConv2d(_LazyConv, Conv2d):
    _axis = -3


class LazyConv3d(_LazyConv, Conv3d):
    _axis = -4


class _LazyConvTranspose(_Lazy):
    _sizes = (("weight", 0),)


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    _axis = -2


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    _axis = -3


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    _axis = -4


class _LazyNorm(_Lazy):
    _axis, _sizes = 1, (("weight", 0), ("running_mean", 0))


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    pass


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    pass


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    pass


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    _axis = -2


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    _axis = -3


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    _axis = -4
