"""What every rank checks: each collective against NumPy's result from the operands of all ranks, which each rank can make."""

import os
import re

import numpy as np

import backplane as bp

d = bp.distributed
WHOLE = os.environ.get("BACKPLANE_COLLECTIVES_WHOLE") == "1"
DTYPES = "bool int8 int64 uint16 bfloat16 float32 complex64".split()
if WHOLE:
    DTYPES += "int16 int32 uint8 uint32 uint64 float16 float64 complex128".split()
SHAPES = [(), (0,), (4, 0), (4,), (4, 3), (8, 1000), *([(4 << 20,), (16 << 20,)] if WHOLE else [])]  # the last: 64 MiB of float32
OPS = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}


def operands(shape, dtype, seed=0, n=None):
    """The operand of each rank, as NumPy's array; half floats as float32."""
    found = []
    for rank in range(n or d.size()):
        draw = np.random.default_rng([seed, rank])
        if dtype == "bool":
            found.append(draw.random(shape) < 0.5)
        elif "int" in dtype:
            found.append(draw.integers(0, 5, shape).astype(dtype))
        else:
            values = np.asarray(draw.integers(-8, 9, shape), np.float64) / 4
            if dtype.startswith("complex"):
                values = values + 1j * (np.asarray(draw.integers(-8, 9, shape), np.float64) / 4)
            found.append(values.astype("float32" if "float16" in dtype else dtype))
    return found


def mine(arrays, dtype):
    return bp.asarray(arrays[d.rank()], dtype=getattr(bp, dtype))


def same(found, expected, what):
    shown = np.asarray(found.astype(bp.float32).tolist() if found.dtype in (bp.float16, bp.bfloat16) else found.numpy())
    expected = np.asarray(expected)
    assert shown.shape == expected.shape, f"{what}: found shape {shown.shape}, expected {expected.shape}"
    np.testing.assert_allclose(shown, expected, rtol=1e-5, atol=1e-6, err_msg=what)


def reductions(dtype):
    if dtype == "bool":
        return ["max", "min", "prod"]
    if dtype.startswith("complex"):
        return ["sum", "mean", "prod"]
    return ["sum", "max", "min", "prod"] if "int" in dtype else ["sum", "mean", "max", "min", "prod"]


def reduced(arrays, op, dtype):
    result = OPS[op](np.stack(arrays), axis=0)
    if "float16" in dtype:
        return np.asarray(bp.asarray(np.asarray(result, np.float32)).astype(getattr(bp, dtype)).astype(bp.float32).tolist(), np.float32).reshape(result.shape)
    return result.astype(dtype)


def check_reductions():
    r, n = d.rank(), d.size()
    for dtype in DTYPES:
        for shape in SHAPES:
            if np.prod(shape) > 10**5 and dtype not in ("float32", "int8"):
                continue
            arrays = operands(shape, dtype)
            for op in reductions(dtype):
                what, expected = f"{op} of {dtype} {shape}", reduced(arrays, op, dtype)
                same(d.all_reduce(mine(arrays, dtype), op=op), expected, "all_reduce " + what)
                root = n - 1
                same(d.reduce(mine(arrays, dtype), root, op), expected if r == root else np.zeros_like(expected), "reduce " + what)
                if shape and shape[0] % n == 0:
                    k = shape[0] // n
                    same(d.reduce_scatter(mine(arrays, dtype), op), expected[r * k : (r + 1) * k], "reduce_scatter " + what)


