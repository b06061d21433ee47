"""Casts between element types, constants, and tensors that ONNX makes of shapes."""

import numpy as np

import backplane as bp

from ._table import on_host, op, refuse
from ._types import NARROW, NAMES, cast_to, dtype_of, element_type_of, type_name
from ._values import Host, integers, prod, shape_array

_INTEGERS_ON_HOST = {6: np.int32, 7: np.int64}


@op("Cast", 6)
def cast(node, x, *, to, saturate=1, round_mode="up"):
    return cast_to(x, to, saturate, round_mode)


@on_host("Cast")
def cast_on_host(x, *, to, saturate=1, round_mode="up"):
    if x.dtype == object:  # of sizes, other types would lose the expressions
        return x if to in _INTEGERS_ON_HOST else NotImplemented
    if to in NARROW or to == 16 or to not in NAMES or (x.dtype.kind == "f" and to not in (1, 9, 10, 11) and not np.all(np.isfinite(x))):
        return NotImplemented
    return x.astype(NAMES[to])


@op("CastLike", 15)
def cast_like(node, x, like, *, saturate=1, round_mode="up"):
    return cast_to(x, node.kinds[1] or element_type_of(like.dtype), saturate, round_mode)


@op("BitCast", 26)
def bit_cast(node, x, *, to):
    if node.kinds[0] or to in NARROW:
        refuse(f"a BitCast between {x.dtype} and {type_name(to)} is not supported: types without a dtype have no bits here")
    if x.dtype == bp.bool or to == 9:
        return bp.cast(x, dtype_of(to)) if x.dtype == bp.bool else bp.cast(bp.bitwise_and(bp.bitcast(x, bp.uint8), 1), bp.bool)
    return bp.bitcast(x, dtype_of(to))


@op("Constant", 1)
def constant(node, *, value=None, value_float=None, value_floats=None, value_int=None, value_ints=None, sparse_value=None, kinds=0, **others):
    if others:
        refuse(f"the attribute {', '.join(others)} is not supported: strings have no dtype")
    for tensor in (value, sparse_value):
        if tensor is not None:
            return tensor
    for numbers, dtype in ((value_float, np.float32), (value_floats, np.float32), (value_int, np.int64), (value_ints, np.int64)):
        if numbers is not None:
            return Host(np.array(numbers, dtype=dtype), fixed=True)
    return refuse("found no value")


@op("ConstantOfShape", 9, static=(0,))
def constant_of_shape(node, shape, *, value=None, kinds=0):
    shape = integers(shape)
    if value is None:
        return bp.zeros(shape, dtype=bp.float32, device=node.device)
    if value.array is None:  # bfloat16
        return bp.broadcast_to(bp.reshape(value.tensor(node.device), ()), shape)
    number = value.array.reshape(-1)[0]
    return bp.full(shape, number.item(), dtype=getattr(bp, value.array.dtype.name), device=node.device)


@on_host("ConstantOfShape")
def constant_of_shape_on_host(shape, *, value=None, kinds=0):
    sizes = integers(shape)
    if shape.dtype == object or prod(sizes) > 1024 or (value is not None and value.array is None):
        return NotImplemented
    return np.full(sizes, np.float32(0) if value is None else value.array.reshape(-1)[0])


@op("Shape", 1)
def shape(x, *, start=0, end=None):
    return Host(shape_array(x.shape[start:end]))


@on_host("Shape")
def shape_on_host(x, *, start=0, end=None):
    return np.array(x.shape[start:end], dtype=np.int64)


@op("Size", 1)
def size(x):
    return Host(shape_array([prod(x.shape)]).reshape(()))


@on_host("Size")
def size_on_host(x):
    return np.array(x.size, dtype=np.int64)


@op("EyeLike", 9)
def eye_like(node, x, *, dtype=None, k=0):
    if x.ndim != 2:
        raise bp.ShapeError(f"found {x.ndim} axes, expected 2")
    return bp.eye(x.shape[0], x.shape[1], k=k, dtype=x.dtype if dtype is None else dtype_of(dtype), device=x.device)


@op("Range", 11, static=(0, 1, 2))
def number_range(node, start, limit, delta):
    dtypes = [x.dtype for x in (start, limit, delta)]
    start, limit, delta = (x.reshape(-1)[0] for x in (start, limit, delta))
    if object in dtypes:
        if int(delta) != 1:
            refuse("a step other than 1 is not supported where a bound is a dynamic size")
        return bp.arange(limit - start, dtype=bp.int64, device=node.device) + start
    count = max(0, int(np.ceil((limit - start) / delta)))
    dtype = getattr(bp, dtypes[0].name)
    wide = bp.int64 if dtypes[0].kind in "iu" else dtype
    return bp.cast(bp.arange(count, dtype=wide, device=node.device) * delta.item() + start.item(), dtype)


@on_host("Range")
def number_range_on_host(start, limit, delta):
    values = [x.reshape(-1)[0] for x in (start, limit, delta)]
    if any(x.dtype == object for x in (start, limit, delta)):
        return NotImplemented
    count = max(0, int(np.ceil((float(values[1]) - float(values[0])) / float(values[2])))) if values[2] else 0
    if count > 1024 or count == 0:
        return np.empty((0,), values[0].dtype) if count == 0 and values[2] else NotImplemented
    return (np.arange(count, dtype=np.int64) * values[2] + values[0]).astype(values[0].dtype)
