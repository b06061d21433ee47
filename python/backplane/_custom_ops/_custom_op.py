"""Ops defined in Python: what stands behind `custom_op` and the register_ methods of Op.

Each definition ends in the same op record as an entry of a registry file. A rule that is added later makes the record
anew under the same handle, so what is missing stands in the record too, as a refusal that names the line to add. Imported when the first such op is defined.
"""

import inspect

from .. import _core
from .._runtime._autocast import uncast
from . import _op_signature, _op_rules, _padded_op
from .._calls import _ops

# BP_OP_*, BP_RULE_*, BP_FORMULA_*, BP_RESULT_DTYPE_* of abi/op.h.
_VIEW, _MAYBE_VIEW, _INPLACE, _RANDOM, _CREATION, _DYNAMIC = 1, 2, 4, 64, 128, 512
_VJP, _JVP, _DECOMPOSE, _BATCH = 1, 2, 3, 4
_REFUSED, _LOOP, _DERIVED = 2, 16, 32
_COMPUTE, _OF_ARG, _FUNCTION = 0, 2, 7
_NO_ARG = 0xFFFFFFFF
_ANY_DTYPE = 0x7FFF

# The classes of `dtypes`, as in a registry file.
_DTYPE_CLASSES = {
    "any": 0x7FFF, "bool": 0x0001, "integer": 0x01FE, "integer_or_bool": 0x01FF, "floating": 0x1E00, "complex": 0x6000,
    "inexact": 0x7E00, "real": 0x1FFE, "real_or_bool": 0x1FFF, "numeric": 0x7FFE, "numeric_or_bool": 0x7FFF,
}  # fmt: skip

definitions = {}  # full name -> Definition


