"""`./dev fuzz transforms`: transforms of wrapped functions compared with transforms of the functions themselves.

A case draws an op with a sample of the registry, some steps around it (writes in place, captured tensors), one or two wrappers
(fuzz_wrappers.py) and a transform. Law: a wrapper does not change what a transform gives. The expected value never goes through
the wrapper, and where the transform batches, it is computed row by row.
"""

import random
import re
import zlib

import backplane as bp
import fuzz_runner
import numpy as np
from fuzz_wrappers import BATCHING, DERIVING, FORWARD_ALONE, WRAPPERS
from law_inputs import arrays_of, leaves, tensors_of
from law_registry import cases
from law_running import call, differentiable_results, to_array
from test_law_gradient import direction_like, has_gradient
from test_law_gradient import dtypes_of as derived_dtypes
from test_law_meta import dtypes_of, inferable

ROUNDING = 1e-9  # of the largest expected value, in float64; a hundred times that per order of the derivative


class Function:
    """A sample's call, and the steps around it, as a function of its tensors: a tuple of tensors."""

    def __init__(self, sample, dtype, derived, steps, drawing):
        self.sample, self.derived, self.steps = sample, derived, steps
        self.arrays = arrays_of(sample, dtype, own_dtype=not derived or dtype == "float64", drawing=drawing)
        self.places = [(name, position) for name, position, _ in self._tensors(tensors_of(sample, self.arrays))]
        self.inputs = [tensor for _, _, tensor in self._tensors(tensors_of(sample, self.arrays))]

    def _tensors(self, arguments):
        if self.derived:
            yield from leaves(arguments, [arg.name for arg in self.sample.entry.differentiable])
            return
        for arg in self.sample.entry.args:
            value = arguments.get(arg.name)
            if isinstance(value, bp.Tensor):
                yield arg.name, None, value
            elif arg.is_tensor and isinstance(value, list):
                yield from ((arg.name, i, item) for i, item in enumerate(value) if isinstance(item, bp.Tensor))

    def __call__(self, *inputs):
        arguments = tensors_of(self.sample, self.arrays)
        for (name, position), tensor in zip(self.places, inputs):
            if position is None:
                arguments[name] = tensor
            else:
                arguments[name] = [tensor if i == position else item for i, item in enumerate(arguments[name])]
        found = call(self.sample, arguments)
        found = differentiable_results(self.sample, found) if self.derived else [x for x in found if isinstance(x, bp.Tensor)]
        for step in self.steps:
            found = [step(x) for x in found]
        return tuple(found)


def scaled_by_a_constant(x):
    return x * bp.full(x.shape, 2, dtype=x.dtype) if x.dtype.kind != "bool" else x


def written_whole(x):
    made = bp.zeros(x.shape, dtype=x.dtype)
    made[...] = x
    return made


def written_in_part(x):
    made = x.copy()
    if made.ndim and made.shape[0]:
        made[0] = made[-1] + made[0] if x.dtype.kind != "bool" else made[-1]
    return made


def written_through_a_view(x):
    made = x.copy()
    if made.ndim and x.dtype.kind != "bool":
        made[1:] *= 3
    return made


STEPS = (scaled_by_a_constant, written_whole, written_in_part, written_through_a_view)


def loss_of(function, weights):
    """The real inner product of the results with fixed tensors."""

    def loss(*inputs):
        terms = [bp.sum(bp.real(bp.conj(w) * result)) for w, result in zip(weights, function(*inputs))]
        return sum(terms[1:], terms[0])

    return loss


def pulled(loss, inputs):
    value, pullback = bp.vjp(loss, *inputs)
    return pullback(bp.ones_like(value))


def recorded(loss, inputs):
    """The gradient by the tape."""
    own = [x.detach().copy().requires_grad_() for x in inputs]
    value = loss(*own)
    if value.requires_grad:
        value.backward()
    return tuple(bp.zeros_like(x) if x.grad is None else x.grad for x in own)


def by_rows(function, rows):
    """function of each row, stacked: the loop that vmap stands for."""
    found = [bp.tree.leaves(function(*(x[i] for x in rows))) for i in range(rows[0].shape[0])]
    return [bp.stack(list(results)) for results in zip(*found)]


