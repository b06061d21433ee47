"""Arguments outside their domain: an error at once that names the op, the argument and what was found; never a crash."""

import inspect
import operator
import re

import backplane as bp
import backplane.nn.functional as F
import numpy as np
import pytest

X = bp.ones((2, 3))
POSITIONS = bp.asarray([0, 1, 2])
IMAGES, KERNELS = bp.ones((2, 3, 5, 5)), bp.ones((4, 3, 3, 3))


def adjoint(y, w, **options):
    return bp.conv2d_input_grad(y, w, (2, 3, 5, 5), **options)


def put(x, indices, values):
    return bp.ops.bp.index_put(x, indices, values)


# Case -> (call, error, words of its message).
CASES = {
    **{f"an index of {name} into no elements": (lambda call=getattr(bp.ops.bp, name): call(X[:, :0], POSITIONS[:2, None], X[:, :1], axis=1),
                                                bp.DataError, f"{name}: index 0 is out of range for an axis of size 0")
       for name in ("put_along_axis", "scatter_max", "scatter_min", "scatter_prod")},
    **{f"a negative number of segments of {name}": (lambda call=getattr(bp, name): call(bp.ones(3), POSITIONS, -1), bp.ShapeError, f"{name}: .*-1")
       for name in ("segment_sum", "segment_prod", "segment_max", "segment_min")},
    **{f"no ints for {name}": (call, TypeError, words) for name, call, words in (
        ("affine_grid", lambda: F.affine_grid(bp.ones((1, 2, 3)), "abcd"), "affine_grid: argument size: found 'abcd', expected an int or a seq"),
        ("pad", lambda: F.pad(X, "ab"), "pad: argument pad: found 'ab', expected an int or a sequence of ints"),
        ("split", lambda: bp.split(X, "ab"), "^split: argument indices_or_sections: found 'ab', expected an int or a sequence of ints"),
        ("split between floats", lambda: bp.split(X, [0.5]), r"^split: argument indices_or_sections: found \[0.5\], expected an int"),
        ("array_split", lambda: bp.array_split(X, 2.5), "^array_split: argument indices_or_sections: found 2.5, expected an int"),
        ("indices", lambda: bp.indices("ab"), "indices: argument dimensions: found 'ab', expected an int or a sequence of ints"),
        ("nested indices", lambda: bp.indices([[1, 2]]), r"indices: argument dimensions: found \[\[1, 2\]\], expected an int"),
        ("unravel_index", lambda: bp.unravel_index(3, "ab"), "unravel_index: argument shape: found 'ab', expected an int"),
        ("fft", lambda: bp.fft.fft(X, n="a"), "fft: argument n: found 'a', expected an int"))},
    **{f"{name} of no dtype": (lambda call=getattr(F, name): call(X, 0, dtype=5), TypeError, f"{name}: argument dtype: found a value of type int, expected a dtype")
       for name in ("softmax", "softmin", "log_softmax")},
    **{f"a probability of {p}": (lambda p=p: bp.bernoulli(bp.asarray([0.5, p])), ValueError, "bernoulli: argument p: .*expected probabilities")
       for p in (float("nan"), 2.0, -0.1)},
    "a kind of no dtype": (lambda: bp.isdtype(5, "integral"), TypeError, "isdtype: argument dtype: found a value of type int, expected a dtype"),
    "elements beyond 64 bits": (lambda: bp.zeros((2**40, 2**40)), MemoryError, "zeros: .*1099511627776, 1099511627776"),
    "bytes beyond 64 bits": (lambda: bp.ops.bp.iota(2**62), MemoryError, "iota: .*4611686018427387904"),
    "bytes beyond any memory": (lambda: bp.zeros((2**50,)), MemoryError, "zeros: .*no memory for 4503599627370496 bytes"),
    "bytes beyond 64 bits of a view": (lambda: bp.broadcast_to(X, (2**61, 2, 3)), MemoryError, "broadcast_to"),
    "negative size": (lambda: bp.zeros((2, -3)), ValueError, "zeros: .*-3"),
    "int beyond 64 bits": (lambda: bp.sum(X, axis=2**63), ValueError, "sum: argument 'axis': found 9223372036854775808"),
    "operand beyond 64 bits": (lambda: X + 2**64, ValueError, "add: found 18446744073709551616"),
    "changing operand beyond 64 bits": (lambda: operator.iadd(bp.ones(2), -(2**64)), ValueError, "add: found -18446744073709551616"),
    "element beyond 64 bits": (lambda: bp.asarray([1, 2**63]), ValueError, "asarray: found an int above .*dtype=backplane.uint64"),
    "index beyond 64 bits": (lambda: X[2**63], ValueError, "index: found 9223372036854775808"),
    "argnums beyond 64 bits": (lambda: bp.grad(lambda x: x.sum(), argnums=2**63), ValueError, "grad: argument 'argnums': found 92"),
    "size beyond 64 bits": (lambda: bp.empty((2**63,)), ValueError, "empty: argument 'shape': found 9223372036854775808"),
    "size that is no int": (lambda: bp.empty((2.5,)), TypeError, "empty: argument 'shape': found the tuple"),
    "bins beyond 64 bits": (lambda: bp.histogram(X, bins=2**63), ValueError, "histogram: argument bins: found 9223372036854775808"),
    "bins beyond any memory": (lambda: bp.histogram(X, bins=2**50), MemoryError, "histogram: argument bins: found 1125899906842624"),
    "points that are no count": (lambda: bp.logspace(0, 1, num=1.5), TypeError, "logspace: argument num: found 1.5"),
    "ints of both ends": (lambda: bp.asarray([2**63, -1]), ValueError, "asarray: .*which no integer dtype holds; name a floating dtype"),
    "number beyond 64 bits": (lambda: X + 2**64, ValueError, r"add: found 18446744073709551616, .*write float\(x\)"),
    "number of more digits than Python writes": (lambda: X + 10**5000, ValueError, "add: found an int of 16610 bits"),
    "size of more digits than Python writes": (lambda: bp.zeros(10**5000), ValueError, "zeros: .*found an int of 16610 bits"),
    "a number for outputs": (lambda: bp.gradients(1, X), TypeError, "gradients: argument outputs: found int, expected a Tensor"),
    "a number for a plugin": (lambda: bp.unload_plugin(1), TypeError, "unload_plugin: argument name: found int"),
    "device of no name": (lambda: bp.zeros(2, device="nope"), ValueError, "zeros: argument 'device': .*nope"),
    "dtype of no name": (lambda: bp.zeros(2, dtype="f3"), TypeError, "zeros: argument 'dtype': .*f3"),
    "a date for a number": (lambda: bp.add(X, np.datetime64("2026-01-01")), TypeError, "add: argument 'y': found a value of type"),
    "an array of dates beside an operator": (lambda: X + np.zeros(3, "M8[s]"), TypeError, "bp::add: asarray: found .*dtype datetime64.*Fix: "),
    "an array of objects beside an operator": (lambda: X @ np.array([object()] * 3), TypeError, "bp::matmul: asarray: found Python objects.*Fix: "),
    "an array of texts compared": (lambda: X == np.array(["a", "b", "c"]), TypeError, "bp::equal: asarray: found texts.*Fix: "),
    "an array of objects added in place": (lambda: operator.iadd(bp.ones(2), np.array([None, 1])), TypeError, "bp::add: asarray: found Python objects"),
    "an array of another shape": (lambda: np.ones((3, 2)) + X, ValueError, r"bp::add: .*\(3, 2\)"),
    "rows of other lengths": (lambda: bp.asarray([X[0], bp.ones(2)]), ValueError, r"asarray: found a tensor of shape \(2,\) at depth 1, expected \(3,\)"),
    "axis of vecdot by position": (lambda: bp.vecdot(X, X, -1), TypeError, "vecdot: found 3 .* at most 2; 'axis' is keyword-only"),
    "op of no name": (lambda: bp.explain("ad"), ValueError, "explain: argument op: found no op 'bp::ad'"),
    "bias of other channels": (lambda: F.conv2d(IMAGES, KERNELS, bp.ones(3)), ValueError, r"conv2d: argument bias: found shape \(3,\)"),
    "axis of argsort": (lambda: bp.argsort(X, axis=64), IndexError, "argsort: axis 64 is out of range for 2 dims"),
    "negative axis of sort": (lambda: bp.sort(X, axis=-(2**31) - 1), IndexError, "sort: axis -2147483649"),
    "axis of cumulative_sum": (lambda: bp.cumulative_sum(X, axis=65), IndexError, "cumulative_sum: axis 65"),
    "axis of take_put": (lambda: bp.ops.bp.take_put(X, bp.asarray([0]), 1.0, axis=9), IndexError, "take_put: axis 9"),
    "axis of nothing": (lambda: bp.ops.bp.slice_put(bp.asarray(1), 2, [0], [0], [1], [1]), IndexError, "slice_put: axis 0 is out of range"),
    "taking from nothing": (lambda: bp.ops.bp.take_put(bp.asarray(1.0), bp.asarray([0]), 1.0), ValueError, "take_put: .*'x'"),
    "ranks along an axis": (lambda: bp.put_along_axis(X, bp.asarray(0), 1.0, axis=0), ValueError, "put_along_axis: 'indices' has 0"),
    "sizes along an axis": (lambda: bp.put_along_axis(X, bp.asarray([[0]]), bp.ones((3, 2)), axis=0), ValueError, "'values' has size 3"),
    "axis twice": (lambda: bp.flip(X, axis=(0, -2)), ValueError, "flip: axis -2 is named twice"),
    "an op inside another": (lambda: bp.std(X, axis=128), IndexError, "std: .*axis 128 is out of range"),
    "more index tensors than axes": (lambda: put(bp.ones(4), [POSITIONS, POSITIONS], 1.0), IndexError, "index_put: 2 indices for a tensor of 1 dims"),
    "index tensors that do not broadcast": (lambda: put(bp.ones((4, 4)), [POSITIONS, bp.asarray([0, 1])], 1.0), ValueError, "index_put: the shape"),
    "values that the positions do not take": (lambda: put(bp.ones(4), [POSITIONS], bp.ones(2)), ValueError, r"index_put: 'values' of shape \(2,\)"),
    "an axis that a kernel reads when it is chosen": (lambda: bp.softmax(bp.ones((2, 3)), axis=300), IndexError, "softmax: "),
    "derivative of digamma that is digamma": (lambda: bp.polygamma(0, X), ValueError, "polygamma: found 0, expected n from 1 to 170"),
    "derivative of digamma beyond float64": (lambda: bp.polygamma(65536, X), ValueError, "polygamma: found 65536, expected n"),
    "no integer between": (lambda: bp.randint(5, 5, (3,)), ValueError, "randint: found 5, expected high above low"),
    "celu divided by 0": (lambda: F.celu(X, alpha=0.0), ValueError, "celu: found 0, expected alpha other than 0"),
    "a slice without its stops": (lambda: bp.ops.bp.slice_put(X, 1.0, [0], [0], [], [1]), ValueError, "slice_put: 'stops' has 0 entries"),
    "a value beyond the slice": (lambda: bp.ops.bp.slice_put(X, bp.ones((3, 3)), [0], [0], [2], [1]), ValueError, "slice_put: 'value' of shape"),
    "strides beyond 64 bits of nothing": (lambda: bp.zeros((0, 2**62, 4)), MemoryError, "zeros: .*4611686018427387904"),
    "an op inside another, inferred": (lambda: bp.stack.infer([]), ValueError, "stack: "),
    "ranks of an adjoint": (lambda: adjoint(bp.ones((2, 5)), bp.ones((3, 1))), ValueError, "conv2d_input_grad: "),
    "groups of an adjoint": (lambda: adjoint(bp.ones((2, 4, 3, 3)), KERNELS, groups=4), ValueError, "conv2d_input_grad: "),
    "size of an adjoint": (lambda: adjoint(bp.ones((2, 4, 4, 4)), KERNELS), ValueError, "conv2d_input_grad: "),
    "stride of an adjoint": (lambda: adjoint(bp.ones((2, 4, 3, 3)), KERNELS, stride=(0, 1)), ValueError, "conv2d_input_grad: "),
}


