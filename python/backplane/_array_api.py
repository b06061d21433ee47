"""What the Python array API standard has beside ops: constants, dtype questions, uninitialised tensors."""

from . import _core

e = 2.718281828459045
pi = 3.141592653589793
inf = float("inf")
nan = float("nan")
newaxis = None

DTYPES = {
    name: value for name, value in vars(_core).items() if isinstance(value, _core.DType)
}

# Bits of fraction and exponent of the floating types; complex types have those of their parts.
_FRACTION_BITS = {"float16": (10, 5), "bfloat16": (7, 8), "float32": (23, 8), "float64": (52, 11)}
_KINDS = {
    "bool": ("bool",),
    "signed integer": ("signed integer",),
    "unsigned integer": ("unsigned integer",),
    "integral": ("signed integer", "unsigned integer"),
    "real floating": ("real floating",),
    "complex floating": ("complex floating",),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
}


def _dtype_of(value):
    return value.dtype if isinstance(value, _core.Tensor) else value


def isdtype(dtype, kind):
    """Is dtype of a kind ('bool', 'integral', 'real floating', ...), equal to a dtype, or either for one of a tuple?"""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            expected = ", ".join(_KINDS)
            raise _core.ArgumentValueError(f"isdtype: argument kind: found {kind!r}, expected one of {expected}")
        return dtype.kind in _KINDS[kind]
    return dtype is kind


def result_type(*arrays_and_dtypes):
    """The dtype to which tensors and dtypes promote."""
    if not arrays_and_dtypes:
        raise _core.ArgumentValueError("result_type: found nothing, expected tensors or dtypes")
    result = _dtype_of(arrays_and_dtypes[0])
    for other in arrays_and_dtypes[1:]:
        result = _core.promote(result, _dtype_of(other))
    return result


def can_cast(from_, to):
    """Does promotion take dtype (or tensor) from_ to dtype to?"""
    try:
        return _core.promote(_dtype_of(from_), to) is to
    except _core.DtypeError:
        return False


class finfo:
    """Limits of a floating dtype: bits, eps, max, min, smallest_normal."""

    def __init__(self, dtype):
        dtype = _dtype_of(dtype)
        part = {"complex64": _core.float32, "complex128": _core.float64}.get(dtype.name, dtype)
        if part.name not in _FRACTION_BITS:
            raise _core.DtypeError(f"finfo: found {dtype.name}, expected a floating or complex dtype")
        fraction, exponent = _FRACTION_BITS[part.name]
        top = 2 ** (exponent - 1)
        self.dtype = part
        self.bits = part.itemsize * 8
        self.eps = 2.0**-fraction
        self.max = (2.0 - self.eps) * 2.0 ** (top - 1)
        self.min = -self.max
        self.smallest_normal = 2.0 ** (2 - top)


class iinfo:
    """Limits of an integer dtype: bits, max, min."""

    def __init__(self, dtype):
        dtype = _dtype_of(dtype)
        if not isdtype(dtype, "integral"):
            raise _core.DtypeError(f"iinfo: found {dtype.name}, expected an integer dtype")
        signed = dtype.kind == "signed integer"
        self.dtype = dtype
        self.bits = dtype.itemsize * 8
        self.max = 2 ** (self.bits - signed) - 1
        self.min = -(2 ** (self.bits - 1)) if signed else 0


def empty(shape, *, dtype=None, device=None):
    """A tensor whose elements are whatever its memory holds."""
    shape = (shape,) if hasattr(shape, "__index__") else tuple(shape)
    device = _core.default_device() if device is None else device
    return _core.empty(shape, _core.float32 if dtype is None else dtype, device)


def empty_like(x, /, *, dtype=None, device=None):
    """An uninitialised tensor of x's shape, and of its dtype and on its device unless stated."""
    return empty(x.shape, dtype=x.dtype if dtype is None else dtype, device=x.device if device is None else device)


def astype(x, dtype, /, *, copy=True):
    """x in another dtype; x itself where nothing changes and copy is False."""
    return x.astype(dtype, copy=copy)


def to_numpy(x, /):
    """x as a NumPy array, over the same memory on the host."""
    return x.numpy()