class Setting:
    """What transforms need beside the function: tangents, weights of its results, and rows."""

    def __init__(self, function, results, rng):
        self.inputs = function.inputs
        drawn = [[bp.asarray(direction_like(to_array(x), rng), dtype=x.dtype) for x in tensors] for tensors in (self.inputs, results)]
        self.tangents, self.weights = map(tuple, drawn)
        self.rows = [bp.stack([x, x * 0.9]) if x.dtype.kind.endswith("floating") else bp.stack([x, x]) for x in self.inputs]

    def pulled(self, function):
        loss = loss_of(function, self.weights)
        return lambda *xs: pulled(loss, xs)

    def pushed(self, function):
        return lambda *xs: bp.jvp(function, xs, self.tangents)

    def moved(self, function):
        """The gradient's derivative along the tangents, forward over reverse."""
        gradient = self.pulled(function)
        return lambda *xs: bp.jvp(gradient, xs, self.tangents)[1]

    def moved_back(self, function):
        """The same, reverse over forward."""
        loss = loss_of(function, self.weights)
        return lambda *xs: pulled(lambda *x: bp.jvp(loss, x, self.tangents)[1], xs)

    def twice(self, function):
        """The gradient of a function of the gradient."""
        gradient = self.pulled(function)
        return lambda *xs: pulled(lambda *x: sum(bp.sum(bp.real(bp.conj(g) * t)) for g, t in zip(gradient(*x), self.tangents)), xs)


def batched(function):
    return bp.vmap(lambda *xs: function(*xs), randomness="same")


# Name -> (order of the derivative, of the wrapped function, of the function itself). Both are called with what `Setting` holds.
TRANSFORMS = {
    "value": (0, lambda s, f: f(*s.inputs), lambda s, f: f(*s.inputs)),
    "compile": (0, lambda s, f: bp.compile(lambda *x: f(*x))(*s.inputs), lambda s, f: f(*s.inputs)),
    "vmap": (0, lambda s, f: batched(f)(*s.rows), lambda s, f: by_rows(f, s.rows)),
    "compile of vmap": (0, lambda s, f: bp.compile(batched(f))(*s.rows), lambda s, f: by_rows(f, s.rows)),
    "vjp": (1, lambda s, f: s.pulled(f)(*s.inputs), lambda s, f: s.pulled(f)(*s.inputs)),
    "backward": (1, lambda s, f: recorded(loss_of(f, s.weights), s.inputs), lambda s, f: s.pulled(f)(*s.inputs)),
    "compile of vjp": (1, lambda s, f: bp.compile(s.pulled(f))(*s.inputs), lambda s, f: s.pulled(f)(*s.inputs)),
    "vjp of compile": (1, lambda s, f: s.pulled(bp.compile(lambda *x: f(*x)))(*s.inputs), lambda s, f: s.pulled(f)(*s.inputs)),
    "jvp": (1, lambda s, f: s.pushed(f)(*s.inputs), lambda s, f: s.pushed(f)(*s.inputs)),
    "vmap of vjp": (1, lambda s, f: batched(s.pulled(f))(*s.rows), lambda s, f: by_rows(s.pulled(f), s.rows)),
    "vmap of jvp": (1, lambda s, f: batched(s.pushed(f))(*s.rows), lambda s, f: by_rows(s.pushed(f), s.rows)),
    "vjp of vmap": (
        1,
        lambda s, f: pulled(lambda *x: bp.sum(batched(loss_of(f, s.weights))(*x)), s.rows),
        lambda s, f: by_rows(s.pulled(f), s.rows),
    ),
    "jvp of vjp": (2, lambda s, f: s.moved(f)(*s.inputs), lambda s, f: s.moved(f)(*s.inputs)),
    "vjp of jvp": (2, lambda s, f: s.moved_back(f)(*s.inputs), lambda s, f: s.moved(f)(*s.inputs)),
    "vjp of vjp": (2, lambda s, f: s.twice(f)(*s.inputs), lambda s, f: s.twice(f)(*s.inputs)),
    "vmap of jvp of vjp": (2, lambda s, f: batched(s.moved(f))(*s.rows), lambda s, f: by_rows(s.moved(f), s.rows)),
    "compile of jvp of vjp": (2, lambda s, f: bp.compile(s.moved(f))(*s.inputs), lambda s, f: s.moved(f)(*s.inputs)),
}  # fmt: skip
REVERSE = {name for name in TRANSFORMS if "vjp" in name or name == "backward"}
# Documented refusals: sizes that depend on values in a trace, and derivatives of a graph that holds a function with rules.
REFUSED = re.compile("shape of its result depends on values|a function with its own derivative rules")
SECOND = {str(parameter.values[0]) for parameter in cases("jvp_grad", has_gradient)}
BATCHED = {str(parameter.values[0]) for parameter in cases("vmap_grad", has_gradient)}


