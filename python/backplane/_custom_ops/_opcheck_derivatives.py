"""The checks of opcheck that differentiate or batch: against finite differences, against each other, against a loop.

Gradients are taken in float64, and in complex128 where the op accepts it (else in the widest that it does), along random directions under
<a, b> = Re sum(conj(a) * b).
"""

import numpy as np

from .. import _core
from .._api._data_type_functions import DTYPES, isdtype
from .._transforms._grad import gradients
from ._opcheck_report import Failure, NotStated
from ._opcheck_values import array, bp, difference, flat, tensor

# Of finite differences, by dtype: how far they go, and how near they come. Of narrow dtypes an op that accepts no wider one.
STEPS = {"float64": 1e-6, "complex128": 1e-6, "float32": 2**-7, "complex64": 2**-7, "float16": 2**-4}
BOUNDS = {"float64": 1e-5, "complex128": 1e-5, "float32": 4e-3, "complex64": 4e-3, "float16": 0.15}
SAME = {"float64": 1e-8, "complex128": 1e-8, "float32": 1e-4, "complex64": 1e-4, "float16": 3e-2}  # of two ways to one number
DIRECTIONS = 2
_INEXACT = {name for name, dtype in DTYPES.items() if isdtype(dtype, ("real floating", "complex floating"))}


def inner(a, b):
    return float(np.sum(np.conj(a) * b).real)


def direction(values, rng):
    drawn = rng.uniform(-1, 1, values.shape)
    return drawn + 1j * rng.uniform(-1, 1, values.shape) if values.dtype.kind == "c" else drawn


def in_dtype(subject, name):
    """The sample with its inexact tensors in a dtype of _dtypes."""
    wanted = DTYPES[name]
    is_complex = name.startswith("complex")

    def cast(t):
        if t.dtype.name not in _INEXACT:
            return t
        values = array(t)
        if is_complex and values.dtype.kind != "c":
            values = values + 0.25j * np.ones_like(values)
        return tensor(values if is_complex else values.real, _Like(wanted, t.device))

    return subject.with_tensors(cast)


class _Like:
    def __init__(self, dtype, device):
        self.dtype, self.device = dtype, device


def _dtypes(subject):
    """The widest floating and the widest complex dtype that the op accepts and the device computes in."""
    inexact = {name for name, _, t in subject.tensors() if t.dtype.name in _INEXACT}
    accepted = ~0
    for argument in subject.facts["args"]:
        if argument["name"] in inexact:
            accepted &= argument["accepts"]
    kinds = (("float64", 12), ("float32", 11), ("float16", 9)), (("complex128", 14), ("complex64", 13))
    taken = [[name for name, bit in kind if accepted >> bit & 1] for kind in kinds]
    return [name for names in taken for name in names[:1] if _runs(subject, in_dtype(subject, name))]


def _runs(subject, arguments):
    try:
        subject.call(arguments)
    except _core.MissingRuleError:
        return False
    return True


def differentiable(subject, kind):
    """The names of arguments with a derivative, or NotStated with the reason that none has one."""
    names = {name for name, _, t in subject.tensors() if t.dtype.name in _INEXACT}
    if not names:
        raise NotStated("no argument of the sample is floating or complex")
    reasons = {name: subject.refusal(kind, subject.index(name)) for name in names}
    stated = [name for name in subject.arguments if name in names and reasons[name] is None]
    if not stated:
        raise NotStated(next(iter(reasons.values())))
    if all(result["nondiff"] for result in subject.facts["results"]):
        raise NotStated("no result is differentiable")
    return stated


