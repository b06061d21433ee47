"""Lets einops compute with tensors: `import backplane.einops`, and then `einops.rearrange(x, "a b -> b a")` and its kin.

einops knows a framework by a class of its own kind, which this module defines, so it is the one module here that imports einops.
`einops.array_api` needs none of it.
"""

from __future__ import annotations

import backplane as bp
import einops._backends as _backends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from backplane import Tensor


class BackplaneBackend(_backends.AbstractBackend):
    """What einops asks of a framework."""

    framework_name = "backplane"

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, bp.Tensor)

    def from_numpy(self, x: Any) -> Tensor:
        return bp.asarray(x)

    def to_numpy(self, x: Tensor) -> Any:
        return x.numpy()

    def arange(self, start: int, stop: int) -> Tensor:
        return bp.arange(start, stop)

    def stack_on_zeroth_dimension(self, tensors: Sequence[Tensor]) -> Tensor:
        return bp.stack(tensors)

    def transpose(self, x: Tensor, axes: Sequence[int]) -> Tensor:
        return bp.permute_dims(x, axes)

    def reduce(self, x: Tensor, operation: str, axes: Sequence[int]) -> Tensor:
        reduced: Tensor = getattr(bp, operation)(x, axis=tuple(axes))
        return reduced

    def add_axis(self, x: Tensor, new_position: int) -> Tensor:
        return bp.expand_dims(x, [new_position])

    def tile(self, x: Tensor, repeats: Sequence[int]) -> Tensor:
        return bp.tile(x, repeats)

    def concat(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        return bp.concat(tensors, axis=axis)

    def is_float_type(self, x: Tensor) -> bool:
        return bp.isdtype(x.dtype, "real floating")

    def einsum(self, pattern: str, *x: Tensor) -> Tensor:
        return bp.einsum(pattern, *x)
