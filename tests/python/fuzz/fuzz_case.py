"""One fuzzed call: a sample of the registry, some of its arguments replaced, made in one of several ways, and its outcome judged.

A call may return, or raise one of Backplane's errors that names the op and what is wrong. Anything else is a finding.
"""

import math
import random
import re

import backplane as bp
import fuzz_values as values
import numpy as np
from law_inputs import arrays_of, is_array, is_array_list, leaves, tensors_of
from law_running import INTERNALS, function_of, results_of, to_array

TOUCHED = 1 << 16  # elements of a result that are read; more would only cost time
BIG = 1 << 6  # a number from which on an argument, once per axis or with another, may ask for more memory than there is
PAIRED_BYTES = 64 << 20  # what a run may allow one allocation (./dev fuzz), for an element of 16 bytes per pair
LARGE = 0.06  # of the cases: sizes across a kernel's blocks
LARGE_SIZES = (9, 17, 33, 65, 100, 129, 257, 300, 513, 1025, 2049, 4097, 5000, 20_000, 66_000)
LARGE_ELEMENTS = 1 << 16  # of an array; more would only cost time
WAYS = ("call",) * 9 + ("positional", "out", "in place", "infer", "gradient", "gradient", "vmap", "vmap", "jvp")


class Case:
    """The call number `number` of an entry: the same for the same seed."""

    def __init__(self, entry, samples, seed, number):
        self.entry, self.seed, self.number = entry, seed, number
        self.rng = random.Random(f"{seed}/{entry.name}/{number}")
        self.way = self.rng.choice(WAYS)
        if (self.way == "out" and "out" not in entry.flags) or (self.way == "in place" and "inplace" not in entry.flags):
            self.way = "call"
        self.arguments = self._drawn(self.rng.choice(samples))
        for _ in range(self.rng.choice((0, 1, 1, 1, 1, 2, 2, 3))):
            self._mutate()

    def _drawn(self, sample):
        dtype = self.rng.choice(values.DTYPES)
        try:
            arrays = arrays_of(sample, dtype)
            return tensors_of(sample, enlarged(self.rng, arrays) if self.rng.random() < LARGE else arrays)
        except (ValueError, TypeError, OverflowError):  # the sample's generator has no values of that dtype
            return tensors_of(sample, arrays_of(sample, "float64"))

    def _mutate(self):
        rng, kind = self.rng, self.rng.random()
        if kind < 0.04 and self.arguments:
            self.arguments.pop(rng.choice(sorted(self.arguments)))
        elif kind < 0.06:
            self.arguments["no_such_argument"] = 1
        elif self.entry.args:
            arg = rng.choice(self.entry.args)
            self.arguments[arg.name] = self._other_value(arg)

    def _other_value(self, arg):
        rng = self.rng
        if rng.random() < 0.15:
            return values.odd_object(rng)
        if arg.is_tensor:
            if arg.is_list:
                found = [values.tensor(rng) for _ in range(rng.choice((0, 1, 2, 3, 200)))]
                return found + [values.odd_object(rng)] if rng.random() < 0.2 else found
            return values.tensor(rng, rng.choice(arg.accepts) if arg.accepts and rng.random() < 0.7 else None)
        if arg.is_list or arg.type in ("Axes", "Shape"):
            return values.integer(rng) if rng.random() < 0.2 else values.int_list(rng)
        match arg.type:
            case "Axis" | "Size" | "Index":
                return values.integer(rng)
            case "Scalar":
                return values.number(rng)
            case "bool":
                return rng.choice((True, False, 1, 2, None))
            case "Dtype":
                return getattr(bp, rng.choice(values.DTYPES)) if rng.random() < 0.8 else rng.choice(("float32", "f4", float, 99))
            case "Device":
                return rng.choice(("cpu", "cpu:0", "cpu:99", "nope", ":", "cpu:-1", "sim:0", "cpu:99999999999999999999"))
            case "Generator":
                return bp.Generator(rng.choice((0, 2**62)))
            case "str":
                return rng.choice(("", "x", "none", "mean", "constant", "\0", "y" * 5000))
        return values.odd_object(rng)

    # ---- the call ----

    def run(self):
        """None, or a description of the fault."""
        try:
            for result in self._results():
                touch(result)
        except values.OWN_ERRORS:
            return None
        except Exception as error:
            return self._complaint(error)
        return None

    def _results(self):
        function = function_of(self.entry)
        inexact = [tensor for _, _, tensor in leaves(self.arguments, self.arguments)]
        match self.way:
            case "positional":
                return flat(function(*self.arguments.values()))
            case "out":
                own = [tensor for tensor in self.arguments.values() if isinstance(tensor, bp.Tensor)]
                return flat(function(**self.arguments, out=self.rng.choice([*own, values.tensor(self.rng)])))
            case "in place":
                return flat(function_of(self.entry, inplace=True)(**self.arguments))
            case "infer":
                function.infer(**self.arguments)
                return []
            case "gradient":
                return self._gradients(function, [tensor for tensor in inexact if not tensor.requires_grad])
            case "vmap" | "jvp" if inexact:
                return self._transformed(function)
        return flat(function(**self.arguments))

    def _gradients(self, function, inputs):
        inputs = [tensor.requires_grad_() for tensor in inputs]
        ends = [result for result in flat(function(**self.arguments)) if result.requires_grad]
        if not ends or not inputs or any(end.size > 1 << 30 for end in ends):  # a view may be larger than memory, its cotangent not
            return ends
        return [*ends, *bp.gradients(ends, inputs, [bp.ones_like(end) for end in ends])]

    def _transformed(self, function):
        name = self.rng.choice([name for name, _, _ in leaves(self.arguments, self.arguments)])

        def of_one(value):
            return tuple(flat(function(**{**self.arguments, name: value})))

        if isinstance(self.arguments[name], list):
            return of_one(self.arguments[name])
        if self.way == "vmap":
            return bp.vmap(of_one, in_axes=self.rng.choice((0, 0, 0, -1, 1)))(self.arguments[name])
        return [part for found in bp.jvp(of_one, (self.arguments[name],), (self.arguments[name],)) for part in found]

    # ---- the verdict ----

    def _complaint(self, error):
        text = f"{type(error).__name__}: {error}"
        if not isinstance(error, bp.BackplaneError):
            return f"not an error of Backplane: {text}"
        if isinstance(error, bp.InternalError):
            return f"a broken invariant: {text}"
        if isinstance(error, bp.OutOfMemoryError) and self.way != "vmap" and not self.asks_for_much():  # a batch makes a result of each slice
            return f"no memory for a small call: {text}"
        if INTERNALS.search(text):
            return f"a formula's steps are shown: {text}"
        if self.way in ("vmap", "jvp"):
            return None  # the transform itself may be what refuses
        part = r"(_\w+)?" if self.way == "gradient" else "_?"  # the tape has nodes of a composite's parts: svd_full of svd
        if not re.search(rf"\b{re.escape(self.entry.python_name)}{part}\b", text.replace(".", "_")):
            return f"the op is not named: {text}"
        return None

    def asks_for_much(self):
        if any(not abs(product_of(value)) < BIG for value in self.arguments.values()):
            return True
        return self.pairs() * 16 >= PAIRED_BYTES

    def pairs(self):
        """An op, or its derivative, may pair all elements of two arguments, or of two axes, or matrices whose stacks broadcast."""
        given = [one for value in self.arguments.values() for one in (value if isinstance(value, list) else [value])]
        tensors = [one for one in given if isinstance(one, bp.Tensor)]
        counts = sorted((math.prod(one.shape) for one in tensors), reverse=True)[:2]
        largest = max((size for one in tensors for size in one.shape), default=0)
        matrix = max((math.prod(one.shape[-2:]) for one in tensors), default=0)
        try:
            matrices = math.prod(np.broadcast_shapes(*(one.shape[:-2] for one in tensors)))
        except ValueError:  # they do not
            matrices = 0
        return max(math.prod(counts), largest**2, matrices * matrix)

    def __str__(self):
        shown = ", ".join(f"{name}={shown_value(value)}" for name, value in self.arguments.items())
        return f"{self.entry.name}({shown}) [{self.way}]"


