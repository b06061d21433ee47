"""Random numbers in NumPy's form: default_rng(seed), whose methods have the names and arguments of numpy.random.Generator.

The numbers have the default dtype (bp.default_dtype) unless a dtype is given, and are not those of NumPy for the same seed. The functions of
the package (bp.normal, bp.randint, …) take shapes first, and a bp.Generator.
"""

from __future__ import annotations

from typing import Any

from . import _core
from ._calls._ops import refuse_names as _refuse_names
from .compat import _numpy_random

__all__ = ["Generator", "default_rng"]
__dir__ = __all__.copy


class Generator(_numpy_random.Generator):
    """Draws random numbers as numpy.random.Generator does: random, normal, uniform, integers, choice, permutation, shuffle and others."""

    def _draw(self, draw: Any, shape: Any, dtype: Any) -> Any:
        return super()._draw(draw, shape, _core.default_float() if dtype is None else dtype)


def default_rng(seed: Any = None) -> Generator:
    """A generator of its own sequence. seed: an int, a generator (which is returned), or None for a fresh sequence."""
    if isinstance(seed, _numpy_random.Generator):
        return seed if isinstance(seed, Generator) else Generator(seed._generator)
    return Generator(seed if isinstance(seed, _core.Generator) else _core.Generator() if seed is None else _core.Generator(seed))


TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _refuse_names(__name__)
del TYPE_CHECKING
