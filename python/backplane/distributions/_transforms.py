"""Invertible functions with the logarithm of their derivative, from which TransformedDistribution makes distributions."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import backplane as bp
from backplane import Tensor

from . import constraints
from ._constraints import Constraint

__all__ = [
    "AffineTransform", "ComposeTransform", "ExpTransform", "PowerTransform", "SigmoidTransform", "SoftplusTransform", "TanhTransform",
    "Transform",
]  # fmt: skip


class _Last:
    """The last argument and value of a transform. Compiled functions do not guard it: in a trace it holds tensors of the trace."""

    x = y = None

    def take(self, x, y):
        self.x, self.y = x, y

    def after(self, x):
        return self.y if self.x is x else None

    def before(self, y):
        return self.x if self.y is y else None


class Transform:
    """An invertible function: transform(x), transform.inv(y), and transform.log_abs_det_jacobian(x, y).

    A subclass defines _call, _inverse and log_abs_det_jacobian. event_dim_in and event_dim_out: how many axes of x and of y, from the
    last one, one value of the function takes and gives; the logarithm is summed over those of x. 0: it acts on each element.
    domain and codomain, constraints, may be stated instead; the counts are then theirs.
    cache_size=1: the x of the last y is remembered, and is what the inverse gives for this y, as in PyTorch. So the density of a draw
    is right where y is rounded, as tanh(20) is to 1.
    """

    event_dim_in: int = 0
    event_dim_out: int = 0
    bijective = True
    _last: _Last | None = None

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise bp.ArgumentValueError(f"{type(self).__name__}: argument cache_size: found {cache_size}, expected 0 or 1")
        self._last = _Last() if cache_size else None

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same transform with a cache of its own; cache_size=0: with none."""
        other = copy.copy(self)
        Transform.__init__(other, cache_size)
        return other

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for fact, name in (("event_dim_in", "domain"), ("event_dim_out", "codomain")):
            stated = vars(cls).get(name)
            if isinstance(stated, Constraint) and not constraints.is_dependent(stated) and fact not in vars(cls):
                setattr(cls, fact, stated.event_dim)

    @property
    def domain(self) -> Constraint:
        """Which x the function takes: numbers, if the class states nothing else."""
        return constraints.independent(constraints.real, self.event_dim_in) if self.event_dim_in else constraints.real

    @property
    def codomain(self) -> Constraint:
        """Which y the function has as values: numbers, if the class states nothing else."""
        return constraints.independent(constraints.real, self.event_dim_out) if self.event_dim_out else constraints.real

    def __call__(self, x: Tensor) -> Tensor:
        if self._last is None:
            return self._call(x)
        y = bp.unguarded(self._last.after, x)
        if y is None:
            y = self._call(x)
            bp.unguarded(self._last.take, x, y)
        return y

    def _remembered(self, y: Tensor) -> Tensor | None:
        """The x that became y."""
        return None if self._last is None else bp.unguarded(self._last.before, y)

    def _before(self, y: Tensor) -> Tensor:
        """inv(y)."""
        x = self._remembered(y)
        return self._inverse(y) if x is None else x

    def _renamed(self, y: Tensor, other: Tensor) -> Tensor:
        """The other tensor, which stands for y."""
        if (x := self._remembered(y)) is not None and self._last is not None:
            bp.unguarded(self._last.take, x, other)
        return other

    @property
    def sign(self) -> Any:
        """1 of a function that rises, -1 of one that falls, or a tensor of these."""
        raise NotImplementedError(f"{type(self).__name__}: sign is not defined: the function is not one of numbers that rises or falls")

    @property
    def inv(self) -> Transform:
        """The inverse, as a transform."""
        return _Inverse(self)

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: _call is not defined; define it in the subclass")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: _inverse is not defined; define it in the subclass")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |dy/dx| at x, where y is transform(x)."""
        raise NotImplementedError(f"{type(self).__name__}: log_abs_det_jacobian is not defined; define it in the subclass")

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of transform(x) for x of this shape."""
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(shape)

    def _inside(self, y: Tensor) -> Tensor | None:
        """Where y is a value of the function; None: everywhere."""
        return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    def __init__(self, transform: Transform) -> None:
        self._of = transform
        self.event_dim_in, self.event_dim_out = transform.event_dim_out, transform.event_dim_in

    @property
    def inv(self) -> Transform:
        return self._of

    @property
    def domain(self) -> Constraint:
        return self._of.codomain

    @property
    def codomain(self) -> Constraint:
        return self._of.domain

    @property
    def sign(self) -> Any:
        return self._of.sign

    def _call(self, x: Tensor) -> Tensor:
        return self._of._before(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._of(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._of.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self._of.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self._of.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{self._of!r}.inv"


def broadcast(*shapes: Any) -> tuple[int, ...]:
    """The shape that these shapes broadcast to."""
    found: Any = bp.broadcast_shapes(*shapes)
    return found


def sum_last(x: Tensor, count: int) -> Tensor:
    """The sum over the last `count` axes."""
    return bp.sum(x, axis=list(range(-count, 0))) if count else x


def _widened(one: Constraint, event_dim: int) -> Constraint:
    """A constraint of values with this number of axes."""
    more = event_dim - one.event_dim
    return constraints.independent(one, more) if more else one


class ComposeTransform(Transform):
    """One transform after the other, the first one first."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = list(parts)
        at = 0  # of the axes of one event, how many more than the first part's the value has between two parts
        needed = 0
        for part in self.parts:
            needed = max(needed, part.event_dim_in - at)
            at += part.event_dim_out - part.event_dim_in
        self.event_dim_in, self.event_dim_out = needed, needed + at

    @property
    def domain(self) -> Constraint:
        return _widened(self.parts[0].domain, self.event_dim_in) if self.parts else constraints.real

    @property
    def codomain(self) -> Constraint:
        return _widened(self.parts[-1].codomain, self.event_dim_out) if self.parts else constraints.real

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part._before(y)
        return y

    def _renamed(self, y: Tensor, other: Tensor) -> Tensor:
        super()._renamed(y, other)
        return self.parts[-1]._renamed(y, other) if self.parts else other

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        total: Any = bp.zeros_like(sum_last(x, self.event_dim_in))
        event_dim = self.event_dim_in
        for i, part in enumerate(self.parts):
            after = y if i == len(self.parts) - 1 else part(x)
            total = total + sum_last(part.log_abs_det_jacobian(x, after), event_dim - part.event_dim_in)
            event_dim += part.event_dim_out - part.event_dim_in
            x = after
        return total

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return tuple(shape)

    @property
    def sign(self) -> Any:
        return math.prod(part.sign for part in self.parts)

    def _inside(self, y: Tensor) -> Tensor | None:
        if not self.parts or any(one._remembered(y) is not None for one in (self, self.parts[-1])):
            return None
        return self.parts[-1]._inside(y)

    def __repr__(self) -> str:
        return f"ComposeTransform({self.parts!r})"


class ExpTransform(Transform):
    """exp(x)."""

    codomain = constraints.positive
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return bp.exp(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return bp.log(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x

    def _inside(self, y: Tensor) -> Tensor | None:
        return y > 0


class PowerTransform(Transform):
    """x ** exponent, of positive x."""

    domain = codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent

    @property
    def sign(self) -> Any:
        return bp.sign(bp.asarray(self.exponent))

    def _call(self, x: Tensor) -> Tensor:
        return x**self.exponent

    def _inverse(self, y: Tensor) -> Tensor:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return bp.log(bp.abs(self.exponent * y / x))

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return broadcast(tuple(shape), getattr(self.exponent, "shape", ()))

    inverse_shape = forward_shape

    def _inside(self, y: Tensor) -> Tensor | None:
        return y > 0


class SigmoidTransform(Transform):
    """1 / (1 + exp(-x))."""

    codomain = constraints.unit_interval
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return bp.sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return bp.log(y) - bp.log1p(-y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -bp.softplus(-x) - bp.softplus(x)

    def _inside(self, y: Tensor) -> Tensor | None:
        return (y > 0) & (y < 1)


class SoftplusTransform(Transform):
    """log(1 + exp(x))."""

    codomain = constraints.positive
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return bp.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return y + bp.log(-bp.expm1(-y))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -bp.softplus(-x)

    def _inside(self, y: Tensor) -> Tensor | None:
        return y > 0


class TanhTransform(Transform):
    """tanh(x)."""

    codomain = constraints.interval(-1.0, 1.0)
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return bp.tanh(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return bp.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        is_small = bp.abs(x) < 1
        small, large = bp.where(is_small, bp.sinh(bp.where(is_small, x, 0)), 0), bp.where(is_small, 1, x)
        return bp.where(is_small, -bp.log1p(small * small), 2 * (math.log(2) - large - bp.softplus(-2 * large)))

    def _inside(self, y: Tensor) -> Tensor | None:
        return bp.abs(y) < 1


class AffineTransform(Transform):
    """loc + scale * x. event_dim: how many axes, from the last one, are one event."""

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale = loc, scale
        self.event_dim_in = self.event_dim_out = event_dim

    @property
    def sign(self) -> Any:
        return bp.sign(bp.asarray(self.scale))

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_last(bp.log(bp.abs(bp.ones_like(x) * self.scale)), self.event_dim_in)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return broadcast(tuple(shape), getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape

    def __repr__(self) -> str:
        return f"AffineTransform(loc={self.loc}, scale={self.scale})"