def check_moves():
    r, n = d.rank(), d.size()
    for dtype in DTYPES:
        for shape in SHAPES:
            if np.prod(shape) > 10**5 and dtype not in ("float32", "int8"):
                continue
            arrays, what = operands(shape, dtype), f"of {dtype} {shape}"
            joined = np.concatenate([np.atleast_1d(a) for a in arrays])
            x, root = mine(arrays, dtype), n - 1
            same(d.all_gather(x), joined, "all_gather " + what)
            same(d.gather(x, root), joined if r == root else np.zeros_like(joined), "gather " + what)
            same(d.broadcast(x, root), arrays[root], "broadcast " + what)
            if shape and shape[0] % n == 0:
                k = shape[0] // n
                same(d.scatter(x, root), arrays[root][r * k : (r + 1) * k], "scatter " + what)
                same(d.all_to_all(x), np.concatenate([a[r * k : (r + 1) * k] for a in arrays]), "all_to_all " + what)
            if r == 0:
                for other in range(1, n):
                    d.send(x, dest=other)
            else:
                same(d.recv(like=bp.zeros_like(x), source=0), arrays[0], "recv " + what)
    d.barrier()


def check_layouts():
    """Transposed, sliced and expanded tensors count by their elements."""
    base = bp.arange(24.0).reshape((4, 6)) + d.rank()
    for x in (base.T, base[::2, 1:], bp.broadcast_to(base[:1], (4, 6))):
        same(d.all_reduce(x), sum(x.numpy() - d.rank() + i for i in range(d.size())), "all_reduce of a view")
        same(d.all_gather(x)[: x.shape[0]], x.numpy() - d.rank(), "all_gather of a view")


def check_refusals():
    n = d.size()
    if n == 1:
        return  # which divides every size
    x = bp.ones(n + 1)
    for call, error in [
        (lambda: d.reduce_scatter(x), bp.ShapeError),
        (lambda: d.all_to_all(bp.ones(())), bp.ShapeError),
        (lambda: d.all_reduce(bp.arange(3), "mean"), bp.DtypeError),
        (lambda: d.all_reduce(x.astype(bp.complex64), "max"), bp.DtypeError),
        (lambda: d.all_reduce(x > 0), bp.DtypeError),
        (lambda: d.all_reduce(x, op="average"), bp.ArgumentValueError),
        (lambda: d.broadcast(x, n), bp.ArgumentValueError),
        (lambda: d.broadcast(x, "0"), bp.ArgumentTypeError),
        (lambda: d.send(x, dest=d.rank()), bp.ArgumentValueError),
        (lambda: d.all_reduce({"a": x}), bp.ArgumentTypeError),
        (lambda: d.all_reduce(x, group=[0]), bp.ArgumentTypeError),
        (lambda: d.new_group([0, 0]), bp.ArgumentValueError),
        (lambda: d.mesh((n, 2), ("a", "b")), bp.ArgumentValueError),
        (lambda: bp.grad(lambda v: d.reduce_scatter(v, "max").sum())(bp.ones(n)), bp.ArgumentValueError),
        (lambda: bp.export(d.all_reduce, [x], os.devnull), bp.MissingRuleError),
    ]:
        try:
            call()
        except error:
            continue
        raise AssertionError(f"a call was not refused by {error.__name__}")


# Linear in x: (the function, rows of x per rank). Each has an adjoint.
LINEAR = {
    "all_reduce": lambda x: d.all_reduce(x),
    "all_reduce mean": lambda x: d.all_reduce(x, "mean"),
    "all_gather": lambda x: d.all_gather(x),
    "reduce_scatter": lambda x: d.reduce_scatter(x),
    "reduce_scatter mean": lambda x: d.reduce_scatter(x, "mean"),
    "broadcast": lambda x: d.broadcast(x, d.size() - 1),
    "reduce": lambda x: d.reduce(x, d.size() - 1),
    "reduce mean": lambda x: d.reduce(x, 0, "mean"),
    "all_to_all": lambda x: d.all_to_all(x),
    "scatter": lambda x: d.scatter(x, d.size() - 1),
    "gather": lambda x: d.gather(x, d.size() - 1),
}
REDUCING = {op: (lambda x, op=op: d.all_reduce(x, op)) for op in ("max", "min", "prod")}


def joined(x):
    """Of all ranks, the same for each."""
    return d.all_gather(x.reshape((1, *x.shape))).numpy()


