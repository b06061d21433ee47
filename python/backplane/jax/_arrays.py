"""JAX's arrays as tensors, and back."""

import jax
import jax.numpy as jnp
import numpy as np

import backplane as bp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def to_tensor(array: "Any", device: "bp.Device | str" = "cpu") -> bp.Tensor:
    """Random keys as their words."""
    if isinstance(array, jax.Array) and jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    array = np.asarray(array)
    if array.dtype.name == "bfloat16":
        return bp.bitcast(bp.asarray(np.ascontiguousarray(array).view(np.uint16).reshape(array.shape)), bp.bfloat16).to(device)
    return bp.asarray(array).to(device)


def to_array(tensor: bp.Tensor) -> np.ndarray:
    """As a NumPy array, in the dtype that JAX has for it: 32 bits in place of 64 unless jax_enable_x64 is set."""
    tensor = tensor.detach().to("cpu")
    if tensor.dtype == bp.bfloat16:
        return np.ascontiguousarray(bp.bitcast(tensor, bp.uint16).numpy()).view(jnp.bfloat16).reshape(tuple(tensor.shape))
    array = np.array(tensor.numpy())
    return array.astype(jax.dtypes.canonicalize_dtype(array.dtype), copy=False)


def dtype_name(dtype: "Any") -> str:
    name = str(dtype).rpartition(".")[2]
    if name == "key<fry>" or name.startswith(("float8", "int4", "uint4", "float0")):
        raise bp.DtypeError(f"backplane.jax: arrays of {name} are not supported")
    return name
