"""Rules of custom ops as the record takes them: what a function reads, by its parameters' names, and what it returns,
brought into one form per rule.
"""

import inspect
import re

from .. import _core
from .._calls import _ops
from .._runtime._autocast import uncast
from ..types import TensorSpec

# What the record hands to a rule's function: Read::Kind of bindings/ops/custom_op.hpp.
ARGUMENT, RESULT, COTANGENT, TANGENT, NEEDS, BATCHED, SPEC = range(7)


class Rule:
    """A function as the record calls it: `call(*values)` with one value per element of `reads`."""

    def __init__(self, function, targets, reads, call):
        code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
        self.targets, self.reads, self.call = targets, reads, uncast(call)
        self.line = code.co_firstlineno if code else 0
        self.text = f"{function.__name__} of {code.co_filename}:{self.line}" if code else str(function)


class _Flags:
    """A bool per argument, by its name."""

    def __init__(self, names, values):
        self.__dict__.update(zip(names, values))


def _fail(definition, what, found, expected):
    raise _core.ArgumentValueError(f"{definition.name}: {what}: found {found}, expected {expected}")


class _Reader:
    """Which values a function's parameters name, and how they are put together again."""

    def __init__(self, definition, rule, function, meanings):
        self.reads, self._parameters = [], []
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or name not in meanings:
                if parameter.default is not parameter.empty:
                    continue
                _fail(definition, f"a parameter of its {rule}", name, f"one of {', '.join(meanings)}")
            reads, make = meanings[name]
            self._parameters.append((name, len(self.reads), len(reads), make))
            self.reads += reads

    def arguments(self, values):
        return {name: make(values[start : start + count]) for name, start, count, make in self._parameters}


def _only(values):
    return values[0]


def _argument_meanings(definition):
    return {a.name: ([(ARGUMENT, i)], _only) for i, a in enumerate(definition.signature.arguments)}


def result_names(definition):
    """Of what an op changes, the arguments' names; one result has no name of its own."""
    if definition.mutates:
        return list(definition.mutates) if len(definition.mutates) > 1 else ["out"]
    return [name for name, _ in definition.signature.results]


def _result_meanings(definition, name, kind):
    """`name` for all results, a tuple where there are several, and for each by its own name."""
    names = result_names(definition)
    if len(names) == 1:
        return {name: ([(kind, 0)], _only)}
    prefix = f"{name}_" if kind != RESULT or definition.mutates else ""
    each = {prefix + result: ([(kind, j)], _only) for j, result in enumerate(names)}
    return {name: ([(kind, j) for j in range(len(names))], tuple), **each}


def _flag_meanings(definition, name, kind):
    names = [argument.name for argument in definition.signature.arguments]
    return {name: ([(kind, i) for i in range(len(names))], lambda values: _Flags(names, values))}


# ---- kernels and shapes ------------------------------------------------------------------------------------------


def check_kernel(definition, function):
    """A kernel is called with the op's arguments, keyword-only ones by name."""
    try:
        parameters = inspect.signature(function)
    except (TypeError, ValueError):
        return
    arguments = definition.signature.arguments
    positional = [a.name for a in arguments if not a.flags & 8]
    keywords = {a.name: None for a in arguments if a.flags & 8}
    try:
        parameters.bind(*positional, **keywords)
    except TypeError as mismatch:
        stated = ", ".join([*positional, *(["*", *keywords] if keywords else [])])
        raise _core.ArgumentTypeError(
            f"{definition.name}: its kernel {getattr(function, '__name__', function)}{parameters} does not take the "
            f"op's arguments ({stated}): {mismatch}"
        ) from None


def shape_words(definition, shape):
    """[(word, arguments)] of "broadcast(x, y)" or a list of such, or None."""
    if shape is None:
        if definition.alias:
            _fail(definition, "argument shape", "none", f"a view.* word: the op is a view of {definition.alias[1]}")
        return None
    words = []
    for text in [shape] if isinstance(shape, str) else shape:
        found = re.match(r"\s*([\w.]+)\s*(?:\(([^()]*)\))?\s*$", text)
        if not found:
            _fail(definition, "argument shape", repr(text), "WORD(argument, ...), as in a registry file")
        names = [name.strip() for name in (found[2] or "").split(",") if name.strip()]
        indices = [0xFFFFFFFF if name == "none" else definition.signature.index(name) for name in names]
        if None in indices:
            _fail(definition, "argument shape", repr(text), "names of the op's arguments")
        words.append((found[1], indices))
    if len(words) != len(result_names(definition)):
        _fail(definition, "argument shape", f"{len(words)} rules", f"one per result, {len(result_names(definition))}")
    return words


