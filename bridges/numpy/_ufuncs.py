"""ufunc: an elementwise op as a ufunc of NumPy. The loops are C++ (module.cpp), and run the op on NumPy's memory."""

import numpy as np

from backplane import _core

from ._functions import op_named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ELEMENTWISE = 1 << 4  # BP_OP_ELEMENTWISE of the contract
_UNSET: "Any" = object()
# Of ops that NumPy's users reduce with: the identity, the op that reduces an axis, and the one that gives all of its partial results.
_FOLDS: "dict[str, tuple[Any, str | None, str | None]]" = {
    "bp::add": (0, "bp::sum", "bp::cumsum"),
    "bp::multiply": (1, "bp::prod", "bp::cumprod"),
    "bp::maximum": (None, "bp::max", "bp::cummax"),
    "bp::minimum": (None, "bp::min", "bp::cummin"),
    "bp::logical_and": (True, "bp::all", None),
    "bp::logical_or": (False, "bp::any", None),
    "bp::logical_xor": (False, None, None),
    "bp::bitwise_and": (-1, None, None),
    "bp::bitwise_or": (0, None, None),
    "bp::bitwise_xor": (0, None, None),
    "bp::hypot": (0, None, None),
    "bp::gcd": (0, None, None),
    "bp::logaddexp": (float("-inf"), None, None),
}
_made: "dict[Any, np.ufunc]" = {}


def is_elementwise(op: "Any") -> bool:
    facts = _core.op_facts(op)
    return bool(facts["flags"] & _ELEMENTWISE) or _is_elementwise_in_python(facts)


def _is_elementwise_in_python(facts: "dict[str, Any]") -> bool:
    """Of bp.custom_op(..., elementwise=True)."""
    return {"python", "elementwise"} <= set(facts["tags"].split(","))


def _loops():
    try:
        from . import _loops
    except ImportError as error:
        raise ImportError(f"backplane.numpy: this build has no ufuncs, because it found no headers of NumPy 2. Fix: install numpy and build again ({error})") from error
    _loops.set_raise_error(_core.raise_error)
    return _loops


def ufunc(name: str, /, *, identity: "Any" = _UNSET, reduction: "str | None" = None, scan: "str | None" = None, **attributes: "Any") -> np.ufunc:
    """An elementwise op of the registry as a ufunc of NumPy: ufunc("mine::wave")(x, out=y, where=mask).

    name: the full name, or the part after bp:: for ops of Backplane's own. The op's tensors are the ufunc's inputs.
    attributes: the op's other arguments, which are fixed: ufunc("leaky_relu", negative_slope=0.1). A number may stand for a tensor.
    identity: of an op of two inputs, what reduce gives without elements; None: nothing, but axes may be reduced in any order. By default
        NumPy's for ops that NumPy has; for others, reduce takes one axis, in order. It is an integer
        unless the op takes floating numbers alone.
    reduction, scan: names of ops with the result of reduce and of accumulate over an axis. Without them these take one step per element.

    The loops are the dtypes that the entry accepts and NumPy has. As in NumPy's own ufuncs, other inputs are cast to the first loop that
    holds them: integers to float16, float32 or float64 by their width where the op needs floats. Results are Backplane's; there are no
    floating-point warnings. Large arrays are computed on several threads.

    Errors: ArgumentValueError if there is no such op, or if it is not elementwise (see function); ArgumentTypeError for an argument
        without a value, or with one of another type; of the ufunc: those of the op, and NumPy's own.

    Example:
        >>> bn.ufunc("add").reduce(np.arange(5))
        np.int64(10)
    """
    op = op_named(name, "ufunc")
    full_name = op.full_name
    known = (_UNSET, None, None) if attributes else _FOLDS.get(full_name, (_UNSET, None, None))
    if identity is _UNSET:
        identity = known[0]
    reduction, scan = reduction or known[1], scan or known[2]
    key = (full_name, repr(identity), reduction, scan, *sorted((word, type(value), repr(value)) for word, value in attributes.items()))
    if key not in _made or _is_elementwise_in_python(_core.op_facts(op)):  # which may have been defined again
        has_identity = identity is not _UNSET and identity is not None
        reorderable = identity is None or reduction is not None
        folds = [op_named(each, "ufunc").full_name if each else "" for each in (reduction, scan)]
        _made[key] = _loops().make(full_name, attributes, identity if has_identity else None, has_identity, reorderable, *folds)
    return _made[key]
