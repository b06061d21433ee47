"""The checks of opcheck that need no derivative: what a call changes, shares and gives, in all its forms."""

import re

import numpy as np

from .. import _core
from .._calls import _ops
from ._opcheck import Failure, NotStated
from ._opcheck_report import FAILED, NOT_STATED, PASSED

_INPLACE, _OUT, _COMPOSITE = 4, 8, 4096  # BP_OP_*
_MISSING = re.compile(r"([\w:.]+): no kernel on device ([\w:]+)")
_MOST_FAILURES = 100  # of kernels that still run when a call is refused
# Checks by the law that an entry's `except:` names.
_LAWS = {"gradient": "gradient", "second_order": "second_order", "forward": "forward", "batch": "vmap", "decomposition": "decompose",
         "in_place": "inplace", "out": "out", "layouts": "layout", "aliasing": "alias", "shape": "meta"}  # fmt: skip
# Errors that a kernel raises itself, by subject.
_ABOUT = (("in place, which", "mutation"), ("returned memory of", "aliasing"), ("its shape rule says", "shape"))


def array(tensor):
    tensor = tensor.detach()
    host = tensor if tensor.device.backend == "cpu" else _core.to_device(tensor, _core.Device("cpu"))
    if host.dtype.name == "bfloat16":
        host = bp("cast")(host, _dtype("float32"))
    return np.array(host.numpy())


def bp(name):
    return getattr(getattr(_ops.ops, _ops.NAMESPACE), name)


def _dtype(name):
    from .._api._data_type_functions import DTYPES

    return DTYPES[name]


def tensor(values, like):
    """The values in the dtype and on the device of a tensor."""
    made = _core.asarray(np.array(values, order="C"), dtype=like.dtype, device="cpu", copy=True)
    return _core.to_device(made, like.device)


def show(values):
    text = np.array2string(np.asarray(values), threshold=6, precision=5).replace("\n", "")
    return text if len(text) < 60 else text[:57] + "..."


def difference(found, expected, dtype, loose=64):
    """None where two arrays agree up to rounding in dtype, else words."""
    if found.shape != expected.shape:
        return f"found shape {found.shape}, expected {expected.shape}"
    if expected.size == 0:
        return None
    if expected.dtype.kind not in "fc" or found.dtype.kind not in "fc":
        return None if (found == expected).all() else f"found {show(found)}, expected {show(expected)}"
    wide = np.complex128 if "c" in found.dtype.kind + expected.dtype.kind else np.float64
    found, expected = found.astype(wide), expected.astype(wide)
    finite = np.abs(expected[np.isfinite(expected)])
    scale = max(1.0, float(finite.max()) if finite.size else 1.0)
    eps = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1.2e-7, "complex64": 1.2e-7}.get(dtype.name, 2.3e-16)
    bound = loose * eps * scale * max(1.0, expected.size**0.5)
    same = np.isclose(found, expected, rtol=0, atol=bound, equal_nan=True)
    if same.all():
        return None
    at = tuple(int(i) for i in np.argwhere(~same)[0])
    return f"found {found[at]:.6g}, expected {expected[at]:.6g}" + (f", at {list(at)}" if at else "")


def flat(results):
    """All tensors, those of lists in their place."""
    return [item for result in results for item in (result if isinstance(result, list) else [result])]


def compare(results, expected, what):
    results, expected = flat(results), flat(expected)
    if len(results) != len(expected):
        raise Failure(f"{what}: found {len(results)} results, expected {len(expected)}")
    for j, (found, wanted) in enumerate(zip(results, expected)):
        words = difference(array(found), array(wanted), wanted.dtype)
        if words:
            raise Failure(f"{what}, result {j}: {words}")


# ---- the checks --------------------------------------------------------------------------------------------------


def mutation(subject):
    arguments = subject.with_tensors(lambda t: tensor(array(t), t))
    before = [(name, position, array(t), t.version) for name, position, t in subject.tensors(arguments)]
    subject.call(arguments)
    for (name, _, old, version), (_, _, t) in zip(before, subject.tensors(arguments)):
        now = array(t)
        if t.version != version or not np.array_equal(now, old, equal_nan=now.dtype.kind in "fc"):
            raise Failure(f"the function changed '{name}' in place: found {show(now)}, expected {show(old)} as before; "
                          "work on a copy, or declare it")  # fmt: skip


