"""Which op of the registry serves which piece of Python's syntax: the one table of that.

The extension reads a slot's op from a plain array, so that `a + b` looks nothing up. A slot whose op is
not registered answers as Python does for a type without the operator.
"""

SYNTAX = {
    "__add__": "bp::add",
    "__sub__": "bp::subtract",
    "__mul__": "bp::multiply",
    "__truediv__": "bp::divide",
    "__floordiv__": "bp::floor_divide",
    "__mod__": "bp::remainder",
    "__pow__": "bp::pow",
    "__matmul__": "bp::matmul",
    "__and__": "bp::bitwise_and",
    "__or__": "bp::bitwise_or",
    "__xor__": "bp::bitwise_xor",
    "__lshift__": "bp::bitwise_left_shift",
    "__rshift__": "bp::bitwise_right_shift",
    "__neg__": "bp::negative",
    "__pos__": "bp::copy",
    "__abs__": "bp::abs",
    "__invert__": "bp::bitwise_invert",
    "__lt__": "bp::less",
    "__le__": "bp::less_equal",
    "__eq__": "bp::equal",
    "__ne__": "bp::not_equal",
    "__gt__": "bp::greater",
    "__ge__": "bp::greater_equal",
    # Indexing: (x, axis, index), (x, axes, starts, stops, steps), (x, axes), (x, axes), (x, axes)
    "select": "bp::select",
    "slice": "bp::slice",
    "squeeze": "bp::squeeze",
    "unsqueeze": "bp::expand_dims",
    "permute": "bp::permute_dims",
    # (x, index arrays); in place (x, index arrays, values); (mask) -> one row per true element
    "gather": "bp::index",
    "scatter": "bp::index_put",
    "positions": "bp::argwhere",
    # In place (x, mask, value)
    "fill": "bp::masked_fill",
    # In place (x, value, axes, starts, stops, steps): x[...] = value is the slice of no axes
    "assign": "bp::slice_put",
    # Conversions that asarray makes: (x, dtype), (x)
    "cast": "bp::cast",
    "copy": "bp::copy",
    # The derivative of a holomorphic function from its pullback: (x)
    "conj": "bp::conj",
    # x.detach() inside transforms: (x)
    "detach": "bp::stop_gradient",
}


def bind(bind_slot):
    for slot, op in SYNTAX.items():
        bind_slot(slot, op)
