"""NumPy's `where=` and `initial=` of reductions, sorts that flatten or name their kind, and axis 0 of tensors that have none."""

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(41)
A = RNG.standard_normal((3, 4))
I = RNG.integers(-9, 9, (3, 4)).astype(np.int32)
B = I > 0
CHOSEN = RNG.random((3, 4)) < 0.6
WHERE = {"all elements": CHOSEN, "columns": CHOSEN[0], "rows": CHOSEN[:, :1], "none": np.zeros((3, 4), bool)}


def same(found, expected):
    assert found.dtype.name == np.asarray(expected).dtype.name and found.shape == np.shape(expected)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)


@pytest.mark.parametrize("x", [A, I, B, A * 1j], ids=lambda x: x.dtype.name)
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("axes", [{}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}], ids=str)
@pytest.mark.parametrize("name", ["sum", "prod", "any", "all"])
def test_what_does_not_count_is_left_out(name, axes, where, x):
    expected = getattr(np, name)(x, where=WHERE[where], **axes)
    same(getattr(bp, name)(bp.asarray(x), where=bp.asarray(WHERE[where]), **axes), expected)
    same(getattr(bp.asarray(x), name)(where=WHERE[where].tolist(), **axes), expected)


@pytest.mark.parametrize("x, initial", [(A, 0.25), (I, 3), (I[:0], 3), (A[:, :0], -2.0), (B, True)], ids=lambda x: str(getattr(x, "dtype", "")))
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_initial_values_count_as_one_more_element(name, axis, x, initial):
    same(getattr(bp, name)(bp.asarray(x), axis, initial=initial), getattr(np, name)(x, axis, initial=initial))
    where = RNG.random(x.shape) < 0.5
    expected = getattr(np, name)(x, axis, initial=initial, where=where)
    same(getattr(bp.asarray(x), name)(axis, initial=initial, where=bp.asarray(where)), expected)
    same(getattr(bp, name)(a=bp.asarray(x), axis=axis, initial=initial, where=where), expected)


def test_extremes_of_what_counts_have_an_initial_value():
    with pytest.raises(bp.ArgumentValueError, match="max: found where without initial"):
        bp.max(bp.asarray(A), where=CHOSEN)
    assert bp.max(bp.asarray([1.0, np.nan]), where=[True, False], initial=0).item() == 1
    assert bp.amin(bp.asarray([1.0, -2.0]), where=[True, False], initial=0).item() == 0


def test_where_broadcasts_to_x_and_is_bool():
    with pytest.raises(bp.ShapeError, match=r"sum: argument where: found shape \(2, 3, 4\), expected one that broadcasts to x, \(3, 4\)"):
        bp.sum(bp.asarray(A), where=np.ones((2, 3, 4), bool))
    with pytest.raises(bp.DtypeError, match="sum.*condition.*int64"):
        bp.sum(bp.asarray(A), where=[1, 0, 1, 1])


def test_out_is_written():
    out = bp.zeros((4,), dtype=bp.float64)
    assert bp.sum(bp.asarray(A), 0, where=CHOSEN, initial=1.0, out=out) is out
    same(out, A.sum(0, where=CHOSEN, initial=1.0))


def test_they_are_differentiated_batched_and_traced():
    where = bp.asarray(CHOSEN)
    same(bp.grad(lambda x: bp.sum(x * x, where=where, initial=2.0))(bp.asarray(A)), np.where(CHOSEN, 2 * A, 0))
    same(bp.vmap(lambda x, w: bp.prod(x, where=w, initial=2.0))(bp.asarray(A), where), A.prod(1, where=CHOSEN, initial=2.0))
    same(bp.compile(lambda x: bp.max(x, 0, where=where, initial=-0.5))(bp.asarray(A)), A.max(0, where=CHOSEN, initial=-0.5))


@pytest.mark.parametrize("name", ["sort", "argsort"])
@pytest.mark.parametrize("kind", [None, "stable", "quicksort", "mergesort", "heapsort"])
def test_every_kind_of_sort_is_the_stable_one(name, kind):
    for axis in (0, -1, None):
        expected = getattr(np, name)(I, axis, "stable")
        same(getattr(bp, name)(bp.asarray(I), axis, kind), expected)
        same(getattr(bp, name)(bp.asarray(I), axis=axis, kind=kind), expected)
    with pytest.raises(bp.ArgumentValueError, match=f"{name}: argument kind: found 'bogo', expected one of 'stable'"):
        getattr(bp, name)(bp.asarray(I), kind="bogo")


@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_without_an_axis_what_is_sorted_is_flat(name):
    for x in (A, I, A[:0], np.asarray(2.0)):
        same(getattr(bp, name)(bp.asarray(x), axis=None), getattr(np, name)(x, axis=None, kind="stable"))
    same(bp.sort(bp.asarray(A), axis=None, descending=True), np.sort(A, axis=None)[::-1])


