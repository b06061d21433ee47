"""Tensors without dimensions in nested sequences: the constructors stack them, with their history, dtype and device."""

import backplane as bp
import numpy as np
import pytest

X = bp.asarray([1.0, 2.0, 3.0])

MAKERS = {
    "asarray": bp.asarray,
    "array": bp.array,
    "tensor": bp.tensor,
    "as_tensor": bp.as_tensor,
    "asarray of a tuple": lambda nested: bp.asarray(tuple(nested)),
    "assignment": lambda nested: assigned(nested),
}
# Nested sequences of elements of a vector, and the same of NumPy.
NESTS = {
    "a list": (lambda x: [x[0], x[2]], lambda x: [x[0], x[2]]),
    "with numbers": (lambda x: [x[0] * x[1], 5, 2.5], lambda x: [x[0] * x[1], 5, 2.5]),
    "two levels": (lambda x: [[x[0], 1], (x[1] * 2, x[2])], lambda x: [[x[0], 1], (x[1] * 2, x[2])]),
    "three levels": (lambda x: [[[bp.sin(x[0])], [x[1]]], [[0.5], [x[1]]]], lambda x: [[[np.sin(x[0])], [x[1]]], [[0.5], [x[1]]]]),
    "numbers first": (lambda x: [True, np.float64(2.0), x[1]], lambda x: [1, 2.0, x[1]]),
    "the same twice": (lambda x: [x[1], x[1]], lambda x: [x[1], x[1]]),
}


def assigned(nested):
    made = bp.zeros(np.shape(_plain(nested)), dtype=bp.float64)
    made[...] = list(nested)
    return made


def _plain(nested):
    return [_plain(one) for one in nested] if isinstance(nested, (list, tuple)) else 0


def expected(nest):
    """The values, and the gradient of their weighted sum by central differences."""
    x = X.numpy().astype(np.float64)
    value = np.array(NESTS[nest][1](x), np.float64)
    weights = np.arange(1.0, value.size + 1).reshape(value.shape)
    slope = [(np.sum(weights * np.array(NESTS[nest][1](x + step))) - np.sum(weights * np.array(NESTS[nest][1](x - step)))) / 2e-6
             for step in np.eye(3) * 1e-6]  # fmt: skip
    return value, bp.asarray(weights), slope


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("nest", NESTS)
def test_the_history_goes_on(maker, nest):
    value, weights, slope = expected(nest)
    leaf = bp.asarray(X, dtype=bp.float64, copy=True)
    leaf.requires_grad = True
    made = MAKERS[maker](NESTS[nest][0](leaf))
    assert made.dtype == bp.float64 and made.requires_grad
    np.testing.assert_allclose(made.detach().numpy(), value)
    bp.sum(made * weights).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), slope, rtol=1e-6)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("nest", NESTS)
def test_transforms_go_through(maker, nest):
    value, weights, slope = expected(nest)
    x = bp.asarray(X, dtype=bp.float64)
    made = lambda x: MAKERS[maker](NESTS[nest][0](x))  # noqa: E731
    if maker != "assignment":
        np.testing.assert_allclose(bp.grad(lambda x: bp.sum(made(x) * weights))(x).numpy(), slope, rtol=1e-6)
        _, tangent = bp.jvp(made, (x,), (bp.ones(3, dtype=bp.float64),))
        np.testing.assert_allclose(bp.sum(tangent * weights).item(), np.sum(slope), rtol=1e-6)
        rows = bp.stack([x, x * 2])
        np.testing.assert_allclose(bp.vmap(made)(rows).numpy(), [made(row).numpy() for row in (x, x * 2)])
        hessian = bp.hessian(lambda x: bp.sum(made(x) * made(x)))(x)
        np.testing.assert_allclose(hessian.numpy(), bp.hessian(lambda x: bp.sum(bp.stack([made(x)])[0] ** 2))(x).numpy())
    np.testing.assert_allclose(made(x).numpy(), value)


def test_the_dtype_is_the_tensors_numbers_weakly():
    half, wide, small = bp.asarray(1.0, dtype=bp.float16), bp.asarray(1 / 3, dtype=bp.float64), bp.asarray(7, dtype=bp.int8)
    assert bp.asarray([half, 2.5]).dtype == bp.float16 and bp.asarray([half, wide]).tolist() == [1.0, 1 / 3]
    assert bp.asarray([small, 1]).dtype == bp.int8 and bp.asarray([small, 1.5]).dtype == bp.float32
    assert bp.asarray([small, 1j]).dtype == bp.complex64 and bp.asarray([small, half], dtype=bp.float64).dtype == bp.float64
    assert bp.asarray([bp.asarray(True), False]).dtype == bp.bool
    assert bp.asarray([bp.asarray(2**64 - 1, dtype=bp.uint64), 0]).tolist() == [2**64 - 1, 0]


ROWS = {
    "rows": lambda x: [x, x * 2],
    "two levels": lambda x: [[x, x * 2], [bp.sin(x), x]],
    "beside numbers": lambda x: [x, [1, 2.5, x[0]]],
    "numbers first": lambda x: [[1, 2, 3], x],
    "beside an array": lambda x: [x, np.ones(3)],
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_tensors_with_dimensions_are_stacked(rows):
    leaf = bp.asarray(X, dtype=bp.float64, copy=True).requires_grad_()
    made = bp.asarray(rows(leaf))

    def plain(part):
        return [plain(p) for p in part] if isinstance(part, list) else np.asarray(part.detach() if hasattr(part, "detach") else part)

    np.testing.assert_array_equal(made.detach().numpy(), np.asarray(plain(rows(leaf)), dtype=np.float64))
    weights = bp.asarray(np.arange(1.0, made.size + 1).reshape(made.shape))
    found = bp.grad(lambda x: (bp.asarray(rows(x)) * weights).sum())(leaf.detach())
    step = 1e-6
    expected = [((bp.asarray(rows(leaf.detach() + e)) - bp.asarray(rows(leaf.detach() - e))) * weights).sum().item() / (2 * step)
                for e in bp.asarray(np.eye(3) * step)]  # fmt: skip
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
    traced = bp.compile(lambda x: bp.asarray(rows(x)))(leaf.detach())
    np.testing.assert_array_equal(traced.numpy(), made.detach().numpy())


def test_what_is_ragged_is_refused():
    for nested in ([X, X[:2]], [[X[0]], X], [X[0], [1.0]], [[1.0], X[0]], [X, 1.0], [1.0, X]):
        with pytest.raises(ValueError, match="asarray: found"):
            bp.asarray(nested)


@pytest.mark.usefixtures("simulator")
def test_on_another_device_they_stay_there():
    leaf = bp.asarray([1.0, 2.0], device="sim")
    leaf.requires_grad = True
    made = bp.asarray([[leaf[0], 3], [leaf[1] * 2, leaf[0]]])
    assert made.device == "sim" and made.detach().tolist() == [[1.0, 3.0], [4.0, 1.0]]
    bp.sum(made).backward()
    assert leaf.grad.tolist() == [2.0, 2.0]
    assert bp.asarray([leaf.detach()[0], 3], device="cpu").device == "cpu"
