"""`opcheck`: what is wrong with an op, or missing, as a report with a line per check.

It asks the op's record what was declared, and calls the op to see what is so. NumPy does the comparing. Imported when
`backplane.opcheck` is first used.
"""

import re

from .. import _core
from .._calls import _ops
from . import _opcheck_derivatives, _opcheck_rules
from ._opcheck_report import FAILED, NOT_STATED, PASSED, Failure, NotStated, OpCheckError, OpCheckReport
from ._opcheck_values import array, compare, flat, missing_kernel, tensor

# Checks by the law that an entry's `except:` names.
_LAWS = {"gradient": "gradient", "second_order": "second_order", "forward": "forward", "batch": "vmap", "decomposition": "decompose",
         "in_place": "inplace", "out": "out", "layouts": "layout", "aliasing": "alias", "shape": "meta"}  # fmt: skip
# Errors that a kernel raises itself, by subject.
_ABOUT = (("in place, which", "mutation"), ("returned memory of", "aliasing"), ("its shape rule says", "shape"))


class Subject:
    """The op with its sample on one device."""

    def __init__(self, op, args, kwargs, device):
        full_name, python_name = op.full_name, op.__name__
        self.facts = _core.op_facts(op)
        self.name, self.device = full_name, device
        self.function = _core.Op(full_name, python_name)  # also of an op that changes its argument: the value alone
        self._sample, self._states = self._placed(args, kwargs), {}
        self.renew()

    def renew(self):
        """Copies of the sample, which a faulty op may change: by way of the host, since a device's first kernel need not copy."""
        self.arguments = {name: self.map_tensors(value, lambda t: tensor(array(t), t)) for name, value in self._sample.items()}

    def _placed(self, args, kwargs):
        names = [argument["name"] for argument in self.facts["args"]]
        if len(args) > len(names):
            raise _core.ArgumentTypeError(f"opcheck {self.name}: argument args: found {len(args)} values, expected at "
                                          f"most {len(names)}")  # fmt: skip
        given = dict(zip(names, args))
        twice = set(given) & set(kwargs)
        unknown = set(kwargs) - set(names)
        if twice or unknown:
            expected = "each argument once" if twice else f"one of {', '.join(names)}"
            raise _core.ArgumentTypeError(f"opcheck {self.name}: argument kwargs: found {sorted(twice or unknown)[0]!r}, "
                                          f"expected {expected}")  # fmt: skip
        return {name: self.map_tensors(value, self._on_device) for name, value in {**given, **kwargs}.items()}

    def _on_device(self, tensor):
        return _core.to_device(tensor.detach(), _core.Device(self.device))

    @staticmethod
    def map_tensors(value, function):
        if isinstance(value, _core.Tensor):
            return function(value)
        if isinstance(value, (list, tuple)) and any(isinstance(item, _core.Tensor) for item in value):
            return [function(item) if isinstance(item, _core.Tensor) else item for item in value]
        return value

    def with_tensors(self, function):
        """The arguments with every tensor replaced."""
        return {name: self.map_tensors(value, function) for name, value in self.arguments.items()}

    def call(self, arguments=None, function=None, **more):
        """The results as a list."""
        arguments = {**(self.arguments if arguments is None else arguments), **self._generators()}
        first = [a["name"] for a in self.facts["args"] if not a["keyword_only"] and a["name"] in arguments]
        given = dict(arguments)
        # By position as far as possible: an op's parameters may have any name.
        positional = []
        for argument in self.facts["args"]:
            if argument["name"] not in first or argument["name"] != first[len(positional)]:
                break
            positional.append(given.pop(argument["name"]))
            if len(positional) == len(first):
                break
        found = (function or self.function)(*positional, **given, **more)
        return list(found) if isinstance(found, tuple) else [found]

    def _generators(self):
        """One position for all calls, so that they draw the same numbers."""
        found = {}
        for argument in self.facts["args"]:
            if argument["generator"]:
                given = self._sample.get(argument["name"])
                found[argument["name"]] = _core.Generator(1)
                if given is not None:
                    found[argument["name"]].state = self._states.setdefault(argument["name"], given.state)
        return found

    def rule(self, kind):
        """The formulas of a rule: dicts of targets, state and text."""
        return [row for row in self.facts["rules"] if row["rule"] == kind]

    def refusal(self, kind, index=None):
        """Why a rule cannot be checked, or None."""
        rows = [row for row in self.rule(kind) if index is None or index in row["targets"]]
        if not rows:
            return None if self.rule("decompose") or (kind == "jvp" and self.facts["view"]) else f"no {kind} rule"
        return next((row["text"] for row in rows if row["state"] == "refused"), None)

    def tensors(self, arguments=None):
        """(argument's name, position in a list or None, tensor)."""
        found = []
        for name, value in (self.arguments if arguments is None else arguments).items():
            if isinstance(value, _core.Tensor):
                found.append((name, None, value))
            elif isinstance(value, list):
                found += [(name, k, item) for k, item in enumerate(value) if isinstance(item, _core.Tensor)]
        return found

    def index(self, name):
        return next(i for i, argument in enumerate(self.facts["args"]) if argument["name"] == name)