# Of all ops that reduce, those whose namesake of NumPy takes axis 0 of a number.
OF_NUMBERS = [
    name for name in sorted({row[0].removeprefix("bp::") for row in bp._core.ops()})
    if hasattr(np, name) and hasattr(bp, name) and {"axis", "keepdims"} <= {row[0] for row in getattr(getattr(bp, name), "parameters", ())}
]  # fmt: skip


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_a_number_is_reduced_over_axis_0_where_numpy_does(name):
    for axis in (0, -1, 1, (0,)):
        try:
            expected = getattr(np, name)(np.asarray(2.0), axis=axis)
        except (IndexError, TypeError):
            with pytest.raises((IndexError, TypeError)):
                getattr(bp, name)(bp.asarray(2.0), axis=axis)
        else:
            found = getattr(bp, name)(bp.asarray(2.0, dtype=bp.float64), axis=axis)
            assert found.shape == () and found.item() == expected, axis


def test_a_number_is_reduced_over_dim_0_as_pytorch_does():
    for name in ("sum", "prod", "any", "all", "amax", "amin", "argmax", "argmin"):
        assert getattr(bp.asarray(2.0), name)(dim=0).shape == () == getattr(bp.asarray(2.0), name)(dim=-1).shape


@pytest.mark.parametrize("name", ["max", "min"])
def test_elements_that_do_not_count_tie_with_none(name):
    def of(x):
        return getattr(bp, name)(x, where=bp.asarray([True, False, False]), initial=0.0)

    assert bp.grad(of)(bp.asarray([0.0, 5.0, -6.0])).tolist() == [0.5, 0, 0]
    assert bp.grad(of)(bp.asarray([0.0, 0.0, 0.0])).tolist() == [0.5, 0, 0]
    assert int(getattr(bp, name)(bp.asarray([3, 4]), where=bp.asarray([False, False]), initial=7)) == 7


@pytest.mark.parametrize("x", [A, I, np.abs(I).astype(np.uint8), np.abs(I).astype(np.uint64), B, A * 1j], ids=lambda x: x.dtype.name)
@pytest.mark.parametrize("where", ["all elements", "columns", "rows"])
@pytest.mark.parametrize("axes", [{}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}], ids=str)
@pytest.mark.parametrize("name, more", [("mean", {}), ("var", {}), ("std", {"ddof": 1})])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_moments_of_what_counts(name, more, axes, where, x):
    expected = getattr(np, name)(x, where=WHERE[where], **axes, **more)
    found = getattr(bp, name)(bp.asarray(x), where=WHERE[where], **axes, **more)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5 if x.dtype.kind in "biu" else 1e-12)  # whole numbers compute in float32


@pytest.mark.parametrize("more", [{}, {"ddof": 1}, {"axis": 0}, {"axis": 1, "keepdims": True}], ids=str)
def test_moments_of_what_counts_and_is_a_number(more):
    x = np.where(A > 1, np.nan, A)
    for name in ("nanvar", "nanstd"):
        found = getattr(bp, name)(bp.asarray(x), where=WHERE["rows"] | (I > 2), **more)
        np.testing.assert_allclose(np.asarray(found), getattr(np, name)(x, where=WHERE["rows"] | (I > 2), **more), rtol=1e-12)


def test_moments_in_a_stated_dtype():
    x = np.float32([1e4, 1, 2, 3])
    for name in ("mean", "var", "std"):
        same(getattr(bp, name)(bp.asarray(x), dtype=bp.float64), getattr(np, name)(x, dtype=np.float64))
        with pytest.raises(bp.ArgumentTypeError, match=f"{name}: argument dtype: found .*int32"):
            getattr(bp, name)(bp.asarray(x), dtype=bp.int32)


def test_the_gradient_of_a_masked_mean_passes_what_counts():
    x = bp.asarray([1.0, bp.nan, 3.0])
    grad = bp.grad(lambda x: bp.mean(x, where=[True, False, True]) + bp.std(x, where=[True, False, True]))(x)
    np.testing.assert_allclose(np.asarray(grad), [0, 0, 1], atol=1e-7)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "bool", "float32"])
@pytest.mark.parametrize("source", ["float16", "float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod", "cumulative_sum", "cumulative_prod", "nansum"])
def test_elements_are_added_in_the_stated_dtype(name, source, dtype):
    x = np.array([[0.75, 1.5, 0.5], [1.25, 2.75, 1.9]]).astype(source)
    if name.startswith("cumulative") and "bool" in (source, dtype):
        pytest.skip("the array API's have no bools")
    more = {} if name in ("sum", "prod", "nansum") else {"axis": 1}
    same(getattr(bp, name)(bp.asarray(x), dtype=dtype, **more), getattr(np, name)(x, dtype=dtype, **more))
    if name == "sum":
        same(bp.compile(lambda x: bp.sum(x * 1, dtype=dtype))(bp.asarray(x)), np.sum(x * 1, dtype=dtype))