def _place(function):
    """(file, line) of a function, for reports."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code else ("<python>", 0)


def _is_empty(function):
    """Is the body nothing but a docstring, `...` or `pass`: a signature alone?"""
    import dis

    code = getattr(function, "__code__", None)
    if code is None:
        return False
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("RESUME", "NOP", "CACHE")]
    constants = [step for step in steps if step.opname in ("LOAD_CONST", "RETURN_CONST")]
    rest = [step.opname for step in steps if step not in constants]
    return len(constants) == 1 and constants[0].argval is None and rest in (["RETURN_VALUE"], [])


def _dtype_mask(op, given):
    if isinstance(given, str):
        if given in _DTYPE_CLASSES:
            return _DTYPE_CLASSES[given]
        raise _core.ArgumentValueError(
            f"custom_op {op}: argument dtypes: found {given!r}, expected one of {', '.join(_DTYPE_CLASSES)}, or dtypes"
        )
    names = list(_ops_dtypes())
    return sum({1 << names.index(getattr(dtype, "name", dtype)) for dtype in given})


def _ops_dtypes():
    from .._api._data_type_functions import DTYPES

    return DTYPES


class Definition:
    """The parts of one op that are defined so far, and its registration."""

    def __init__(self, name, signature, *, mutates, alias, shape, dtypes, doc, place, core):
        self.name, self.signature, self.mutates, self.alias = name, signature, mutates, alias
        self.doc, (self.file, self.line), self.core = doc, place, core
        self.accepts = _dtype_mask(name, dtypes)
        self.python_name = _ops.split(name)[1]
        self.kernels = {}  # backend, "*" for all -> (function, dtype mask)
        self.rules = {}  # "shape", "vjp", "jvp", "batch", "decomposition" -> what was registered
        self.words = _op_rules.shape_words(self, shape)
        self.tags = "python"
        self.handle = None
        self.form = None  # PaddedForm, of an op whose kernels and rules are those of its padded form

    # ---- the record

    def commit(self):
        self.handle = self.core.define(self._spec())

    def change(self, table, key, value):
        """Adds to `kernels` or `rules` and registers anew; where that fails, all is as before."""
        before = dict(table)
        table[key] = value
        try:
            self.commit()
        except BaseException:
            table.clear()
            table.update(before)
            raise

    def _spec(self):
        return {
            "name": self.name,
            "doc": self.doc,
            "file": self.file,
            "line": self.line,
            "flags": self._flags(),
            "alias": self.signature.index(self.alias[1]) if self.alias else _NO_ARG,
            "tags": self.tags,
            "mutates": [self.signature.index(name) for name in self.mutates],
            "args": [
                (a.name, _op_signature.TYPES[a.word], a.flags, a.default, self.accepts if a.is_tensor else 0)
                for a in self.signature.arguments
            ],
            "results": self._results(),
            "shapes": self._shapes(),
            "formulas": self._formulas(),
            "kernels": [
                (backend, uncast(function), mask, *_place(function)) for backend, (function, mask) in self.kernels.items()
            ],
            "shape_function": self.rules.get("shape"),
            "spec_type": _op_rules.TensorSpec,
        }

    def _flags(self):
        flags = _INPLACE if self.mutates else 0
        if self.alias:
            flags |= _VIEW if self.alias[0] == "view" else _MAYBE_VIEW
        if any(argument.word == "Generator" for argument in self.signature.arguments):
            flags |= _RANDOM
        elif not self.signature.tensors:
            flags |= _CREATION
        if any(word == "dynamic" for word, _ in self._shapes()):
            flags |= _DYNAMIC
        return flags

    def _results(self):
        if self.mutates:
            names = _op_rules.result_names(self)
            return [(name, 0, _OF_ARG, self.signature.index(changed)) for name, changed in zip(names, self.mutates)]
        kind = _FUNCTION if "shape" in self.rules else _COMPUTE
        return [(name, _op_signature.LIST if is_list else 0, kind, 0) for name, is_list in self.signature.results]

    def _shapes(self):
        if self.mutates:
            return [("same", [self.signature.index(name)]) for name in self.mutates]
        if "shape" in self.rules:
            return [("function", [])] * len(self.signature.results)
        return self.words or [("dynamic", [])] * len(self.signature.results)

    def _formulas(self):
        rows = []
        for rule, name in ((_VJP, "vjp"), (_JVP, "jvp"), (_DECOMPOSE, "decomposition"), (_BATCH, "batch")):
            if name in self.rules:
                rows.append(self._stated(rule, self.rules[name]))
            elif rule == _BATCH and self.form:
                rows.append(self._row(rule, _REFUSED, [], self.form.refusal(), self.line))
            elif rule == _BATCH and self.words:  # where it does not follow from them, the record holds a refusal
                rows.append({**self._missing(rule, name), "flags": _DERIVED})
            elif rule != _DECOMPOSE and "decomposition" not in self.rules:
                rows.append(self._missing(rule, name))
        return [row for row in rows if row["targets"] or row["rule"] in (_DECOMPOSE, _BATCH)]

    def _stated(self, rule, stated):
        if stated == "loop" and self._flags() & _DYNAMIC:
            return self._row(rule, _REFUSED, [], "a loop needs a shape rule; add one with "
                             f"@{self.python_name}.register_shape", self.line)  # fmt: skip
        if stated == "loop":
            return self._row(rule, _LOOP, [], "loop", self.line)
        return {**self._row(rule, 0, stated.targets, stated.text, stated.line),
                "reads": stated.reads, "function": stated.call}  # fmt: skip

    def _missing(self, rule, name):
        targets = [] if rule == _BATCH else self.signature.tensors
        lacks = f"no {name} rule is registered"
        if rule == _BATCH and self.words:
            lacks = f"no batch rule follows from the shape rule {self.words[0][0]}"
        return self._row(rule, _REFUSED, targets, f"{lacks}; add one with "
                         f"@{self.python_name}.register_{name}", self.line)  # fmt: skip

    @staticmethod
    def _row(rule, flags, targets, text, line):
        return {"rule": rule, "flags": flags, "targets": list(targets), "text": text, "line": line, "reads": [],
                "function": None}  # fmt: skip


# ---- defining ----------------------------------------------------------------------------------------------------


def define(name, function, *, signature, mutates_args, alias, shape, elementwise, dtypes, device_types, doc, replace):
    """`backplane.custom_op`, described there."""
    if isinstance(function, str):
        signature, function = function, None
    elif function is None:
        options = dict(signature=signature, mutates_args=mutates_args, alias=alias, shape=shape, elementwise=elementwise,
                       dtypes=dtypes, device_types=device_types, doc=doc, replace=replace)  # fmt: skip
        return lambda decorated: define(name, decorated, **options)
    _check_name(name)
    stated = _op_signature.of_text(name, signature) if signature else _op_signature.of_function(name, function)
    place = _place(function) if function else _caller()
    if elementwise:
        shape = _op_rules.elementwise_shape(name, stated, mutates_args, alias, shape)
    options = dict(dtypes=dtypes, doc=doc or inspect.getdoc(function) or f"{name}, defined in Python.", place=place)
    if _padded_op.states_largest_size(shape):
        return _define_padded(name, function, stated, mutates_args, alias, shape, device_types, replace, options)
    definition = Definition(name, stated, mutates=_mutated(name, stated, mutates_args), alias=_alias(name, stated, alias),
                            shape=shape, core=_registration(name, place, replace), **options)  # fmt: skip
    definition.tags = "python,elementwise" if elementwise else "python"
    if function and not definition.alias and not _is_empty(function):
        _op_rules.check_kernel(definition, function)
        for backend in _backends(device_types):
            definition.kernels[backend] = (function, _ANY_DTYPE)
    definition.commit()
    return _publish(definition)


def _publish(definition):
    """Makes an op that is registered an attribute of `backplane.ops`; gives it."""
    definitions[definition.name] = definition
    op = _core.Op(definition.name, definition.python_name, inplace=bool(definition.mutates))
    setattr(getattr(_ops.ops, _ops.split(definition.name)[0]), definition.python_name, op)
    return op


def _define_padded(name, function, stated, mutates_args, alias, shape, device_types, replace, options):
    """The padded form and the op itself, whose results have sizes that depend on values; gives the op."""
    if mutates_args or alias:
        raise _core.ArgumentValueError(
            f"custom_op {name}: argument shape: found {shape!r} beside mutates_args or alias, expected an op that returns new tensors"
        )
    form, place = _padded_op.PaddedForm(name, stated, shape), options["place"]
    first = f"The padded form of {name}: all rows, with zeros from row `count` on, and the count."
    cores = [_registration(one, place, replace) for one in (name, name + _padded_op.SUFFIX)]
    padded = Definition(name + _padded_op.SUFFIX, form.padded_signature(), mutates=(), alias=None, shape=None,
                        core=cores[1], **options | {"doc": first})  # fmt: skip
    padded.rules["shape"] = _op_rules.shape_rule(padded, form.shape_function())
    exact = Definition(name, stated, mutates=(), alias=None, shape=None, core=cores[0], **options)
    exact.rules["decomposition"] = _op_rules.decomposition(exact, form.exact_function())
    exact.form, exact.tags = form, "python,padded"
    if function and not _is_empty(function):
        _op_rules.check_kernel(exact, function)
        for backend in _backends(device_types):
            padded.kernels[backend] = (form.padding(function), _ANY_DTYPE)
    padded.commit()
    exact.commit()
    _publish(padded)
    return _publish(exact)


def _caller():
    frame = inspect.currentframe()
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] == "backplane":
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame else ("<python>", 0)


def _check_name(name):
    namespace, colons, base = name.partition("::")
    if not colons or not namespace.isidentifier() or not base.replace(".", "_").isidentifier():
        raise _core.ArgumentValueError(f"custom_op: argument name: found {name!r}, expected 'namespace::name'")
    if namespace == _ops.NAMESPACE:
        raise _core.ArgumentValueError(f"custom_op {name}: the namespace {namespace} is Backplane's; choose another")


def _registration(name, place, replace):
    """The registration under which an op of this name is defined: a new one, or the registration of the op it replaces."""
    before = definitions.get(name)
    if before is None:
        return _core.CustomOp()
    if not replace:
        raise _core.ArgumentValueError(
            f"custom_op {name}: the name is taken by the Python op of {before.file}:{before.line}; the one of "
            f"{place[0]}:{place[1]} needs another, or replace=True to take its place"
        )
    return before.core


def _mutated(op, signature, names):
    """The names of the arguments that kernels change, in the order of the signature."""
    names = (names,) if isinstance(names, str) else tuple(names)
    if bool(names) != (not signature.results):
        raise _core.ArgumentValueError(
            f"custom_op {op}: argument mutates_args: found {names!r} and {len(signature.results)} results; an op either "
            "returns tensors, or changes arguments and returns None"
        )
    tensors = [a.name for a in signature.arguments if a.is_tensor and not a.is_list and not a.flags & _op_signature.OPTIONAL]
    if unknown := [name for name in names if name not in tensors]:
        raise _core.ArgumentValueError(
            f"custom_op {op}: argument mutates_args: found {unknown[0]!r}, expected names of arguments that are a Tensor: "
            f"{', '.join(tensors) or 'there is none'}"
        )
    names = tuple(name for name in tensors if name in names)
    if len(names) == 1 and signature.index(names[0]) != 0:
        raise _core.ArgumentValueError(
            f"custom_op {op}: argument mutates_args: found {names!r}, expected the first argument, "
            f"{signature.arguments[0].name!r}: the one that an op changes stands first"
        )
    return names


def _alias(op, signature, alias):
    """("view" or "maybe", argument) or None."""
    if alias is None:
        return None
    kind, _, name = alias.rpartition(" ")
    index = signature.index(name)
    if kind not in ("", "maybe") or index is None or index not in signature.tensors:
        raise _core.ArgumentValueError(
            f"custom_op {op}: argument alias: found {alias!r}, expected the name of a tensor argument, or 'maybe NAME'"
        )
    return ("maybe" if kind else "view", name)


def _backends(devices):
    if devices is None:
        return ["*"]
    devices = [devices] if isinstance(devices, (str, _core.Device)) else list(devices)
    return [device.backend if isinstance(device, _core.Device) else device for device in devices]


# ---- adding kernels and rules ------------------------------------------------------------------------------------


def _definition_of(op, method):
    found = definitions.get(op.full_name)
    if found is None:
        raise _core.ArgumentTypeError(
            f"{method}: {op.full_name} was not defined in Python; its rules stand where it is registered, see "
            f"backplane.explain({op.full_name!r})"
        )
    return found


def register_kernel(op, devices, dtypes):
    definition = _definition_of(op, "register_kernel")
    if definition.alias:
        raise _core.ArgumentValueError(f"register_kernel: {definition.name} is a view, which has no kernel")

    owner, padding = _rules_of(definition)

    def register(function):
        _op_rules.check_kernel(definition, function)
        for backend in _backends(devices or None):
            owner.change(owner.kernels, backend, (padding(function), _dtype_mask(definition.name, dtypes)))
        return function

    return register


def _rules_of(definition):
    """The definition that has the op's kernels and rules, and what makes a kernel for it of a kernel of the op."""
    if definition.form is None:
        return definition, lambda function: function
    return definitions[definition.name + _padded_op.SUFFIX], definition.form.padding


_MAKERS = {
    "shape": _op_rules.shape_rule, "vjp": _op_rules.vjp_rule, "jvp": _op_rules.jvp_rule,
    "batch": _op_rules.batch_rule, "decomposition": _op_rules.decomposition,
}  # fmt: skip


def mark_effect(op):
    """Makes a graph keep calls of the op whose results nobody uses."""
    definition, _ = _rules_of(_definition_of(op, "mark_effect"))
    definition.tags += ",effect"
    definition.commit()


def register_rule(op, name, function):
    definition, padding = _rules_of(_definition_of(op, f"register_{name}"))
    if name == "shape" and op.full_name != definition.name:
        raise _core.ArgumentValueError(f"{op.full_name}: a shape rule: found a function, expected none: its `shape` states the largest size")
    stated = padding(function) if name == "decomposition" else function
    definition.change(definition.rules, name, _MAKERS[name](definition, stated))
    return function