def elementwise_shape(op, signature, mutates_args, alias, shape):
    """The shape rules of an op that is elementwise: each result has the shape to which all tensors broadcast."""

    def fail(what, found, expected):
        raise _core.ArgumentValueError(f"custom_op {op}: argument {what}: found {found}, expected {expected}")

    if mutates_args or alias:
        fail("elementwise", "True beside mutates_args or alias", "an op that returns new tensors")
    tensors = [argument for argument in signature.arguments if argument.is_tensor]
    if not tensors or not signature.results or any(a.is_list for a in tensors) or any(is_list for _, is_list in signature.results):
        fail("elementwise", "True", "an op whose arguments include a Tensor, and whose tensors and results are not lists")
    rule = f"broadcast({', '.join(argument.name for argument in tensors)})"
    given = [shape] if isinstance(shape, str) else list(shape or [])
    if any(re.sub(r"\s", "", text) != re.sub(r"\s", "", rule) for text in given) or len(given) not in (0, len(signature.results)):
        fail("shape", repr(shape), f"none, or {rule!r} for each result, because the op is elementwise")
    return [rule] * len(signature.results)


def _specs(definition, returned, default):
    """A (shape, dtype) per result from what a shape function returned."""
    names = result_names(definition)
    several = len(names) > 1
    items = list(returned) if several and isinstance(returned, (list, tuple)) else [returned]
    if len(items) != len(names):
        _fail(definition, "what its shape rule returned", f"{len(items)} values", f"one per result, {len(names)}")
    rows = []
    for item in items:
        if isinstance(item, (int, tuple, list)):
            item = TensorSpec(item, default)
        if not isinstance(item, TensorSpec) or item.dtype is None:
            _fail(definition, "what its shape rule returned", repr(item), "a TensorSpec or a shape")
        rows.append((item.shape, item.dtype))
    return rows


def shape_rule(definition, function):
    if definition.alias or definition.mutates:
        _fail(definition, "a shape rule", "a function", "none: the result has the shape of the argument that the op aliases or changes")
    if any(is_list for _, is_list in definition.signature.results):
        _fail(definition, "a shape rule", "a function", "none: the kernel decides how many tensors are in a list")
    meanings = _argument_meanings(definition)
    reader = _Reader(definition, "shape rule", function, meanings)
    wanted = [index for _, index in reader.reads]

    single = len(result_names(definition)) == 1
    parameters = inspect.signature(function).parameters.values()
    by_position = len(parameters) == len(wanted) and all(p.kind is not p.KEYWORD_ONLY for p in parameters)

    def call(*values):
        chosen = [values[index] for index in wanted]
        returned = function(*chosen) if by_position else function(**reader.arguments(chosen))
        if single and type(returned) is TensorSpec and returned.dtype is not None:
            return ((returned.shape, returned.dtype),)
        specs = [value for value in values if isinstance(value, TensorSpec)]
        return _specs(definition, returned, specs[0].dtype if specs else None)

    return call


# ---- derivatives, batching, decomposition ------------------------------------------------------------------------


def _bp(name):
    return getattr(getattr(_ops.ops, _ops.NAMESPACE), name)


def _fitted(definition, name, cotangent, spec):
    """Summed to the argument's shape, real where it is real, in its dtype."""
    if cotangent is None or spec is None:
        return None
    if isinstance(spec, tuple):
        cotangents = list(cotangent) if isinstance(cotangent, (list, tuple)) else [cotangent]
        if len(cotangents) != len(spec):
            _fail(definition, f"the cotangent of '{name}' from its vjp rule", f"{len(cotangents)} values",
                  f"a list of {len(spec)}")  # fmt: skip
        return [_fitted(definition, name, one, of) for one, of in zip(cotangents, spec)]
    if not isinstance(spec, TensorSpec):
        return None  # a number stood for the tensor
    if not isinstance(cotangent, _core.Tensor):
        _fail(definition, f"the cotangent of '{name}' from its vjp rule", f"a value of type {type(cotangent).__name__}",
              "a Tensor or None")  # fmt: skip
    if "complex" in cotangent.dtype.name and "complex" not in spec.dtype.name:
        cotangent = _bp("real")(cotangent)
    if cotangent.shape != spec.shape:
        try:
            cotangent = _bp("sum_to")(cotangent, spec.shape)
        except _core.BackplaneError:
            _fail(definition, f"the cotangent of '{name}' from its vjp rule", f"shape {cotangent.shape}",
                  f"{spec.shape}, or a shape to which that broadcasts")  # fmt: skip
    return cotangent if cotangent.dtype == spec.dtype else _bp("cast")(cotangent, spec.dtype)


