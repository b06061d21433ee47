"""Arrays of NumPy beside tensors, and NumPy's functions of tensors: ours compute, or the error says what to write."""

import io
import operator

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(4)
A, B = RNG.uniform(0.5, 2, (3, 4)), RNG.uniform(0.5, 2, (4,))
INTS = RNG.integers(1, 5, (3, 4))
BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow, operator.lt, operator.le,
          operator.eq, operator.ne, operator.gt, operator.ge]  # fmt: skip
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


def same(found, expected):
    assert isinstance(found, bp.Tensor)
    assert found.dtype.name == np.asarray(expected).dtype.name and found.shape == np.shape(expected)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)


@pytest.mark.parametrize("op", BINARY)
def test_operators_beside_arrays(op):
    for left, right in ((A, B), (A.astype(np.float32), B), (A, np.array(2.0)), (INTS, B)):
        same(op(bp.asarray(left), right), op(left, right))
        same(op(left, bp.asarray(right)), op(left, right))


@pytest.mark.parametrize("op", BITS)
def test_bits_beside_arrays(op):
    same(op(bp.asarray(INTS), INTS), op(INTS, INTS))
    same(op(INTS, bp.asarray(INTS)), op(INTS, INTS))


def test_products_beside_arrays():
    same(bp.asarray(A) @ B, A @ B)
    same(A @ bp.asarray(B), A @ B)


def test_an_array_is_added_in_place():
    x = bp.asarray(A, copy=True)
    held = x
    x += B
    same(held, A + B)


def test_a_tensor_with_a_gradient_is_not_written_into_an_array():
    array = A.copy()
    with pytest.raises(ValueError, match=r"requires a gradient.*x.detach\(\)"):
        array += bp.asarray(B).requires_grad_()
    with pytest.raises(ValueError, match="requires a gradient"):
        np.sin(bp.asarray(A).requires_grad_(), out=array)
    np.testing.assert_array_equal(array, A)


def test_a_gradient_passes():
    x = bp.asarray(B).requires_grad_()
    (A * x).sum().backward()
    same(x.grad, A.sum(0))
    same(bp.grad(lambda v: bp.sum(np.sin(v) * A))(bp.asarray(B)), np.cos(B) * A.sum(0))


def test_functions_take_lists_and_arrays():
    assert bp.sum([1, 2]).item() == 3 and bp.sum([1, 2]).dtype == bp.int64
    same(bp.sin(A), np.sin(A))
    same(bp.add([1, 2], [[3], [4]]), np.add([1, 2], [[3], [4]]))
    same(bp.stack([A[0], bp.asarray(A[1])]), A[:2])
    same(bp.concat([[1, 2], np.array([3])]), np.array([1, 2, 3]))
    assert bp.maximum(bp.asarray([1.0, 5.0]), [2, 2]).tolist() == [2, 5]
    for bad in (["a"], [None], [[1], [2, 3]], "a", None, {1: 2}, object(), np.array(["a"]), np.array([object()])):
        with pytest.raises((TypeError, ValueError), match="sum: argument 'x'"):
            bp.sum(bad)


UFUNCS = [name for name in dir(np) if isinstance(getattr(np, name), np.ufunc)]


@pytest.mark.parametrize("name", UFUNCS)
def test_every_ufunc_computes_or_says_how(name):
    ufunc = getattr(np, name)
    square = A[:3, :3], INTS[:3, :3]
    for arrays in ([square[0]] * ufunc.nin, [square[1]] * ufunc.nin, [square[1] > 2] * ufunc.nin):
        try:
            found = ufunc(*map(bp.asarray, arrays))
        except (TypeError, ValueError) as error:
            words = str(error)
            assert "use numpy." in words or "cast it" in words or "expected" in words or "does not" in words, words
            continue
        with np.errstate(all="ignore"):
            expected = ufunc(*arrays)
        for one, other in zip(found, expected, strict=True) if ufunc.nout > 1 else [(found, expected)]:
            eps = max(np.finfo(v.dtype).eps if v.dtype.kind == "f" else 0 for v in (np.asarray(one), other))
            np.testing.assert_allclose(np.asarray(one), other, rtol=8 * float(eps))
            assert isinstance(one, bp.Tensor)


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum", "logical_and", "logical_or"])
def test_reductions_of_ufuncs(name):
    reduce = getattr(np, name).reduce
    same(reduce(bp.asarray(A)), reduce(A))
    same(reduce(bp.asarray(A), axis=1, keepdims=True), reduce(A, axis=1, keepdims=True))
    same(reduce(bp.asarray(A), keepdims=True), reduce(A, keepdims=True))
    same(reduce(bp.asarray(A), initial=A.min() if name == "minimum" else 1, where=A > 1), reduce(A, initial=A.min() if name == "minimum" else 1, where=A > 1))


