"""Random programs of views and in-place changes: NumPy's values, and the gradients of finite differences of NumPy's programs."""

import random

import backplane as bp
import numpy as np
import pytest

PROGRAMS, BLOCK = 300, 50
SHAPES = [(4, 3), (3,), (12,)]
STEP = 1e-6

# Of the tensors made so far: what makes a view of one, what makes a new one, what changes one by another.
VIEWS = {
    "part": lambda x, r: x[r.randrange(x.shape[0]) :],
    "row": lambda x, r: x[r.randrange(x.shape[0])] if x.ndim > 1 else x[:],
    "transposed": lambda x, r: x.T,
    "every other": lambda x, r: x[::2],
    "an axis more": lambda x, r: x[:, None],
}
NEW = {"sum": lambda x, y, xp: x + y, "product": lambda x, y, xp: x * y, "sine": lambda x, y, xp: xp.sin(x)}


def add(x, y, xp):
    x += y


def multiply(x, y, xp):
    x *= y


def assign(x, y, xp):
    x[...] = y


def assign_part(x, y, xp):
    x[1:] = y[1:] * 0.5


CHANGES = [add, multiply, assign, assign_part]


def run(seed, make, xp):
    """Values of a program's tensors, and the differentiated tensors. Choices depend on shapes alone, which are the same for all."""
    r = random.Random(seed)
    shape = r.choice(SHAPES)
    leaf = make(shape, r.randrange(1000), True)
    tensors = [xp.sin(leaf), *(make(shape, r.randrange(1000), False) for _ in range(2))]
    for _ in range(r.randint(4, 14)):
        kind, x = r.choice(["view", "view", "new", "change", "change"]), r.choice(tensors)
        alike = [t for t in tensors if tuple(t.shape) == tuple(x.shape)]
        if kind == "view" and x.ndim:
            tensors.append(VIEWS[r.choice(list(VIEWS))](x, r))
        elif kind == "new":
            tensors.append(NEW[r.choice(list(NEW))](x, r.choice(alike), xp))
        elif kind == "change" and x.ndim:
            r.choice(CHANGES)(x, r.choice(alike), xp)
    chosen = [tensors[-1], *r.sample(tensors, 2)]
    return tensors, sum((t * t * (n + 1)).sum() for n, t in enumerate(chosen))


def of_numpy(leaf_change=None):
    def make(shape, seed, is_leaf):
        values = np.random.default_rng(seed).uniform(-1, 1, shape)
        return values + leaf_change.reshape(shape) if is_leaf and leaf_change is not None else values

    return make


def differences(seed, size):
    found = []
    for i in range(size):
        nudge = np.zeros(size)
        nudge[i] = STEP
        found.append((run(seed, of_numpy(nudge), np)[1] - run(seed, of_numpy(-nudge), np)[1]) / (2 * STEP))
    return np.array(found)


@pytest.mark.parametrize("first", range(0, PROGRAMS, BLOCK))
def test_values_and_gradients_are_numpys(first):
    followed = 0
    for seed in range(first, first + BLOCK):
        leaves = []

        def make(shape, seed, is_leaf, leaves=leaves):
            tensor = bp.asarray(of_numpy()(shape, seed, is_leaf), copy=True)
            leaves.extend([tensor.requires_grad_()] if is_leaf else [])
            return tensor

        tensors, loss = run(seed, make, bp)
        expected, expected_loss = run(seed, of_numpy(), np)
        for t, e in zip(tensors, expected, strict=True):
            np.testing.assert_allclose(t.detach().numpy(), e, rtol=1e-12, atol=1e-12, err_msg=f"program {seed}")
        gradient = differences(seed, leaves[0].size)
        try:
            loss.backward() if loss.requires_grad else None
        except bp.ArgumentValueError as error:
            assert "saved was changed in place since" in str(error)
            continue
        followed += 1
        if loss.requires_grad:
            np.testing.assert_allclose(leaves[0].grad.numpy().reshape(-1), gradient, rtol=1e-4, atol=1e-5, err_msg=f"program {seed}")
        else:
            np.testing.assert_allclose(gradient, 0, atol=1e-9, err_msg=f"program {seed}")
        assert float(expected_loss) == pytest.approx(loss.item(), rel=1e-10)
    assert followed > BLOCK / 2


# f gives a number of an array x; g is its gradient there, v a direction.
TRANSFORMS = {
    "grad": (lambda f, x, v: bp.grad(f)(x), lambda loss, g, v: g),
    "compile": (lambda f, x, v: bp.compile(f)(x), lambda loss, g, v: loss),
    "compile of grad": (lambda f, x, v: bp.compile(bp.grad(f))(x), lambda loss, g, v: g),
    "grad of compile": (lambda f, x, v: bp.grad(bp.compile(f))(x), lambda loss, g, v: g),
    "jvp": (lambda f, x, v: bp.jvp(f, (x,), (v,))[1], lambda loss, g, v: (g * v).sum()),
    "vmap of grad": (lambda f, x, v: bp.vmap(bp.grad(f))(bp.stack([v, x]))[1], lambda loss, g, v: g),
    "grad of a checkpoint": (lambda f, x, v: bp.grad(bp.checkpoint(f))(x), lambda loss, g, v: g),
    "jvp of a checkpoint": (lambda f, x, v: bp.jvp(bp.checkpoint(f), (x,), (v,))[1], lambda loss, g, v: (g * v).sum()),
    "vmap of a checkpoint": (lambda f, x, v: bp.vmap(bp.checkpoint(f))(bp.stack([v, x]))[1], lambda loss, g, v: loss),
    "cond": (lambda f, x, v: bp.grad(lambda y: bp.cond(y.sum() > y.sum() + 1, lambda z: z.sum(), f, y))(x), lambda loss, g, v: g),
    "scan": (
        lambda f, x, v: bp.grad(lambda y: bp.scan(lambda c, row: (c + f(row), c), bp.asarray(0.0, dtype=bp.float64), y[None])[0])(x),
        lambda loss, g, v: g,
    ),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms_see_every_change(transform):
    found_by, expected_by = TRANSFORMS[transform]
    for seed in range(PROGRAMS, PROGRAMS + 25):
        leaves = []

        def numpys(shape, seed, is_leaf, leaves=leaves):
            values = of_numpy()(shape, seed, is_leaf)
            leaves.extend([values.copy()] if is_leaf else [])
            return values

        _, loss = run(seed, numpys, np)

        def function(x, seed=seed):
            return run(seed, lambda shape, seed, is_leaf: x if is_leaf else bp.asarray(of_numpy()(shape, seed, False), copy=True), bp)[1]

        direction = np.random.default_rng(seed).uniform(-1, 1, leaves[0].shape)
        gradient = differences(seed, leaves[0].size).reshape(leaves[0].shape)
        found = found_by(function, bp.asarray(leaves[0], copy=True), bp.asarray(direction, copy=True))
        np.testing.assert_allclose(found.numpy(), expected_by(loss, gradient, direction), rtol=1e-4, atol=1e-5, err_msg=f"program {seed}")
