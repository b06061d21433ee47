"""backplane.compat.numpy answers as NumPy does: values, dtypes and structures, signatures and defaults."""

import inspect
import itertools

import backplane as bp
import backplane.compat.numpy as compat
import numpy as np
import pytest
from compat_running import arrays, cases, difference, outcomes, plain, result

CASES = cases("numpy")
# What these do is said by other tests, or shows in no value.
UNCALLED = {"fromstring", "genfromtxt", "load", "loadtxt", "save", "savetxt", "savez", "savez_compressed", "from_dlpack", "printoptions", "set_printoptions",
            "get_printoptions", "seterr", "geterr", "row_stack", "array_str", "fromfile", "format_float_scientific", "mintypecode", "typename"}  # fmt: skip
ELEMENTWISE = {name for name in compat.__all__ if hasattr(getattr(compat, name), "nin")}


def test_every_call_answers_as_numpy_does():
    names = {name: bp.asarray(value) for name, value in arrays().items()}
    with np.errstate(all="ignore"):
        wrong = outcomes(CASES, lambda line: plain(result(line, {"np": np, **arrays()})), {"np": compat}, names)
    assert not wrong, wrong


def test_every_function_is_called():
    for home, prefix in ((compat, "np."), (compat.linalg, "np.linalg."), (compat.fft, "np.fft.")):
        functions = {name for name in home.__all__ if inspect.isfunction(getattr(home, name))}
        assert not {name for name in functions - UNCALLED if f"{prefix}{name}(" not in " ".join(CASES)}


OPERANDS = {
    "floats": (np.array([0.3, 0.7, 0.9]), np.array([0.5, 0.2, 0.1])), "float32": (np.array([0.3, 0.7], np.float32), np.array([0.5, 0.2], np.float32)),
    "ints": (np.array([1, 2, 3]), np.array([2, 1, 1])), "bools": (np.array([True, False]), np.array([True, True])), "lists": ([1, 2], [0.5, 1]), "numbers": (1, 2.0),
    "ints and floats": (np.array([1, 2]), 0.5), "int32": (np.array([1, 2], np.int32), np.array([3, 1], np.int32)),
}  # fmt: skip


def _of(function, operands):
    try:
        return plain(function(*operands))
    except TypeError:  # NumPy's, of a dtype for which it has no loop
        return TypeError


@pytest.mark.parametrize("name", sorted(ELEMENTWISE))
def test_elementwise_functions(name):
    with np.errstate(all="ignore"):
        for kind, operands in OPERANDS.items():
            operands = operands[: getattr(compat, name).nin]
            expected = _of(getattr(np, name), operands)
            if expected is TypeError or getattr(expected, "dtype", None) in (np.float16, np.int8):  # NumPy's answers for bools
                continue
            found = _of(getattr(compat, name), [bp.asarray(x) if isinstance(x, np.ndarray) else x for x in operands])
            assert not difference(found, expected), (kind, difference(found, expected))


def _parameters(function):
    return [p for p in inspect.signature(function).parameters.values()]


def _names_and_functions():
    for home, theirs in ((compat, np), (compat.linalg, np.linalg), (compat.fft, np.fft)):
        for name in home.__all__:
            if inspect.isfunction(getattr(home, name)):
                yield name, getattr(home, name), getattr(theirs, name)