def aliasing(subject):
    results, declared = flat(subject.call()), subject.facts["alias"]
    for j, result in enumerate(results):
        for name, _, t in subject.tensors():
            shared = _core.shares_memory(result, t)
            if shared and name != declared and not subject.facts["flags"] & _COMPOSITE:
                raise Failure(f"result {j} shares memory with '{name}': found an alias, expected "
                              + (f"one of '{declared}' alone" if declared else "none"))  # fmt: skip
            if not shared and name == declared and subject.facts["view"] and result.size:
                raise Failure(f"result {j}: found a copy, expected a view of '{name}'")
        for k in range(j):
            if _core.shares_memory(result, results[k]) and not declared:
                raise Failure(f"results {k} and {j} share memory; expected results of their own")


def _strided(t):
    """The same values with a gap after each element of the last axis."""
    values = array(t)
    if values.ndim == 0:
        return t
    wide = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
    wide[..., ::2] = values
    return tensor(wide, t)[..., ::2]


def _transposed(t):
    if t.ndim < 2:
        return t
    order = tuple(reversed(range(t.ndim)))
    return bp("permute_dims")(tensor(array(t).transpose(order), t), order)


def _emptied(axis):
    def empty(t):
        if t.ndim <= axis:
            return t
        values = array(t)
        return tensor(values[(slice(None),) * axis + (slice(0, 0),)], t)

    return empty


def _variants(subject):
    yield "the sample", subject.arguments
    yield "strided", subject.with_tensors(_strided)
    yield "transposed", subject.with_tensors(_transposed)
    for axis in range(max((t.ndim for _, _, t in subject.tensors()), default=0)):
        yield f"empty along axis {axis}", subject.with_tensors(_emptied(axis))


def _attempt(subject, function):
    """What the function gives, or how it is refused: on some devices by a kernel that runs later."""
    try:
        found = function()
        _core.synchronize(subject.device)
        return found, None
    except _core.BackplaneError as refusal:
        _let_finish(subject.device)
        return None, refusal


def _let_finish(device):
    """Waits for a refused call's other kernels, whose failures would pass for those of later calls."""
    for _ in range(_MOST_FAILURES):
        try:
            return _core.synchronize(device)
        except _core.DataError as error:
            failure = error
    raise Failure(f"device {device}: {_MOST_FAILURES} waits in a row failed, the last with: {failure}")


def shape(subject):
    """The rule against the results. An emptied sample may be refused: tensors then need not fit attributes any more."""
    if subject.facts["dynamic"]:
        raise NotStated("no shape rule: the kernel decides")
    if any(result["list"] for result in subject.facts["results"]):
        raise NotStated("a list of tensors has none")
    for variant, arguments in _variants(subject):
        stated, refused = _attempt(subject, lambda: subject.call(arguments, subject.function.infer)[0])
        results, failed = _attempt(subject, lambda: subject.call(arguments))
        if variant.startswith("empty") and failed and "its shape rule says" not in str(failed):
            continue
        if _missing(subject, failed):  # the variant is made by other ops
            continue
        if (refused is None) != (failed is None):
            by_rule = "a refusal" if refused else f"{stated}"
            by_call = f"a refusal ({failed})" if failed else str([(r.dtype, r.shape) for r in results])
            raise Failure(f"{variant}: found {by_call}, expected {by_rule} by the shape rule")
        if failed:
            continue
        found = [(result.dtype, result.shape) for result in results]
        if found != stated:
            raise Failure(f"{variant}: found {found}, expected {stated} by the shape rule")


def layouts(subject):
    expected = subject.call()
    for variant, change in (("strided", _strided), ("transposed", _transposed)):
        compare(subject.call(subject.with_tensors(change)), expected, f"{variant} arguments")


