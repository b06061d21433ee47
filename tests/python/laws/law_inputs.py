"""Arguments of a call from a sample: NumPy arrays first, so that a law can change them; tensors when it calls.

Every generator draws from a seed of its own, so that a case has the same values in every law.
"""

import math
import re
import zlib

import backplane as bp
import numpy as np
from law_registry import widest

# NumPy has no bfloat16: its values are held in float32 and rounded when a tensor is made.
NUMPY_DTYPE = {"bfloat16": np.dtype("float32")}


def numpy_dtype(name):
    return NUMPY_DTYPE.get(name) or np.dtype(name)


def _numbers(text):
    words = {"true": True, "false": False, "nan": math.nan, "inf": math.inf, "-inf": -math.inf}
    return [words[word] if word in words else float(word) for word in re.findall(r"[-\w.+]+", text or "")]


def _draw(rng, generator, count, kind):
    """`count` real values as float64, or integers or bools where `kind` says so."""
    name, numbers = re.match(r"(\w*)(?:\((.*)\))?$", generator).groups()
    numbers = _numbers(numbers)
    if not name:
        name, numbers = ("uniform", [-2, 2]) if kind in "fc" else ("bool", []) if kind == "b" else ("integers", [])
    match name:
        case "uniform":
            return rng.uniform(*numbers, count)
        case "normal":
            return rng.standard_normal(count)
        case "positive":
            return rng.uniform(0.5, 2, count)
        case "away_from":
            point, distance = numbers
            drawn = rng.uniform(-2, 2, count)
            return np.where(abs(drawn - point) < distance, point + 2 * distance, drawn)
        case "distinct":
            return (rng.permutation(count) - count // 2) * (0.25 if kind in "fc" else 1)
        case "index":
            return rng.integers(0, int(numbers[0]), count)
        case "permutation":
            return rng.permutation(count)
        case "last":
            return np.where(np.arange(count) == count - 1, numbers[1], numbers[0])
        case "bool":
            return rng.integers(0, 2, count)
        case "integers":
            return rng.integers(0 if kind == "u" else -4, 5, count)
        case "values":
            return np.resize(numbers, count)
    raise ValueError(f"a sample names the generator {generator!r}, which the laws do not know")


def _matrix(rng, shape, kind):
    """Hermitian and positive definite."""
    base = rng.standard_normal(shape)
    if kind == "c":
        base = base + 1j * rng.standard_normal(shape)
    return base @ np.conj(np.swapaxes(base, -1, -2)) + shape[-1] * np.eye(shape[-1])


def array_of(spec, dtype, rng):
    """The elements of one tensor sample, in its own dtype where it states one."""
    dtype = numpy_dtype(spec["dtype"] or dtype)
    shape, count = tuple(spec["shape"]), math.prod(spec["shape"])
    with np.errstate(invalid="ignore", over="ignore"):
        if spec["gen"] == "spd":
            return _matrix(rng, shape, dtype.kind).astype(dtype)
        drawn = np.asarray(_draw(rng, spec["gen"], count, dtype.kind))
        if dtype.kind == "c":
            drawn = drawn + 1j * np.asarray(_draw(rng, spec["gen"], count, "c"))
        return drawn.astype(dtype).reshape(shape)


def arrays_of(case, dtype, own_dtype=True, drawing=0):
    """Argument name -> NumPy array, list of them, or literal. `dtype`: of the arguments that promote and accept it.

    Each `drawing` has values of its own.
    """
    rng = np.random.default_rng(zlib.crc32(str(case).encode()) + drawing)
    found = {}
    for name, value in case.sample.items():
        arg = case.entry.arg(name)
        if "tensor" in value or "tensors" in value:
            specs = value["tensors"] if "tensors" in value else [value["tensor"]]
            wanted = dtype if dtype in arg.accepts and arg.promote else default_dtype(arg)
            if not own_dtype:
                specs = [spec and {**spec, "dtype": ""} for spec in specs]
            drawn = [None if spec is None else array_of(spec, wanted, rng) for spec in specs]
            found[name] = drawn if "tensors" in value else drawn[0]
        elif "generator" in value:
            found[name] = (value["generator"]["key"], value["generator"]["counter"])
        else:
            found[name] = value["value"]
    return found


def default_dtype(arg):
    """What an argument is drawn in where the law's dtype does not concern it."""
    return next((name for name in ("float64", "int64", "complex128", "bool", *arg.accepts) if name in arg.accepts), widest(()))


def layout_of(case, name, position=0):
    value = case.sample[name]
    spec = value["tensors"][position] if "tensors" in value else value.get("tensor")
    return spec["layout"] if spec else ""


def tensor_of(array, layout="", dtype=None):
    """A tensor of the array's elements, laid out in memory as a sample asks."""
    array = np.asarray(array)
    if layout == "strided" and array.ndim:
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        return bp.asarray(wide, dtype=dtype)[..., ::2]
    if layout == "transposed" and array.ndim > 1:
        order = tuple(reversed(range(array.ndim)))
        return bp.permute_dims(bp.asarray(np.ascontiguousarray(array.transpose(order)), dtype=dtype), order)
    if layout == "offset":
        flat = np.concatenate([np.zeros(3, array.dtype), array.reshape(-1)])
        return bp.reshape(bp.asarray(flat, dtype=dtype)[3:], array.shape)
    if layout == "zero_stride" and array.ndim:
        return bp.broadcast_to(bp.asarray(np.ascontiguousarray(array[:1]), dtype=dtype), array.shape)
    return bp.asarray(array, dtype=dtype, copy=True)


def is_array(value):
    return isinstance(value, (np.ndarray, np.generic))


def is_array_list(value):
    return isinstance(value, list) and bool(value) and all(item is None or is_array(item) for item in value)


def tensors_of(case, arrays, dtype=None):
    """The arguments of the call: a fresh tensor per array, a fresh Generator per generator."""
    found = {}
    for name, value in arrays.items():
        arg = case.entry.arg(name)
        given = dtype if arg.is_tensor and arg.promote else None
        if is_array(value):
            found[name] = tensor_of(value, layout_of(case, name), given)
        elif arg.is_tensor and is_array_list(value):
            found[name] = [item if item is None else tensor_of(item, layout_of(case, name, i), given) for i, item in enumerate(value)]
        elif arg.type == "Generator":
            found[name] = bp.Generator()
            found[name].state = value
        elif arg.type == "Dtype":
            found[name] = getattr(bp, value)
        else:
            found[name] = value
    return found


def leaves(arguments, names):
    """(name, position or None, tensor) of the inexact tensors among the named arguments."""
    for name in names:
        value = arguments.get(name)
        if isinstance(value, bp.Tensor):
            value, positions = [value], [None]
        elif isinstance(value, list):
            positions = range(len(value))
        else:
            continue
        for position, item in zip(positions, value):
            if isinstance(item, bp.Tensor) and item.dtype.name in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128"):
                yield name, position, item