def draw(shape, seed):
    return bp.asarray(np.random.default_rng([seed, d.rank()]).normal(size=shape))


def check_adjoints():
    """⟨f(t), g⟩ = ⟨t, vjp(g)⟩ over all ranks; jvp = f for a linear function."""
    for name, f in LINEAR.items():
        x, t = draw((2 * d.size(), 3), 1), draw((2 * d.size(), 3), 2)
        out, pull = bp.vjp(f, x)
        g = draw(out.shape, 3)
        (cotangent,) = pull(g)
        value, tangent = bp.jvp(f, (x,), (t,))
        same(value, out.numpy(), name)
        same(tangent, f(t).numpy(), name + " jvp")
        left, right = (joined(tangent) * joined(g)).sum(), (joined(t) * joined(cotangent)).sum()
        assert abs(left - right) < 1e-9 * max(1, abs(left)), f"{name}: {left} != {right}"
        # Once more: the pull is linear, and its own adjoint is f.
        again = bp.vjp(lambda g: pull(g)[0], g)[1](t)[0]
        same(again, f(t).numpy(), name + " adjoint of the adjoint")


def check_derivatives():
    """Nonlinear functions, against differences in the direction t of all ranks."""
    for name, f in REDUCING.items():
        x, t, eps = draw((3,), 4), draw((3,), 5), 1e-6
        g = draw((3,), 6)
        difference = (f(x + eps * t) - f(x - eps * t)).numpy() / (2 * eps)
        tangent = bp.jvp(f, (x,), (t,))[1]
        np.testing.assert_allclose(tangent.numpy(), difference, rtol=1e-6, atol=1e-8, err_msg=name)
        (cotangent,) = bp.vjp(f, x)[1](g)
        left, right = (joined(tangent) * joined(g)).sum(), (joined(t) * joined(cotangent)).sum()
        assert abs(left - right) < 1e-9 * max(1, abs(left)), f"{name}: {left} != {right}"
    zeros = bp.asarray([0.0, 1.0, 2.0]) * (0 if d.rank() == 0 else 1)
    grads = bp.grad(lambda v: d.all_reduce(v, "prod").sum())(zeros)
    if d.size() == 1:
        return
    others = np.stack([np.array([0.0, 1.0, 2.0]) * (0 if i == 0 else 1) for i in range(d.size()) if i != d.rank()])
    same(grads, d.size() * others.prod(0), "prod at zeros")


def check_vmap():
    """Over every axis: as row by row."""
    n = d.size()
    for name, f in {**LINEAR, **REDUCING}.items():
        x = draw((2 * n, 3, 2), 7)
        rows = bp.stack([f(x[:, i]) for i in range(3)])
        same(bp.vmap(f, in_axes=1)(x), rows.numpy(), "vmap " + name)
        grads = bp.stack([bp.grad(lambda v: (f(v) ** 2).sum())(x[:, i]) for i in range(3)])
        same(bp.vmap(bp.grad(lambda v: (f(v) ** 2).sum()), in_axes=1)(x), grads.numpy(), "vmap of grad " + name)


def check_compiled():
    for name, f in {**LINEAR, **REDUCING}.items():
        whole = lambda x: f(x * 2) + 1
        loss = lambda x: (f(bp.sin(x)) ** 2).sum()
        compiled, gradient = bp.compile(whole), bp.compile(bp.grad(loss))
        for seed in (8, 9):
            x = draw((2 * d.size(), 3), seed)
            same(compiled(x), whole(x).numpy(), "compiled " + name)
            same(gradient(x), bp.grad(loss)(x).numpy(), "compiled gradient " + name)