def _devices(args, kwargs, devices):
    if devices is not None:
        names = [devices] if isinstance(devices, (str, _core.Device)) else list(devices)
        return [str(name) if isinstance(name, str) else _name_of(name) for name in names]
    for value in [*args, *kwargs.values()]:
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(item, _core.Tensor):
                return [_name_of(item.device)]
    return [_name_of(_core.default_device())]


def _name_of(device):
    return f"{device.backend}:{device.ordinal}" if device.ordinal else device.backend


def _agrees(first):
    def devices(subject):
        """The results against the first device's."""
        first.renew()
        results, expected = flat(subject.call()), flat(first.call())
        for j, (result, wanted) in enumerate(zip(results, expected)):
            if result.dtype != wanted.dtype:
                raise Failure(f"result {j}: found {result.dtype.name}, expected {wanted.dtype.name} as on {first.device}")
        compare(results, expected, f"the result against that on {first.device}")

    return devices


def _check(subject, report, first=None):
    """All checks of one subject, as rows of the report, of a further device also against the first one's subject; could it be called?"""
    try:
        _opcheck_rules.is_called(subject)
    except (Exception, SystemExit) as failure:  # whatever a kernel raises is what is wrong
        about = next((name for words, name in _ABOUT if words in str(failure)), "call")
        report.add(subject.device, about, FAILED, _one_line(failure))
        return False
    report.add(subject.device, "call", PASSED)
    checks = [_agrees(first)] if first else []
    if subject.facts["flags"] & _opcheck_rules.ELEMENTWISE or "elementwise" in subject.facts["tags"].split(","):
        checks.append(_opcheck_rules.elementwise)
    checks += _opcheck_rules.CHECKS
    for function in checks + _opcheck_derivatives.CHECKS:
        report.add(subject.device, function.__name__.replace("_", " "), *_outcome(function, subject))
    return True


def _outcome(function, subject):
    if f"except:{_LAWS.get(function.__name__)}" in subject.facts["tags"].split(","):
        return NOT_STATED, "the entry says `except`"
    subject.renew()
    try:
        text = function(subject)
        return PASSED, text or ""
    except NotStated as reason:
        return NOT_STATED, str(reason)
    except Failure as failure:
        return FAILED, str(failure)
    except (Exception, SystemExit) as failure:  # a rule that raises is wrong too
        if reason := missing_kernel(subject, failure) or _padded_refusal(subject, failure):
            return NOT_STATED, reason
        return FAILED, f"found {type(failure).__name__}: {_one_line(failure)}; expected a result"


def _padded_refusal(subject, failure):
    """Whether an op of dynamic size has derivatives, its padded form says: why not, or None."""
    if not subject.facts["dynamic"] or not isinstance(failure, _core.MissingRuleError):
        return None
    text = _one_line(failure)
    return text if re.search(rf"\b{re.escape(subject.name)}_padded: has no (forward )?derivative", text) else None


def _one_line(failure):
    return re.sub(r"\s*\n\s*", "; ", str(failure))


def check_op(op, args, kwargs, devices, raise_exception):
    """`backplane.opcheck`, described there."""
    if isinstance(op, str):
        full_name = op if "::" in op else f"{_ops.NAMESPACE}::{op}"
        op = _core.Op(full_name, _ops.split(full_name)[1])
    if not isinstance(op, _core.Op):
        raise _core.ArgumentTypeError(f"opcheck: argument op: found a value of type {type(op).__name__}, expected an Op")
    report = OpCheckReport(op.full_name)
    first = None
    for device in _devices(args, kwargs, devices):
        subject = Subject(op, args, kwargs, device)
        if _check(subject, report, first):
            first = first or subject
    if raise_exception and not report:
        raise OpCheckError(report)
    return report