def _in_order(definition, rule, returned, names):
    """What a rule returned, as a list with a value per name."""
    if isinstance(returned, dict):
        if set(returned) != set(names):
            _fail(definition, f"what its {rule} returned", f"a dict of {', '.join(returned)}", ", ".join(names))
        return [returned[name] for name in names]
    if len(names) == 1:
        single = isinstance(returned, tuple) and len(returned) == 1
        return [returned[0] if single else returned]
    if not isinstance(returned, (tuple, list)) or len(returned) != len(names):
        found = f"{len(returned)} values" if isinstance(returned, (tuple, list)) else f"a {type(returned).__name__}"
        _fail(definition, f"what its {rule} returned", found, f"a tuple of {len(names)}: {', '.join(names)}")
    return list(returned)


def _returned(values):
    return values[0] if len(values) == 1 else tuple(values)


def vjp_rule(definition, function):
    signature = definition.signature
    targets, names = signature.tensors, [signature.arguments[i].name for i in signature.tensors]
    meanings = {
        **_argument_meanings(definition),
        **_result_meanings(definition, "out", RESULT),
        **_result_meanings(definition, "g", COTANGENT),
        **_flag_meanings(definition, "needs", NEEDS),
    }
    reader = _Reader(definition, "vjp rule", function, meanings)
    count = len(reader.reads)

    def call(*values):
        returned = _in_order(definition, "vjp rule", function(**reader.arguments(values[:count])), names)
        specs = values[count:]
        return _returned([_fitted(definition, *row) for row in zip(names, returned, specs)])

    return Rule(function, targets, reader.reads + [(SPEC, i) for i in targets], call)


def _linear(definition):
    """The op itself, of the tangents in place of the tensors."""
    arguments = definition.signature.arguments
    reads = [(TANGENT if argument.is_tensor else ARGUMENT, i) for i, argument in enumerate(arguments)]
    positional = sum(1 for argument in arguments if not argument.flags & 8)
    keywords = [argument.name for argument in arguments[positional:]]

    def call(*values):
        op = _core.Op(definition.name, definition.python_name)
        found = op(*values[:positional], **dict(zip(keywords, values[positional:])))
        return found if isinstance(found, _core.Tensor) else tuple(found)

    return Rule("linear", definition.signature.tensors, reads, call)


def jvp_rule(definition, function):
    if function == "linear":
        return _linear(definition)
    arguments = definition.signature.arguments
    tangents = {f"t_{arguments[i].name}": ([(TANGENT, i)], _only) for i in definition.signature.tensors}
    meanings = {**tangents, **_argument_meanings(definition), **_result_meanings(definition, "out", RESULT)}
    reader = _Reader(definition, "jvp rule", function, meanings)
    names = result_names(definition)
    targets = sorted({index for kind, index in reader.reads if kind == TANGENT})

    def call(*values):
        return _returned(_in_order(definition, "jvp rule", function(**reader.arguments(values)), names))

    return Rule(function, targets, reader.reads, call)


def batch_rule(definition, function):
    if function == "loop":
        return "loop"
    meanings = {**_argument_meanings(definition), **_flag_meanings(definition, "batched", BATCHED)}
    reader = _Reader(definition, "batch rule", function, meanings)
    names = result_names(definition)

    def call(*values):
        return _returned(_in_order(definition, "batch rule", function(**reader.arguments(values)), names))

    return Rule(function, [], reader.reads, call)


def decomposition(definition, function):
    reader = _Reader(definition, "decomposition", function, _argument_meanings(definition))
    names = result_names(definition)

    def call(*values):
        return _returned(_in_order(definition, "decomposition", function(**reader.arguments(values)), names))

    return Rule(function, [], reader.reads, call)