METHODS = {
    "reduce": lambda f, a, b: f.reduce(a, axis=1), "accumulate": lambda f, a, b: f.accumulate(a, axis=1), "outer": lambda f, a, b: f.outer(b, a),
    "reduceat": lambda f, a, b: f.reduceat(a, [0, 2], axis=1), "out": lambda f, a, b: f(a, b, out=(a * 0).astype(f(A, B).dtype.name)),
    "where": lambda f, a, b: f(a, b, out=(a * 0).astype(f(A, B).dtype.name), where=A > 1), "casting": lambda f, a, b: f(a, b, casting="same_kind"),
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "hypot", "logaddexp", "subtract", "divide"])
def test_arguments_and_methods_of_ufuncs_are_numpys(name, method):
    ufunc = getattr(np, name)
    found, expected = METHODS[method](ufunc, bp.asarray(A), bp.asarray(B)), METHODS[method](ufunc, A, B)
    assert isinstance(found, bp.Tensor) and np.asarray(found).dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)


def test_ufuncs_write_where_out_says():
    x, array = bp.asarray([1.0, 2.0]), np.ones(2)
    written = bp.zeros(2)
    assert np.exp2(x, out=written) is written and written.tolist() == [2, 4]
    array += x
    assert type(array) is np.ndarray and array.tolist() == [2, 3]
    assert np.add(x, 1, out=array, where=[True, False]) is array and array.tolist() == [2, 3]
    np.add.at(x, [0, 0], bp.asarray([1.0, 1.0]))
    np.add.at(array, [1, 1], bp.asarray([1.0, 1.0]))
    assert x.tolist() == [3, 2] and array.tolist() == [2, 5]
    assert np.sin(bp.asarray([1, 2]), dtype=np.float64).dtype == bp.float64
    counts = np.arange(3)
    with pytest.raises(TypeError, match="Cannot cast"):
        counts += bp.asarray([0.5, 0.5, 0.5])
    assert bp.grad(lambda v: np.add.accumulate(v).sum())(bp.ones(3)).tolist() == [3, 2, 1]


def test_a_ufunc_of_other_things_is_refused():
    with pytest.raises(TypeError, match=r"numpy.isnat: found a Tensor.*x\.numpy\(\)"):
        np.isnat(bp.ones(2))


