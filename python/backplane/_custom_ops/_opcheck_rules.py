"""The checks of opcheck that need no derivative: what a call changes, shares and gives, in all its forms."""

import numpy as np

from .. import _core
from ._opcheck_report import Failure, NotStated
from ._opcheck_values import array, bp, compare, flat, missing_kernel, show, tensor

ELEMENTWISE = 16  # BP_OP_*
_INPLACE, _OUT, _COMPOSITE = 4, 8, 4096  # BP_OP_*
_MOST_FAILURES = 100  # of kernels that still run when a call is refused


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
    if not declared and not subject.facts["flags"] & _COMPOSITE:
        for j, (result, later) in enumerate(zip(results, flat(subject.call()))):
            if _core.shares_memory(result, later):
                raise Failure(f"result {j} shares memory with the result of the next call, which changes it: found a buffer that is kept, "
                              "expected memory of its own; return a copy")  # fmt: skip


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
        try:
            stated, refused = _attempt(subject, lambda: subject.call(arguments, subject.function.infer)[0])
            results, failed = _attempt(subject, lambda: subject.call(arguments))
        except Exception as error:
            if variant == "the sample":
                raise
            raise Failure(
                f"{variant}: found {type(error).__name__}: {error}; expected a result, or an error of backplane. opcheck makes this sample of the given one. "
                "Fix: let the kernel compute it, or refuse it with ArgumentValueError"
            ) from error
        if variant.startswith("empty") and failed and "its shape rule says" not in str(failed):
            continue
        if missing_kernel(subject, failed):  # the variant is made by other ops
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
        raise NotStated("the op has no kernel on this device to compare with")
    before = _core.force_decomposition(True)
    try:
        found = subject.call()
    finally:
        _core.force_decomposition(before)
    compare(found, expected, "the decomposition against the kernel")


def elementwise(subject):
    """Of an op whose shape rule says that it is elementwise: one element alone gives the same result as among the others."""
    if any(argument["generator"] for argument in subject.facts["args"]):
        raise NotStated("the op draws random numbers")
    expected = subject.call()
    size = expected[0].size
    if size < 2:
        raise NotStated("the sample gives fewer than two elements")
    for first in (0, size - 1):

        def one(t, first=first):
            return tensor(np.broadcast_to(array(t), expected[0].shape).reshape(-1)[first : first + 1], t)

        alone = [array(result).reshape(-1)[first : first + 1] for result in expected]
        wanted = [tensor(values, result) for values, result in zip(alone, expected)]
        compare(subject.call(subject.with_tensors(one)), wanted, f"element {first} alone against the same element of the sample")


def is_called(subject):
    results = subject.call()
    for j, result in enumerate(results):
        if not isinstance(result, (_core.Tensor, list)):
            raise Failure(f"result {j}: found a value of type {type(result).__name__}, expected a Tensor")


CHECKS = [mutation, aliasing, shape, layouts, in_place, out, decomposition]
