"""Spellings that users of NumPy and PyTorch type without thinking: further arguments, tensors for numbers, methods and properties."""

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(6)
A = RNG.standard_normal((2, 3, 4))
M = RNG.standard_normal((4, 3))
V = RNG.standard_normal(6)
KINDS = np.array([[2, 1, 2], [0, 5, 1], [2, 1, 2], [0, 4, 9], [2, 1, 2]])
T = bp.asarray(A)


def same(found, expected):
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            same(one, other)
    else:
        assert found.dtype.name == np.asarray(expected).dtype.name and found.shape == np.shape(expected)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12, atol=1e-15)


def number(value):
    return bp.asarray(np.asarray(value))


# A function with tensors, and the same in NumPy.
CASES = {
    "full": (lambda: bp.full((2, 3), number(2.5)), np.full((2, 3), 2.5)),
    "full of a row": (lambda: bp.full((2, 3), bp.asarray(V[:3])), np.full((2, 3), V[:3])),
    "full of a dtype": (lambda: bp.full(4, number(2), dtype=bp.float64), np.full(4, 2.0)),
    "full_like": (lambda: bp.full_like(T, number(2.5)), np.full_like(A, 2.5)),
    "linspace": (lambda: bp.linspace(number(1.0), number(4.0), 7), np.linspace(1, 4, 7)),
    "linspace from a number": (lambda: bp.linspace(0, number(4.0), 7, endpoint=False), np.linspace(0, 4, 7, endpoint=False)),
    "linspace of vectors": (lambda: bp.linspace(bp.asarray(V), number(1.0), 5), np.linspace(V, 1.0, 5)),
    "linspace of one": (lambda: bp.linspace(number(1.0), number(4.0), 1), np.linspace(1, 4, 1)),
    "arange": (lambda: bp.arange(number(7)), np.arange(7)),
    "arange from to": (lambda: bp.arange(1, number(9), step=number(3)), np.arange(1, 9, 3)),
    "zeros of a size": (lambda: bp.zeros(number(3), dtype=bp.float64), np.zeros(3)),
    "slices": (lambda: T[:, number(1) : number(3), number(0)], A[:, 1:3, 0]),
    "diff": (lambda: bp.diff(T, 2, 1), np.diff(A, 2, 1)),
    "diff once": (lambda: bp.diff(T, 1), np.diff(A, 1)),
    "roll twice along an axis": (lambda: bp.roll(T, (1, 2), (1, 1)), np.roll(A, (1, 2), (1, 1))),
    "roll back and forth": (lambda: bp.roll(T, (1, 2, -1), (0, 2, 0)), np.roll(A, (1, 2, -1), (0, 2, 0))),
    "T": (lambda: T.T, A.T),
    "T of a vector": (lambda: bp.asarray(V).T, V),
    "std": (lambda: bp.std(T, axis=1, ddof=1), A.std(axis=1, ddof=1)),
    "std method": (lambda: T.std(ddof=1), A.std(ddof=1)),
    "var": (lambda: T.var(0, ddof=1, keepdims=True), A.var(0, ddof=1, keepdims=True)),
    "mean of a dtype": (lambda: bp.mean(bp.asarray(KINDS), dtype=bp.float64), KINDS.mean(dtype=np.float64)),
    "cumsum": (lambda: T.cumsum(), A.cumsum()),
    "cumsum along": (lambda: T.cumsum(1), A.cumsum(1)),
    "cumprod": (lambda: bp.cumprod(T), A.cumprod()),
    "unique rows": (lambda: bp.unique(bp.asarray(KINDS), axis=0), np.unique(KINDS, axis=0)),
    "unique columns": (lambda: bp.unique(bp.asarray(KINDS), dim=1), np.unique(KINDS, axis=1)),
    "unique rows and all": (lambda: bp.unique(bp.asarray(KINDS), True, True, True, axis=0), np.unique(KINDS, True, True, True, axis=0)),
    "unique of no rows": (lambda: bp.unique(bp.asarray(KINDS[:0]), axis=0), KINDS[:0]),
    "insert": (lambda: bp.insert(T, 1, 5.0), np.insert(A, 1, 5.0)),
    "insert along": (lambda: bp.insert(T, 1, 5, axis=1), np.insert(A, 1, 5, axis=1)),
    "insert at the end": (lambda: bp.insert(bp.asarray(V), [1, 6, 1], [7.0, 8.0, 9.0]), np.insert(V, [1, 6, 1], [7.0, 8.0, 9.0])),
    "insert rows": (lambda: bp.insert(bp.asarray(M), [0, -1], V[:3], axis=0), np.insert(M, [0, -1], V[:3], axis=0)),
    "insert a column": (lambda: bp.insert(bp.asarray(M), 2, V[:4], axis=1), np.insert(M, 2, V[:4], axis=1)),
    "insert columns": (lambda: bp.insert(bp.asarray(M), [1], M[:, :2], axis=1), np.insert(M, [1], M[:, :2], axis=1)),
    "insert by a slice": (lambda: bp.insert(bp.asarray(V), slice(1, 4), [7.0, 8.0, 9.0]), np.insert(V, slice(1, 4), [7.0, 8.0, 9.0])),
    "delete": (lambda: bp.delete(T, 3), np.delete(A, 3)),
    "delete along": (lambda: bp.delete(T, [0, -1], axis=2), np.delete(A, [0, -1], axis=2)),
    "delete a slice": (lambda: bp.delete(T, slice(None, None, 2), 1), np.delete(A, slice(None, None, 2), 1)),
    "delete by bools": (lambda: bp.delete(bp.asarray(V), V > 0), np.delete(V, V > 0)),
    "delete nothing": (lambda: bp.delete(bp.asarray(V), []), V),
    "partition": (lambda: bp.partition(bp.asarray(V), 2)[2], np.partition(V, 2)[2]),
    "partition all": (lambda: bp.partition(T, 5, axis=None)[5], np.partition(A, 5, axis=None)[5]),
    "argpartition": (lambda: bp.argpartition(T, 1)[..., 1], np.argpartition(A, 1)[..., 1]),
    "ix_": (lambda: T[bp.ix_([1], [0, 2], [3, 0])], A[np.ix_([1], [0, 2], [3, 0])]),
    "ix_ of bools": (lambda: bp.ix_([True, False, True], [1]), np.ix_([True, False, True], [1])),
    "chunk": (lambda: T.chunk(2, 2), np.split(A, 2, 2)),
    "expand": (lambda: bp.asarray(V).expand(2, -1), np.broadcast_to(V, (2, 6))),
    "expand to a shape": (lambda: bp.expand(bp.asarray(M[:, :1]), (5, -1, 3)), np.broadcast_to(M[:, :1], (5, 4, 3))),
    "to a dtype": (lambda: T.to(dtype=bp.float32), A.astype(np.float32)),
    "to both": (lambda: T.to("cpu", bp.float32), A.astype(np.float32)),
    "to both by name": (lambda: T.to(device="cpu", dtype="float32"), A.astype(np.float32)),
    "to another": (lambda: T.to(bp.zeros(1)), A.astype(np.float32)),
    "norm": (lambda: T.norm(), np.linalg.norm(A)),
    "norm along": (lambda: T.norm(dim=1, keepdim=True), np.linalg.norm(A, axis=1, keepdims=True)),
    "norm of p": (lambda: bp.norm(bp.asarray(M), 1), np.abs(M).sum()),
    "norm of axes": (lambda: bp.norm(T, 3, (0, 2)), (np.abs(A) ** 3).sum((0, 2)) ** (1 / 3)),
    "nuclear norm": (lambda: bp.norm(bp.asarray(M), "nuc"), np.linalg.norm(M, "nuc")),
    "data": (lambda: T.data, A),
    "real": (lambda: (T * 2j).real, np.zeros_like(A)),
    "imag": (lambda: (T * 2j).imag, 2 * A),
    "real of reals": (lambda: T.real, A),
    "imag of reals": (lambda: T.imag, np.zeros_like(A)),
    "mH": (lambda: (T * 2j).mH, (A * -2j).swapaxes(1, 2)),
    "masked_fill_": (lambda: (T + 0).masked_fill_(T > 0, 0), np.where(A > 0, 0, A)),
    "index_add_": (lambda: (T + 0).index_add_(1, bp.asarray([0, 0]), T[:, 1:], alpha=2), np.stack([A[:, 0] + 2 * A[:, 1:].sum(1), A[:, 1], A[:, 2]], 1)),
    "index_fill_": (lambda: (T + 0).index_fill_(2, bp.asarray([0, 3]), 9), np.where(np.isin(np.arange(4), [0, 3]), 9, A)),
    "index_copy_": (lambda: (T + 0).index_copy_(1, bp.asarray([2, 0]), T[:, :2]), np.stack([A[:, 1], A[:, 1], A[:, 0]], 1)),
    "scatter_": (lambda: (T + 0).scatter_(2, bp.asarray(np.full((2, 3, 1), 1)), 9), np.where(np.arange(4) == 1, 9, A)),
    "scatter_add_": (lambda: (T + 0).scatter_add_(2, bp.asarray(np.full((2, 3, 4), 1)), T), np.where(np.arange(4) == 1, A + A.sum(2, keepdims=True), A)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name):
    call, expected = CASES[name]
    same(call(), expected)


def test_in_place_forms_change_and_return_the_tensor():
    x = T + 0
    assert x.scatter_(2, bp.asarray(np.zeros((2, 3, 1), int)), 9) is x and x.index_fill_(0, bp.asarray([0]), 1) is x


@pytest.mark.parametrize("make", [bp.zeros, bp.ones, bp.rand, bp.randn, bp.empty, lambda n, **more: bp.full(n, 2.0, **more), bp.eye, lambda n, **more: bp.arange(float(n), **more),
                                  lambda n, **more: bp.linspace(0, 1, n, **more), lambda n, **more: bp.zeros_like(bp.ones(n), **more),
                                  lambda n, **more: bp.ones_like(bp.ones(n), **more), lambda n, **more: bp.full_like(bp.ones(n), 1, **more),
                                  lambda n, **more: bp.rand_like(bp.ones(n), **more), lambda n, **more: bp.randn_like(bp.ones(n), **more),
                                  lambda n, **more: bp.empty_like(bp.ones(n), **more)])  # fmt: skip
def test_what_makes_tensors_takes_requires_grad(make):
    assert make(3, requires_grad=True).requires_grad and make(3, requires_grad=True).is_leaf
    assert not make(3, requires_grad=False).requires_grad and not make(3).requires_grad


def test_gradients_pass_through_tensors_for_numbers():
    assert bp.grad(lambda t: bp.full((2, 3), t).sum())(number(2.0)).item() == 6
    assert bp.grad(lambda t: bp.linspace(t, 1.0, 5).sum())(number(2.0)).item() == pytest.approx(2.5)


@pytest.mark.parametrize("name, numpys, pytorchs", [("repeat", "backplane.repeat", "tile"), ("transpose", "permute_dims", "swapaxes")])
def test_names_of_two_meanings_say_both(name, numpys, pytorchs):
    with pytest.raises(TypeError, match=f"{name}: .*NumPy.*PyTorch") as raised:
        getattr(T[0], name)(0, 1)
    assert numpys in str(raised.value) and pytorchs in str(raised.value)


def test_numbers_where_pytorch_takes_them_for_vectors_of_one():
    x, at = number(2.0), number(0)
    for found in (bp.topk(x, 1), x.topk(1, largest=False, sorted=True), x.topk(1, dim=0)):
        assert (found.values.shape, found.indices.shape) == ((), ()) and found.values.item() == 2 and found.indices.item() == 0
    assert bp.scatter(x, 0, at, number(5.0)).tolist() == 5 and x.gather(0, at).tolist() == 2
    assert bp.bucketize(2.0, bp.asarray([1.0, 3.0])).item() == 1
    F = bp.nn.functional
    for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.binary_cross_entropy, F.binary_cross_entropy_with_logits, F.kl_div, F.poisson_nll_loss):
        assert loss(number(0.5), number(1.0)).shape == ()
    assert F.cross_entropy(bp.asarray([1.0, 2.0]), number(1)).shape == () and F.nll_loss(bp.asarray([1.0, 2.0]), number(1)).tolist() == -2


