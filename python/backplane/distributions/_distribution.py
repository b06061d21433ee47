"""Distribution, the base class, and Independent, which makes axes of a batch one event."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import backplane as bp
from backplane import Generator, Tensor

from .._calls._value_checks import require
from . import constraints
from ._constraints import Constraint

__all__ = ["Distribution", "Independent"]


def tensors(name: str, **parameters: Any) -> list[Tensor]:
    """The parameters as floating tensors of one shape. Errors: DtypeError, ShapeError."""
    like = next((x for x in parameters.values() if isinstance(x, Tensor) and "floating" in x.dtype.kind), None)
    dtype, device = (bp.default_dtype(), None) if like is None else (like.dtype, like.device)
    found = [x if isinstance(x, Tensor) and "floating" in x.dtype.kind else bp.asarray(x, dtype=dtype, device=device) for x in parameters.values()]
    return list(bp.broadcast_arrays(*found)) if len(found) > 1 else found


def is_number(x: Tensor) -> Tensor:
    return x == x  # noqa: PLR0124


_HALVES = (bp.float16, bp.bfloat16)
_ROUNDED = ("sample", "rsample", "log_prob", "cdf", "icdf", "entropy")


def widened(one: Any) -> tuple[Any, Any]:
    """A distribution with its half floats in float32, and their dtype; itself and None if it has none."""
    halves = {name: x for name, x in vars(one).items() if isinstance(x, Tensor) and x.dtype in _HALVES}
    if not halves:
        return one, None
    wide = object.__new__(type(one))
    vars(wide).update({**vars(one), **{name: x.astype(bp.float32) for name, x in halves.items()}})
    return wide, next(iter(halves.values())).dtype


def _rounded_once(method: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The method, computed in float32 and rounded once if the parameters are half floats."""

    @functools.wraps(method)
    def call(self, *arguments, **options):
        wide, dtype = widened(self)
        if dtype is None:
            return method(self, *arguments, **options)
        arguments = [x.astype(bp.float32) if isinstance(x, Tensor) and x.dtype in _HALVES else x for x in arguments]
        found = method(wide, *arguments, **options)
        if "floating" not in found.dtype.kind:
            return found
        found = found.astype(dtype)
        return self._inside(found) if method.__name__ in ("sample", "rsample") else found

    return call


def above_zero(x: Tensor) -> Tensor:
    """x, at least the least positive normal number."""
    return bp.maximum(x, bp.finfo(x.dtype).tiny)


def between_zero_and_one(x: Tensor) -> Tensor:
    """x, without 0 and 1."""
    return bp.clip(x, bp.finfo(x.dtype).tiny, 1 - bp.finfo(x.dtype).eps / 2)


MODES: dict[type, Callable[[Any], Tensor]] = {}  # of _modes.py, by kind
VALUES: dict[type, Callable[[Any], Tensor]] = {}  # all values, of kinds that have finitely many