def usable(sample):
    """Has it tensors, the same results each time, and no shape that depends on values?"""
    arguments = {arg.name: arg for arg in sample.entry.args}
    has_tensors = any(arguments[name].is_tensor and ("tensor" in value or "tensors" in value) for name, value in sample.sample.items())
    return not sample.error and has_tensors and inferable(sample) and "random" not in sample.entry.flags


class TransformCase:
    """The case number `number` of an entry: the same for the same seed."""

    def __init__(self, entry, samples, seed, number):
        self.rng = random.Random(f"{seed}/{entry.name}/{number}")
        samples = [sample for sample in samples if usable(sample)]
        self.sample = self.rng.choice(samples) if samples else None
        if self.sample is None:
            return
        self.derived = has_gradient(self.sample)
        dtypes = derived_dtypes(self.sample) if self.derived else dtypes_of(self.sample)
        self.dtype = self.rng.choice(dtypes)
        self.steps = self.rng.sample(STEPS, self.rng.choice((0, 0, 1, 2)))
        possible = sorted(WRAPPERS.keys() - (BATCHING if self.sample.entry.rules["batch"] == "none" else set()))
        self.wrappers = self.rng.choices(possible, k=self.rng.choice((1, 1, 1, 2)))
        self.transform = self.rng.choice([name for name in TRANSFORMS if self._takes(name)])
        self.drawing = zlib.crc32(f"{seed}/{number}".encode()) % 1000

    def _takes(self, transform):
        order, batch = TRANSFORMS[transform][0], "vmap" in transform or bool(BATCHING & set(self.wrappers))
        if order and not self.derived or (batch and self.sample.entry.rules["batch"] == "none"):
            return False
        if FORWARD_ALONE & set(self.wrappers) and transform in REVERSE:
            return False
        order += len(DERIVING & set(self.wrappers)) if order else 0
        return (order < 2 or str(self.sample) in SECOND) and (not order or not batch or str(self.sample) in BATCHED)

    def pairs(self):
        return 0

    def __str__(self):
        if self.sample is None:
            return "no sample that the law takes"
        steps = "".join(f", {step.__name__}" for step in self.steps)
        return f"{self.transform} of {' of '.join(self.wrappers)} of {self.sample} ({self.dtype}{steps})"

    def run(self):
        if self.sample is None:
            return None
        function = Function(self.sample, self.dtype, self.derived, self.steps, self.drawing)
        order, wrapped_value, plain_value = TRANSFORMS[self.transform]
        try:
            results = function(*function.inputs)
            if not function.inputs or not results:
                return None
            setting = Setting(function, results, np.random.default_rng(self.drawing))
            expected = bp.tree.leaves(plain_value(setting, function))
        except bp.BackplaneError:
            return None  # what the function itself is refused for is not a wrapper's
        try:
            wrapped = function
            for name in reversed(self.wrappers):
                wrapped = WRAPPERS[name](wrapped, function.inputs, results)
            found = bp.tree.leaves(wrapped_value(setting, wrapped))
        except Exception as error:
            refused = isinstance(error, bp.MissingRuleError) and REFUSED.search(str(error))
            return None if refused else f"{type(error).__name__}: {error}"
        return differences(found, expected, ROUNDING * 100**order)


def differences(found, expected, bound):
    """The first difference, or None. Elements whose expected value is not finite are not compared."""
    if len(found) != len(expected):
        return f"{len(found)} results, expected {len(expected)}"
    for number, (ours, other) in enumerate(zip(found, expected)):
        if ours.dtype != other.dtype or tuple(ours.shape) != tuple(other.shape):
            return f"result {number} is {ours.dtype}{tuple(ours.shape)}, expected {other.dtype}{tuple(other.shape)}"
        ours, other = to_array(ours), to_array(other)
        if other.dtype.kind in "biu":
            if not np.array_equal(ours, other):
                return f"result {number} is {ours.tolist()}, expected {other.tolist()}"
            continue
        finite = np.isfinite(other)
        limit = max(bound, 100 * np.finfo(other.dtype).eps) * max(1.0, float(np.max(np.abs(other[finite]), initial=0)))
        if not np.all(np.abs(ours[finite] - other[finite]) <= limit):
            return f"result {number} is {ours.tolist()}, expected {other.tolist()}"
    return None


if __name__ == "__main__":
    fuzz_runner.main("transforms", __doc__, TransformCase, 100)