class Run:
    """One call in one dtype with recorded inputs, and random cotangents of its results."""

    def __init__(self, subject, arguments, names, seed=11):
        self.subject, self.names = subject, names
        self.arguments = {n: subject.map_tensors(v, lambda t: tensor(array(t), t)) for n, v in arguments.items()}
        self.inputs = [
            (name, position, t)
            for name, position, t in subject.tensors(self.arguments)
            if name in names and t.dtype.name in _INEXACT
        ]
        for _, _, t in self.inputs:
            t.requires_grad = True
        self.results = _inexact(subject, subject.call(self.arguments))
        rng = np.random.default_rng(seed)
        self.cotangents = [direction(array(result), rng) for result in self.results]

    def gradients(self, create_graph=False, cotangents=None):
        """A gradient per input; None where no result depends on it."""
        given = cotangents or [tensor(c, r) for c, r in zip(self.cotangents, self.results)]
        kept = [(r, c) for r, c in zip(self.results, given) if r.requires_grad]
        if not kept:
            return [None] * len(self.inputs)
        results, given = zip(*kept)
        inputs = [t for _, _, t in self.inputs]
        return gradients(list(results), inputs, list(given), create_graph=create_graph)

    def moved(self, name, position, step):
        """The arguments with one input moved by `step`, not recorded."""
        def shifted(t, k):
            values = array(t)
            return tensor(values + step if (k == position) else values, t)

        moved = {}
        for other, value in self.arguments.items():
            if other != name:
                moved[other] = self.subject.map_tensors(value, lambda t: t.detach())
            elif position is None:
                moved[other] = shifted(value, None)
            else:
                moved[other] = [shifted(item, k) if isinstance(item, _core.Tensor) else item for k, item in enumerate(value)]
        return moved

    def value(self, arguments):
        results = _inexact(self.subject, self.subject.call(arguments))
        return sum(inner(c, array(result)) for c, result in zip(self.cotangents, results))


def _inexact(subject, results):
    tensors = flat(results)
    if len(tensors) == len(subject.facts["results"]):
        tensors = [result for result, facts in zip(tensors, subject.facts["results"]) if not facts["nondiff"]]
    return [result for result in tensors if result.dtype.name in _INEXACT]


def _close(found, expected, dtype, what):
    if not abs(found - expected) <= BOUNDS[dtype] * (1 + abs(expected)):
        raise Failure(f"{what} in {dtype}: found {found:.6g}, expected {expected:.6g} by finite differences")


def _label(name, position):
    return f"'{name}'" if position is None else f"'{name}[{position}]'"


def gradient(subject):
    names = differentiable(subject, "vjp")
    done = []
    for dtype in _dtypes(subject):
        run = Run(subject, in_dtype(subject, dtype), names)
        rng = np.random.default_rng(5)
        for (name, position, t), found in zip(run.inputs, run.gradients()):
            at = array(t)
            if found is not None and (found.shape, found.dtype) != (t.shape, t.dtype):
                raise Failure(f"the gradient of {_label(name, position)} in {dtype}: found {found.dtype} of shape "
                              f"{found.shape}, expected {t.dtype} of shape {t.shape}")  # fmt: skip
            values = np.zeros_like(at) if found is None else array(found)
            for _ in range(DIRECTIONS):
                step = direction(at, rng)
                slope = run.value(run.moved(name, position, STEPS[dtype] * step)) - run.value(run.moved(name, position, -STEPS[dtype] * step))
                _close(inner(values, step), slope / (2 * STEPS[dtype]), dtype, f"the gradient of {_label(name, position)}")
        _written_through(subject, dtype)
        done.append(dtype)
    if not done:
        raise NotStated("no dtype that the op accepts is computed here")
    return ", ".join(done)


def _written_through(subject, dtype):
    """The gradients of a base that is changed through its view, by the rule `put`: for its old value and for the written value."""
    if not any(row["state"] in ("stated", "derived") for row in subject.rule("put")):
        return
    arguments, base = in_dtype(subject, dtype), subject.facts["alias"]

    def changed(x, factor):
        written = bp("copy")(x)
        view = subject.call({**arguments, base: written})[0]
        _core.Op("bp::multiply", "multiply_", inplace=True)(view, factor)
        return written

    rng = np.random.default_rng(13)
    (like,) = subject.call(arguments)
    at = {base: array(arguments[base]), "what is written": direction(array(like), rng)}
    kinds = {base: arguments[base], "what is written": like}
    cotangent = direction(at[base], rng)
    leaves = {name: tensor(values, kinds[name]).requires_grad_() for name, values in at.items()}
    found = gradients([changed(*leaves.values())], list(leaves.values()), [tensor(cotangent, like=leaves[base])])
    for name, gradient in zip(at, found):
        step = direction(at[name], rng)

        def value(sign):
            moved = {**at, name: at[name] + sign * STEPS[dtype] * step}
            return inner(cotangent, array(changed(*(tensor(values, kinds[n]) for n, values in moved.items()))))

        _close(inner(array(gradient), step), (value(1) - value(-1)) / (2 * STEPS[dtype]), dtype,
               f"the gradient of '{name}' through a write into the view, by put,")  # fmt: skip