def in_place(subject):
    if not subject.facts["flags"] & _INPLACE:
        raise NotStated("no in-place variant is declared")
    expected = subject.call()
    # Several results go to the arguments of their names, one to the first argument.
    names = [result["name"] for result in subject.facts["results"]] if len(expected) > 1 else [subject.facts["args"][0]["name"]]
    targets = {name: subject.arguments.get(name) for name in names}
    for (name, target), result in zip(targets.items(), expected):
        if not isinstance(target, _core.Tensor) or (target.dtype, target.shape) != (result.dtype, result.shape):
            raise NotStated(f"the result does not fit into '{name}' for this sample")
    function = _core.Op(subject.name, subject.function.__name__ + "_", inplace=True)
    for variant, place in (("", lambda t: tensor(array(t), t)), ("strided ", _strided)):
        arguments = subject.with_tensors(lambda t: tensor(array(t), t))
        arguments.update({name: place(target) for name, target in targets.items()})
        before = [(name, array(t)) for name, _, t in subject.tensors(arguments) if name not in names]
        for name, returned in zip(names, subject.call(arguments, function)):
            if returned is not arguments[name]:
                raise Failure(f"the in-place variant returned another tensor than '{name}'")
        compare([arguments[name] for name in names], expected, f"{variant}in-place variant")
        after = [(name, array(t)) for name, _, t in subject.tensors(arguments) if name not in names]
        for (name, old), (_, now) in zip(before, after):
            if not np.array_equal(old, now, equal_nan=now.dtype.kind in "fc"):
                raise Failure(f"the in-place variant changed '{name}' too: found {show(now)}, expected {show(old)}")


def out(subject):
    if not subject.facts["flags"] & _OUT:
        raise NotStated("no out= variant is declared")
    expected = subject.call()
    for variant, place in (("out=", lambda t: t), ("strided out=", _strided)):
        targets = [place(tensor(np.zeros_like(array(result)), result)) for result in expected]
        given = targets[0] if len(targets) == 1 else tuple(targets)
        subject.call(None, None, out=given)
        compare(targets, expected, variant)


def decomposition(subject):
    if not subject.rule("decompose"):
        raise NotStated("no decomposition")
    _core.reset_call_counts()
    expected = subject.call()
    if not _core.call_counts()["kernels"] or _core.call_counts()["decompositions"]:
        raise NotStated("there is no kernel beside it on this device")
    before = _core.force_decomposition(True)
    try:
        found = subject.call()
    finally:
        _core.force_decomposition(before)
    compare(found, expected, "the decomposition against the kernel")


def _is_called(subject):
    results = subject.call()
    for j, result in enumerate(results):
        if not isinstance(result, (_core.Tensor, list)):
            raise Failure(f"result {j}: found a value of type {type(result).__name__}, expected a Tensor")


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


def check(subject, report, first=None):
    """All checks of one subject, as rows of the report, of a further device also against the first one's subject; could it be called?"""
    from . import _opcheck_derivatives as derivatives

    try:
        _is_called(subject)
    except Exception as failure:  # whatever a kernel raises is what is wrong
        about = next((name for words, name in _ABOUT if words in str(failure)), "call")
        report.add(subject.device, about, FAILED, _one_line(failure))
        return False
    report.add(subject.device, "call", PASSED)
    checks = [_agrees(first)] if first else []
    checks += [mutation, aliasing, shape, layouts, in_place, out, decomposition]
    for function in checks + derivatives.CHECKS:
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
    except Exception as failure:  # a rule that raises is wrong too
        if reason := _missing(subject, failure):
            return NOT_STATED, reason
        return FAILED, f"found {type(failure).__name__}: {_one_line(failure)}; expected a result"


def _missing(subject, failure):
    """Where a device lacks a kernel for another op, which a check calls and a device's author need not have written yet: the words."""
    found = _MISSING.search(str(failure)) if isinstance(failure, _core.MissingRuleError) else None
    return found and found[1] != subject.name and f"it takes a kernel for {found[1]} too, which device {found[2]} lacks"


def _one_line(failure):
    return re.sub(r"\s*\n\s*", "; ", str(failure))
