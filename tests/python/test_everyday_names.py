"""Functions and methods under NumPy's and PyTorch's names do what NumPy does, or what their PyTorch form says."""

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(5)
A = RNG.standard_normal((2, 3, 4))
M = RNG.standard_normal((3, 3))
V = RNG.standard_normal(5)
REPEATED = np.array([[3, 1, 3], [2, 1, 3]])


def same(found, expected):
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            same(one, other)
    elif isinstance(found, bp.Tensor):
        assert found.shape == np.shape(expected) and str(found.dtype).endswith(np.asarray(expected).dtype.name)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-14)
    else:
        assert found == expected


def given(value):
    """The value with tensors for arrays."""
    if isinstance(value, (list, tuple)):
        return type(value)(given(one) for one in value)
    return bp.asarray(value) if isinstance(value, np.ndarray) else value


# A function of NumPy's name, and its arguments.
AS_NUMPY = [
    ("append", A, A[:, :1], 1), ("append", V, V), ("append", A, V), ("column_stack", [V, V]), ("column_stack", [M, M[:, :1], M[0]]),
    ("concatenate", [A, A]), ("concatenate", [A, A], 1), ("concatenate", [A, V], None), ("hsplit", A, 3), ("hsplit", V, [2, 3]),
    ("vsplit", A, 2), ("vsplit", A, [1]), ("dsplit", A, 2), ("dsplit", A, [1, 3]), ("squeeze", A[:1, :, :1]), ("squeeze", A[:1], 0), ("squeeze", V),
    ("squeeze", np.array(2.0)), ("dot", M, V[:3]), ("dot", V, V), ("dot", np.array(2.0), M), ("dot", A, A.transpose(0, 2, 1)),
    ("dot", V[:3], A.transpose(0, 1, 2)), ("inner", A, A), ("inner", V, V), ("inner", M, np.array(2.0)), ("inner", V * 1j, V * 1j), ("vdot", V * 1j, V + 1j),
    ("vdot", M, M), ("unique", REPEATED), ("unique", REPEATED, True), ("unique", REPEATED, True, False, True), ("unique", np.array([], int)),
    ("union1d", REPEATED, REPEATED + 1), ("intersect1d", REPEATED, REPEATED + 1), ("setdiff1d", REPEATED, REPEATED + 1),
    ("flatnonzero", REPEATED - 1), ("ediff1d", V), ("ediff1d", M, [9.0, 8.0], 7.0), ("ediff1d", V[:1]), ("polyval", V, A), ("polyval", V, 2.0),
    ("polyval", V[:0], M), ("identity", 3, None), ("ndim", A), ("ndim", [[1, 2]]), ("shape", A), ("shape", 3), ("size", A), ("size", A, -1), ("size", 2.0),
    ("array", [[1.0, 2.0]], "float64"),
]  # fmt: skip


@pytest.mark.parametrize("name, args", [(row[0], row[1:]) for row in AS_NUMPY], ids=lambda value: value if isinstance(value, str) else "")
def test_functions_of_numpys_names_do_what_numpys_do(name, args):
    numpys = getattr(np, name)(*args)
    ours = [getattr(bp, one) if name == "array" and isinstance(one, str) else given(one) for one in args]
    found = getattr(bp, name)(*ours)
    same(bp.astype(found, bp.float64) if name == "identity" else found, numpys)


INDEX = np.array([[[0, 2, 1, 0]], [[1, 1, 0, 2]]])
SMALL = INDEX[:1, :, :2]