@pytest.mark.parametrize("name", CASES)
def test_the_error_says_what_is_wrong(name):
    call, error, words = CASES[name]
    with pytest.raises(error, match=words) as raised:
        call()
    assert isinstance(raised.value, bp.BackplaneError)


AXES = ("axis", "axes", "dim", "axis1", "axis2", "axis0", "dim0", "dim1", "start_dim", "end_dim")


def functions_of_axes():
    """Every public function that names an axis: (its name, the function, the argument)."""
    for namespace in (bp, bp.linalg, bp.fft, F):
        for name, function in list(vars(namespace).items()):
            if name.startswith("_") or not callable(function) or isinstance(function, type):
                continue
            try:
                parameters = inspect.signature(function).parameters
            except ValueError:  # of pybind11, which states none: about the system, not about axes
                continue
            for axis in AXES:
                if axis in parameters:
                    yield pytest.param(function, axis, id=f"{namespace.__name__}.{name}-{axis}")


def names_of(function):
    """Under which an error may name it: its own, as users and as the registry know it."""
    name = function.__name__
    return [name, *(other for other in dir(bp) if getattr(bp, other) is function)]


def argument_in_place_of(parameter):
    """A good one for a parameter without a default."""
    if parameter.name in ("arrays", "tensors", "xs"):
        return [X, X]
    if parameter.name in ("indices", "index"):
        return bp.asarray([[0]])
    return 1 if parameter.name in (*AXES, "n", "k", "q", "repeats", "repetitions", "shift", "shifts", "sizes", "chunks", "start", "length", "offset",
                                   "indices_or_sections", "size", "step", "p", "value", "values", "num_classes", "sections", "kth", "obj") else X  # fmt: skip