def _weighted(weights, gradients):
    """Re <weights, gradients>, recorded; None where nothing of it depends on an input."""
    total = None
    for weight, found in zip(weights, gradients):
        if found is None or not found.requires_grad:
            continue
        product = bp("multiply")(tensor(np.conj(weight), found), found)
        if "complex" in product.dtype.name:
            product = bp("real")(product)
        term = bp("sum")(product)
        total = term if total is None else bp("add")(total, term)
    return total


def second_order(subject):
    names = differentiable(subject, "vjp")
    done = []
    for dtype in _dtypes(subject):
        arguments = in_dtype(subject, dtype)
        run = Run(subject, arguments, names)
        rng = np.random.default_rng(6)
        weights = [direction(array(t), rng) for _, _, t in run.inputs]
        total = _weighted(weights, run.gradients(create_graph=True))
        inputs = [t for _, _, t in run.inputs]
        second = [None] * len(inputs)
        if total is not None:
            second = gradients([total], inputs, [bp("ones_like")(total)])

        def first_at(moved):
            found = Run(subject, moved, names).gradients()
            return sum(inner(w, array(g)) for w, g in zip(weights, found) if g is not None)

        for (name, position, t), found in zip(run.inputs, second):
            step = direction(array(t), rng)
            slope = first_at(run.moved(name, position, STEPS[dtype] * step)) - first_at(run.moved(name, position, -STEPS[dtype] * step))
            value = 0.0 if found is None else inner(array(found), step)
            _close(value, slope / (2 * STEPS[dtype]), dtype, f"the gradient's gradient of {_label(name, position)}")
        done.append(dtype)
    if not done:
        raise NotStated("no dtype that the op accepts is computed here")
    return ", ".join(done)


def forward(subject):
    """<cotangent, J tangent> by the jvp is <J* cotangent, tangent> by the vjp, or by finite differences without one."""
    names = differentiable(subject, "jvp")
    done = []
    for dtype in _dtypes(subject):
        run = Run(subject, in_dtype(subject, dtype), names)
        rng = np.random.default_rng(7)
        steps = [direction(array(t), rng) for _, _, t in run.inputs]
        primals = tuple(t.detach() for _, _, t in run.inputs)

        def function(*given):
            return tuple(_inexact(subject, subject.call(_placed(run, given))))

        tangents = tuple(tensor(step, t) for step, t in zip(steps, primals))
        values, found = _core.jvp(function, primals, tangents)
        for value, result, slope in zip(values, run.results, found):
            words = difference(array(value), array(result), value.dtype)
            if words:
                raise Failure(f"the value under jvp in {dtype}: {words}")
            if (slope.shape, slope.dtype) != (value.shape, value.dtype):
                raise Failure(f"the tangent in {dtype}: found {slope.dtype} of shape {slope.shape}, expected "
                              f"{value.dtype} of shape {value.shape}")  # fmt: skip
        pushed = sum(inner(c, array(t)) for c, t in zip(run.cotangents, found))
        for k, (name, position, _) in enumerate(run.inputs):
            alone = tuple(tensor(steps[i] if i == k else np.zeros_like(steps[i]), t) for i, t in enumerate(primals))
            _, one = _core.jvp(function, primals, alone)
            slope = run.value(run.moved(name, position, STEPS[dtype] * steps[k])) - run.value(run.moved(name, position, -STEPS[dtype] * steps[k]))
            _close(sum(inner(c, array(t)) for c, t in zip(run.cotangents, one)), slope / (2 * STEPS[dtype]), dtype,
                   f"the tangent of {_label(name, position)}")  # fmt: skip
        if all(subject.refusal("vjp", subject.index(name)) is None for name in names):
            pulled = sum(inner(array(g), s) for g, s in zip(run.gradients(), steps) if g is not None)
            if not abs(pushed - pulled) <= SAME[dtype] * (1 + abs(pulled)):
                raise Failure(f"forward against reverse in {dtype}: found {pushed:.9g}, expected {pulled:.9g}")
        done.append(dtype)
    if not done:
        raise NotStated("no dtype that the op accepts is computed here")
    return ", ".join(done)