# PyTorch's forms: the function, the tensor, more arguments, and the same in NumPy.
AS_PYTORCH = {
    "cat": (lambda x: bp.cat([x, x], 1), A, np.concatenate([A, A], 1)),
    "cat by name": (lambda x: bp.cat((x, x), dim=-1), A, np.concatenate([A, A], -1)),
    "flatten": (lambda x: x.flatten(), A, A.reshape(-1)),
    "flatten some": (lambda x: bp.flatten(x, 1), A, A.reshape(2, 12)),
    "flatten by name": (lambda x: x.flatten(start_dim=0, end_dim=1), A, A.reshape(6, 4)),
    "flatten a number": (lambda x: x.flatten(), A[0, 0, 0], A[0, 0, :1]),
    "flatten nothing": (lambda x: x.flatten(1), A[:, :0], A[:, :0].reshape(2, 0)),
    "unflatten": (lambda x: x.unflatten(-1, (2, -1)), A, A.reshape(2, 3, 2, 2)),
    "narrow": (lambda x: x.narrow(2, 1, 2), A, A[:, :, 1:3]),
    "narrow from the end": (lambda x: bp.narrow(x, 1, -2, 2), A, A[:, -2:]),
    "unbind": (lambda x: x.unbind(1), A, [A[:, i] for i in range(3)]),
    "tensor_split": (lambda x: x.tensor_split(3, dim=2), A, np.array_split(A, 3, axis=2)),
    "repeat_interleave": (lambda x: x.repeat_interleave(2, dim=1), A, np.repeat(A, 2, axis=1)),
    "gather": (lambda x: x.gather(1, bp.asarray(INDEX)), A, np.take_along_axis(A, INDEX, 1)),
    "gather less": (lambda x: bp.gather(x, 1, bp.asarray(SMALL)), A, np.take_along_axis(A[:1, :, :2], SMALL, 1)),
    "index_select": (lambda x: x.index_select(1, bp.asarray([2, 0])), A, A[:, [2, 0]]),
    "take_along_dim": (lambda x: x.take_along_dim(bp.asarray(INDEX), 1), A, np.take_along_axis(A, INDEX, 1)),
    "take_along_dim flat": (lambda x: x.take_along_dim(bp.asarray([5, 0])), A, A.reshape(-1)[[5, 0]]),
    "take_along_axis flat": (lambda x: bp.take_along_axis(x, [5, 0], axis=None), A, np.take_along_axis(A, np.array([5, 0]), None)),
    "take flat, wrapped": (lambda x: bp.take(x, bp.asarray([[100, -1]]), mode="wrap"), A, np.take(A, [[100, -1]], mode="wrap")),
    "scatter_add": (lambda x: x.scatter_add(0, bp.asarray([0, 0, 3]), bp.asarray([1.0, 2.0, 4.0], dtype=bp.float64)), np.zeros(4), np.array([3.0, 0, 0, 4])),
    "bucketize": (lambda x: bp.bucketize(x, bp.asarray([-0.5, 0.0, 0.5])), V, np.searchsorted([-0.5, 0.0, 0.5], V)),
    "t": (lambda x: x.t(), M[:2], M[:2].T),
    "swapdims": (lambda x: x.swapdims(0, 2), A, A.swapaxes(0, 2)),
    "view": (lambda x: x.view(3, -1), A, A.reshape(3, 8)),
    "view of a shape": (lambda x: x.view((4, 6)), A, A.reshape(4, 6)),
    "view_as": (lambda x: x.view_as(bp.zeros((6, 4))), A, A.reshape(6, 4)),
    "reshape_as": (lambda x: x.T.reshape_as(x), M, M.T.reshape(3, 3)),
    "expand_as": (lambda x: x.expand_as(bp.zeros((2, 5))), V, np.broadcast_to(V, (2, 5))),
    "type_as": (lambda x: x.type_as(bp.zeros(1)), V, V.astype(np.float32)),
    "masked_fill": (lambda x: x.masked_fill(x > 0, -1), A, np.where(A > 0, -1, A)),
    "transpose": (lambda x: x.transpose(), A, A.transpose()),
    "transpose by a tuple": (lambda x: x.transpose((1, 2, 0)), A, A.transpose(1, 2, 0)),
    "transpose by ints": (lambda x: x.transpose(1, 2, 0), A, A.transpose(1, 2, 0)),
    "contiguous": (lambda x: x.T.contiguous(), M, M.T),
    "permute": (lambda x: x.permute(2, 0, 1), A, A.transpose(2, 0, 1)),
    "clamp": (lambda x: x.clamp(min=0), A, np.clip(A, 0, None)),
    "median": (lambda x: x.median(), V, np.median(V)),
    "fill_": (lambda x: (x + 0).fill_(2), M, np.full((3, 3), 2.0)),
    "zero_": (lambda x: (x + 0).zero_(), M, np.zeros((3, 3))),
    "copy_": (lambda x: (x + 0).copy_(bp.asarray([1, 2, 3])), M, np.broadcast_to([1.0, 2.0, 3.0], (3, 3))),
}


@pytest.mark.parametrize("name", AS_PYTORCH)
def test_functions_and_methods_of_pytorchs_names(name):
    call, x, expected = AS_PYTORCH[name]
    same(call(bp.asarray(x)), expected)


