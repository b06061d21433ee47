"""Ops of Python whose results have as many rows as the values say: `shape="dynamic(max=x.shape[0])"`.

One definition makes two ops, as an entry of a registry file does. NAME_padded gives all rows, with zeros from row `count` on, and the count: it is
compiled, batched and exported. NAME gives the rows before the count, and is refused where sizes must be known. Kernels and decompositions return the
exact rows; derivatives and batch rules are those of the padded form.
"""

import ast
import functools
import inspect
import operator

from .. import _core
from .._api._data_type_functions import DTYPES
from .._calls import _ops
from ..types import TensorSpec
from ._op_signature import OpSignature

SUFFIX = "_padded"
_COUNT = "count"
_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}
_FUNCTIONS = {"min": min, "max": max, "len": len}


def states_largest_size(shape):
    """True if a shape rule states the largest size of a dynamic result."""
    return any("dynamic(" in text.replace(" ", "") for text in ([shape] if isinstance(shape, str) else shape or ()))


class Rows:
    """One result: its largest shape as a formula over the arguments, and its dtype (None: the dtype of the first tensor)."""

    def __init__(self, op, text, names):
        def fail(found):
            raise _core.ArgumentValueError(
                f"custom_op {op}: argument shape: found {found!r}, expected dynamic(max=SIZE) or dynamic(max=[SIZE, ...]), and dtype=NAME where "
                f"the result has another dtype than the first tensor. A SIZE is made of numbers, arguments ({', '.join(names)}), x.shape[0], x.ndim, "
                "+ - * // min and max"
            )

        try:
            call = ast.parse(text.strip(), mode="eval").body
        except SyntaxError:
            fail(text)
        words = {word.arg: word.value for word in call.keywords} if isinstance(call, ast.Call) else {}
        if not isinstance(call, ast.Call) or getattr(call.func, "id", "") != "dynamic" or call.args or not {"max"} <= set(words) <= {"max", "dtype"}:
            fail(text)
        self.text, self._largest = text, words["max"]
        self.dtype = DTYPES.get(getattr(words.get("dtype"), "id", None))
        if "dtype" in words and self.dtype is None:
            fail(text)
        for node in ast.walk(self._largest):
            known = isinstance(node, (ast.expr_context, ast.operator, ast.unaryop, ast.List, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.Call))
            known = known or (isinstance(node, ast.Name) and (node.id in names or node.id in _FUNCTIONS))
            known = known or (isinstance(node, ast.Constant) and isinstance(node.value, int))
            if not known and not (isinstance(node, ast.Attribute) and node.attr in ("shape", "ndim")):
                fail(ast.unparse(node))

    def shape(self, arguments):
        """The largest shape, of arguments by name (tensors, or their specs)."""

        def value(node):
            if isinstance(node, ast.Constant):
                return node.value
            if isinstance(node, ast.Name):
                return arguments[node.id]
            if isinstance(node, ast.Attribute):
                base = value(node.value)
                return len(base.shape) if node.attr == "ndim" else base.shape
            if isinstance(node, ast.Subscript):
                return value(node.value)[value(node.slice)]
            if isinstance(node, ast.List):
                return [value(item) for item in node.elts]
            if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
                return -value(node.operand)
            if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
                return _OPERATORS[type(node.op)](value(node.left), value(node.right))
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in _FUNCTIONS:
                return _FUNCTIONS[node.func.id](*[value(item) for item in node.args])
            raise _core.ArgumentValueError(f"the shape rule {self.text}: found {ast.unparse(node)}, which is not an integer formula")

        found = value(self._largest)
        return tuple(found) if isinstance(found, (list, tuple)) else (found,)


