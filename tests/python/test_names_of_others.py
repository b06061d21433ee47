"""Names of NumPy, PyTorch and JAX: their results, or the hint if a name is missing or ambiguous."""

import pickle

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(31)
A = RNG.standard_normal((3, 4))
V = RNG.standard_normal(6)
I = RNG.integers(-5, 6, (3, 4))
Z = RNG.standard_normal(4) * 1j * np.array([1, 0, 1, 0]) + RNG.standard_normal(4)
N = np.array([1.0, np.nan, -2.5, np.inf, -np.inf, -0.0])


def same(found, expected):
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            same(one, other)
    else:
        assert np.shape(found) == np.shape(expected) and np.asarray(found).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12, atol=1e-14)


def given(value):
    return bp.asarray(value) if isinstance(value, np.ndarray) else value


# A function of NumPy's name, and its arguments.
AS_NUMPY = [
    ("around", A, 1), ("divmod", V, 0.7), ("divmod", I, 3), ("fabs", A), ("float_power", abs(A), 1.5), ("float_power", I, 2), ("iscomplex", Z),
    ("isreal", Z), ("isreal", A), ("modf", A), ("modf", N[2:]), ("setxor1d", I, I + 2), ("nancumsum", N[:3]), ("nancumsum", A, 1), ("nancumprod", N[:3]),
    ("compress", np.array([True, False, True]), A, 0), ("compress", np.array([True, False, True]), A), ("unwrap", V * 4), ("unwrap", A * 9, None, 0),
    ("unwrap", np.array([0.0, np.pi, 2 * np.pi, 0.0])), ("rollaxis", A, 1), ("rollaxis", A[None], 0, 3), ("rollaxis", A[None], 2, 1), ("rollaxis", A[None], 0, -1), ("rollaxis", A[None], 2, -3), ("ascontiguousarray", A.T),
    ("array_equiv", A, A[:1]), ("array_equiv", A, np.broadcast_to(A[:1], (3, 4))), ("array_equiv", A, V), ("isscalar", 3), ("isscalar", "x"), ("isscalar", A),
    ("ravel", A, "F"), ("convolve", [1.0, 2, 3], [0, 1.0, 0.5]), ("interp", 2.5, [1.0, 2, 3], [3.0, 2, 0]),
    ("atleast_2d", 3), ("hstack", [1, 2]), ("vstack", [V, [1.0] * 6]), ("repeat", A, [1, 2, 0], 0), ("linspace", np.float64(0), np.array(10.0)),
    ("select", [V > 0.5, V < -0.5], [V, -V], 0.0),
]  # fmt: skip


@pytest.mark.parametrize("name, args", [(row[0], row[1:]) for row in AS_NUMPY], ids=lambda value: value if isinstance(value, str) else "")
def test_functions_of_numpys_names_do_what_numpys_do(name, args):
    def handed(value):
        return [handed(one) for one in value] if isinstance(value, list) and isinstance(value[0], np.ndarray) else given(value)

    with bp.default_dtype(bp.float64):
        same(getattr(bp, name)(*map(handed, args)), getattr(np, name)(*args))