@pytest.mark.parametrize("name", [name for name, row in AS_PYTORCH.items() if name not in ("fill_", "zero_", "type_as", "contiguous")])
def test_they_are_differentiated_and_batched_like_the_ops_they_call(name):
    call, x, _ = AS_PYTORCH[name]

    def total(x):
        found = call(x)
        return sum(bp.sum(one * one) for one in (found if isinstance(found, (list, tuple)) else [found]))

    x, step = bp.asarray(np.array(x)), bp.asarray(RNG.standard_normal(np.shape(x)))
    h = 1e-6
    slope = (total(x + h * step) - total(x - h * step)) / (2 * h)
    if name not in ("bucketize", "copy_", "masked_fill", "repeat_interleave"):  # the first two are constant
        np.testing.assert_allclose(float(bp.sum(bp.grad(total)(x) * step)), float(slope), rtol=1e-5, atol=1e-7)
    if name != "contiguous":
        rows = bp.stack([x, x + step])
        expected = bp.stack([total(row) for row in rows])
        np.testing.assert_allclose(bp.vmap(total)(rows).numpy(), expected.numpy(), rtol=1e-12)


@pytest.mark.parametrize(
    "name, dtype", [("double", "float64"), ("float", "float32"), ("half", "float16"), ("bfloat16", "bfloat16"), ("bool", "bool"),
                    ("byte", "uint8"), ("short", "int16"), ("int", "int32"), ("long", "int64")]
)
def test_casts_by_name(name, dtype):
    x = getattr(bp.asarray([0, 1, 2]), name)()
    assert x.dtype.name == dtype and getattr(x, name)() is x


def test_random_tensors_of_a_shape():
    generator = bp.Generator(3)
    for make in (bp.rand, bp.randn):
        assert make(2, 3).shape == (2, 3) and make((2, 3)).shape == (2, 3) and make().shape == () and make(4).shape == (4,)
        assert bp.array_equal(make(5, generator=bp.Generator(1)), make(5, generator=bp.Generator(1)))
    assert bp.rand(1000, generator=generator).min() >= 0 and bp.rand(1000, generator=generator).max() < 1
    assert bp.rand_like(bp.zeros((2, 3), dtype=bp.float64)).dtype is bp.float64 and bp.randn_like(bp.zeros(3)).shape == (3,)
    assert sorted(bp.randperm(10).tolist()) == list(range(10))


