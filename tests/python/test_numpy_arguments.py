"""Arguments in NumPy's places and under words of NumPy's that the array API has not: taken as NumPy takes them, or refused with what to write."""

import math

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(8)
A = RNG.standard_normal((3, 4))
S = A @ A.T
N = np.array([[1.0, np.nan, -2.5, 4.0], [np.nan, 3.0, 0.5, 2.0]])
W = np.array([[True, False, True, True], [True, True, False, True]])


def same(found, expected):
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            same(one, other)
    else:
        assert np.shape(found) == np.shape(expected) and np.asarray(found).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "i4", int, np.float64, np.dtype("int16"), bp.uint8], ids=str)
def test_a_dtype_in_numpys_place(dtype):
    numpys = np.dtype(dtype.name) if isinstance(dtype, bp.DType) else dtype
    with bp.default_dtype(bp.float64):
        same(bp.asarray([1, 2], dtype), np.asarray([1, 2], numpys))
        for name, *args in [("zeros", 3), ("zeros", (2, 3)), ("ones", [2]), ("ones", ()), ("empty", (0, 2)), ("empty", 0), ("eye", 2, 3, 1), ("tri", 2, 3, 1), ("arange", 0, 3, 1)]:
            same(getattr(bp, name)(*args, dtype), getattr(np, name)(*args, numpys))
        for name in ("zeros_like", "ones_like"):
            same(getattr(bp, name)(bp.asarray(A), dtype), getattr(np, name)(A, numpys))
        assert bp.empty_like(bp.asarray(A), dtype).dtype == np.empty_like(A, numpys).dtype


@pytest.mark.parametrize("call, words", [
    (lambda x: bp.zeros(3, 4.5), "zeros: found 4.5 by position among the ints of argument 'shape', .* one of: dtype"),
    (lambda x: bp.ones(2, 3, int), "ones: found <class 'int'> by position among the ints .* one of: dtype"),
    (lambda x: bp.zeros((3, None)), "zeros: argument 'shape': found the tuple .3, None., expected"),
    (lambda x: bp.zeros(3, "float33"), "zeros: argument 'dtype': .* found 'float33'"),
    (lambda x: x.sum(0, "float32"), "sum: found 'float32' by position among the ints of argument 'axis', .* one of: dtype"),
    (lambda x: bp.prod(x, None, bp.float32), "prod: found backplane.float32 by position .* one of: dtype"),
    (lambda x: x.mean(0, "float32"), "mean: found 'float32' by position .* dtype="), (lambda x: x.std((0, 1), bp.float32), "std: found backplane.float32 .* dtype="),
    (lambda x: bp.float32(3, 4), "float32: expected one value"),
    (lambda x: bp.linspace(0, 1, 3, "float32"), "linspace: found 4 arguments by position, .* 'dtype' is keyword-only"),
])  # fmt: skip
def test_a_dtype_where_it_is_not_clear_goes_by_name(call, words):
    with pytest.raises(TypeError, match=words):
        call(bp.asarray(A))


