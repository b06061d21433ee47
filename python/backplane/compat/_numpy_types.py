"""NumPy's dtypes and their kinds, grids and slices by brackets, its settings of floating-point errors, and its files, which NumPy itself reads."""

from __future__ import annotations

from .. import _core
from .._api._creation_functions import meshgrid
from .._api._data_type_functions import DTYPES
from .._api._data_type_functions import result_type as result_type_of
from .._api._joining_functions import concatenate
from .._api._manipulation_functions import atleast_1d
from .._calls._ops import NAMESPACE, ops
from ._calls import float64
from ._ufuncs import promoted

op = getattr(ops, NAMESPACE)

__all__ = [
    "Grid", "Joined", "complexfloating", "dtype", "errstate", "floating", "floating_point_errors", "generic", "index_exp",
    "inexact", "integer", "issubdtype", "iterable", "ndarray", "number", "min_scalar_type", "numpy_dtype", "of_numpy", "of_one_dtype", "result_type", "s_", "signedinteger", "to_numpy_file", "unsignedinteger",
]  # fmt: skip


class _DtypeClass(type):
    def __instancecheck__(cls, value):
        return isinstance(value, _core.DType)


class dtype(metaclass=_DtypeClass):
    """numpy.dtype: a dtype of its name, of NumPy's codes, or of Python's types."""

    def __new__(cls, dtype=None):
        return _core.float64 if dtype is None else _core.as_dtype(dtype, "dtype")


class _ArrayClass(type):
    def __call__(cls, shape, dtype=None, buffer=None, offset=0, strides=None, order=None):
        if strides is not None or order not in (None, "C"):
            raise _core.ArgumentValueError(f"ndarray: found strides {strides} and order {order!r}, expected them left out")
        if buffer is None:
            return _core.empty(shape, _core.float64 if dtype is None else _core.as_dtype(dtype, "ndarray"), _core.default_device())
        count = 1
        for size in (shape,) if hasattr(shape, "__index__") else shape:
            count *= size
        return op.reshape(of_numpy("frombuffer", buffer, numpy_dtype(dtype), count, offset), shape)

    def __instancecheck__(cls, value):
        return isinstance(value, _core.Tensor)

    def __subclasscheck__(cls, other):
        return other is _core.Tensor or type.__subclasscheck__(cls, other)

    def __getattr__(cls, name):
        return getattr(_core.Tensor, name)

    def __eq__(cls, other):
        return other is cls or other is _core.Tensor

    def __hash__(cls):
        return hash(_core.Tensor)


class ndarray(metaclass=_ArrayClass):
    """numpy.ndarray: the class of all tensors; ndarray(shape) makes one whose elements are whatever its memory holds."""


class Kind:
    """One of NumPy's abstract dtypes, for issubdtype."""

    def __init__(self, name, *kinds):
        self.name, self.kinds = name, kinds

    def __repr__(self):
        return f"<kind of dtypes {self.name}>"


signedinteger = Kind("signedinteger", "signed integer")
unsignedinteger = Kind("unsignedinteger", "unsigned integer")
integer = Kind("integer", "signed integer", "unsigned integer")
floating = Kind("floating", "real floating")
complexfloating = Kind("complexfloating", "complex floating")
inexact = Kind("inexact", "real floating", "complex floating")
number = Kind("number", *integer.kinds, *inexact.kinds)
generic = Kind("generic", "bool", *number.kinds)


def issubdtype(arg1, arg2):
    """Is a dtype of a kind, or another dtype?"""
    first = arg1.kinds if isinstance(arg1, Kind) else (_core.as_dtype(arg1, "issubdtype").kind,)
    if isinstance(arg2, Kind):
        return set(first) <= set(arg2.kinds)
    return not isinstance(arg1, Kind) and _core.as_dtype(arg1, "issubdtype") is _core.as_dtype(arg2, "issubdtype")


def result_type(arrays_and_dtypes):
    """NumPy's common dtype of arrays and dtypes; Python's numbers count by their kind alone, unless there are only numbers."""
    numbers = [one for one in arrays_and_dtypes if isinstance(one, (bool, int, float, complex)) and not isinstance(one, type)]
    dtypes = [one.dtype if isinstance(one, _core.Tensor) else dtype(one) for one in arrays_and_dtypes if not any(one is number for number in numbers)]
    with float64:
        if not dtypes:
            return _core.asarray(sum(numbers[1:], numbers[0])).dtype if numbers else result_type_of()
        common = dtypes[0]
        for one in dtypes[1:]:
            common = promoted(common, one)
        return result_type_of(common, *numbers)