def test_signatures_are_numpys():
    """Each argument stands in NumPy's place, and has its default."""
    wrong = []
    for name, ours, theirs in _names_and_functions():
        try:
            expected = {p.name: p for p in _parameters(theirs)}
        except ValueError:  # a function in C that states none
            continue
        found = [p for p in _parameters(ours) if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        if not expected or name in ("arange", "seterr", "geterr", "printoptions", "set_printoptions", "load", "loadtxt", "genfromtxt", "array_repr", "array_str"):
            continue
        positional = [p.name for p in expected.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        ours_positional = [p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        if ours_positional != positional[: len(ours_positional)]:
            wrong.append((name, ours_positional, positional))
        for p in found:
            their = expected.get(p.name)
            plain_default = their is not None and isinstance(their.default, (int, float, str, tuple))
            if their is None or (plain_default and their.default != p.default):
                wrong.append((name, str(p), str(their)))
    assert not wrong, wrong


def test_floats_are_float64_whatever_the_default_is():
    for setting in (bp.float32, bp.float64, bp.float16):
        with bp.default_dtype(setting):
            made = [compat.zeros(2), compat.array([0.5]), compat.linspace(0, 1, 3), compat.mean([1, 2]), compat.sqrt(2), compat.random.rand(2)]
            assert {x.dtype for x in made} == {bp.float64} and bp.default_dtype() is setting


def test_the_default_of_others_stays():
    compat.zeros(2)
    with pytest.raises(bp.BackplaneError):
        compat.reshape(compat.zeros(3), (2, 2))
    assert compat.vectorize(lambda x: float(bp.ones(1).dtype is bp.float32) + x)(1.0) == 2.0
    assert bp.zeros(2).dtype is bp.float32


def test_files(tmp_path):
    x = compat.arange(3.0)
    compat.save(tmp_path / "x.npy", x)
    compat.savez(tmp_path / "x.npz", first=x, second=x + 1)
    compat.savetxt(tmp_path / "x.txt", x)
    assert compat.load(tmp_path / "x.npy").tolist() == compat.loadtxt(tmp_path / "x.txt").tolist() == [0, 1, 2]
    assert compat.load(tmp_path / "x.npz")["second"].tolist() == [1, 2, 3]


def test_what_is_refused_says_what_to_write():
    for call, words in (
        (lambda: compat.zeros(3, order="F"), "argument order"),
        (lambda: compat.add(1, 2, casting="unsafe"), "argument casting"),
        (lambda: compat.histogram([1.0], bins="best"), "argument bins"),
        (lambda: compat.sqrt([1.0], out=[0.0]), "argument out"),
        (lambda: compat.add(compat.ones(2), 1, out=compat.ones(3)), "argument out"),
        (lambda: compat.where([True], 1), "x and y"),
        (lambda: compat.seterr(all="raise"), "seterr"),
        (lambda: compat.put([1, 2], 0, 3), "expected a Tensor"),
        (lambda: compat.sum(compat.ones(2), out=compat.ones(3)), "argument out"),
        (lambda: compat.matrix, "asarray"),
        (lambda: compat.add.at(compat.arange(3), [0], 0.5), "argument b"),
        (lambda: compat.add.at([1.0], [0], 0.5), "expected a Tensor"),
        (lambda: compat.maximum.reduce([]), "no elements"),
        (lambda: compat.subtract.reduce(compat.ones((2, 2)), axis=(0, 1)), "axis"),
        (lambda: compat.add.reduceat([1, 2], [2]), "argument indices"),
        (lambda: compat.lib.stride_tricks.as_strided(compat.arange(4), (3,), (16,)), "outside"),
        (lambda: compat.lib.stride_tricks.sliding_window_view(compat.arange(4), 5), "window_shape"),
        (lambda: compat.unpackbits(compat.arange(3)), "uint8"),
        (lambda: compat.frexp(1j), "float64"),
        (lambda: compat.nditer(compat.arange(3), flags=["external_loop"]), "multi_index"),
        (lambda: compat.random.gamma(-1.0), "positive"),
        (lambda: compat.random.binomial(3, 1.5), "probability"),
        (lambda: compat.random.normal(0, 1, 3).put([0], 1), "AttributeError|put"),
    ):
        with pytest.raises((bp.BackplaneError, AttributeError), match=words):
            call()


def test_gradients_and_batches_pass():
    x = compat.array([[1.0, 2.0], [3.0, 5.0]])
    gradient = bp.grad(lambda x: compat.sum(compat.std(x, axis=0) * compat.sort(x, axis=0)[0]))(x)
    assert gradient.shape == (2, 2) and gradient.dtype is bp.float64
    rows = bp.vmap(lambda row: compat.max(compat.add(row, 1)))(x)
    assert rows.tolist() == [3.0, 6.0]
    assert bp.compile(lambda x: compat.var(x, axis=0) + compat.zeros(2))(x).tolist() == np.var(x.numpy(), axis=0).tolist()
    assert all(a.dtype is bp.float64 for a in itertools.chain(compat.split(x, 2), [gradient]))
