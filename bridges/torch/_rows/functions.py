"""What rows of aten.txt call for elementwise operators, shapes and indices: PyTorch's meaning over Backplane's ops."""

from __future__ import annotations

import backplane as bp

op = bp.ops.bp

__all__ = [
    "along_axis", "axes", "bernoulli", "concatenated", "converted", "frexp", "gathered", "index_put", "index_reduce", "indexed", "masked_fill", "masked_select", "matrix_product_sum", "native_dropout", "no_errors", "numbers_beside", "prelu", "product_sum", "reduced_dtype",
    "safe_softmax", "scattered", "sliced", "solve", "spherical_bessel_j0", "unique", "where",
]  # fmt: skip

_KINDS = {"bool": 0, "unsigned integer": 1, "signed integer": 1, "integral": 1, "real floating": 2, "complex floating": 3}


def common_dtype(tensors):
    """PyTorch's dtype of an operation on these tensors: one without axes counts only where its kind is higher than theirs."""
    ranks = {True: None, False: None}
    for x in tensors:
        axes = x.ndim > 0
        ranks[axes] = x.dtype if ranks[axes] is None else _promoted(ranks[axes], x.dtype)
    with_axes, without = ranks[True], ranks[False]
    if with_axes is None or without is None:
        return with_axes or without
    if _KINDS[without.kind] <= _KINDS[with_axes.kind]:
        return with_axes
    return _promoted(with_axes, without)


def _promoted(x, y):
    if x == y:
        return x
    if {x, y} == {bp.uint64, bp.int64}:
        raise bp.DtypeError("backplane.torch: found operands of uint64 and int64, which have no common dtype. Fix: cast one of them")
    return bp.promote_types(x, y) if hasattr(bp, "promote_types") else bp.result_type(x, y)


def casting_operands(function):
    """The function, with tensors among its arguments cast to their common dtype (bools of where and masks are not operands here)."""

    def call(*args, **kwargs):
        tensors = [x for x in (*args, *kwargs.values()) if isinstance(x, bp.Tensor)]
        if len(tensors) > 1 and any(x.dtype != tensors[0].dtype for x in tensors):
            dtype = common_dtype(tensors)
            args = [converted(x, dtype) if isinstance(x, bp.Tensor) else x for x in args]
            kwargs = {name: converted(x, dtype) if isinstance(x, bp.Tensor) else x for name, x in kwargs.items()}
        return function(*args, **kwargs)

    return call


def numbers_beside(x, y):
    """Two operands, one of which may be a number: at least one is a tensor."""
    if not isinstance(x, bp.Tensor) and not isinstance(y, bp.Tensor):
        x = bp.asarray(x)
    return x, y


def converted(x, dtype):
    """x in another dtype (None: its own)."""
    return x if dtype is None or x.dtype == dtype else op.cast(x, dtype)


def reduced_dtype(x, dtype):
    """The dtype of a sum: int64 of integers and bools, as PyTorch has it."""
    return bp.int64 if dtype is None and _KINDS[x.dtype.kind] < 2 else dtype


def axes(x, dim):
    """The axes of a reduction; for a tensor without axes, all of them."""
    return None if x.ndim == 0 else dim


def product_sum(x, product, a, b, beta, alpha):
    """beta * x + alpha * product(a, b); integers are multiplied by the whole parts, and with beta 0 x plays no part."""
    y = product(a, b) if a.dtype != bp.bool else product(op.cast(a, bp.int64), op.cast(b, bp.int64))
    if a.dtype.kind in ("bool", "signed integer", "unsigned integer"):
        beta, alpha = int(beta), int(alpha)
    y = y if alpha == 1 else y * alpha
    if beta == 0:
        return y
    return y + (x if beta == 1 else x * beta)


def matrix_product_sum(x, product, a, b, beta, alpha):
    """product_sum of matrices; a row that is added to every row of the product is part of it."""
    same = x.dtype == a.dtype == b.dtype and _KINDS[x.dtype.kind] > 1
    if same and beta == alpha == 1 and x.ndim == 1 and a.ndim == b.ndim == 2 and type(x.shape[0]) is type(b.shape[1]) is int and x.shape[0] == b.shape[1]:
        return op.matmul_add(a, b, x)
    return product_sum(x, product, a, b, beta, alpha)


def _same_dtype(x, y):
    tensors = [z for z in (x, y) if isinstance(z, bp.Tensor)]
    if len(tensors) == 2 and x.dtype != y.dtype:
        dtype = common_dtype(tensors)
        return converted(x, dtype), converted(y, dtype)
    return x, y