X = bp.asarray([[5.0, -6.0], [7.0, 8.0]])
W = bp.asarray([1.0, 2.0])
# What PyTorch's words say, and the same in ours.
PYTORCHS = {
    "add": (lambda: bp.add(input=X, other=W, alpha=2), lambda: X + 2 * W),
    "sub": (lambda: bp.sub(input=X, other=W, alpha=2), lambda: X - 2 * W),
    "sub_": (lambda: X.copy().sub_(W, alpha=2), lambda: X - 2 * W),
    "add of bools": (lambda: bp.add(X > 0, X > 6, alpha=2), lambda: X > 0),
    "add of bools times 0": (lambda: bp.add(X > 6, X > 0, alpha=0), lambda: X > 6),
    "add of a bool to integers": (lambda: bp.add(bp.asarray([1, 2]), W > 1, alpha=2), lambda: bp.asarray([1, 4])),
    "where": (lambda: bp.where(condition=X > 6, input=X, other=W), lambda: bp.where(X > 6, X, W)),
    "where by position and words": (lambda: bp.where(X > 6, input=X, other=0), lambda: bp.where(X > 6, X, 0)),
    "div": (lambda: bp.div(input=X, other=W, rounding_mode="floor"), lambda: X // W),
    "div_": (lambda: X.copy().div_(2, rounding_mode="floor"), lambda: X // 2),
    "div_ of integers": (lambda: bp.asarray([7, -7]).div_(2, rounding_mode="trunc"), lambda: bp.asarray([3, -3])),
    "round_": (lambda: (X / 3).round_(decimals=1), lambda: bp.round(X / 3, 1)),
    "round": (lambda: bp.round(input=X), lambda: bp.round(X)),
    "float_power": (lambda: bp.float_power(W, exponent=2), lambda: bp.float_power(W, 2)),
    "diff before the first step": (lambda: bp.diff(X, n=0, prepend=X), lambda: X),
    "scatter": (lambda: bp.scatter(X, 0, bp.asarray([[1, 1]]), value=3), lambda: bp.scatter(X, 0, bp.asarray([[1, 1]]), 3)),
    "quantile": (lambda: bp.quantile(X, 0.4, interpolation="lower"), lambda: bp.quantile(X, 0.4, method="lower")),
    "var_mean": (lambda: bp.var_mean(X, dim=1, unbiased=False), lambda: (bp.var(X, 1), bp.mean(X, 1))),
    "std_mean": (lambda: bp.std_mean(X), lambda: (bp.std(X, correction=1), bp.mean(X))),
    "cov": (lambda: bp.cov(X, correction=0), lambda: bp.cov(X, ddof=0)),
    "diag": (lambda: bp.diag(X, diagonal=1), lambda: bp.diag(X, 1)),
    "diagflat": (lambda: bp.diagflat(W, offset=1), lambda: bp.diagflat(W, 1)),
    "diagonal": (lambda: bp.diagonal(T, dim1=1, dim2=2), lambda: bp.diagonal(T, axis1=1, axis2=2)),
    "fftshift": (lambda: bp.fft.fftshift(X, dim=0), lambda: bp.fft.fftshift(X, 0)),
    "softmax": (lambda: bp.softmax(X, dim=0, dtype=bp.float64), lambda: bp.softmax(X.astype(bp.float64), 0)),
    "logit": (lambda: bp.logit(bp.asarray([0.0, 0.5, 1.0]), 0.25), lambda: bp.logit(bp.asarray([0.25, 0.5, 0.75]))),
    "mm": (lambda: bp.mm(input=X, mat2=X), lambda: X @ X),
    "mv": (lambda: bp.mv(X, vec=W), lambda: X @ W),
    "dot": (lambda: bp.dot(W, tensor=W), lambda: W @ W),
    "outer": (lambda: bp.outer(W, vec2=W), lambda: bp.outer(W, W)),
    "isin": (lambda: bp.isin(elements=X, test_elements=W), lambda: bp.isin(X, W)),
    "heaviside": (lambda: bp.heaviside(X, values=W), lambda: bp.heaviside(X, W)),
    "logspace": (lambda: bp.logspace(0, end=3, steps=4), lambda: bp.logspace(0, 3, 4)),
    "tile": (lambda: bp.tile(W, dims=(2,)), lambda: bp.tile(W, 2)),
    "broadcast_to": (lambda: bp.broadcast_to(W, size=(2, 2)), lambda: bp.broadcast_to(W, (2, 2))),
    "split": (lambda: bp.split(bp.arange(4.0), split_size_or_sections=3), lambda: bp.split(bp.arange(4.0), 3, dim=0)),
    "vmap": (lambda: bp.vmap(lambda x: x * 2, in_dims=1, out_dims=0)(X), lambda: X.T * 2),
    "split of sizes": (lambda: bp.split(T, split_size_or_sections=[1, 3], dim=2), lambda: bp.split(T, [1, 3], dim=2)),
}


@pytest.mark.parametrize("name", PYTORCHS)
def test_words_of_pytorch(name):
    found, expected = (call() for call in PYTORCHS[name])
    same(found, tuple(x.numpy() for x in expected) if isinstance(expected, (list, tuple)) else expected.numpy())


@pytest.mark.parametrize("make", [bp.empty, bp.rand, bp.randn, bp.zeros])
def test_sizes_by_name(make):
    assert make(size=(2, 3)).shape == (2, 3) and make(size=(2,), requires_grad=True).requires_grad


def test_a_quotient_in_place_is_recorded():
    x = bp.asarray([4.0, 9.0]).requires_grad_()
    y = x * 1
    y.div_(2, rounding_mode=None)
    y.sum().backward()
    assert x.grad.tolist() == [0.5, 0.5]
    with pytest.raises(bp.DtypeError, match="divide"):
        bp.asarray([1, 2]).div_(2, rounding_mode=None)


@pytest.mark.parametrize("call, error, words", [
    (lambda: bp.insert(T, 4, 1.0, axis=1), IndexError, "insert: argument obj: found position 4"),
    (lambda: bp.delete(bp.asarray(V), 6), IndexError, "delete: argument obj: found position 6 for an axis of size 6"),
    (lambda: bp.delete(bp.asarray(V), 1.5), TypeError, "delete: argument obj: found float32"),
    (lambda: bp.partition(bp.asarray(V), 6), IndexError, "partition: argument kth: found 6"),
    (lambda: bp.ix_([[1]]), ValueError, "ix_: argument 0: found 2 dimensions"),
    (lambda: bp.expand(bp.asarray(V), (-1, 6)), ValueError, "expand: argument shape: found -1 for the new axis 0"),
    (lambda: bp.std(T, ddof=1, correction=1), TypeError, "std: found ddof and correction"),
    (lambda: bp.full((2,), bp.asarray(V)), ValueError, r"broadcast_to: .*\(6,\).*\(2,\)"),
    (lambda: bp.full((2,), bp.asarray(1j), dtype=bp.float32), TypeError, "complex"),
    (lambda: bp.zeros((2,), requires_grad=True, dtype=bp.int64), TypeError, "requires_grad"),
    (lambda: bp.norm(T, "odd"), TypeError, "norm.*odd"),
    (lambda: bp.norm(T, dim="x"), TypeError, "norm: argument dim: found 'x'"),
    (lambda: bp.chunk(T, None), TypeError, "chunk: argument chunks: found None"),
    (lambda: bp.rot90(T, None), TypeError, "rot90: argument k: found None"),
    (lambda: bp.einsum(T, "ijk->"), ValueError, "einsum: argument subscripts: found subscripts behind an operand"),
    (lambda: bp.nn.functional.group_norm(T, None), TypeError, "group_norm: argument num_groups: found None"),
    (lambda: bp.nn.functional.one_hot(bp.asarray([1]), None), TypeError, "one_hot: argument num_classes: found None"),
    (lambda: bp.vmap(bp.sum, in_dims=1, in_axes=1), TypeError, "vmap: found the arguments 'in_dims' and 'in_axes', which have the same meaning"),
    (lambda: bp.topk(T, 1, 0, dim=0), TypeError, "topk: found dim and axis"),
])  # fmt: skip
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_calls_that_only_one_library_has_work():
    """x.split(n) is PyTorch's alone; two ints exchange axes where NumPy's order would need as many as x has."""
    for found, expected in (
        (T.split(2, dim=-1), [A[..., :2], A[..., 2:]]),
        (T.split(1), [A[:1], A[1:]]),
        (T.split([1, 3], dim=2), [A[..., :1], A[..., 1:]]),
        (T.split(split_size=2, dim=1), [A[:, :2], A[:, 2:]]),
        (T.transpose(1, 2), A.swapaxes(1, 2)),
        (T.transpose(-1, 0), A.swapaxes(-1, 0)),
        (T.transpose(dim0=0, dim1=1), A.swapaxes(0, 1)),
        (T[0].transpose(1, 0), A[0].T),
        (T[0].transpose(dim0=0, dim1=1), A[0].T),
        (bp.transpose(T, 0, 2), A.swapaxes(0, 2)),
        (bp.transpose(T[0], 0, 1), A[0].T),
    ):
        same(found, expected)
    assert isinstance(T.split(2, dim=0), tuple)
    for call in (lambda: T[0].transpose(0, 1), lambda: T[0].transpose(-2, -1)):
        with pytest.raises(bp.ArgumentTypeError, match="NumPy .*PyTorch"):
            call()
    with pytest.raises(bp.OutOfRangeError):
        T.transpose(1, 3)


def test_lists_stand_for_further_tensors_by_annotation_before_the_call():
    """What a function takes is known before it runs: it runs once, and an AttributeError of its own stays one."""
    from backplane._calls._tensor_argument import takes_tensor

    calls = []

    @takes_tensor
    def weighed(x: "Tensor", weights: "Tensor | None" = None, factors: "Sequence[float] | Tensor" = ()):
        calls.append((weights, factors))
        return x.no_such_name if weights is None else x * weights

    same(weighed(T[0, 0], [1.0, 2.0, 3.0, 4.0]), A[0, 0] * [1, 2, 3, 4])
    assert isinstance(calls[0][0], bp.Tensor) and len(calls) == 1
    weighed(T[0, 0], weights=[1.0] * 4, factors=[3])
    assert calls[1][1] == [3] and calls[1][0].dtype is bp.float64
    with pytest.raises(AttributeError, match="no_such_name"):
        weighed([1.0, 2.0], factors=[1.0])
    assert len(calls) == 3
