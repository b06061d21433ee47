"""save's table: arithmetic, comparisons, elementary functions and activations."""

from ._table import refuse
from ._writer import writes

_UNARY = {
    "negative": "Neg", "abs": "Abs", "sqrt": "Sqrt", "exp": "Exp", "log": "Log", "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos",
    "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh", "tanh": "Tanh", "erf": "Erf", "floor": "Floor",
    "ceil": "Ceil", "round": "Round", "rint": "Round", "sign": "Sign", "isnan": "IsNaN", "isinf": "IsInf", "logical_not": "Not", "reciprocal": "Reciprocal",
    "sigmoid": "Sigmoid", "relu": "Relu", "softsign": "Softsign", "mish": "Mish", "copy": "Identity", "stop_gradient": "Identity", "reverse_constant": "Identity",
    "gelu": "Gelu", "hardswish": "HardSwish",
}  # fmt: skip
_BINARY = {"add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "pow": "Pow", "maximum": "Max", "minimum": "Min"}
_COMPARE = {"equal": "Equal", "less": "Less", "less_equal": "LessOrEqual", "greater": "Greater", "greater_equal": "GreaterOrEqual"}
_LOGIC = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
_BITS = {"bitwise_and": ("And", "BitwiseAnd"), "bitwise_or": ("Or", "BitwiseOr"), "bitwise_xor": ("Xor", "BitwiseXor")}


def _unary(onnx_op):
    return lambda w, node, x: w.emit(onnx_op, [w.operand(x, w.types[x] if node.dtype == "bool" else node.dtype)])


def _binary(onnx_op):
    def write(w, node, x, y):
        if node.dtype != "bool":
            return w.emit(onnx_op, [w.operand(x, node.dtype), w.operand(y, node.dtype)])
        logic = {"Add": "Or", "Max": "Or", "Mul": "And", "Min": "And"}[onnx_op]
        return w.emit(logic, [w.operand(x, "bool"), w.operand(y, "bool")])

    return write


def _compare(onnx_op):
    def write(w, node, x, y):
        dtype = w.common(x, y)
        if dtype == "bool" and onnx_op != "Equal":
            dtype = "int32"
        return w.emit(onnx_op, [w.operand(x, dtype), w.operand(y, dtype)])

    return write


def _logic(onnx_op):
    return lambda w, node, x, y: w.emit(onnx_op, [w.operand(x, "bool"), w.operand(y, "bool")])


def _bits(names):
    def write(w, node, x, y):
        return w.emit(names[node.dtype != "bool"], [w.operand(x, node.dtype), w.operand(y, node.dtype)])

    return write


for _table, _make in ((_UNARY, _unary), (_BINARY, _binary), (_COMPARE, _compare), (_LOGIC, _logic), (_BITS, _bits)):
    for _name, _to in _table.items():
        writes(_name)(_make(_to))


@writes("not_equal")
def not_equal(w, node, x, y):
    return w.emit("Not", [_compare("Equal")(w, node, x, y)])


@writes("bitwise_invert")
def bitwise_invert(w, node, x):
    return w.emit("Not" if node.dtype == "bool" else "BitwiseNot", [w.name(x)])


def _shift(direction):
    def write(w, node, x, y):
        if not node.dtype.startswith("uint"):
            refuse("ONNX shifts only unsigned integers")
        return w.emit("BitShift", [w.operand(x, node.dtype), w.operand(y, node.dtype)], direction=direction)

    return write


writes("bitwise_left_shift")(_shift("LEFT"))
writes("bitwise_right_shift")(_shift("RIGHT"))


def _is_floating(dtype):
    return "float" in dtype


@writes("floor_divide")
def floor_divide(w, node, x, y):
    a, b = w.operand(x, node.dtype), w.operand(y, node.dtype)
    quotient = w.emit("Div", [a, b])
    if _is_floating(node.dtype):
        return w.emit("Floor", [quotient])
    if node.dtype.startswith("uint"):
        return quotient
    rest = w.emit("Mod", [a, b])  # with the sign of b
    return w.emit("Div", [w.emit("Sub", [a, rest]), b])


@writes("remainder")
def remainder(w, node, x, y):
    a, b = w.operand(x, node.dtype), w.operand(y, node.dtype)
    if not _is_floating(node.dtype):
        return w.emit("Mod", [a, b])
    return w.emit("Sub", [a, w.emit("Mul", [w.emit("Floor", [w.emit("Div", [a, b])]), b])])


@writes("trunc")
def trunc(w, node, x):
    a = w.name(x)
    return w.emit("Mul", [w.emit("Sign", [a]), w.emit("Floor", [w.emit("Abs", [a])])]) if _is_floating(node.dtype) else a


@writes("expm1")
def expm1(w, node, x):
    """tanh(x / 2) (exp(x) + 1), which keeps the digits of small x; where that overflows, exp(x)."""
    a = w.operand(x, node.dtype)
    one, half = w.number(1, node.dtype), w.number(0.5, node.dtype)
    power = w.emit("Exp", [a])
    return w.emit("Mul", [w.emit("Tanh", [w.emit("Mul", [a, half])]), w.emit("Add", [power, one])])


@writes("log1p")
def log1p(w, node, x):
    """log(u) x / (u - 1) with u = 1 + x, which keeps the digits of small x (Kahan)."""
    a, one = w.operand(x, node.dtype), w.number(1, node.dtype)
    u = w.emit("Add", [a, one])
    is_one = w.emit("Equal", [u, one])
    rest = w.emit("Where", [is_one, one, w.emit("Sub", [u, one])])
    exact = w.emit("Div", [w.emit("Mul", [w.emit("Log", [u]), a]), rest])
    is_plain = w.emit("Or", [w.emit("IsInf", [u]), w.emit("Equal", [u, w.number(0, node.dtype)])])
    return w.emit("Where", [is_one, a, w.emit("Where", [is_plain, w.emit("Log", [u]), exact])])


@writes("rsqrt")
def rsqrt(w, node, x):
    return w.emit("Reciprocal", [w.emit("Sqrt", [w.operand(x, node.dtype)])])


@writes("square")
def square(w, node, x):
    return w.emit("Mul", [w.operand(x, node.dtype)] * 2)


@writes("isfinite")
def is_finite(w, node, x):
    return w.emit("Not", [w.emit("Or", [w.emit("IsNaN", [w.name(x)]), w.emit("IsInf", [w.name(x)])])])


@writes("where")
def where(w, node, condition, x, y):
    return w.emit("Where", [w.operand(condition, "bool"), w.operand(x, node.dtype), w.operand(y, node.dtype)])


@writes("clip")
def clip(w, node, x, min=None, max=None):
    """By Max and Min: bounds may be tensors with axes."""
    found = w.operand(x, node.dtype)
    if min is not None:
        found = w.emit("Max", [found, w.operand(min, node.dtype)])
    return found if max is None else w.emit("Min", [found, w.operand(max, node.dtype)])


@writes("cast")
def cast(w, node, x, dtype):
    return w.emit("Cast", [w.name(x)], to=_type(dtype))


def _type(dtype):
    from ._writer import TYPES

    return TYPES[dtype] if dtype in TYPES else refuse(f"ONNX tensors of {dtype} are not supported")


@writes("silu")
def silu(w, node, x):
    return w.emit("Mul", [w.name(x), w.emit("Sigmoid", [w.name(x)])])


@writes("gelu_tanh")
def gelu_tanh(w, node, x):
    return w.emit("Gelu", [w.name(x)], approximate="tanh")


@writes("elu")
def elu(w, node, x, alpha=1, scale=1, input_scale=1):
    if input_scale != 1:
        refuse("input_scale is not supported")
    if scale != 1:
        return w.emit("Selu", [w.operand(x, node.dtype)], alpha=float(alpha), gamma=float(scale))
    return w.emit("Elu", [w.operand(x, node.dtype)], alpha=float(alpha))


@writes("selu")
def selu(w, node, x):
    return w.emit("Selu", [w.operand(x, node.dtype)])


@writes("celu")
def celu(w, node, x, alpha=1):
    return w.emit("Celu", [w.operand(x, node.dtype)], alpha=float(alpha))


@writes("leaky_relu")
def leaky_relu(w, node, x, negative_slope=0.01):
    return w.emit("LeakyRelu", [w.operand(x, node.dtype)], alpha=float(negative_slope))


@writes("softplus")
def softplus(w, node, x, beta=1, threshold=20):
    if beta != 1:
        refuse("a beta other than 1 is not supported")
    return w.emit("Softplus", [w.operand(x, node.dtype)])


@writes("hardsigmoid")
def hard_sigmoid(w, node, x):
    return w.emit("HardSigmoid", [w.operand(x, node.dtype)], alpha=1 / 6, beta=0.5)


@writes("hardtanh")
def hard_tanh(w, node, x, min_val=-1, max_val=1):
    return clip(w, node, x, min_val, max_val)


@writes("relu6")
def relu6(w, node, x):
    return clip(w, node, x, 0, 6)


@writes("atan2")
def atan2(w, node, x, y):
    """The arctangent of x / y, moved to the quadrant of the point (y, x)."""
    import math

    a, b, zero = w.operand(x, node.dtype), w.operand(y, node.dtype), w.number(0, node.dtype)
    pi, half = w.number(math.pi, node.dtype), w.number(math.pi / 2, node.dtype)
    is_up = w.emit("GreaterOrEqual", [a, zero])
    on_axis = w.emit("Equal", [b, zero])
    angle = w.emit("Atan", [w.emit("Div", [a, w.emit("Where", [on_axis, w.number(1, node.dtype), b])])])
    turned = w.emit("Where", [is_up, w.emit("Add", [angle, pi]), w.emit("Sub", [angle, pi])])
    found = w.emit("Where", [w.emit("Less", [b, zero]), turned, angle])
    upright = w.emit("Where", [w.emit("Equal", [a, zero]), zero, w.emit("Where", [is_up, half, w.emit("Neg", [half])])])
    return w.emit("Where", [on_axis, upright, found])