class Distribution:
    """A distribution over tensors: batch_shape counts distributions, event_shape is the shape of one draw.

    sample(shape) draws without gradients, rsample(shape) with (has_rsample says whether that is possible); both take a generator.
    log_prob(value) broadcasts value with the batch.
    validate_args=False leaves the checks out, which read values.
    Errors: ArgumentValueError for parameters that no distribution has, and for values outside of the support. Where they cannot be
        read, in a trace or a transform, and without checks, log_prob is -inf outside of the support.
    """

    has_rsample = False

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        """Which values each parameter may have, by name; of most kinds also an attribute of the class."""
        return {}

    @property
    def support(self) -> Constraint:
        """Which values a draw may have; of most kinds also an attribute of the class."""
        raise NotImplementedError(f"{type(self).__name__}: support is not defined")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in _ROUNDED:
            if name in vars(cls):
                setattr(cls, name, _rounded_once(vars(cls)[name]))

    _checks: bool
    _checks_by_default: ClassVar[bool] = True

    def __new__(cls, *args: Any, validate_args: bool | None = None, **kwargs: Any) -> Self:
        one = super().__new__(cls)
        one._checks = Distribution._checks_by_default if validate_args is None else bool(validate_args)
        return one

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions made from now on refuse parameters and values that do not fit, unless validate_args says otherwise."""
        Distribution._checks_by_default = bool(value)

    def __init__(self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: bool | None = None) -> None:
        self.batch_shape, self.event_shape = tuple(batch_shape), tuple(event_shape)

    def _shape(self, sample_shape: Any) -> tuple[int, ...]:
        given = (sample_shape,) if hasattr(sample_shape, "__index__") else tuple(sample_shape)
        return (*given, *self.batch_shape, *self.event_shape)

    def _inside(self, x: Tensor) -> Tensor:
        """Samples x, moved back into the support where rounding left it."""
        return x

    def _number(self, value: Any, like: Tensor) -> Tensor:
        return value if isinstance(value, Tensor) else bp.asarray(value, dtype=like.dtype, device=like.device)

    def _require(self, argument: str, x: Tensor, good: Tensor, expected: str) -> bool:
        """Refuses values of x where `good` does not hold. False where they cannot be read, and without checks."""
        name = type(self).__name__
        return self._checks and require(f"{name}.log_prob" if argument == "value" else name, argument, x, good, expected)

    def _supported(self, value: Tensor, inside: Tensor, expected: str, found: Tensor) -> Tensor:
        """The density `found` of values for which `inside` holds."""
        if self._require("value", value, inside, expected):
            return found
        return bp.where(inside, found, -bp.inf)

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: rsample is not defined; use sample, and log_prob for gradients")

    def sample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        """Draws of shape sample_shape + batch_shape + event_shape."""
        with bp.no_grad():
            return bp.stop_gradient(self.rsample(sample_shape, generator=generator))

    def log_prob(self, value: Any) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: log_prob is not defined")

    def cdf(self, value: Any) -> Tensor:
        """The probability of numbers up to value."""
        raise NotImplementedError(f"{type(self).__name__}: cdf is not defined")

    def icdf(self, value: Any) -> Tensor:
        """The number that a draw exceeds with probability 1 - value: the inverse of cdf."""
        raise NotImplementedError(f"{type(self).__name__}: icdf is not defined")

    def entropy(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: entropy is not defined")

    @property
    def mean(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: mean is not defined")

    @property
    def variance(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: variance is not defined")

    @property
    def stddev(self) -> Tensor:
        return bp.sqrt(self.variance)

    @property
    def mode(self) -> Tensor:
        """The value of the highest density or probability; NaN where there is none or several."""
        formula = next((MODES[kind] for kind in type(self).__mro__ if kind in MODES), None)
        if formula is None:
            raise NotImplementedError(f"{type(self).__name__}: mode is not defined")
        return formula(self)

    def perplexity(self) -> Tensor:
        """exp of the entropy."""
        return bp.exp(self.entropy())

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values (n, *batch, *event), or (n, 1, …, 1, *event) without expand. Errors: NotImplementedError but of finitely many values."""
        listed = next((VALUES[kind] for kind in type(self).__mro__ if kind in VALUES), None)
        if listed is None:
            raise NotImplementedError(f"{type(self).__name__}: enumerate_support is not defined: its values are not finitely many, or are vectors")
        values = listed(self)
        values = values.reshape((values.shape[0], *(1,) * len(self.batch_shape), *self.event_shape))
        return bp.broadcast_to(values, (values.shape[0], *self.batch_shape, *self.event_shape)) if expand else values

    def expand(self, batch_shape: Sequence[int]) -> Self:
        """The distribution with its parameters broadcast to another shape of the batch."""
        old, new = self.batch_shape, tuple(batch_shape)
        ending = new[len(new) - len(old) :]
        if len(new) < len(old) or any(a not in (1, b) for a, b in zip(old, ending)):
            raise bp.ShapeError(f"{type(self).__name__}.expand: argument batch_shape: found {new}, expected a shape that {old} broadcasts to")
        made = object.__new__(type(self))
        for name, x in vars(self).items():
            vars(made)[name] = _expanded(x, old, new)
        made.batch_shape = new
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch_shape={self.batch_shape}, event_shape={self.event_shape})"


def _expanded(x, old, new):
    """A parameter, or a distribution that another one is made of, with another batch in the place of its first axes."""
    if isinstance(x, Distribution) and x.batch_shape[: len(old)] == old:
        return x.expand((*new, *x.batch_shape[len(old) :]))
    if isinstance(x, Tensor) and tuple(x.shape[: len(old)]) == old:
        inner = tuple(x.shape[len(old) :])
        return bp.broadcast_to(x.reshape((*(1,) * (len(new) - len(old)), *old, *inner)), (*new, *inner))
    return x


def uniform(shape, like, generator, low=0.0, high=1.0):
    how = {} if generator is None else {"generator": generator}
    return bp.uniform(shape, low=low, high=high, dtype=like.dtype, device=like.device, **how)


def normal(shape, like, generator):
    how = {} if generator is None else {"generator": generator}
    return bp.normal(shape, dtype=like.dtype, device=like.device, **how)


def open_uniform(shape, like, generator):
    """Uniform numbers without 0 and 1."""
    return between_zero_and_one(uniform(shape, like, generator))


class Independent(Distribution):
    """Another distribution whose last reinterpreted_batch_ndims axes of the batch belong to the event: log_prob sums over them."""

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None) -> None:
        batch = base_distribution.batch_shape
        if not 0 <= reinterpreted_batch_ndims <= len(batch):
            raise bp.ArgumentValueError(f"Independent: argument reinterpreted_batch_ndims: found {reinterpreted_batch_ndims}, expected at most {len(batch)}")
        self.base_dist, self._count = base_distribution, reinterpreted_batch_ndims
        self.has_rsample = base_distribution.has_rsample
        split = len(batch) - reinterpreted_batch_ndims
        super().__init__(batch[:split], (*batch[split:], *base_distribution.event_shape))

    @constraints.dependent_property
    def support(self):
        base = self.base_dist.support
        return constraints.independent(base, self._count) if self._count else base

    def _summed(self, x: Tensor) -> Tensor:
        return bp.sum(x, axis=list(range(-self._count, 0))) if self._count else x

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        return self.base_dist.rsample(sample_shape, generator=generator)

    def sample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        return self.base_dist.sample(sample_shape, generator=generator)

    def log_prob(self, value: Any) -> Tensor:
        return self._summed(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        return self._summed(self.base_dist.entropy())

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance


HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
