"""opt_einsum finds our functions by the tensors' module; einops by the class of backplane.einops, or through the array API."""

import backplane as bp
import backplane.einops
import einops
import einops.array_api
import numpy as np
import opt_einsum
import pytest
from ecosystem_data import V, X, same, tensors

EXPRESSIONS = [("ij,kj,kl->il", (X, X, X)), ("ij,j->i", (X, V[:4])), ("...i,...i->...", (X, X)), ("ii->", (X[:4],)), ("i,j,k->ijk", (V, V, V)), ("ij->ji", (X,))]


@pytest.mark.parametrize("expression, operands", EXPRESSIONS, ids=[expression for expression, _ in EXPRESSIONS])
def test_contractions(expression, operands):
    expected = np.einsum(expression, *operands)
    same(opt_einsum.contract(expression, *tensors(*operands)), expected)
    shapes = [operand.shape for operand in operands]
    same(opt_einsum.contract_expression(expression, *shapes)(*tensors(*operands)), expected)


def test_a_contraction_is_differentiated():
    x, v = tensors(X, V[:4])
    same(bp.grad(lambda v: opt_einsum.contract("ij,j,j->", x, v, v))(v), 2 * X.sum(0) * V[:4])


IMAGES = np.arange(2 * 4 * 6 * 3.0).reshape(2, 4, 6, 3)
PATTERNS = {
    "rearrange": lambda e, x: e.rearrange(x, "b (h h2) (w w2) c -> b h w (c h2 w2)", h2=2, w2=2),
    "transpose": lambda e, x: e.rearrange(x, "b h w c -> b c h w"),
    "flatten": lambda e, x: e.rearrange(x, "b h w c -> b (h w c)"),
    "max": lambda e, x: e.reduce(x, "b (h h2) (w w2) c -> b h w c", "max", h2=2, w2=3),
    "mean": lambda e, x: e.reduce(x, "b h w c -> b c", "mean"),
    "sum": lambda e, x: e.reduce(x, "b h w c -> ", "sum"),
    "prod": lambda e, x: e.reduce(x[:, :2, :2], "b h w c -> b", "prod"),
    "repeat": lambda e, x: e.repeat(x, "b h w c -> b (h 2) w c"),
    "new axis": lambda e, x: e.repeat(x, "b h w c -> b k h w c", k=3),
    "list": lambda e, x: e.rearrange([x[0], x[1]], "b h w c -> h (b w) c"),
    "pack": lambda e, x: e.pack([x, x[..., 0]], "b h *")[0],
}


DOORS = [(einops, pattern) for pattern in PATTERNS] + [(einops.array_api, pattern) for pattern in PATTERNS if pattern != "list"]


@pytest.mark.parametrize("door, pattern", DOORS, ids=[f"{door.__name__}-{pattern}" for door, pattern in DOORS])
def test_einops(door, pattern):
    same(PATTERNS[pattern](door, bp.asarray(IMAGES)), PATTERNS[pattern](einops, IMAGES))


def test_einops_sums_products():
    x, v = tensors(X, V[:4])
    same(einops.einsum(x, v, "i j, j -> i"), X @ V[:4])


def test_einops_inside_transforms():
    x = bp.asarray(X)
    same(bp.grad(lambda x: (einops.reduce(x, "(a b) c -> a c", "mean", b=2) ** 2).sum())(x), np.repeat(X.reshape(15, 2, 4).mean(1), 2, 0))
    same(bp.vmap(lambda row: einops.rearrange(row, "(a b) -> b a", a=2))(x), X.reshape(30, 2, 2).swapaxes(1, 2))
    assert backplane.einops.BackplaneBackend.framework_name == "backplane"
