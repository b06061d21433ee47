"""The table of to_graph: JAX's primitive -> the function that computes it with Backplane's ops."""

import numpy as np

import backplane as bp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

ROWS: "dict[str, Callable[..., Any]]" = {}
# Those without operands, which take the device as a keyword.
MAKERS = ("iota", "iota_2x32_shape", "platform_index")


def computes(*names: str) -> "Callable[[Callable[..., Any]], Callable[..., Any]]":
    def put(function):
        for name in names:
            ROWS[name] = function
        return function

    return put


def dtype_of(dtype: "Any") -> bp.DType:
    name = np.dtype(dtype).name
    if not hasattr(bp, name):
        raise bp.MissingRuleError(f"jax.to_graph: arrays of {name} are not supported")
    return getattr(bp, name)


def refuse(text: str) -> "Any":
    raise bp.MissingRuleError(f"jax.to_graph: {text}")