# NumPy's and PyTorch's words for arguments, and methods.
CASES = {
    "fft of a length": (lambda x: bp.fft.fft(x, 8, 0), lambda x: np.fft.fft(x, 8, 0)),
    "fftn of sizes": (lambda x: bp.fft.fftn(x, (2, 5)), lambda x: np.fft.fftn(x, (2, 5), (0, 1))),
    "fftfreq of a step": (lambda x: bp.fft.fftfreq(6, 0.5, dtype=bp.float64), lambda x: np.fft.fftfreq(6, 0.5)),
    "fftshift of axes": (lambda x: bp.fft.fftshift(x, 1), lambda x: np.fft.fftshift(x, 1)),
    "svd without vectors": (lambda x: bp.linalg.svd(x, compute_uv=False), lambda x: np.linalg.svd(x, compute_uv=False)),
    "lstsq with rcond": (lambda x: bp.linalg.lstsq(x, x[:, 0], rcond=None)[0], lambda x: np.linalg.lstsq(x, x[:, 0], rcond=None)[0]),
    "cond": (lambda x: bp.linalg.cond(x), lambda x: np.linalg.cond(x)),
    "cond of a norm": (lambda x: bp.linalg.cond(x[:, :3], 1), lambda x: np.linalg.cond(x[:, :3], 1)),
    "norm over dim": (lambda x: bp.linalg.norm(x, dim=1, keepdim=True), lambda x: np.linalg.norm(x, axis=1, keepdims=True)),
    "vector_norm over dim": (lambda x: bp.linalg.vector_norm(x, 1, dim=0), lambda x: abs(x).sum(0)),
    "tensordot over dims": (lambda x: bp.tensordot(x, x, dims=([0, 1], [0, 1])), lambda x: np.tensordot(x, x)),
    "clip": (lambda x: bp.clip(x, a_min=-0.5, a_max=0.5), lambda x: np.clip(x, -0.5, 0.5)),
    "add with alpha": (lambda x: x.add(x, alpha=2), lambda x: x + 2 * x),
    "add in place with alpha": (lambda x: (x + 0).add_(x, alpha=-0.1), lambda x: x * 0.9),
    "sub in place with alpha": (lambda x: (x + 0).sub_(x, alpha=0.1), lambda x: x * 0.9),
    "sub with alpha": (lambda x: bp.sub(x, 1, alpha=0.5), lambda x: x - 0.5),
    "div rounded down": (lambda x: bp.div(x, 0.3, rounding_mode="floor"), lambda x: x // 0.3),
    "div rounded to zero": (lambda x: bp.div(x, 0.3, rounding_mode="trunc"), lambda x: np.trunc(x / 0.3)),
    "angle in degrees": (lambda x: bp.angle(x * 1j, deg=True), lambda x: np.angle(x * 1j, deg=True)),
    "reshape by columns": (lambda x: x.reshape(4, 3, order="F"), lambda x: x.reshape(4, 3, order="F")),
    "reshape by columns, as a function": (lambda x: bp.reshape(x, (2, -1), order="F"), lambda x: np.reshape(x, (2, -1), order="F")),
    "ravel by columns": (lambda x: x.ravel(order="F"), lambda x: x.ravel(order="F")),
    "a sparse grid": (lambda x: bp.meshgrid(x[0], x[1], sparse=True), lambda x: list(np.meshgrid(x[0], x[1], sparse=True))),
    "linspace in steps": (lambda x: bp.linspace(0, 1, steps=5, dtype=bp.float64), lambda x: np.linspace(0, 1, 5)),
    "logspace in steps": (lambda x: bp.logspace(0, 2, steps=3, dtype=bp.float64), lambda x: np.logspace(0, 2, 3)),
    "unique, sorted": (lambda x: bp.unique(x, sorted=True), lambda x: np.unique(x)),
    "nonzero as a tuple": (lambda x: bp.nonzero(x > 0, as_tuple=True), lambda x: np.nonzero(x > 0)),
    "fill": (lambda x: (x + 0).fill(3), lambda x: np.full((3, 4), 3.0)),
    "where": (lambda x: x.where(x > 0, 0.0), lambda x: np.where(x > 0, x, 0)),
    "outer": (lambda x: x[0].outer(x[1]), lambda x: np.outer(x[0], x[1])),
    "H": (lambda x: (x * 1j).H, lambda x: (x * 1j).conj().T),
    "aminmax": (lambda x: tuple(x.aminmax(dim=1)), lambda x: (x.min(1), x.max(1))),
    "std_mean": (lambda x: bp.std_mean(x, 1), lambda x: (x.std(1, ddof=1), x.mean(1))),
    "var_mean": (lambda x: bp.var_mean(x, dim=0, correction=0, keepdim=True), lambda x: (x.var(0, keepdims=True), x.mean(0, keepdims=True))),
    "kthvalue": (lambda x: tuple(x.kthvalue(2, 1)), lambda x: (np.sort(x, 1)[:, 1], np.argsort(x, 1)[:, 1])),
    "kthvalue kept": (lambda x: bp.kthvalue(x, 3, dim=0, keepdim=True).values, lambda x: np.sort(x, 0)[2:]),
    "argpartition": (lambda x: x.argpartition(1)[:, 1], lambda x: np.argsort(x)[:, 1]),
    "scatter_reduce": (lambda x: bp.zeros(3, dtype=bp.float64).scatter_reduce(0, bp.asarray([0, 2, 2]), x[0, :3], reduce="sum"), lambda x: np.array([x[0, 0], 0, x[0, 1] + x[0, 2]])),
    "new_zeros": (lambda x: x.new_zeros(2, 3), lambda x: np.zeros((2, 3))),
    "new_ones": (lambda x: x.new_ones((2,), dtype=bp.int32), lambda x: np.ones(2, np.int32)),
    "new_full": (lambda x: x.new_full((2,), 1.5), lambda x: np.full(2, 1.5)),
    "new_tensor": (lambda x: x.new_tensor([1, 2]), lambda x: np.array([1.0, 2.0])),
    "new_empty": (lambda x: x.new_empty(0, 2), lambda x: np.empty((0, 2))),
    "view": (lambda x: x.view(), lambda x: x.view()),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_words_and_methods(name):
    ours, numpys = CASES[name]
    same(ours(bp.asarray(A)), numpys(A))


@pytest.mark.parametrize("x", [7, -7, 8, 0])
@pytest.mark.parametrize("y", [2, -2, 3])
def test_integers_divide_toward_zero(x, y):
    assert bp.div(bp.asarray(x), y, rounding_mode="trunc").item() == int(x / y)


def test_numbers_and_sizes():
    x = bp.asarray(A)
    assert (x.ndimension(), x.nelement(), x.element_size(), x.stride(), x.stride(0)) == (2, 12, 8, (4, 1), 4)
    assert x.tobytes() == A.tobytes() and bp.finfo(float).eps == bp.finfo("float32").eps and bp.finfo(bp.float32).tiny == np.finfo(np.float32).tiny
    assert bp.iinfo(int).max == 2**63 - 1 and (x.device.type, x.device.index) == ("cpu", 0)
    assert (bp.long, bp.double, bp.single, bp.half, bp.short) == (bp.int64, bp.float64, bp.float32, bp.float16, bp.int16)
    assert bp.is_grad_enabled() and not bp.inference_mode()(bp.is_grad_enabled)()


def test_an_item_at_a_place():
    x = bp.asarray(A)
    assert (x.item(5), x.item(-1), x.item(1, 2), x.item((2, 0))) == (A.item(5), A.item(-1), A.item(1, 2), A.item((2, 0)))
    for bad in ((12,), (3, 0), (0, 0, 0)):
        with pytest.raises(IndexError):
            x.item(*bad)
    with pytest.raises(ValueError, match="item: found a tensor of shape"):
        x.item()


def test_random_numbers_under_the_others_names():
    bp.manual_seed(5)
    assert bp.randint(5, (200,)).max().item() == 4 and bp.randint(2, 4, size=(50,)).min().item() == 2
    assert bp.bernoulli(bp.asarray([0.0, 1.0])).tolist() == [0, 1]
    x = bp.zeros(2000, dtype=bp.float64)
    assert x.normal_(3, 2) is x and abs(x.mean().item() - 3) < 0.3 and abs(x.std().item() - 2) < 0.3
    assert x.uniform_(-1, 1) is x and -1 <= x.min().item() < -0.9 and 0.9 < x.max().item() < 1
    found = bp.normal(bp.asarray([0.0, 100.0]), bp.asarray([0.0, 1.0]))
    assert found[0].item() == 0 and abs(found[1].item() - 100) < 10 and bp.normal(0.0, 1.0, size=(2, 3)).shape == (2, 3)


def test_a_dtype_equals_what_names_it():
    for name in ("bool", "int8", "uint64", "float32", "float64", "complex64"):
        dtype = getattr(bp, name)
        assert dtype == name and name == dtype and hash(dtype) == hash(name) and dtype == np.dtype(name) == dtype and dtype == np.dtype(name).type
        assert dtype != "float16" and not dtype != name and dtype in {name: 1}
    assert bp.float32 == float and bp.int64 == int and bp.bool == bool and bp.complex64 == complex and bp.float64 != float
    with bp.default_dtype(bp.float64):
        assert bp.float64 == float and bp.asarray([1.0]).dtype == float
    for other in (None, 3, "nothing", object(), [], bp.device("cpu")):
        assert bp.float32 != other and not bp.float32 == other
    with pytest.raises(TypeError):
        bp.float32 < bp.float64


def test_the_size_is_an_int():
    size = bp.ones((2, 3)).size
    assert size == 6 and isinstance(size, int) and repr(size) == "6" and size + 1 == 7 and [0] * size == [0] * 6 and type(pickle.loads(pickle.dumps(size))) is int


def test_sorting_by_a_method_says_all_spellings():
    x = bp.asarray([2.0, 1.0])
    for call in (lambda: x.sort(), lambda: x.sort(0), lambda: x.sort(axis=0)):
        with pytest.raises(TypeError, match=r"sort: .*NumPy.*backplane.sort\(x\).*x.sort\(dim=-1\)"):
            call()
    assert x.sort(dim=0).values.tolist() == [1, 2] and x.sort(dim=-1, descending=True).indices.tolist() == [0, 1]


@pytest.mark.parametrize("get, words", [
    (lambda x: bp.lax, "use cond, while_loop"), (lambda x: bp.autograd.grad, "x.backward"), (lambda x: bp.random.rand, "backplane.rand"),
    (lambda x: bp.nditer, "loops over"), (lambda x: bp.busday_count, "use numpy.busday_count on x.numpy"), (lambda x: bp.int, "int32"),
    (lambda x: x.itemset(0, 1), r"x\[index\] = value"),
    (lambda x: bp.lib.stride_tricks, "x.unfold"), (lambda x: bp.as_strided, "broadcast_to"),
    (lambda x: bp.nn.relu, "backplane.nn.functional.relu"), (lambda x: bp.linalg.expm, "matrix_exp"), (lambda x: bp.add.reduce, "sum"), (lambda x: x.resize_(3), "reshape"),
    (lambda x: bp.dtype, "DType"), (lambda x: bp.bool_, "backplane.bool"), (lambda x: bp.categorical, "multinomial"),
    (lambda x: bp.nn.DataParallel, "vmap"), (lambda x: bp.DataLoader, "backplane.data.DataLoader"),
    (lambda x: bp.backends, "devices"), (lambda x: bp.conv1d, "backplane.nn.functional.conv1d"), (lambda x: bp.abs_, r"x.abs_\(\)"), (lambda x: bp.detach, r"x.detach\(\)"),
    (lambda x: x.share_memory_, "shared_memory"), (lambda x: bp.ma, "where"),
    (lambda x: bp.Generator(1).normal, r"backplane.normal\(mean, std, shape, generator=g\)"), (lambda x: bp.Generator(1).shuffle, "backplane.permutation"), (lambda x: bp.exponential, "log1p"),
    (lambda x: bp.gamma, "lgamma"), (lambda x: bp.standard_normal, "randn"), (lambda x: bp.fft.dct, "scipy.fft"),
    (lambda x: bp.float8_e4m3fn, "float16 or bfloat16, the smallest"), (lambda x: bp.complex32, "complex64$"),
    (lambda x: bp.async_eval, "nothing: a function computes when it is called"), (lambda x: bp.nn.value_and_grad, r"backplane.value_and_grad\(loss\)"),
    (lambda x: bp.nn.losses, "backplane.nn.functional$"), (lambda x: bp.nn.MultiHeadAttention, "backplane.nn.MultiheadAttention"),
    (lambda x: bp.optim.join_schedules, "lr_scheduler.SequentialLR"), (lambda x: bp.optim.clip_grad_norm, "nn.utils.clip_grad_norm"),
    (lambda x: bp.state_dict, "bp.nn.Module"), (lambda x: bp.nn.functional.lstm, "bp.nn.LSTM"),
])  # fmt: skip
def test_what_is_not_had_says_what_to_write(get, words):
    with pytest.raises(AttributeError, match=f"has no attribute '.*'; use .*{words}|has no attribute '.*'; {words}"):
        get(bp.ones(3))


@pytest.mark.parametrize("dtype", [bp.int32, "i4", np.int32, np.dtype("i4")])
def test_bits_of_another_dtype_are_numpys(dtype):
    assert bp.ones(2).view(dtype).tolist() == [0x3F800000] * 2


def test_every_hint_is_of_a_name_that_is_not_had():
    from backplane._calls import _hints, _object_hints

    for name, hint in _hints.rows(_hints._OF_PACKAGE):
        assert hint and not hasattr(bp, name), name
    for name, hint in _hints.rows(_hints._OF_LINALG):
        assert hint and not hasattr(bp.linalg, name), name
    for name, hint in _hints.rows(_hints._OF_FFT):
        assert hint and not hasattr(bp.fft, name), name
    for name, hint in _hints.rows(_hints._OF_NN):
        assert hint and not hasattr(bp.nn, name), name
    for name, hint in _hints.rows(_hints._OF_FUNCTIONAL):
        assert hint and not hasattr(bp.nn.functional, name), name
    for owner, text in ((bp.ones(1), _object_hints.OF_TENSORS), (bp.add, _object_hints.OF_OPS), (bp.Generator(1), _object_hints.OF_GENERATORS)):
        for name, hint in _hints.rows(text):
            with pytest.raises(AttributeError, match=f"'{name}'; use "):
                getattr(owner, name)


def test_an_unknown_name_is_an_attribute_error_with_its_name():
    with pytest.raises(AttributeError, match="module 'backplane' has no attribute 'softmx'") as raised:
        bp.softmx
    assert raised.value.name == "softmx" and raised.value.obj is bp


# Functions in Python whose steps refuse: the function is named first, and an internal op not at all.
def test_forms_write_into_out():
    whole, degrees = bp.zeros(2, dtype=bp.int64), bp.zeros(2)
    bp.divide(bp.asarray([-7, 7]), bp.asarray([2, 2]), rounding_mode="trunc", out=whole)
    bp.angle(bp.asarray([1j, 1.0]), deg=True, out=degrees)
    assert whole.tolist() == [-3, 3] and degrees.tolist() == [90.0, 0.0]


@pytest.mark.parametrize("call, words", [
    (lambda x: bp.hstack([x, bp.ones(2)]), "^hstack: "), (lambda x: bp.repeat(x, 1.5), "^repeat: argument 'repeats'"), (lambda x: bp.pad(bp.ones((0, 3)), 1, mode="edge"), "^pad: "),
    (lambda x: x.view(5), "^view: "), (lambda x: bp.median(x, axis=7), "^median: "), (lambda x: bp.nanmedian(x, axis=9), "^nanmedian: "),
    (lambda x: bp.fft.fft(x, axis=5), "^fft: "), (lambda x: bp.nn.functional.conv2d(x[None, None], bp.ones((1, 2, 2, 2))), "conv2d"),
    (lambda x: bp.nn.functional.layer_norm(x, (9,)), "layer_norm"), (lambda x: bp.corrcoef(bp.ones((2, 3, 4))), "^corrcoef: "),
])  # fmt: skip
def test_an_error_of_a_step_names_the_function(call, words):
    with pytest.raises(bp.BackplaneError, match=words) as raised:
        call(bp.ones((2, 3)))
    assert not any(f"{name}:" in str(raised.value) for name in ("repeat_all", "pad_edges", "fft_c2c"))


# Arguments by the names that NumPy, PyTorch and the array API give them.
BY_NAME = {
    "sum": lambda xp, x: xp.sum(a=x, axis=0), "argsort": lambda xp, x: xp.argsort(a=x), "clip": lambda xp, x: xp.clip(a=x, a_min=-0.5, a_max=0.5),
    "std": lambda xp, x: xp.std(a=x, axis=0, ddof=1), "cumsum": lambda xp, x: xp.cumsum(a=x, axis=1), "take": lambda xp, x: xp.take(a=x, indices=xp.asarray([0, 2]), axis=0),
    "concatenate": lambda xp, x: xp.concatenate((x, x), axis=1), "stack": lambda xp, x: xp.stack(arrays=[x, x], axis=1),
    "where": lambda xp, x: xp.where(x > 0, x, -x), "repeat": lambda xp, x: xp.repeat(x, repeats=2, axis=0), "split": lambda xp, x: xp.split(x, indices_or_sections=3)[1],
    "quantile": lambda xp, x: xp.quantile(x, q=0.25), "percentile": lambda xp, x: xp.percentile(x, q=25), "tile": lambda xp, x: xp.tile(A=x, reps=(2, 1)),
    "flip": lambda xp, x: xp.flip(m=x, axis=0), "tril": lambda xp, x: xp.tril(m=x, k=1), "dot": lambda xp, x: xp.dot(a=x, b=x.T),
    "outer": lambda xp, x: xp.outer(a=x[0], b=x[1]), "median": lambda xp, x: xp.median(a=x, axis=0),
    "isclose": lambda xp, x: xp.isclose(a=x, b=x), "broadcast_to": lambda xp, x: xp.broadcast_to(array=x, shape=(2, 3, 4)), "arange": lambda xp, x: xp.arange(start=1, stop=3),
    "linspace": lambda xp, x: xp.linspace(start=0.0, stop=1.0, num=3), "eye": lambda xp, x: xp.eye(N=2, M=3), "searchsorted": lambda xp, x: xp.searchsorted(a=xp.sort(x[0]), v=x[1]),
    "moveaxis": lambda xp, x: xp.moveaxis(a=x, source=0, destination=1), "expand_dims": lambda xp, x: xp.expand_dims(a=x, axis=0), "kron": lambda xp, x: xp.kron(a=x, b=x),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_NAME)
def test_arguments_go_by_numpys_names(name):
    with bp.default_dtype(bp.float64):
        same(BY_NAME[name](bp, bp.asarray(A)), BY_NAME[name](np, A))


def test_arguments_go_by_pytorchs_names():
    x = bp.asarray(A)
    for found, expected in [
        (bp.add(input=x, other=2), A + 2), (bp.sum(input=x, dim=1), A.sum(1)), (bp.maximum(input=x, other=-x), abs(A)), (bp.pow(input=x, exponent=2), A**2),
        (bp.add(x1=x, x2=x), A + A), (bp.matmul(x1=x, x2=x.T), A @ A.T), (bp.linalg.solve(x1=x[:, :3], x2=x[:, 3]), np.linalg.solve(A[:, :3], A[:, 3])),
        (bp.stack(tensors=[x, x], dim=1), np.stack([A, A], 1)), (bp.where(condition=x > 0, x=x, y=-x), abs(A)), (bp.quantile(x, q=0.5, dim=0), np.quantile(A, 0.5, 0)),
        (bp.chunk(x, chunks=3, dim=0)[1], A[1:2]), (bp.zeros(size=(2, 3), dtype=bp.float64), np.zeros((2, 3))), (bp.full(size=(2,), fill_value=1.5, dtype=bp.float64), np.full(2, 1.5)),
        (bp.arange(start=0, end=3), np.arange(3)), (bp.linspace(start=0, end=1, steps=3, dtype=bp.float64), np.linspace(0, 1, 3)), (bp.softmax(input=x, dim=1).sum(1), np.ones(3)),
        (bp.searchsorted(sorted_sequence=bp.sort(x[0]), values=x[1]), np.searchsorted(np.sort(A[0]), A[1])),
    ]:  # fmt: skip
        same(found, expected)


@pytest.mark.parametrize("call, text", [
    (lambda x: bp.sum(x, a=x), "sum: argument 'a' was given twice"), (lambda x: bp.where(x > 0, x, x, input=x), "where: found"),
    (lambda x: bp.linalg.inv(a=x, A=x), "unexpected keyword argument 'A'"), (lambda x: bp.median(a=x, input=x), "unexpected keyword argument 'input'"),
    (lambda x: bp.arange(a=3), "arange: found an argument 'a', expected one of: start, stop"), (lambda x: bp.add(x, c=x), "add: found an argument 'c', expected one of: x, y"),
])  # fmt: skip
def test_a_name_that_fits_nothing_is_refused(call, text):
    with pytest.raises(TypeError, match=text):
        call(bp.asarray(A))


def test_numpys_and_pytorchs_meanings_that_do_not_meet_are_both_had():
    x = bp.asarray(A)
    with bp.default_dtype(bp.float64):
        same(bp.full((3, 4), [1.0, 2.0, 3.0, 4.0]), np.full((3, 4), [1.0, 2.0, 3.0, 4.0]))
        same(bp.full_like(x, (1.0, 2.0, 3.0, 4.0)), np.full_like(A, (1.0, 2.0, 3.0, 4.0)))
    same(bp.max(x, -x), abs(A))
    same(bp.min(x, -x), -abs(A))
    with pytest.raises(ValueError, match="full"):
        bp.full((2, 2), [1.0, 2.0, 3.0])


def test_whole_numbers_in_linear_algebra_are_computed_in_the_default_float():
    s, b = np.asarray([[4, 1], [1, 3]]), np.asarray([1, 2])
    with bp.default_dtype(bp.float64):
        for name in ("inv", "det", "cholesky", "pinv", "matrix_rank", "norm", "cond", "eigvalsh", "slogdet"):
            same(getattr(bp.linalg, name)(bp.asarray(s)), getattr(np.linalg, name)(s))
        same(bp.linalg.solve(bp.asarray(s), bp.asarray(b)), np.linalg.solve(s, b))
        same(bp.linalg.svd(bp.asarray(s), compute_uv=False), np.linalg.svd(s, compute_uv=False))
        same(bp.linalg.lstsq(bp.asarray(s), bp.asarray(b))[0], np.linalg.lstsq(s, b, rcond=None)[0])
        same(bp.linalg.norm(bp.asarray(b)), np.linalg.norm(b))
    assert bp.linalg.inv(bp.asarray(s)).dtype.name == "float32"