FUNCTIONS = {
    "concatenate": lambda f, a, b: f([a, a]), "stack": lambda f, a, b: f([b, b], axis=1), "vstack": lambda f, a, b: f([a, b]), "where": lambda f, a, b: f(a > 1, a, b),
    "mean": lambda f, a, b: f(a, axis=0), "std": lambda f, a, b: f(a, ddof=1), "var": lambda f, a, b: f(a, axis=1, ddof=1), "sum": lambda f, a, b: f(a, axis=(0, 1)),
    "sort": lambda f, a, b: f(a, axis=0), "argsort": lambda f, a, b: f(a), "cumsum": lambda f, a, b: f(a), "diff": lambda f, a, b: f(a, 1, 0),
    "dot": lambda f, a, b: f(a, b), "einsum": lambda f, a, b: f("ij,j->i", a, b), "clip": lambda f, a, b: f(a, 1, 1.5), "tile": lambda f, a, b: f(b, (2, 1)),
    "median": lambda f, a, b: f(a), "percentile": lambda f, a, b: f(a, 30), "transpose": lambda f, a, b: f(a), "reshape": lambda f, a, b: f(a, (2, 6)),
    "expand_dims": lambda f, a, b: f(a, 1), "squeeze": lambda f, a, b: f(a), "outer": lambda f, a, b: f(b, b), "tensordot": lambda f, a, b: f(a, b, 1),
    "ravel": lambda f, a, b: f(a), "zeros_like": lambda f, a, b: f(a), "full_like": lambda f, a, b: f(a, 3), "roll": lambda f, a, b: f(a, 1, axis=0),
    "unique": lambda f, a, b: f(a), "interp": lambda f, a, b: f(1.0, b.cumsum(), b), "polyval": lambda f, a, b: f(b, b), "trace": lambda f, a, b: f(a),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_numpy_are_ours(name):
    function = getattr(np, name)
    same(FUNCTIONS[name](function, bp.asarray(A), bp.asarray(B)), FUNCTIONS[name](function, A, B))


def test_modules_of_numpy():
    square = A[:, :3] + 3 * np.eye(3)
    same(np.linalg.inv(bp.asarray(square)), np.linalg.inv(square))
    assert np.linalg.norm(bp.asarray(A)).item() == pytest.approx(np.linalg.norm(A))
    same(np.fft.fft(bp.asarray(A)), np.fft.fft(A))


def test_what_only_numpy_has_reads_tensors_as_arrays():
    held = io.BytesIO()
    np.save(held, bp.asarray(A))
    held.seek(0)
    np.testing.assert_array_equal(np.load(held), A)
    assert np.array2string(bp.asarray(B)) == np.array2string(B)
    assert np.result_type(bp.asarray(A)) == A.dtype


@pytest.mark.parametrize("change", [
    lambda x: np.copyto(x, 0), lambda x: np.copyto(x, A[::-1], where=A > 1), lambda x: np.put(x, [0, 5], [1, 2]), lambda x: np.fill_diagonal(x, 7),
    lambda x: np.put_along_axis(x, np.zeros((1, 4), int), 0, 0), lambda x: np.putmask(x, np.asarray(x) > 1, [1, 2]), lambda x: np.place(x, np.asarray(x) > 1, [3, 4]),
])  # fmt: skip
def test_functions_that_change_an_array_change_a_tensor(change):
    x, array = bp.asarray(A, copy=True), A.copy()
    assert change(x) is change(array) is None
    np.testing.assert_array_equal(x.numpy(), array)
    assert not np.array_equal(array, A)


@pytest.mark.parametrize("call", [lambda x, m: np.add(m, x), lambda x, m: bp.add(x, m), lambda x, m: bp.sum(m)])
def test_a_mask_is_not_lost(call):
    with pytest.raises(TypeError):
        call(bp.asarray(B), np.ma.masked_array(B, mask=B > 1))


def test_operators_beside_a_masked_array_are_its_own():
    masked = np.ma.masked_array(B, mask=B > 1)
    for found in (bp.asarray(B) + masked, masked + bp.asarray(B)):
        assert isinstance(found, np.ma.MaskedArray) and found.mask.tolist() == masked.mask.tolist() and found.tolist() == (masked + B).tolist()
    with pytest.raises(bp.ArgumentValueError, match="requires a gradient"):
        bp.asarray(B, copy=True).requires_grad_() + masked


def test_on_the_device_of_the_tensor():
    x = bp.asarray(B)
    assert (x + B).device == x.device and (B + x).device == x.device


def test_arrays_are_broadcast_beside_what_no_tensor_holds():
    x = bp.asarray(B)
    assert all(isinstance(part, bp.Tensor) and part.shape == (3, 4) for part in np.broadcast_arrays(x, A, [[1.0], [2.0], [3.0]], 2))
    widths, hatch = np.broadcast_arrays(x, None)  # as Matplotlib's bar calls it
    assert widths.tolist() == B.tolist() and hatch.tolist() == [None] * 4


@pytest.mark.parametrize("name", ["bool", "int8", "uint64", "float16", "float32", "float64", "complex64"])
def test_numpy_takes_our_dtypes(name):
    dtype = getattr(bp, name)
    assert np.zeros(3, dtype=dtype).dtype == np.dtype(dtype) == np.dtype(name) == dtype.dtype and np.ones(2).astype(dtype).dtype == name
    assert np.promote_types(bp.ones(1, dtype=dtype).dtype, np.int8) == np.promote_types(name, np.int8)
    assert np.result_type(bp.ones(1, dtype=dtype), np.float32) == np.result_type(np.dtype(name), np.float32)


def test_numpy_takes_bfloat16_from_ml_dtypes_alone():
    try:
        import ml_dtypes
    except ImportError:
        with pytest.raises(AttributeError, match="ml_dtypes"):
            bp.bfloat16.dtype
        assert not hasattr(bp.bfloat16, "dtype")
    else:
        assert np.dtype(bp.bfloat16) == ml_dtypes.bfloat16