def enlarged(rng, arrays):
    """The sample with one size enlarged in all places: the same values again and again along these axes."""
    every = [one for value in arrays.values() for one in (value if is_array_list(value) else [value]) if is_array(one)]
    sizes = sorted({size for one in every for size in one.shape if size})
    if not sizes:
        return arrays
    size, large = rng.choice(sizes), rng.choice(LARGE_SIZES)
    for one in every:
        axes = one.shape.count(size)
        if axes and one.size:
            large = min(large, int((LARGE_ELEMENTS / (one.size // size**axes)) ** (1 / axes)))

    def grown(one):
        for axis in range(one.ndim):
            if one.shape[axis] == size:
                one = np.take(one, np.arange(large) % size, axis=axis)
        return one

    def grow(value):
        return [grown(one) if is_array(one) else one for one in value] if is_array_list(value) else grown(value) if is_array(value) else value

    return {name: grow(value) for name, value in arrays.items()}


def flat(value):
    """The tensors of a call's results."""
    found = []
    for result in results_of(value):
        found += result if isinstance(result, list) else [result]
    return found


def touch(tensor):
    """Reads every element, so that one outside its memory is noticed, and waits for the device."""
    if isinstance(tensor, bp.Tensor):
        tensor = tensor.detach()
        if 0 < tensor.size <= TOUCHED:
            to_array(tensor if str(tensor.device).startswith("cpu") else tensor.to("cpu"))


def product_of(value):
    """The product of the numbers in an argument, without zeros: roughly the requested size."""
    if isinstance(value, (list, tuple)):
        return math.prod(map(product_of, value))
    if isinstance(value, bp.Tensor) and value.ndim == 0 and "int" in value.dtype.name and str(value.device).startswith("cpu"):
        value = int(value)  # it may stand for a size
    return value if isinstance(value, (int, float)) and value else 1


def shown_value(value):
    if isinstance(value, bp.Tensor):
        return f"<{value.dtype.name} {tuple(value.shape)} on {value.device}>"
    if isinstance(value, list) and any(isinstance(item, bp.Tensor) for item in value):
        return f"[{', '.join(map(shown_value, value[:4]))}{', …' if len(value) > 4 else ''}]"
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "..."