def check_traces():
    """A trace keeps calls and their order: the same call twice is two calls, and what nobody reads stays."""

    def f(x):
        first = d.all_reduce(x)
        again = d.all_reduce(x)
        d.barrier()
        d.all_gather(x * 2)
        return first + again + bp.exp(x)

    x = bp.ones(3)
    expected = ["all_reduce", "all_reduce", "barrier", "all_gather"]
    graph = bp.make_graph(f)(x)
    assert [node.op.split("::")[1] for node in graph if node.op.startswith("collective::")] == expected
    assert planned(graph, x) == expected
    assert planned(bp.make_graph(lambda x: x + d.all_reduce(bp.ones(3)))(x), x) == ["all_reduce"]
    same(bp.compile(f)(x), 2 * d.size() + np.exp(np.ones(3)), "a compiled program of collectives")


def planned(graph, *inputs):
    """The collectives of the program that runs, in order."""
    return re.findall(r"^%.* = collective::(\w+)\(", graph.explain(*inputs), re.MULTILINE)


def check_order_around_regions():
    """What a compiler would join into one region does not swap two collectives that do not depend on each other."""

    def f(x):
        early = bp.exp(x) + 1
        first = d.all_reduce(early)
        second = d.all_gather(x)
        return bp.sin(early) * second[: x.shape[0]], first

    x = bp.ones(50_000)
    assert planned(bp.make_graph(f)(x), x) == ["all_reduce", "all_gather"]
    for found, expected in zip(bp.compile(f)(x), f(x)):
        same(found, expected.numpy(), "a compiled program with two collectives")


def check_control_flow():
    """A loop whose results nobody reads still calls."""

    def f(x):
        bp.scan(lambda carry, _: (d.all_reduce(carry), None), x, None, length=3)
        return x + 1

    x = bp.ones(2)
    assert "scan" in bp.make_graph(f)(x).explain(x)
    same(bp.compile(f)(x), x.numpy() + 1, "a loop of collectives")
    total = bp.scan(lambda carry, _: (d.all_reduce(carry), None), x, None, length=3)[0]
    same(total, x.numpy() * d.size() ** 3, "a loop of collectives")


def check_pipeline():
    """Two stages: the gradient goes back through send and recv."""
    if d.size() < 2:
        return
    w = bp.asarray([2.0, 3.0], dtype=bp.float64)
    for transform in (bp.grad, lambda f: bp.compile(bp.grad(f))):
        if d.rank() == 0:
            same(transform(lambda w: d.send(w**2, dest=1).sum())(w), 2 * w.numpy() * [3, 3], "gradient of the first stage")
        elif d.rank() == 1:
            same(transform(lambda like: (3 * d.recv(like, source=0)).sum())(bp.zeros(2, dtype=bp.float64)), [0, 0], "gradient of the second stage")
    d.barrier()


def check_groups():
    n, r = d.size(), d.rank()
    even, odd = d.new_group(range(0, n, 2)), d.new_group(range(1, n, 2)) if n > 1 else None
    own = even if r % 2 == 0 else odd
    ranks = [i for i in range(n) if i % 2 == r % 2]
    same(d.all_reduce(bp.asarray([float(r)]), group=own), [sum(ranks)], "all_reduce in a group")
    same(d.all_gather(bp.asarray([r]), group=own), ranks, "all_gather in a group")
    same(d.broadcast(bp.asarray([r]), own.size - 1, group=own), [ranks[-1]], "broadcast in a group")
    backward = d.new_group(range(n)[::-1])
    same(d.all_gather(bp.asarray([r]), group=backward), list(range(n))[::-1], "a group in another order")
    if n == 4:
        mesh = d.mesh((2, 2), ("data", "model"))
        assert mesh.coordinates == divmod(r, 2)
        same(d.all_gather(bp.asarray([r]), group=mesh.group("data")), [r % 2, r % 2 + 2], "data axis")
        same(d.all_gather(bp.asarray([r]), group=mesh.group("model")), [r // 2 * 2, r // 2 * 2 + 1], "model axis")
        same(d.all_gather(bp.asarray([r]), group=mesh.group(("data", "model"))), [0, 1, 2, 3], "both axes")


CHECKS = {name: f for name, f in globals().items() if name.startswith("check_")}
