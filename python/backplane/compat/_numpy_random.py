"""numpy.random: its functions and generators over Backplane's generators. The numbers are others than NumPy's for the same seed."""

from __future__ import annotations

from .. import _core
from .._calls._ops import NAMESPACE, ops
from .._runtime._system import manual_seed
from ._calls import float64
from ._numpy_rare_distributions import RareDistributions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._core import Tensor

op = getattr(ops, NAMESPACE)


def _shape(size):
    return () if size is None else (size,) if hasattr(size, "__index__") else tuple(size)


def _broadcast(size, *parameters):
    """The shape of the result: the size, or that to which the parameters broadcast."""
    if size is not None:
        return _shape(size)
    from .._api._manipulation_functions import broadcast_shapes

    return broadcast_shapes(*(getattr(p, "shape", ()) for p in parameters))


class Generator(RareDistributions):
    """Draws random numbers as numpy.random.Generator does; float64, and int64 unless stated."""

    def __init__(self, generator: Any = None) -> None:
        self._generator = generator

    def _draw(self, draw, shape, dtype):
        return draw(shape, dtype=_core.float64 if dtype is None else dtype, generator=self._generator)

    def random(self, size: Any = None, dtype: Any = None) -> Tensor:
        """Uniform numbers in [0, 1)."""
        return self._draw(op.uniform, _shape(size), dtype)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Tensor:
        """Uniform numbers in [low, high)."""
        return self._draw(op.uniform, _broadcast(size, low, high), None) * (high - low) + low

    def standard_normal(self, size: Any = None, dtype: Any = None) -> Tensor:
        """Numbers of the standard normal distribution."""
        return self._draw(op.normal, _shape(size), dtype)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Tensor:
        """Numbers of a normal distribution."""
        return self._draw(op.normal, _broadcast(size, loc, scale), None) * scale + loc

    def standard_exponential(self, size: Any = None) -> Tensor:
        """Numbers of the exponential distribution of mean 1."""
        return -op.log1p(-self.random(size))

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Tensor:
        """Numbers of an exponential distribution of mean scale."""
        return self.standard_exponential(_broadcast(size, scale)) * scale

    def integers(self, low: int, high: int | None = None, size: Any = None, dtype: Any = None, endpoint: bool = False) -> Tensor:
        """Integers from low (0 where high is not given) to below high, or to high with endpoint."""
        low, high = (0, low) if high is None else (low, high)
        return op.randint(low, high + 1 if endpoint else high, _shape(size), dtype=_core.int64 if dtype is None else dtype, generator=self._generator)

    def permutation(self, x: Any, axis: int = 0) -> Tensor:
        """The integers below x, or the elements of x along axis, in random order."""
        if hasattr(x, "__index__") and not getattr(x, "ndim", 0):
            return op.permutation(x, generator=self._generator)
        with float64:
            x = _core.asarray(x)
        return op.take(x, op.permutation(x.shape[axis], generator=self._generator), axis=axis)

    permuted = permutation

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Puts the elements of x, a tensor or a list, along axis into random order, in place."""
        if isinstance(x, list):
            x[:] = [x[place] for place in op.permutation(len(x), generator=self._generator).tolist()]
        else:
            x[...] = self.permutation(x, axis)

    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0) -> Tensor:
        """Elements of a (or integers below a) drawn at random along axis, with the probabilities p."""
        with float64:
            a = op.iota(a) if hasattr(a, "__index__") and not getattr(a, "ndim", 0) else _core.asarray(a)
        shape, whole = _shape(size), a.shape[axis]
        count = 1
        for length in shape:
            count *= length
        if p is None and replace:
            places = op.randint(0, whole, shape, generator=self._generator)
        else:
            if not replace and count > whole:
                raise _core.ArgumentValueError(f"choice: argument size: found {count} elements without replacement, expected at most {whole}")
            places = op.reshape(self._weighted(p, whole, count, replace), shape)
        return _at(a, places, axis)

    def _weighted(self, p, whole, count, replace):
        if p is None:
            return op.permutation(whole, generator=self._generator)[:count]
        p = _core.asarray(p, dtype=_core.float64)
        if p.shape != (whole,) or abs(float(op.sum(p)) - 1) > 1e-8 or bool(op.any(op.less(p, 0))):
            raise _core.ArgumentValueError(f"choice: argument p: expected {whole} probabilities from 0 on whose sum is 1")
        if replace:
            return op.minimum(op.searchsorted(op.cumulative_sum(p), self.random(count), side="right"), whole - 1)
        keys = op.divide(op.log1p(op.negative(self.random(whole))), p)  # the largest keys are a draw in proportion to p (Efraimidis and Spirakis, 2006)
        return op.argsort(keys, descending=True)[:count]


def _at(a, places, axis):
    """The parts of a along axis at the places, whose axes stand where axis was."""
    found = op.take(a, op.reshape(places, [-1]), axis=axis)
    axis %= a.ndim
    return op.reshape(found, [*a.shape[:axis], *places.shape, *a.shape[axis + 1 :]])


def default_rng(seed: Any = None) -> Generator:
    """A generator of its own, of the seed or of a random one."""
    if isinstance(seed, Generator):
        return seed
    if seed is None:
        import os

        seed = int.from_bytes(os.urandom(8), "little") >> 1
    return Generator(_core.Generator(seed))


class RandomState(Generator):
    """NumPy's legacy generator of its own: the functions of the module, by the seed."""

    def __init__(self, seed: Any = None) -> None:
        super().__init__(default_rng(seed)._generator)

    def rand(self, *size: int) -> Tensor:
        """Uniform numbers in [0, 1)."""
        return self.random(size)

    def randn(self, *size: int) -> Tensor:
        """Numbers of the standard normal distribution."""
        return self.standard_normal(size)

    def randint(self, low: int, high: int | None = None, size: Any = None, dtype: Any = None) -> Tensor:
        """Integers from low (0 where high is not given) to below high."""
        return self.integers(low, high, size, dtype)

    def random_sample(self, size: Any = None) -> Tensor:
        """Uniform numbers in [0, 1)."""
        return self.random(size)

    def seed(self, seed: int | None = None) -> None:
        """Starts again from the seed, or from a random one."""
        self._generator = default_rng(seed)._generator


class _Global(RandomState):
    """The functions of the module: they draw from Backplane's default generator."""

    def __init__(self) -> None:
        Generator.__init__(self)

    def seed(self, seed: int | None = None) -> None:
        """Seeds Backplane's default generator."""
        import os

        manual_seed(int.from_bytes(os.urandom(8), "little") >> 1 if seed is None else int(seed))


_global = _Global()


def function(name: str) -> Any:
    """The function of the module with this name."""
    return getattr(_global, {"ranf": "random", "sample": "random"}.get(name, name))