def test_tensors_of_data():
    source = np.zeros(3)
    assert not np.shares_memory(bp.tensor(source).numpy(), source) and not np.shares_memory(bp.array(source).numpy(), source)
    assert np.shares_memory(bp.from_numpy(source).numpy(), source) and np.shares_memory(bp.as_tensor(source).numpy(), source)
    assert bp.tensor([1.0], requires_grad=True).requires_grad and bp.as_tensor([1], bp.float32).dtype is bp.float32
    assert bp.is_tensor(bp.tensor(1)) and not bp.is_tensor(1)
    assert bp.is_floating_point(bp.ones(1)) and not bp.ones(1).is_complex() and bp.numel(bp.ones((2, 3))) == 6
    assert bp.promote_types(bp.int32, bp.float32) is bp.float32 and bp.ones(2).dim() == 1


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda x: x.transpose(0, 1), TypeError, "NumPy takes for .*PyTorch"),
        (lambda x: x.T.view(-1), ValueError, "strides"),
        (lambda x: x.flatten(1, 0), ValueError, "end_dim: found axis 0"),
        (lambda x: x.flatten(3), IndexError, "start_dim"),
        (lambda x: x.unflatten(1, (2, 2)), ValueError, "product is 3"),
        (lambda x: x.unflatten(1, (-1, -1)), ValueError, "product is 3"),
        (lambda x: x.narrow(1, 2, 2), IndexError, "start 2 and length 2"),
        (lambda x: x.narrow(1, -5, 1), IndexError, "start -5"),
        (lambda x: x.gather(1, bp.zeros((4, 3), dtype=bp.int64)), ValueError, "expected at most"),
        (lambda x: x.gather(2, bp.zeros((3, 3), dtype=bp.int64)), IndexError, "argument dim"),
        (lambda x: x.gather(0, "a"), TypeError, "argument index"),
        (lambda x: bp.dsplit(x, 1), ValueError, "at least 3"),
        (lambda x: bp.vsplit(x[0], 1), ValueError, "at least 2"),
        (lambda x: bp.hsplit(x, 2), ValueError, "divisor"),
        (lambda x: bp.polyval(x, 1.0), ValueError, "expected a vector"),
        (lambda x: bp.dot(x, ["1.0"]), TypeError, "argument 'y'"),
        (lambda x: x[None].t(), ValueError, "at most 2"),
        (lambda x: x.copy_([1.0]), TypeError, "argument src"),
        (lambda x: x.view_as([1.0]), TypeError, "argument other"),
        (lambda x: bp.from_numpy([1.0]), TypeError, "NumPy array"),
        (lambda x: bp.size(x, 2), IndexError, "size: argument axis"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call(bp.ones((3, 3)))


@pytest.mark.parametrize("transform", [bp.grad, lambda f: lambda x: bp.jvp(f, (x,), (x,))[1], lambda f: lambda x: bp.vmap(f)(x[None]),
                                       lambda f: bp.grad(lambda x: bp.grad(f)(x).sum())])  # fmt: skip
def test_reshape_knows_inside_transforms_what_is_shared(transform):
    def watched(x):
        assert bp.reshape(x, (4,), copy=False).shape == (4,)
        with pytest.raises(ValueError, match="need a copy"):
            bp.reshape(x.mT, (4,), copy=False)
        return (bp.reshape(x, (4,), copy=True) ** 2).sum()

    transform(watched)(bp.ones((2, 2)))


ROW = np.array([[0, 2, 1]])
BY_POSITION = {
    "softmax": ((M, 0), {"axis": 0}), "log_softmax": ((M, 0), {"axis": 0}), "glu": ((A, 0), {"axis": 0}), "cumulative_sum": ((A, 1), {"axis": 1}),
    "cumulative_prod": ((A, 1), {"axis": 1}), "logcumsumexp": ((A, 0), {"axis": 0}), "roll": ((A, 1, 2), {"axis": 2}), "stack": (([M, M], 1), {"axis": 1}),
    "concat": (([M, M], 1), {"axis": 1}), "tril": ((M, 1), {"k": 1}), "triu": ((M, -1), {"k": -1}), "take": ((A, np.array([1, 0]), 1), {"axis": 1}),
    "take_along_axis": ((M, ROW, 0), {"axis": 0}), "put_along_axis": ((M, ROW, M[:1], 0), {"axis": 0}), "sort": ((A, 0), {"axis": 0}),
    "argsort": ((A, 0), {"axis": 0}), "topk": ((M, 2, 0, False), {"axis": 0, "largest": False}), "cummax": ((M, 0), {"axis": 0}),
    "cummin": ((M, 0), {"axis": 0}), "diagonal": ((A, 1, 0, 2), {"offset": 1, "axis1": 0, "axis2": 2}), "searchsorted": ((np.sort(V), V, "right"), {"side": "right"}),
    "repeat": ((M, 2, 1), {"axis": 1}), "full": (((2, 3), 4, bp.int16), {"dtype": bp.int16}), "zeros_like": ((M, bp.int16), {"dtype": bp.int16}),
    "eye": ((3, 4, 1), {"k": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_POSITION)
def test_what_numpy_takes_by_position_is_taken_so(name):
    arguments, named = BY_POSITION[name]
    function, before = getattr(bp, name), [given(one) for one in arguments]
    found, expected = function(*before), function(*before[: len(before) - len(named)], **named)
    for one, other in zip(*((value,) if isinstance(value, bp.Tensor) else value for value in (found, expected))):
        assert one.dtype is other.dtype
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_data_is_written_as_pytorchs_is():
    w = bp.asarray([1.0, 2.0, 3.0]).requires_grad_()
    (w * w).sum().backward()
    w.data -= 0.5 * w.grad
    assert w.tolist() == [0.0, 0.0, 0.0] and w.requires_grad and w.is_leaf and w.grad.tolist() == [2.0, 4.0, 6.0]
    kept = w.data
    w.data = bp.asarray([4.0, 5.0, 6.0])
    w.data = bp.flip(w.data)
    assert w.tolist() == kept.tolist() == [6.0, 5.0, 4.0]
    for value in (bp.ones(2), bp.ones(3, dtype=bp.float64)):
        with pytest.raises(bp.ArgumentValueError, match="data: found a float.* expected float32 of shape"):
            w.data = value
    with pytest.raises(bp.ArgumentTypeError, match="data: argument value: found float"):
        w.data = 1.0

    def stepped(x):
        x = x * 1.0
        x.data += 2.0
        return (x * x).sum()

    x = bp.asarray([1.0])
    assert bp.compile(stepped)(x).item() == stepped(x).item() == 9.0


def test_no_grad_decorates_without_parentheses_too():
    for mode in (bp.no_grad, bp.inference_mode):

        @mode
        def f(x):
            return (x * 2).requires_grad

        assert f(bp.ones(2).requires_grad_()) is False and f.__name__ == "f"
    assert bp.no_grad(bp.enable_grad(lambda x: (x * 2).requires_grad))(bp.ones(2).requires_grad_()) is True


def test_a_constant_has_a_standard_deviation_of_gradient_zero():
    for spread in (bp.std, bp.nanstd):
        x = bp.ones((2, 3)).requires_grad_()
        ((x - x.mean(dim=1, keepdim=True)) / (spread(x, axis=1, keepdims=True) + 1e-5)).sum().backward()
        assert bp.all(bp.isfinite(x.grad)).item()
        y = bp.asarray([[1.0, 2.0, 4.0], [3.0, 3.0, 3.0]])
        found = bp.grad(lambda y: spread(y, axis=1).sum())(y)
        expected = (np.asarray(y[0]) - 7 / 3) / 3 / np.std([1, 2, 4])
        np.testing.assert_allclose(np.asarray(found[0]), expected, rtol=1e-5)
        assert found[1].tolist() == [0.0, 0.0, 0.0]


def test_a_complex_root_is_refused_as_grad_refuses_it():
    z = bp.asarray([1 + 2j]).requires_grad_()
    with pytest.raises(bp.ArgumentValueError, match="backward: the root is complex.*real part"):
        (z * z).sum().backward()
    (z * z).sum().real.backward()
    assert z.grad.tolist() == [2 - 4j]


def test_lp_pool_of_infinity_is_the_largest():
    from backplane.nn import functional as F

    x = bp.asarray([[1.0, -3.0, 2.0, -5.0]]).requires_grad_()
    y = F.lp_pool1d(x, float("inf"), 2)
    assert y.tolist() == [[3.0, 5.0]] and F.lp_pool1d(x, -float("inf"), 2).tolist() == [[1.0, 2.0]]
    y.sum().backward()
    assert x.grad.tolist() == [[0.0, -1.0, 0.0, -1.0]]


def test_linear_algebra_takes_the_names_of_others():
    s, b = np.asarray([[4.0, 1.0], [1.0, 3.0]], np.float32), np.asarray([1.0, 2.0], np.float32)
    a, v = bp.asarray(s), bp.asarray(b)
    for found, expected in [
        (bp.linalg.solve(A=a, B=v), np.linalg.solve(s, b)), (bp.linalg.solve(a=a, b=v), np.linalg.solve(s, b)), (bp.linalg.inv(A=a), np.linalg.inv(s)), (bp.linalg.inv(a=a), np.linalg.inv(s)),
        (bp.linalg.det(input=a), np.linalg.det(s)), (bp.linalg.cholesky(input=a), np.linalg.cholesky(s)), (bp.linalg.eigvalsh(A=a), np.linalg.eigvalsh(s)), (bp.linalg.norm(A=a), np.linalg.norm(s)),
        (bp.linalg.vecdot(a, a, dim=0), (s * s).sum(0)), (bp.percentile(a, q=50, dim=0), np.percentile(s, 50, 0)), (bp.average(a, dim=1), s.mean(1)), (bp.trapezoid(a, dim=0), s.sum(0) / 2),
        (bp.vstack(tup=[v, v]), np.stack([b, b])), (bp.convolve(a=v, v=v), np.convolve(b, b)), (bp.outer(input=v, other=v), np.outer(b, b)),
    ]:  # fmt: skip
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-6)
    assert bp.allclose(a=a, b=a) and bp.array_equal(a1=a, a2=a)


@pytest.mark.parametrize("name", ["normal", "uniform"])
def test_three_ints_of_a_random_function_are_ambiguous(name):
    draw = getattr(bp, name)
    with pytest.raises(TypeError, match=r"NumPy's order. Fix: " + name + r"\(shape"):
        draw(0, 1, 100)
    assert draw((0, 1, 100)).shape == (0, 1, 100) and draw(2, 3).shape == (2, 3) and draw(2, 3, 4, 5).shape == (2, 3, 4, 5)
    assert bp.randn(2, 3, 4).shape == bp.rand(2, 3, 4).shape == (2, 3, 4) and bp.randn().shape == () and bp.rand(3).shape == (3,)