def where(condition, x, y):
    x, y = _same_dtype(x, y)
    if not isinstance(x, bp.Tensor) and not isinstance(y, bp.Tensor):
        x = bp.asarray(x, dtype=bp.result_type(bp.asarray(x), bp.asarray(y)))
    condition = condition if condition.dtype == bp.bool else condition != 0
    return op.where(condition, x, y)


def masked_fill(x, mask, value):
    value = converted(value, x.dtype) if isinstance(value, bp.Tensor) else bp.asarray(value, dtype=x.dtype)
    return op.masked_fill(x, mask, value)


def prelu(x, weight):
    if weight.ndim == 1 and x.ndim > 1 and weight.shape[0] != 1:
        weight = bp.reshape(weight, [-1] + [1] * (x.ndim - 2))
    return bp.where(x > 0, x, x * weight)


def safe_softmax(x, dim, dtype):
    """Softmax with 0 in rows that are -inf everywhere."""
    empty = bp.all(x == -bp.inf, dim, keepdims=True)
    return bp.where(empty, 0.0, bp.softmax(converted(bp.where(empty, 0.0, x), dtype), axis=[dim]))


def spherical_bessel_j0(x):
    """sin(x) / x, 1 at 0 and 0 at infinity."""
    x = x if _KINDS[x.dtype.kind] >= 2 else op.cast(x, bp.get_default_dtype())
    is_plain = bp.logical_and(x != 0, bp.logical_not(bp.isinf(x)))
    safe = bp.where(is_plain, x, bp.ones_like(x))
    return bp.where(is_plain, bp.sin(safe) / safe, bp.where(x == 0, bp.ones_like(x), bp.where(bp.isinf(x), bp.zeros_like(x), x)))


def frexp(x):
    """(mantissas with a size from 0.5 up to 1, exponents): x is mantissa * 2^exponent. 0, infinities and NaN have the exponent 0."""
    if x.dtype in (bp.float16, bp.bfloat16):
        mantissa, exponent = frexp(op.cast(x, bp.float32))
        return op.cast(mantissa, x.dtype), exponent
    bits, bias, integers = (23, 126, bp.int32) if x.dtype == bp.float32 else (52, 1022, bp.int64)
    is_small = bp.abs(x) < bp.finfo(x.dtype).smallest_normal
    words = op.bitcast(bp.where(is_small, x * 2.0 ** (bits + 1), x), integers)
    field = ((1 << (integers == bp.int32 and 8 or 11)) - 1) << bits
    exponent = bp.right_shift(bp.bitwise_and(words, field), bits) - bias - bp.where(is_small, bits + 1, 0)
    mantissa = op.bitcast(bp.bitwise_or(bp.bitwise_and(words, ~field), bias << bits), x.dtype)
    is_plain = bp.logical_and(x != 0, bp.isfinite(x))
    return bp.where(is_plain, mantissa, x), op.cast(bp.where(is_plain, exponent, 0), bp.int32)


# ---- shapes -------------------------------------------------------------------------------------------------------


def sliced(x, dim, start, end, step):
    """x[start:end:step] along dim; an end far beyond the axis means its end."""
    if not hasattr(end, "__index__") or end == 9223372036854775807:
        end = None
    return op.slice(x, [dim], [start], [end], [step])


def concatenated(tensors, dim):
    """The tensors side by side in their common dtype; PyTorch passes over those of shape (0,)."""
    kept = [x for x in tensors if x.ndim != 1 or x.shape[0] != 0 or all(y.ndim == 1 for y in tensors)]
    dtype = common_dtype(tensors)
    return op.concat([converted(x, dtype) for x in kept], axis=dim)


# ---- indices ------------------------------------------------------------------------------------------------------


def _positions(indices):
    """Index tensors, with masks as the positions of their true elements."""
    found = []
    for index in indices:
        if index is None or index.dtype not in (bp.bool, bp.uint8):
            found.append(index)
        else:
            found.extend(bp.nonzero(index if index.ndim else bp.reshape(index, [1])))
    return found


def indexed(x, indices):
    """x at index tensors or masks (None: the whole axis)."""
    return op.index(x, _positions(indices))


def index_put(x, indices, values, accumulate):
    """x with values at index tensors or masks."""
    masks = [index for index in indices if index is not None]
    if len(masks) == 1 and masks[0].dtype == bp.bool and indices[0] is not None and values.ndim == 0 and not accumulate:
        mask = bp.reshape(masks[0], list(masks[0].shape) + [1] * (x.ndim - masks[0].ndim))
        return op.masked_fill(x, mask, values)
    return op.index_put(x, _positions(indices), values, accumulate=accumulate)


def along_axis(function, x, *sources):
    """An edit along an axis; a tensor without axes is edited as a vector of one element."""
    if x.ndim:
        return function(x, *sources)
    return bp.reshape(function(bp.reshape(x, [1]), *(bp.reshape(source, [-1]) for source in sources)), [])


