"""to_graph's table: arithmetic, comparisons, elementary functions, reductions, scans along an axis."""

import backplane as bp

from ._jaxpr_table import ROWS, computes, dtype_of, refuse

_UNARY = {
    "neg": bp.negative, "abs": bp.abs, "sign": bp.sign, "exp": bp.exp, "exp2": bp.exp2, "log": bp.log, "log1p": bp.log1p, "expm1": bp.expm1, "sin": bp.sin,
    "cos": bp.cos, "tan": bp.tan, "asin": bp.asin, "acos": bp.acos, "atan": bp.atan, "sinh": bp.sinh, "cosh": bp.cosh, "tanh": bp.tanh, "asinh": bp.asinh,
    "acosh": bp.acosh, "atanh": bp.atanh, "logistic": bp.sigmoid, "erf": bp.erf, "erfc": bp.erfc, "erf_inv": bp.erfinv, "lgamma": bp.lgamma,
    "digamma": bp.digamma, "bessel_i0e": bp.i0e, "bessel_i1e": bp.i1e, "sqrt": bp.sqrt, "rsqrt": bp.rsqrt, "cbrt": bp.cbrt, "floor": bp.floor, "ceil": bp.ceil, "is_finite": bp.isfinite,
    "square": bp.square, "copy": bp.copy, "copy_p": bp.copy, "real": bp.real, "imag": bp.imag, "conj": bp.conj, "stop_gradient": bp.stop_gradient,
}  # fmt: skip
_BINARY = {
    "add": bp.add, "add_any": bp.add, "sub": bp.subtract, "mul": bp.multiply, "pow": bp.pow, "max": bp.maximum, "min": bp.minimum, "atan2": bp.atan2,
    "nextafter": bp.nextafter, "eq": bp.equal, "ne": bp.not_equal, "lt": bp.less, "le": bp.less_equal, "gt": bp.greater, "ge": bp.greater_equal,
    "and": bp.bitwise_and, "or": bp.bitwise_or, "xor": bp.bitwise_xor, "shift_left": bp.bitwise_left_shift,
    "shift_right_arithmetic": bp.bitwise_right_shift, "zeta": bp.zeta,
}  # fmt: skip


def _without_parameters(function):
    return lambda *inputs, **_: function(*inputs)


for _name, _function in {**_UNARY, **_BINARY}.items():
    ROWS[_name] = _without_parameters(_function)


@computes("div")
def divide(x, y):
    """Of integers rounded towards zero."""
    if not bp.isdtype(x.dtype, "integral"):
        return bp.divide(x, y)
    quotient = bp.floor_divide(x, y)
    if bp.isdtype(x.dtype, "unsigned integer"):
        return quotient
    return quotient + bp.cast((bp.not_equal(quotient * y, x)) & (bp.not_equal(x < 0, y < 0)), x.dtype)


@computes("rem")
def remainder(x, y):
    return bp.fmod(x, y)


@computes("integer_pow")
def integer_power(x, *, y):
    return bp.pow(x, y) if y >= 0 else bp.reciprocal(bp.pow(x, -y))


@computes("round")
def rounded(x, *, rounding_method):
    if int(rounding_method) == 1:
        return bp.rint(x)
    whole = bp.trunc(x)  # |x| + 0.5 would round up where |x| is just below 0.5
    return bp.copysign(bp.where(bp.abs(x - whole) >= 0.5, bp.abs(whole) + 1, bp.abs(whole)), x)


@computes("not")
def inverted(x):
    return bp.bitwise_invert(x)


@computes("shift_right_logical")
def shifted(x, y):
    if bp.isdtype(x.dtype, "unsigned integer"):
        return bp.bitwise_right_shift(x, y)
    unsigned = getattr(bp, f"u{x.dtype.name}")
    return bp.bitcast(bp.bitwise_right_shift(bp.bitcast(x, unsigned), bp.bitcast(y, unsigned)), x.dtype)


def _in_total_order(x):
    """Integers in the order of floats that has -0 before 0 and NaN at the ends, by its sign."""
    if not bp.isdtype(x.dtype, "real floating"):
        return x
    bits = bp.bitcast(x, getattr(bp, f"int{8 * x.dtype.itemsize}"))
    return bp.where(bits < 0, bp.bitwise_xor(bits, bp.full((), bp.iinfo(bits.dtype).max, dtype=bits.dtype, device=x.device)), bits)


@computes("lt_to")
def less_in_total_order(x, y):
    return bp.less(_in_total_order(x), _in_total_order(y))