# What both namespaces are asked for.
CALLS = {
    "qr by position": lambda xp, x: xp.linalg.qr(x, "complete")[1], "pinv by position": lambda xp, x: xp.linalg.pinv(x, 0.5), "pinv of rcond": lambda xp, x: xp.linalg.pinv(x, rcond=0.5),
    "pinv of hermitian": lambda xp, x: xp.linalg.pinv(x @ x.T, hermitian=True), "matrix_rank of tol": lambda xp, x: xp.linalg.matrix_rank(x, tol=1.0),
    "matrix_rank by position": lambda xp, x: xp.linalg.matrix_rank(x @ x.T, 1e-3, True), "matrix_rank of tols": lambda xp, x: xp.linalg.matrix_rank(xp.stack([x, x]), xp.asarray([0.1, 100.0])),
    "linspace by position": lambda xp, x: xp.linspace(0, 1, 3, False), "linspace with its step": lambda xp, x: xp.linspace(0, 1, 4, retstep=True),
    "linspace all by position": lambda xp, x: xp.linspace(0, 1, 4, False, True), "linspace of tensors": lambda xp, x: xp.linspace(x[0], 1.0, 3, False),
    "logspace by position": lambda xp, x: xp.logspace(0, 2, 4, False, 2.0), "angle by position": lambda xp, x: xp.angle(x * 1j, True),
    "setdiff1d": lambda xp, x: xp.setdiff1d(xp.asarray([3, 5, 1, 4]), xp.asarray([1, 2]), assume_unique=True), "setxor1d": lambda xp, x: xp.setxor1d(xp.asarray([3, 1]), xp.asarray([1, 2]), True),
    "linspace of one": lambda xp, x: xp.linspace(0, 1, 1, retstep=True), "concatenate": lambda xp, x: xp.concatenate([x, x], dtype=xp.float32),
    "concatenate flat": lambda xp, x: xp.concatenate([x, x], axis=None, dtype=xp.float32), "full_like": lambda xp, x: xp.full_like(x, 2, shape=(2,)),
    "zeros_like": lambda xp, x: xp.zeros_like(x, shape=(2, 0)), "ones_like": lambda xp, x: xp.ones_like(x, dtype=xp.int32, shape=3), "array of ndmin": lambda xp, x: xp.array([1.0], ndmin=3),
    "array of order": lambda xp, x: xp.array(x.T, order="C"), "asarray of order": lambda xp, x: xp.asarray(x.T, order="K"),
    "intersect1d": lambda xp, x: xp.intersect1d(xp.asarray([3, 1, 3, 2]), xp.asarray([5, 3, 2, 2]), return_indices=True), "unique": lambda xp, x: xp.unique(x, equal_nan=False),
    "take, wrapped": lambda xp, x: xp.take(x, xp.asarray([0, 5, -1]), axis=1, mode="wrap"), "take, clipped": lambda xp, x: xp.take(x, xp.asarray([0, 5, -1]), axis=1, mode="clip"),
    "take, raising": lambda xp, x: xp.take(x, xp.asarray([0, -1]), axis=0, mode="raise"), "meshgrid": lambda xp, x: tuple(xp.meshgrid(x[0], x[1], copy=False)),
    "nan_to_num": lambda xp, x: xp.nan_to_num(x, copy=True), "vander": lambda xp, x: xp.vander(x[0], N=2), "pad, even": lambda xp, x: xp.pad(x, 1, mode="reflect", reflect_type="even"),
    "pad of two": lambda xp, x: xp.pad(x, 1, constant_values=(7, 8)), "pad of pairs": lambda xp, x: xp.pad(x, ((1, 2), (0, 3)), constant_values=((1, 2), (3, 4))),
    "pad of columns": lambda xp, x: xp.pad(x, 1, constant_values=((7,), (8,))), "pad of one": lambda xp, x: xp.pad(x, (2, 1), constant_values=[5]),
    "eigvalsh of a triangle": lambda xp, x: xp.linalg.eigvalsh(x[:, :3], "U"), "eigvalsh of the other": lambda xp, x: xp.linalg.eigvalsh(x[:, :3] * (1 + 2j), UPLO="L"),
    "broadcast_shapes": lambda xp, x: xp.asarray(xp.broadcast_shapes(3, (2, 1), (1, 3))), "repeat": lambda xp, x: xp.repeat(x[0, 0], [2], -1), "repeat of a number": lambda xp, x: xp.repeat(x[0, 0], 3, 0),
    "cumulative_sum of a number": lambda xp, x: xp.cumulative_sum(x[0, 0], include_initial=True), "cumulative_prod of a number": lambda xp, x: xp.cumulative_prod(x[0, 0], axis=-1),
    "dot of bools": lambda xp, x: xp.dot(x > 0, x.T > 0), "inner of bools": lambda xp, x: xp.inner(x > 0, x < 0), "vdot of bools": lambda xp, x: xp.vdot(x > 0, x < 0),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_numpys_words_and_places(name):
    if not hasattr(np, "cumulative_sum") and name.startswith("cumulative"):
        pytest.skip("numpy.cumulative_sum is of NumPy 2.1")
    with bp.default_dtype(bp.float64):
        same(CALLS[name](bp, bp.asarray(A)), CALLS[name](np, A))


@pytest.mark.parametrize("name, options", [
    ("nansum", {}), ("nansum", {"axis": 0, "dtype": "float32"}), ("nansum", {"axis": 1, "initial": 3.0}), ("nanprod", {"axis": 1, "keepdims": True}), ("nanmax", {"axis": 0, "initial": -9.0}),
    ("nanmin", {"initial": 9.0}), ("nanmean", {"axis": 1}), ("nanmean", {"axis": 0, "dtype": "float64"}),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("x", [N, W.astype(int)], ids=["floats", "integers"])
def test_reductions_beside_nan_take_where(name, options, x):
    with bp.default_dtype(bp.float64):
        same(getattr(bp, name)(bp.asarray(x), where=bp.asarray(W), **options), getattr(np, name)(x, where=W, **options))


def test_nanmean_takes_a_dtype_alone():
    same(bp.nanmean(bp.asarray(N, dtype=bp.float32), 0, dtype=bp.float64), np.nanmean(N, 0))
    with pytest.raises(TypeError, match="nanmean: argument dtype: found int32"):
        bp.nanmean(bp.asarray(N), dtype="int32")


def test_nan_to_num_without_a_copy_writes_into_its_argument():
    x = bp.asarray(N, copy=True)
    assert bp.nan_to_num(x, copy=False, nan=7.0) is x and x.tolist() == np.nan_to_num(N, nan=7.0).tolist()


def test_normal_takes_loc_and_scale():
    drawn = bp.normal(loc=3.0, scale=0.5, size=(500,), generator=bp.Generator(1))
    assert drawn.shape == (500,) and abs(drawn.mean().item() - 3) < 0.1 and abs(drawn.std().item() - 0.5) < 0.1


def test_one_triangle_alone_is_read():
    for uplo, other in (("L", np.triu_indices(3, 1)), ("U", np.tril_indices(3, -1))):
        x = S.copy()
        x[other] = np.nan
        values, vectors = bp.linalg.eigh(bp.asarray(x), uplo)
        same(values, np.linalg.eigh(S)[0])
        same(abs(vectors), abs(np.linalg.eigh(S)[1]))
    with pytest.raises(ValueError, match="eigh: argument UPLO: found 'X', expected 'L' or 'U'"):
        bp.linalg.eigh(bp.asarray(S), "X")


@pytest.mark.parametrize("function", ["fft", "ifft", "rfft", "fftn", "rfftn", "fft2", "irfft2", "hfft", "ihfft"])
def test_transforms_take_no_norm(function):
    same(getattr(bp.fft, function)(bp.asarray(A), norm=None), getattr(np.fft, function)(A, norm=None))


@pytest.mark.parametrize("call, words", [
    (lambda x: bp.asarray(x, order="F"), "asarray: argument order: found 'F', expected 'C', 'K' or 'A'; leave it out"),
    (lambda x: bp.asarray(x.T, order="C", copy=False), "copy: found False, but this dtype, device or order needs a copy"),
    (lambda x: bp.unique(x, equal_nan=True), r"unique: argument equal_nan: found True, .* unique\(x\[~isnan\(x\)\]\)"),
    (lambda x: bp.take(x, [0], axis=0, mode="fill"), "take: argument mode: found 'fill', expected 'raise', 'wrap' or 'clip'"),
    (lambda x: bp.pad(x, 1, mode="reflect", reflect_type="none"), "pad: argument reflect_type: found 'none', expected 'even' or 'odd'"),
    (lambda x: bp.pad(x, 1, mode="average"), "pad: argument mode: found 'average', expected a function or one of constant, "),
    (lambda x: bp.pad(x, 1, mode="edge", stat_length=2), "pad: argument stat_length: found 2 with mode 'edge', which does not read it"),
    (lambda x: bp.pad(x, 1, mode="max", weights=2), "pad: argument mode: found 'max'"),
    (lambda x: bp.pad(x, 1, mode="mean", weights=2), "pad: argument weights: found 2 with mode 'mean', which does not read it"),
    (lambda x: bp.pad(x, 1, mode="mean", stat_length=0), "pad: argument stat_length: found 0 with mode 'mean', expected at least 1"),
    (lambda x: bp.pad(x, 1, constant_values=(1, 2, 3)), "pad: argument constant_values: found .1, 2, 3., expected a number, a pair .* 2 axes"),
    (lambda x: bp.uniform(5.0, 1.0, (3,)), "uniform: found 5, expected low, no more than high and within the dtype"),
    (lambda x: bp.randint(10), r"randint: missing argument size, as in randint\(10, size="),
    (lambda x: bp.broadcast_shapes(3, None), "broadcast_shapes: argument shapes: found None, expected an int"),
    (lambda x: bp.cumulative_sum(x), "cumulative_sum: argument axis: found None for a tensor of 2 axes, expected one of them"),
    (lambda x: bp.repeat(x, [2], 5), "repeat: argument axis: found 5, expected an axis of 2 dimensions"),
])  # fmt: skip
def test_what_is_not_taken_says_what_to_write(call, words):
    with pytest.raises(bp.BackplaneError, match=words):
        call(bp.asarray(A))


def test_membership_and_the_reverse_order():
    x = bp.asarray(A)
    for value in ("a", None, object()):
        assert value not in x
    assert A[1, 2] in x and 100.0 not in x
    same([*reversed(x)], [*reversed(A)])
    next(reversed(x))[0] = 5.0
    assert x[-1, 0].item() == 5
    with pytest.raises(TypeError, match="no dimensions has no length"):
        reversed(bp.asarray(1.0))


def test_limits_of_floats():
    for name in ("float16", "float32", "float64"):
        ours, numpys = bp.finfo(name), np.finfo(name)
        assert ours.resolution == float(str(numpys.resolution)) and ours.smallest_subnormal == float(numpys.smallest_subnormal)
    assert bp.finfo(bp.bfloat16).resolution == 0.01


@pytest.mark.parametrize("value, written", [(1, True), (0, False), (2, True), (-0.0, False), (0.5, True), (math.nan, True), (1j, True), (0j, False), (np.float32(3), True), (2**63, True)])
def test_a_number_written_into_bools_is_its_truth(value, written):
    for index in (0, slice(None), [0, 1], bp.asarray([True, False, True]), (..., None), [True, False, False]):
        for before in (False, True):
            x, expected = bp.asarray([before] * 3), np.asarray([before] * 3)
            x[index], expected[index if not isinstance(index, bp.Tensor) else np.asarray(index)] = value, written
            assert x.dtype is bp.bool and x.tolist() == expected.tolist()
    compiled = bp.compile(lambda x: [x.__setitem__(x, value), x][1])(bp.asarray([True, False]))
    assert compiled.tolist() == [written, False]
    assert bp.asarray([True, False]).fill_(value).tolist() == [written] * 2


@pytest.mark.parametrize("values", [[1, 0, 2], (0.5, 0.0, math.nan), [True, False, 0], np.asarray([3, 0, 1]), np.asarray([0j, 1j, 1.0])], ids=str)
def test_numbers_written_into_bools_are_their_truths(values):
    for index in (slice(None), [2, 0, 1], bp.asarray([True] * 3)):
        x, expected = bp.asarray([True, True, False]), np.asarray([True, True, False])
        x[index], expected[index if not isinstance(index, bp.Tensor) else np.asarray(index)] = values, values
        assert x.tolist() == expected.tolist()
    with pytest.raises(bp.DtypeError, match="a result of dtype int64 cannot be written into an output of dtype bool; cast it first"):
        x[0] = bp.asarray(1)
