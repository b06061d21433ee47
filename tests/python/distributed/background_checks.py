"""What every rank checks of collectives that run while the program computes: they give what the blocking ones give."""

import numpy as np

import backplane as bp
from collective_checks import DTYPES, mine, operands, reduced, reductions, same

d = bp.distributed


def check_background_reductions():
    r, n = d.rank(), d.size()
    for dtype in DTYPES:
        arrays = operands((2 * n, 3), dtype)
        for op in reductions(dtype):
            expected = reduced(arrays, op, dtype)
            x = mine(arrays, dtype)
            begun = d.all_reduce(x, op, async_op=True)
            scattered = d.reduce_scatter(x, op, async_op=True)
            same(begun.wait(), expected, f"all_reduce {op} of {dtype} in the background")
            same(scattered.wait(), expected[2 * r : 2 * r + 2], f"reduce_scatter {op} of {dtype} in the background")


def check_background_order():
    """Several at a time, waited for in another order, beside blocking ones; of x as it was."""
    r, n = d.rank(), d.size()
    x = bp.ones((1 << 16,)) * (r + 1)
    total = n * (n + 1) / 2
    works = [d.all_reduce(x * k, async_op=True) for k in range(4)]
    gathered = d.all_gather(bp.asarray([r]), async_op=True)
    assert d.all_reduce(bp.asarray(r + 1)).item() == total
    assert gathered.wait().tolist() == list(range(n))
    assert [work.wait()[-1].item() for work in works[::-1]] == [total * k for k in range(4)][::-1]
    changed = bp.ones(3)
    work = d.all_reduce(changed, async_op=True)
    changed += 10
    assert work.wait().tolist() == [n] * 3


def check_background_transforms():
    x = bp.asarray([[1.0, 2.0], [3.0, 4.0]], dtype=bp.float64) * (d.rank() + 1)
    calls = {
        "all_reduce": lambda x, **how: d.all_reduce(x, **how),
        "mean": lambda x, **how: d.all_reduce(x, "mean", **how),
        "all_gather": lambda x, **how: d.all_gather(x, **how),
        "reduce_scatter": lambda x, **how: d.reduce_scatter(bp.concat([x] * d.size()), **how),
    }
    for name, call in calls.items():
        def one(x, call=call):
            return call(x) * 2

        def two(x, call=call):
            work = call(x, async_op=True)
            return work.wait() * 2

        def loss(f):
            return lambda x: (f(x) ** 2).sum()

        same(bp.grad(loss(two))(x), bp.grad(loss(one))(x).numpy(), f"gradient of {name}")
        same(bp.jvp(two, (x,), (x,))[1], bp.jvp(one, (x,), (x,))[1].numpy(), f"jvp of {name}")
        if name != "reduce_scatter":
            same(bp.vmap(two)(x), bp.vmap(one)(x).numpy(), f"vmap of {name}")
        compiled = bp.compile(bp.grad(loss(two)))
        for _ in range(2):
            same(compiled(x), bp.grad(loss(one))(x).numpy(), f"compiled gradient of {name}")


def check_background_begins_early():
    """A graph begins to move data as soon as that is there, whatever else was traced before."""

    def f(x, w):
        sent, other = bp.sin(x), bp.tanh(x @ w)
        work = d.all_reduce(sent, async_op=True)
        return work.wait() @ bp.exp(other)

    x, w = bp.ones((4, 4)) * (d.rank() + 1), bp.ones((4, 4)) / 8
    compiled = bp.compile(f)
    compiled(x, w)
    with bp.profile() as profile:
        compiled(x, w)
    names = [event["name"] for event in profile.events]
    order = [next(i for i, name in enumerate(names) if wanted in name) for wanted in ("all_reduce_start", "matmul", "all_reduce_finish")]
    assert order == sorted(order), names
    same(compiled(x, w), f(x, w).numpy(), "a graph that begins early")


def check_background_buckets():
    r, n = d.rank(), d.size()
    gradients = [bp.ones((100, 100)) * (r + i) for i in range(5)]
    means = d.average_gradients(gradients, bucket_bytes=100_000)
    assert [mean[0, 0].item() for mean in means] == [(n - 1) / 2 + i for i in range(5)]


def check_background_refusals():
    work = d.all_reduce(bp.ones(2), async_op=True)
    assert "begun" in repr(work)
    work.wait()
    for call, text in (
        (work.wait, "was waited for before"),
        (lambda: bp.ops.collective.all_reduce_finish(bp.asarray([77]), bp.ones(2), n=d.size()), "found 77, expected the number of a call"),
    ):
        try:
            call()
        except bp.ArgumentValueError as error:
            assert text in str(error), error
        else:
            raise AssertionError(text)
    other = d.all_reduce(bp.ones(2), async_op=True)
    try:
        bp.ops.collective.all_reduce_finish(other._call, bp.ones(3), n=d.size())
    except bp.ArgumentValueError as error:
        assert "expected the call that has begun" in str(error), error
    else:
        raise AssertionError("another shape")
    assert np.all(other.wait().numpy() == d.size())


CHECKS = {name: f for name, f in globals().items() if name.startswith("check_")}