@computes("le_to")
def less_equal_in_total_order(x, y):
    return bp.less_equal(_in_total_order(x), _in_total_order(y))


@computes("eq_to")
def equal_in_total_order(x, y):
    return bp.equal(_in_total_order(x), _in_total_order(y))


@computes("clamp")
def clamp(low, x, high):
    return bp.minimum(bp.maximum(x, low), high)


@computes("select_n")
def select(which, *cases):
    if which.dtype == bp.bool:
        return bp.where(which, cases[1], cases[0])
    found = cases[0]
    for i, case in enumerate(cases[1:], 1):
        found = bp.where(which >= i, case, found)
    return found


@computes("convert_element_type")
def cast(x, *, new_dtype, weak_type, sharding=None):
    return bp.cast(x, dtype_of(new_dtype))


@computes("bitcast_convert_type")
def bit_cast(x, *, new_dtype):
    return bp.bitcast(x, dtype_of(new_dtype))


@computes("reduce_precision")
def reduced_precision(x, *, exponent_bits, mantissa_bits):
    kinds = {(8, 23): bp.float32, (11, 52): bp.float64, (5, 10): bp.float16, (8, 7): bp.bfloat16}
    if (exponent_bits, mantissa_bits) not in kinds:
        refuse(f"reduce_precision to {exponent_bits} and {mantissa_bits} bits is not supported")
    return bp.cast(bp.cast(x, kinds[exponent_bits, mantissa_bits]), x.dtype)


def _reduction(function, **options):
    def reduce(x, *, axes, out_sharding=None):
        return function(x, axis=tuple(axes), **options) if axes else x

    return reduce


ROWS["reduce_sum"] = lambda x, *, axes, out_sharding=None: bp.sum(x, axis=tuple(axes), dtype=x.dtype) if axes else x
ROWS["reduce_prod"] = lambda x, *, axes, out_sharding=None: bp.prod(x, axis=tuple(axes), dtype=x.dtype) if axes else x
ROWS["reduce_max"], ROWS["reduce_min"] = _reduction(bp.amax), _reduction(bp.amin)


def _place(function):
    def place(x, *, axes, index_dtype):
        return bp.cast(function(x, axis=axes[0]), dtype_of(index_dtype))

    return place


ROWS["argmax"], ROWS["argmin"] = _place(bp.argmax), _place(bp.argmin)


def _cumulative(function):
    def along(x, *, axis, reverse):
        if reverse:
            return bp.flip(function(bp.flip(x, axis), axis), axis)
        return function(x, axis)

    return along


ROWS["cumsum"] = _cumulative(lambda x, axis: bp.cumsum(x, axis, dtype=x.dtype))
ROWS["cumprod"] = _cumulative(lambda x, axis: bp.cumprod(x, axis, dtype=x.dtype))
ROWS["cummax"] = _cumulative(lambda x, axis: bp.cummax(x, axis)[0])
ROWS["cummin"] = _cumulative(lambda x, axis: bp.cummin(x, axis)[0])
ROWS["cumlogsumexp"] = _cumulative(bp.logcumsumexp)


@computes("sort")
def sort(*inputs, dimension, is_stable, num_keys):
    if len(inputs) == 1:
        return [bp.sort(inputs[0], axis=dimension)]
    for i in reversed(range(num_keys)):  # the last key first: the sorts are stable
        order = bp.argsort(inputs[i], axis=dimension, stable=True)
        inputs = [bp.take_along_axis(x, order, axis=dimension) for x in inputs]
    return list(inputs)


@computes("top_k")
def top(x, *, k, operand=None, axis=-1, is_stable=None):
    order = bp.argsort(x, axis=axis, descending=True, stable=True)
    order = bp.slice(order, [axis % x.ndim], [0], [k], [1])
    return [bp.take_along_axis(x, order, axis=axis), bp.cast(order, bp.int32)]


@computes("approx_top_k")
def approximate_top(x, *, k, reduction_dimension, recall_target, is_max_k, reduction_input_size_override, aggregate_to_topk):
    """The exact result, which any recall allows."""
    if not aggregate_to_topk:
        refuse("approx_top_k without aggregate_to_topk is not supported")
    axis = reduction_dimension % x.ndim
    order = bp.slice(bp.argsort(x, axis=axis, descending=is_max_k, stable=True), [axis], [0], [k], [1])
    return [bp.take_along_axis(x, order, axis=axis), bp.cast(order, bp.int32)]