@pytest.mark.parametrize("function, axis", functions_of_axes())
def test_what_is_no_axis_is_refused_by_us_or_means_all(function, axis):
    parameters = inspect.signature(function).parameters.values()
    for bad in (None, 1.5, "x", 1j, object(), (None,), [1.5], 2**63, -(2**70), [2**63], {}):
        given = {p.name: bad if p.name == axis else argument_in_place_of(p) for p in parameters
                 if p.name == axis or (p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD))}  # fmt: skip
        by_position = [given.pop(p.name) for p in parameters if p.kind is p.POSITIONAL_ONLY and p.name in given]
        try:
            function(*by_position, **given)
        except bp.BackplaneError as error:
            assert "incompatible function arguments" not in str(error)
            assert re.search(rf"\b({'|'.join(names_of(function))})\b", str(error)), str(error)


def test_an_error_of_an_arguments_own_passes_as_it_is():
    class Index:
        def __index__(self):
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        bp.zeros(Index())


def test_reductions_of_a_number():
    assert bp.std(32767.0).item() == 0 and bp.var(3.0).item() == 0
    assert bp.sum(3).item() == 3 and bp.max(2.5).item() == 2.5
    with pytest.raises(IndexError):
        bp.sum(3.0, axis=1)


# Case -> (call, the words of the message).
NO_TENSORS = {
    "first of relu": (lambda: F.relu(["1.0"]), "relu: argument input: found list"),
    "weight of linear": (lambda: F.linear(X, [["1.0", "2.0", "3.0"]]), "linear: argument weight: found list"),
    "weight by name": (lambda: F.linear(X, weight=np.array([["1"]])), "linear: argument weight: found ndarray"),
    "no weight of conv2d": (lambda: F.conv2d(IMAGES, None), "conv2d: argument weight: found NoneType"),
    "target of cross_entropy": (lambda: F.cross_entropy(X, "ab"), "cross_entropy: argument target: found str"),
    "operand of einsum": (lambda: bp.einsum("ij,j->i", X, ["a", "b"]), r"einsum: argument operands\[1\]: found list"),
    "points of interp": (lambda: bp.interp(X, ["0", "1"], bp.ones(2)), "interp: argument xp: found list"),
    "values of interp": (lambda: bp.interp(X, bp.ones(2), None), "interp: argument fp: found NoneType"),
}


@pytest.mark.parametrize("name", NO_TENSORS)
def test_an_argument_that_is_no_tensor_is_named(name):
    call, words = NO_TENSORS[name]
    with pytest.raises(TypeError, match=words):
        call()


def test_another_type_error_passes_as_it_is():
    with pytest.raises(TypeError, match="inplce"):
        F.relu(X, inplce=True)


def test_a_slice_that_is_none_is_refused_before_a_kernel_reads_it():
    x, value = bp.ones(3, dtype=bp.float16), bp.zeros((0, 2, 2), dtype=bp.complex64)
    for steps in ([0], [0, 64, 2], []):
        with pytest.raises(bp.BackplaneError, match="slice_put"):
            bp.ops.bp.slice_put(x, value, [0], [1], [None], steps)