def of_one_dtype(arrays):
    """The arrays, cast to NumPy's common dtype where Backplane's is another."""
    if isinstance(arrays, _core.Tensor) or not any(isinstance(one, _core.Tensor) for one in arrays):
        return arrays
    arrays = [_core.asarray(one) for one in arrays]
    common = result_type(arrays)
    return [one if one.dtype is common else op.cast(one, common) for one in arrays]


def min_scalar_type(a):
    """The smallest dtype that holds the number; of an array its dtype."""
    import numpy

    return a.dtype if isinstance(a, _core.Tensor) and a.ndim else dtype(numpy.min_scalar_type(a.item() if isinstance(a, _core.Tensor) else a).name)


def iterable(y):
    """Can one loop over it?"""
    try:
        iter(y)
    except TypeError:
        return False
    return True


class Grid:
    """mgrid and ogrid: coordinates by slices; an imaginary step is a number of points."""

    def __init__(self, sparse):
        self._sparse = sparse

    def __getitem__(self, key):
        if not isinstance(key, tuple):
            return _steps(key)
        of_floats = any(map(_is_of_floats, key))
        rows = meshgrid(*(_steps(part, of_floats) for part in key), indexing="ij", sparse=self._sparse)
        return rows if self._sparse else op.stack(rows)


def _is_of_floats(part):
    return any(isinstance(value, (float, complex)) for value in (part.start, part.stop, part.step))


def _steps(part, of_floats=False):
    start = 0 if part.start is None else part.start
    if isinstance(part.step, complex):
        return op.linspace(start, part.stop, int(abs(part.step)), dtype=_core.float64)
    step = 1 if part.step is None else part.step
    return op.arange(start, part.stop, step, dtype=_core.float64 if of_floats or _is_of_floats(part) else _core.int64)


class Joined:
    """r_ and c_: slices, numbers and arrays joined, along the first axis, or vectors as columns."""

    def __init__(self, axis):
        self._axis = axis

    def __getitem__(self, key):
        with float64:
            return self._joined(key if isinstance(key, tuple) else (key,))

    def _joined(self, parts):
        if any(isinstance(part, str) for part in parts):
            raise _core.ArgumentTypeError("r_: found a text, expected slices, numbers and arrays; use concatenate with axis=")
        arrays = [_steps(part) if isinstance(part, slice) else atleast_1d(_core.asarray(part)) for part in parts]
        if self._axis < 0:
            arrays = [op.expand_dims(x, 1) if x.ndim == 1 else x for x in arrays]
        return concatenate(arrays, axis=self._axis)


class _Index:
    """s_ and index_exp: the index itself."""

    def __init__(self, is_tuple):
        self._is_tuple = is_tuple

    def __getitem__(self, key):
        return (key,) if self._is_tuple and not isinstance(key, tuple) else key


s_, index_exp = _Index(False), _Index(True)

_QUIET = ("ignore", "warn", None)


def floating_point_errors(all, divide, over, under, invalid):
    """seterr and geterr: no floating-point error is reported, so 'raise', 'call' and 'print' are refused."""
    for value in (all, divide, over, under, invalid):
        if value not in _QUIET:
            raise _core.ArgumentValueError(f"seterr: found {value!r}, expected 'ignore' or 'warn': no floating-point error is reported; look for isnan and isinf")
    return dict.fromkeys(("divide", "over", "under", "invalid"), "ignore")


class errstate:
    """A block in which floating-point errors are ignored, as they always are."""

    def __init__(self, *, call=None, all=None, divide=None, over=None, under=None, invalid=None):
        floating_point_errors(all, divide, over, under, invalid)

    def __enter__(self):
        return None

    def __exit__(self, *failure):
        return None


def numpy_dtype(dtype):
    """The dtype as NumPy spells it."""
    return "float64" if dtype is None else dtype.name if isinstance(dtype, _core.DType) else dtype


def _for_numpy(value):
    return value.numpy() if isinstance(value, _core.Tensor) else value


def _from_numpy(value):
    import numpy

    if isinstance(value, numpy.ndarray):
        if value.dtype.name not in DTYPES:
            raise _core.DtypeError(f"found NumPy's dtype {value.dtype}, expected one of {', '.join(DTYPES)}")
        return _core.asarray(value)
    return {name: _from_numpy(value[name]) for name in value.files} if hasattr(value, "files") else value


def of_numpy(name, *args, **more):
    """What NumPy's function gives, as tensors."""
    import numpy

    more = {word: numpy_dtype(value) if word == "dtype" else value for word, value in more.items()}
    return _from_numpy(getattr(numpy, name)(*map(_for_numpy, args), **more))


def to_numpy_file(name, file, *args, **more):
    """Writes tensors by NumPy's function."""
    import numpy

    getattr(numpy, name)(file, *map(_for_numpy, args), **{word: _for_numpy(value) for word, value in more.items()})