class PaddedForm:
    """What connects the two ops of one definition."""

    def __init__(self, name, signature, shape):
        self.name, self.signature = name, signature
        texts = [shape] if isinstance(shape, str) else list(shape)
        if any(is_list for _, is_list in signature.results) or len(texts) != len(signature.results) or not signature.results:
            raise _core.ArgumentValueError(
                f"custom_op {name}: argument shape: found {len(texts)} rules and {len(signature.results)} results, expected one dynamic(max=…) per "
                "result, and results of type Tensor"
            )
        names = [argument.name for argument in signature.arguments]
        if _COUNT in [result for result, _ in signature.results]:
            raise _core.ArgumentValueError(f"custom_op {name}: a result: found 'count', expected another name: the padded form has a result 'count'")
        self.rows = [Rows(name, text, names) for text in texts]
        self.first_tensor = next((a.name for a in signature.arguments if a.is_tensor and not a.is_list), None)
        if self.first_tensor is None and any(rows.dtype is None for rows in self.rows):
            raise _core.ArgumentValueError(f"custom_op {name}: argument shape: found no dtype, expected dtype=NAME: the op has no tensor argument")

    def padded_signature(self):
        return OpSignature(self.signature.arguments, [*self.signature.results, (_COUNT, False)])

    def _by_name(self, args, kwargs):
        names = [argument.name for argument in self.signature.arguments]
        return {argument.name: argument.default for argument in self.signature.arguments} | dict(zip(names, args)) | kwargs

    def shape_function(self):
        """The shape rule of the padded form, with the op's arguments as parameters."""

        def shapes(**given):
            first = given[self.first_tensor].dtype if self.first_tensor else None
            found = [TensorSpec(rows.shape(given), rows.dtype or first) for rows in self.rows]
            return [*found, TensorSpec((), _core.int64)]

        return self._with_arguments(shapes)

    def padding(self, function):
        """A function that returns the exact rows, as one that returns the padded form's results."""

        @functools.wraps(function)
        def padded(*args, **kwargs):
            full = _op_named(f"{_ops.NAMESPACE}::full")
            returned = function(*args, **kwargs)
            results = [returned] if len(self.rows) == 1 else list(returned)
            given = self._by_name(args, kwargs)
            counts = {result.shape[0] if result.ndim else None for result in results}
            if len(results) != len(self.rows) or len(counts) != 1 or None in counts:
                shapes = ", ".join(str(tuple(result.shape)) for result in results)
                raise _core.ShapeError(f"{self.name}: its kernel returned shapes {shapes}; expected {len(self.rows)} results with one number of rows")
            (count,) = counts
            filled = []
            for rows, result in zip(self.rows, results):
                largest = rows.shape(given)
                if count > largest[0] or tuple(result.shape[1:]) != tuple(largest[1:]):
                    raise _core.ShapeError(
                        f"{self.name}: its kernel returned the shape {tuple(result.shape)}; expected at most {largest[0]} rows, as in {largest}, by {rows.text}"
                    )
                dtype = rows.dtype or given[self.first_tensor].dtype
                whole = full(largest, 0, dtype=dtype, device=result.device)
                whole[:count] = result
                filled.append(whole)
            return (*filled, full((), count, dtype=_core.int64, device=results[0].device))

        padded.__signature__ = inspect.signature(function)
        return padded

    def exact_function(self):
        """The decomposition of the op itself: the rows before the count."""

        def rows(**arguments):
            *results, count = _op_named(self.name + SUFFIX)(**arguments)
            kept = tuple(result[: int(count)] for result in results)
            return kept[0] if len(kept) == 1 else kept

        return self._with_arguments(rows)

    def _with_arguments(self, function):
        """The function with the op's arguments as parameters, whose names say what a rule reads."""
        parameters = [inspect.Parameter(a.name, inspect.Parameter.KEYWORD_ONLY) for a in self.signature.arguments]
        function.__signature__ = inspect.Signature(parameters)
        return function

    def refusal(self):
        return f"call {self.name + SUFFIX}, which gives all rows and their count"


def _op_named(name):
    space, base = _ops.split(name)
    return getattr(getattr(_ops.ops, space), base)
