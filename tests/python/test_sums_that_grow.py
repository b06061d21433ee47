"""Ops that accumulate keep the digits of their terms: ones beside a number to which float32 (or a half float) adds no one."""

import backplane as bp
import numpy as np
import pytest

F = bp.nn.functional
N = 16384
DTYPES = {bp.float32: 2.0**24, bp.float16: 2048.0, bp.bfloat16: 256.0, bp.complex64: 2.0**24}


def zeros(like, shape=(1,)):
    return bp.zeros(shape, dtype=like.dtype)


def at(n=N):
    return bp.zeros((n,), dtype=bp.int64)


def pulled(function, shape, cotangent):
    return bp.vjp(function, zeros(cotangent, shape))[1](cotangent)[0]


def far(function):
    """Beside so many other elements that few values go into the target."""
    return lambda v: function(v, 40 * N)


SUMS = {
    "index_add": lambda v, n=1: bp.index_add(zeros(v, (n,)), 0, at(), v)[0],
    "scatter_add": lambda v, n=1: bp.put_along_axis(zeros(v, (n,)), at(), v, axis=0, accumulate=True)[0],
    "columns": lambda v, n=1: bp.put_along_axis(zeros(v, (n, 32)), bp.zeros((N, 1), dtype=bp.int64), bp.broadcast_to(v[:, None], (N, 32)), axis=0, accumulate=True)[0, 7],
    "index_put": lambda v, n=1: bp.ops.bp.index_put(zeros(v, (n,)), [at()], v, accumulate=True)[0],
    "rows": lambda v, n=1: bp.index_add(zeros(v, (n, 3)), 0, at(), bp.broadcast_to(v[:, None], (N, 3)))[0, 1],
    "gradient of x[index]": lambda v, n=1: pulled(lambda x: x[at()], (n,), v)[0],
    "gradient of take": lambda v, n=1: pulled(lambda x: bp.take(x, at()), (n,), v)[0],
    "gradient of take_along_axis": lambda v, n=1: pulled(lambda x: bp.take_along_axis(x, at(), axis=0), (n,), v)[0],
    "gradient of embedding": lambda v, n=1: pulled(lambda w: F.embedding(at(), w), (n, 1), v[:, None])[0, 0],
    "gradient of broadcast_to": lambda v, n=1: pulled(lambda x: bp.broadcast_to(x, (N,)), (1,), v)[0],
    "segment_sum": lambda v, n=1: bp.ops.bp.segment_sum(v, at(), n)[0],
    "sum": lambda v, n=1: bp.sum(v),
    "sum of columns": lambda v, n=1: bp.sum(bp.broadcast_to(v[:, None], (N, 5)), axis=0)[2],
    "mean": lambda v, n=1: bp.mean(v) * N,
    "cumsum": lambda v, n=1: bp.cumulative_sum(v)[-1],
    "einsum": lambda v, n=1: bp.einsum("i->", v),
}
REAL = {
    "bincount": lambda v, n=1: bp.bincount(at(), weights=v)[0],
    "histogram": lambda v, n=1: bp.histogram(bp.zeros((N,)), bins=1, range=(-1, 1), weights=v)[0][0],
    "avg_pool1d": lambda v, n=1: F.avg_pool1d(v[None], N)[0, 0] * N,
    "avg_pool2d": lambda v, n=1: F.avg_pool2d(bp.reshape(v, (1, 128, 128)), 128)[0, 0, 0] * N,
    "adaptive_avg_pool1d": lambda v, n=1: F.adaptive_avg_pool1d(v[None], 1)[0, 0] * N,
}
FEW = ("index_add", "scatter_add", "columns", "index_put", "rows", "gradient of x[index]", "gradient of take", "gradient of take_along_axis", "gradient of embedding")


def every_case():
    for dtype in DTYPES:
        named = SUMS if dtype is bp.complex64 else SUMS | REAL
        for name, function in named.items():
            yield pytest.param(dtype, function, id=f"{dtype.name} {name}")
        for name in FEW:
            yield pytest.param(dtype, far(SUMS[name]), id=f"{dtype.name} {name} of many")


@pytest.mark.parametrize("dtype, function", list(every_case()))
def test_ones_beside_a_large_number_count(dtype, function):
    values = np.ones(N)
    values[0] = DTYPES[dtype]
    found = complex(np.asarray(function(bp.asarray(values).astype(dtype)).astype(bp.complex128)))
    eps = 2.0**-7 if dtype is bp.bfloat16 else 2.0**-10 if dtype is bp.float16 else 2.0**-14
    assert abs(found - values.sum()) <= eps * values.sum()


@pytest.mark.parametrize("dtype", DTYPES)
def test_windows_that_overlap_at_one_place(dtype):
    n = 512
    cotangent = np.eye(n)[:, ::-1].copy()
    cotangent[0] *= DTYPES[dtype]
    cotangent = bp.asarray(cotangent).astype(dtype)
    found = complex(np.asarray(pulled(lambda x: bp.ops.bp.unfold(x, 0, n, 1), (2 * n - 1,), cotangent)[n - 1].astype(bp.complex128)))
    expected = DTYPES[dtype] + n - 1
    assert abs(found - expected) <= (2.0**-7 if dtype is bp.bfloat16 else 2.0**-10 if dtype is bp.float16 else 2.0**-20) * expected


@pytest.mark.parametrize("dtype", [bp.float32, bp.complex64, bp.float16])
def test_products_of_many_factors(dtype):
    n = 4096 if dtype is bp.float16 else 1_000_000
    draw = np.random.default_rng(0)
    factors = 1 + (draw.choice([-1, 1], n) * 2.0**-10 if dtype is bp.float16 else draw.standard_normal(n) * 1e-3)
    x = bp.asarray(factors).astype(dtype)
    expected = np.exp(np.log(np.asarray(x.astype(bp.complex128))).sum())
    eps = 2.0**-10 if dtype is bp.float16 else 2.0**-21
    scattered = bp.ops.bp.scatter_prod(bp.ones((1,), dtype=dtype), at(n), x, axis=0)[0]
    for found in (bp.prod(x), bp.cumulative_prod(x)[-1], scattered, bp.ops.bp.segment_prod(x, at(n), 1)[0]):
        assert abs(complex(np.asarray(found.astype(bp.complex128))) - expected) <= eps * abs(expected)