def masked_select(x, mask):
    """The elements where the mask is true, as a vector, also of tensors without axes."""
    import backplane.compat.torch as spelled

    return spelled.masked_select(_expanded_scalar(x), _expanded_scalar(mask) if x.ndim == 0 else mask)


def _expanded_scalar(x):
    return bp.reshape(x, [1]) if x.ndim == 0 else x


def _cut(x, index, dim):
    """x cut to the index along the other axes, because PyTorch does not read beyond it."""
    for axis in range(x.ndim):
        if axis != dim % x.ndim and x.shape[axis] != index.shape[axis]:
            x = op.slice(x, [axis], [0], [index.shape[axis]], [1])
    return x


def gathered(x, dim, index):
    if index.size == 0:
        return bp.zeros(index.shape, dtype=x.dtype)
    if x.ndim == 0 or index.ndim == 0:
        return bp.reshape(op.take_along_axis(_expanded_scalar(x), _expanded_scalar(index), axis=0), index.shape)
    return op.take_along_axis(_cut(x, index, dim), index, axis=dim)


def scattered(x, dim, index, source, reduce):
    """x with the source at the positions along dim (reduce: combined with the elements there)."""
    if x.ndim == 0:
        source = _expanded_scalar(source) if isinstance(source, bp.Tensor) else source
        return bp.reshape(scattered(_expanded_scalar(x), 0, _expanded_scalar(index), source, reduce), [])
    index = _expanded_scalar(index)
    if index.size == 0:
        return bp.copy(x)
    if not isinstance(source, bp.Tensor):
        source = op.full(index.shape, source, dtype=x.dtype)
    source = converted(_expanded_scalar(source), x.dtype)
    for axis in range(x.ndim):
        if source.shape[axis] != index.shape[axis]:
            source = op.slice(source, [axis], [0], [index.shape[axis]], [1])
    part = x
    axes = [axis for axis in range(x.ndim) if axis != dim % x.ndim and x.shape[axis] != index.shape[axis]]
    sizes = [index.shape[axis] for axis in axes]
    if axes:
        part = op.slice(x, axes, [0] * len(axes), sizes, [1] * len(axes))
    reduce = {"add": "sum", "multiply": "prod"}.get(reduce, reduce)
    if reduce in (None, "sum"):
        part = op.put_along_axis(part, index, source, axis=dim, accumulate=reduce == "sum")
    else:
        part = bp.scatter(part, dim, index, source, reduce)
    return op.slice_put(x, part, axes, [0] * len(axes), sizes, [1] * len(axes)) if axes else part


def index_reduce(x, dim, index, source, reduce, include_self):
    """x with parts of the source combined with its parts at the positions along dim."""
    axis = dim % x.ndim
    places = bp.reshape(index, [-1 if place == axis else 1 for place in range(x.ndim)])
    return bp.scatter(x, axis, bp.broadcast_to(places, source.shape), source, reduce, include_self=include_self)


def solve(a, b, left):
    """The x with a x = b; b is a stack of vectors if its shape is that of a without the last axis."""
    import backplane.compat.torch as spelled

    if b.ndim > 1 and a.ndim - 1 == b.ndim and tuple(a.shape[:-1]) == tuple(b.shape):
        return bp.squeeze(spelled.linalg.solve(a, bp.expand_dims(b, [-1]), left=True), -1)
    return spelled.linalg.solve(a, b, left=left)


def unique(x, return_inverse, return_counts, dim):
    """(values, inverse, counts); empty tensors in place of those that are not asked for."""
    import backplane.compat.torch as spelled

    found = spelled.unique(x, True, True, True, dim)
    nothing = bp.zeros((0,), dtype=bp.int64)
    return found[0], found[1] if return_inverse else nothing, found[2] if return_counts else nothing


def no_errors(x):
    """The `info` of a factorisation: a failure raises here."""
    return bp.zeros(x.shape[:-2], dtype=bp.int32)


# ---- random numbers -----------------------------------------------------------------------------------------------


def bernoulli(x, p):
    """1 with probability p (a number), or with the probabilities in x."""
    chance = bp.full(x.shape, p, dtype=bp.float32) if p is not None and not isinstance(p, bp.Tensor) else x if p is None else p
    return op.cast(bp.rand(chance.shape) < chance, x.dtype)


def native_dropout(x, p, train):
    """(x with elements dropped and the others scaled, which were kept)."""
    if train is False or p == 0:
        return x, bp.ones(x.shape, dtype=bp.bool)
    if p == 1:
        return bp.zeros_like(x), bp.zeros(x.shape, dtype=bp.bool)
    kept = bp.rand(x.shape) >= p
    return bp.where(kept, x * (1 / (1 - p)), 0), kept