def test_words_of_two_libraries_in_one_call():
    x = bp.asarray(A)
    for name, word in (("sort", "kind"), ("max", "where"), ("var", "ddof"), ("std", "dtype")):
        with pytest.raises(bp.ArgumentTypeError, match=rf"{name}: found \(Tensor, dim=int, {word}=int\), expected .* {name}\(x, dim"):
            getattr(bp, name)(x, dim=1, **{word: 1})


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_running_results_without_an_axis_are_of_the_flattened_elements(name):
    x = bp.asarray(A)
    function, method = getattr(bp, name), getattr(x, name)
    for found in (function(x), function(x, None), function(x, axis=None), function(x, dim=None), method(None), method(axis=None)):
        same(found, getattr(np, name)(A))
    same(function(x, axis=None, dtype="float64"), getattr(np, name)(A, axis=None, dtype="float64"))
    with pytest.raises(TypeError):
        function(x, None, axis=None)


@pytest.mark.parametrize("name", ["max", "min"])
def test_complex_numbers_have_no_order_with_a_mask_either(name):
    x = bp.asarray([1j, 2.0])
    with pytest.raises(bp.DtypeError) as plain:
        getattr(bp, name)(x)
    with pytest.raises(bp.DtypeError) as masked:
        getattr(bp, name)(x, where=[True, False], initial=1)
    assert str(masked.value) == str(plain.value)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_logsumexp_of_nothing_is_the_logarithm_of_0(dtype):
    for x, axis in ((bp.zeros(0, dtype), None), (bp.zeros((0, 3), dtype), 0), (bp.zeros((2, 0, 3), dtype), (0, 1)), (bp.zeros((2, 0, 3), dtype), (0, 2))):
        found = bp.logsumexp(x, axis)
        assert found.dtype == dtype and bool((found == -bp.inf).all()) and found.shape == bp.sum(x, axis).shape
        assert bp.grad(lambda x, axis=axis: bp.logsumexp(x, axis).sum())(x).shape == x.shape
    assert bp.vmap(bp.logsumexp)(bp.zeros((2, 0))).tolist() == [-bp.inf] * 2


def test_extremes_of_two_tensors_are_of_each_two_elements():
    """Also where the second one could be read as axes."""
    x = bp.asarray([[5, 6], [7, 8]])
    for y in (bp.asarray(6), bp.asarray([0, 1]), bp.asarray([[0], [9]]), bp.asarray(6.5)):
        for found in (bp.max(x, y), x.max(y), bp.max(input=x, other=y), bp.ops.bp.max(x.tolist(), y)):
            same(found, np.maximum(x.numpy(), y.numpy()) if y.dtype == bp.int64 else np.maximum(x.numpy().astype(np.float32), y.numpy()))
    assert bp.min(bp.asarray([5, 6]), bp.asarray([1, 7])).tolist() == [1, 6]
    assert bp.max(bp.ones((0,)), bp.ones((0,))).shape == (0,)
    with pytest.raises(bp.ShapeError, match="max: .*broadcast"):
        bp.max(x, bp.asarray([1, 2, 3]))
    assert bp.sum(x, bp.asarray(0)).tolist() == [12, 14] and bp.max(x, axis=bp.asarray(0)).tolist() == [7, 8]


def test_a_number_has_the_axes_0_and_minus_1_under_dim():
    x = bp.asarray(3.0)
    for axis in (0, -1):
        assert bp.mean(x, dim=axis).item() == bp.logsumexp(x, dim=axis).item() == 3.0
        assert bp.softmax(x, dim=axis).item() == 1.0 and bp.log_softmax(x, dim=axis).item() == 0.0
        assert bp.amax(x, dim=axis, keepdim=True).shape == () and bp.max(x, dim=axis).indices.item() == 0
    for wrong in (1, 7, -2):
        for name in ("max", "sort", "median", "nanmedian", "var", "mean", "logsumexp", "softmax", "amax", "squeeze"):
            with pytest.raises(bp.OutOfRangeError, match=f"{name[1:] if name == 'amax' else name}: .*{wrong}"):
                getattr(bp, name)(x, dim=wrong)
        with pytest.raises(bp.OutOfRangeError, match="flatten: argument start_dim"):
            bp.flatten(x, wrong)
        with pytest.raises(bp.OutOfRangeError, match="gather: argument dim"):
            bp.gather(x, wrong, bp.asarray(0))
