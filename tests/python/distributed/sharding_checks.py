"""Sharded tensors on every rank, against the same program of one process on the whole tensors."""

import itertools

import collective_checks as checks
import numpy as np

import backplane as bp

d = bp.distributed


def draw(shape, seed):
    return bp.asarray(np.random.default_rng(seed).normal(size=shape))


def meshes():
    n = d.size()
    yield d.mesh((n,), ("data",))
    yield d.mesh((2, n // 2) if n % 2 == 0 else (n, 1), ("data", "model"))


def specs(mesh, ndim):
    names = [None, *mesh.axis_names]
    for spec in itertools.product(names, repeat=ndim):
        used = [s for s in spec if s]
        if len(set(used)) == len(used):
            yield spec


def same(found, expected, what):
    np.testing.assert_allclose(bp.replicate(found).numpy(), expected.numpy(), rtol=1e-10, atol=1e-12, err_msg=what)


def refused(call, error=bp.MissingRuleError):
    try:
        call()
    except error:
        return
    raise AssertionError(f"a call was not refused by {error.__name__}")


def check_sharding():
    for mesh in meshes():
        x = draw((12, 12), 0)
        for spec in specs(mesh, 2):
            s = bp.shard(x, mesh, spec)
            share = np.prod([mesh.axis_size(name) for name in spec if name] or [1])
            assert s.shape == x.shape and s.local.size == x.size // share and s.spec == spec
            same(s, x, f"replicate {spec}")
            for other in specs(mesh, 2):
                again = bp.reshard(s, other)
                assert again.spec == other
                np.testing.assert_array_equal(again.local.numpy(), bp.shard(x, mesh, other).local.numpy(), err_msg=f"{spec} to {other}")
        refused(lambda: bp.shard(bp.ones(12 * mesh.size + 1), mesh, mesh.axis_names[0]) if mesh.axis_size(mesh.axis_names[0]) > 1 else bp.shard(x, mesh, "none"), ValueError)
        refused(lambda: bp.shard(x, mesh, ("data", "data")), bp.ArgumentValueError)
        refused(lambda: bp.shard(x, mesh, ("rows",)), bp.ArgumentValueError)
        refused(lambda: bp.linalg.inv(bp.shard(x, mesh, ("data", None))), (TypeError, bp.MissingRuleError))
        refused(lambda: bp.cumulative_sum(bp.shard(x, mesh, (None, "data")), axis=1))
        refused(lambda: bp.reshape(bp.shard(x, mesh, (None, "data")), (-1,)) if mesh.axis_size("data") > 1 else bp.prod(bp.shard(x, mesh, "data")))
        refused(lambda: bp.shard(x, mesh, "data")[1:])
        refused(lambda: bp.concat([bp.shard(x, mesh, "data")] * 2))
        refused(lambda: bp.std(bp.shard(x, mesh, "data"), dim=0))
        refused(lambda: bp.prod(bp.shard(x, mesh, "data")))
        refused(lambda: bp.shard(x, mesh, "data")[[0, 1]])


FUNCTIONS = {
    "elementwise": lambda x, y, b: bp.tanh(x * y + b) / 2 - x**2,
    "matmul": lambda x, y, b: x @ y + b,
    "transposed": lambda x, y, b: x.mT @ y,
    "sum": lambda x, y, b: (x * y).sum(),
    "sum over rows": lambda x, y, b: bp.sum(x * y, axis=0),
    "mean over columns": lambda x, y, b: bp.mean(x * y, axis=1, keepdims=True) * x,
    "max": lambda x, y, b: bp.max(x + y, axis=-1),
    "min of all": lambda x, y, b: (x - y).min(),
    "where": lambda x, y, b: bp.where(x > 0, y, b),
    "var": lambda x, y, b: bp.var(x * y, axis=0, correction=1),
    "std of all": lambda x, y, b: bp.std(x + y, correction=0) + bp.var(x, axis=None),
    "logsumexp": lambda x, y, b: bp.logsumexp(x * y, axis=-1, keepdims=True) + bp.logsumexp(x - y, axis=0),
    "softmax": lambda x, y, b: bp.softmax(x, axis=1) * bp.log_softmax(y, axis=0),
    "rows and columns": lambda x, y, b: x[3] * y[:, -2] + x[2, 5] + b[None][..., 0, :],
    "reshape": lambda x, y, b: (x.reshape(4, 3, 12) * y.reshape((4, 3, 12)).sum(0)).reshape(12, -1),
    "flatten": lambda x, y, b: bp.flatten(x[:, :, None]) * bp.ravel(bp.expand_dims(y, 0)),
    "concat": lambda x, y, b: bp.concat([x, y * b], axis=1),
    "concat of rows": lambda x, y, b: bp.concat([x, y], axis=0).mT,
    "stack": lambda x, y, b: bp.stack([x, b * y], axis=1),
    "einsum": lambda x, y, b: bp.einsum("ij,kj,j->ki", x, y, b),
    "einsum of three": lambda x, y, b: bp.einsum("ij,jk,k->ik", x, y, b) + bp.einsum("ij->j", y),
    "batches": lambda x, y, b: x.reshape(4, 3, 12) @ y.reshape(4, 3, 12).swapaxes(1, 2),
    "linear": lambda x, y, b: bp.nn.functional.linear(x, y, b),
    "vectors": lambda x, y, b: (x @ b) @ y,
    "numbers": lambda x, y, b: 1 - 2 * x / (1 + bp.exp(-y)),
}


if not checks.WHOLE:
    for _name in ("transposed", "sum over rows", "min of all", "numbers", "std of all", "flatten", "concat of rows", "stack", "einsum of three", "vectors"):
        del FUNCTIONS[_name]


def check_ops():
    """Every way to divide the operands: the values and the gradients of the whole."""
    for mesh in meshes():
        x, y, b = draw((12, 12), 1), draw((12, 12), 2), draw((12,), 3)
        for name, f in FUNCTIONS.items():

            def loss(x, y, b):
                out = f(x, y, b)
                return (out * out).sum() if out.ndim else out * out

            expected, gradients = f(x, y, b), bp.grad(loss, argnums=(0, 1, 2))(x, y, b)
            taken = 0
            for left, right in itertools.product(specs(mesh, 2), repeat=2):
                sx, sy = bp.shard(x, mesh, left), bp.shard(y, mesh, right)
                what = f"{name} of {left} and {right}"
                try:
                    found = f(sx, sy, b)
                except bp.MissingRuleError:
                    continue
                taken += 1
                same(found, expected, what)
                for g, h in zip(bp.grad(loss, argnums=(0, 1, 2))(sx, sy, b), gradients):
                    same(g, h, "gradient: " + what)
            assert taken >= 2, f"{name}: {taken} ways to divide the operands are taken"
            same(f(bp.shard(x, mesh, ("data", None) if name != "concat of rows" else (None, "data")), y, b), expected, name)


def check_training():
    """A layer divided along its columns, one along its rows, the batch along the data axis: the digits of one process."""
    n = d.size()
    mesh = d.mesh((n // 2, 2) if n % 2 == 0 else (n, 1), ("data", "model"))
    x, y = draw((12, 6), 5), draw((12, 4), 6)
    params = {"w1": draw((6, 12), 7), "b1": draw((12,), 8), "w2": draw((12, 4), 9)}

    def loss(p, x, y):
        return ((bp.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] - y) ** 2).mean()

    adam = bp.optim.adam(lr=0.05)

    def trained(params, x, y, transform):
        state, losses = adam.init(params), []
        step = transform(bp.value_and_grad(loss))
        for _ in range(4):
            value, gradients = step(params, x, y)
            updates, state = adam.update(gradients, state, params)
            params = bp.tree.map(lambda p, u: p + u, params, updates)
            losses.append(float(value))
        return losses, params

    expected, whole = trained(params, x, y, lambda f: f)
    parts = {"w1": bp.shard(params["w1"], mesh, (None, "model")), "b1": bp.shard(params["b1"], mesh, ("model",)), "w2": bp.shard(params["w2"], mesh, ("model", None))}
    for transform in (lambda f: f, bp.compile):
        losses, found = trained(parts, bp.shard(x, mesh, ("data",)), bp.shard(y, mesh, ("data",)), transform)
        np.testing.assert_allclose(losses, expected, rtol=1e-9)
        for name, p in whole.items():
            same(found[name], p, name)


CHECKS = {name: f for name, f in globals().items() if name.startswith("check_")}