def _placed(run, given):
    """The run's arguments with its inputs replaced, in their order."""
    arguments, rest = {}, list(given)
    names = {(name, position) for name, position, _ in run.inputs}
    for name, value in run.arguments.items():
        if (name, None) in names:
            arguments[name] = rest.pop(0)
        elif isinstance(value, list):
            arguments[name] = [rest.pop(0) if (name, k) in names else item for k, item in enumerate(value)]
        else:
            arguments[name] = value
    return arguments


# ---- batching ----------------------------------------------------------------------------------------------------


def _leaves(subject):
    """(name, position or None) -> tensor, of the sample."""
    return {(name, position): t for name, position, t in subject.tensors()}


def _with(subject, replaced):
    """The sample with some of its tensors replaced."""
    arguments = {name: list(value) if isinstance(value, list) else value for name, value in subject.arguments.items()}
    for (name, position), t in replaced.items():
        if position is None:
            arguments[name] = t
        else:
            arguments[name][position] = t
    return arguments


def _count_of_rows(subject):
    """As many as no axis of the sample has elements: a rule that takes the one size for the other then gives another result."""
    sizes = {size for _, _, t in subject.tensors() for size in t.shape}
    return next(count for count in range(2, len(sizes) + 3) if count not in sizes)


def _rows(subject, leaf, t):
    """Rows of one tensor: the sample and, where the op takes it, the sample backwards, in turn."""
    values = array(t)
    flipped = np.flip(values).copy()
    try:
        subject.call(_with(subject, {leaf: tensor(flipped, t)}))
    except _core.BackplaneError:
        flipped = values
    return [(values, flipped)[k % 2] for k in range(_count_of_rows(subject))]


def _call_batched(subject, leaves, axis):
    """vmap over `axis` of these tensors, and the same row by row."""
    rows = [_rows(subject, leaf, t) for leaf, t in leaves.items()]
    stacked = [tensor(np.stack(column, axis), t) for column, t in zip(rows, leaves.values())]

    def function(*given):
        return tuple(flat(subject.call(_with(subject, dict(zip(leaves, given))))))

    found = _core.vmap(function, in_axes=(axis,) * len(leaves), randomness="same")(*stacked)
    each = [function(*(tensor(row, t) for row, t in zip(of_call, leaves.values()))) for of_call in zip(*rows)]
    return [array(f) for f in found], [np.stack([array(r) for r in column]) for column in zip(*each)], each[0]


def batch(subject):
    reason = subject.refusal("batch") if subject.rule("batch") else None
    if reason:
        raise NotStated(reason)
    if subject.facts["dynamic"] and not subject.rule("batch") and not subject.rule("decompose"):
        raise NotStated("the kernel decides the shape of the result, so the op cannot be batched")
    leaves = _leaves(subject)
    if not leaves:
        raise NotStated("the sample has no tensor argument")
    cases = [({leaf: t}, axis) for leaf, t in leaves.items() for axis in range(-1, t.ndim + 1)]
    cases += [(leaves, 0)] if len(leaves) > 1 else []
    for over, axis in cases:
        try:
            found, expected, like = _call_batched(subject, over, axis)
        except _core.MissingRuleError as missing:
            if str(missing).startswith(f"{subject.name}: has no batch rule"):
                raise NotStated("it has no batch rule, and its record does not derive one from its shape") from None
            raise
        for j, (batched, row_by_row, result) in enumerate(zip(found, expected, like)):
            words = difference(batched, row_by_row, result.dtype)
            if words:
                which = " and ".join(_label(*leaf) for leaf in over)
                raise Failure(f"vmap over axis {axis} of {which}, result {j}: {words} by the loop")
    return f"{len(cases)} ways"


CHECKS = [gradient, second_order, forward, batch]
