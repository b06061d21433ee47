"""Kinds of staleness: sizes with names. What Python makes of a size with `dynamic=` is the same at every size, whatever sizes came before."""

import math
import types

import backplane as bp
from staleness_kinds import kind

TABLE = {8: 5.0, 9: 6.0}
ROW = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]
NAMES = types.SimpleNamespace(limit=8)
# A number that Python computes of the size n.
OF_SIZE = {
    "==": lambda n: 5 if n == 8 else 4,
    "!=": lambda n: 5 if n != 8 else 4,
    "<": lambda n: 5 if n < 8 else 4,
    "<=": lambda n: 5 if n <= 8 else 4,
    ">": lambda n: 5 if 8 > n else 4,
    "between": lambda n: 5 if 4 < n < 9 else 4,
    "%": lambda n: 5 if n % 2 else 4,
    "remainder": lambda n: n % 5,
    "&": lambda n: 5 if n & 1 else 4,
    "power of two": lambda n: 5 if n & (n - 1) == 0 else 4,
    "in a tuple": lambda n: 5 if n in (8, 3) else 4,
    "in a set": lambda n: 5 if n in {8, 3} else 4,
    "in a range": lambda n: 5 if n in range(8, 20) else 4,
    "key of a dict": lambda n: TABLE.get(n, 1.0),
    "in a dict": lambda n: 5 if n in TABLE else 4,
    "index of a list": lambda n: ROW[n % 10],
    "negative index": lambda n: ROW[-n % 10],
    "slice": lambda n: len(ROW[:n]),
    "range": lambda n: len([i for i in range(n) if i % 3 == 0]),
    "range product": lambda n: sum(range(n)) % 1000,
    "bool": lambda n: 5 if n else 4,
    "not": lambda n: 5 if not n else 4,
    "str": lambda n: len(str(n)),
    "text": lambda n: 5 if f"{n:03d}" == "008" else 4,
    "hash": lambda n: hash(n) % 7,
    "bit_length": lambda n: n.bit_length(),
    "min": lambda n: min(n, 8),
    "max": lambda n: max(n, 8),
    "abs": lambda n: abs(n - 8),
    "//": lambda n: n // 3,
    "power": lambda n: n**2 % 100,
    "/": lambda n: n / 4,
    "float": lambda n: float(n),
    "sqrt": lambda n: math.sqrt(n),
    "isqrt": lambda n: math.isqrt(n),
    "log": lambda n: math.log2(n + 1),
    "ceil": lambda n: math.ceil(n / 3),
    "round": lambda n: round(n * 0.7),
    "divmod": lambda n: divmod(n, 4)[1],
    "gcd": lambda n: math.gcd(n, 12),
    "index": lambda n: (3).__class__(n) % 4,
    "is": lambda n: 5 if n is NAMES.limit else 4,
    "two branches": lambda n: 5 if n == 8 else 6 if n == 3 else 4,
    "match": lambda n: matched(n),
    "while": lambda n: halved(n),
    "attribute": lambda n: 5 if n == NAMES.limit else 4,
    "pow with a modulus": lambda n: pow(3, n, 7),
    "shift": lambda n: (n << 1) % 7,
    "bytes": lambda n: len(bytes(n)),
    "string of n": lambda n: len("ab" * n),
    "exception": lambda n: caught(n),
}
# What a function makes of a tensor, of the size of another kind.
OF_TENSOR = {
    "reshape": lambda x: x.reshape(x.shape[0] // 1, -1) if x.shape[0] == 8 else x.reshape(-1, 1),
    "len": lambda x: x * (5 if len(x) == 8 else 4),
    "size": lambda x: x * (5 if x.size == 8 else 4),
    "shape": lambda x: x * (5 if x.shape == (8,) else 4),
    "unpacked shape": lambda x: x * (lambda n: 5 if n == 8 else 4)(*x.shape),
    "shape as a key": lambda x: x * {(8,): 5}.get(tuple(x.shape), 4),
    "size of a result": lambda x: x * (5 if x[1:].shape[0] == 7 else 4),
    "size of a concat": lambda x: x * (5 if bp.concat([x, x]).shape[0] == 16 else 4),
    "iteration": lambda x: sum(row for i, row in enumerate(x) if i < 20),
    "returned size": lambda x: (x * 2, x.shape[0]),
    "returned comparison": lambda x: (x * 2, x.shape[0] == 8),
    "returned text": lambda x: (x * 2, f"{x.shape[0]}"),
    "slice": lambda x: x[: 8 if x.shape[0] >= 8 else 1],
    "index": lambda x: x[x.shape[0] // 2],
    "split": lambda x: bp.concat([x[: x.shape[0] // 2] * 2, x[x.shape[0] // 2 :]]),
    "in the loop": lambda x: bp.scan(lambda c, v: (c + v * (5 if x.shape[0] == 8 else 4), c), bp.zeros(()), x)[0],
    "in a gradient": lambda x: bp.grad(lambda x: (x * x).sum() * (5 if x.shape[0] == 8 else 4))(x),
    "mean": lambda x: x.sum() / x.shape[0] * (5 if x.shape[0] == 8 else 4),
}
SIZES = (8, 9, 8, 3, 8, 16, 4, 1, 17, 64, 100, 8)


def matched(n):
    match n:
        case 8 | 3:
            return 5
        case _:
            return 4


def halved(n):
    steps = 0
    while n > 1:
        n, steps = n // 2, steps + 1
    return steps


def caught(n):
    try:
        return TABLE[n]
    except KeyError:
        return 4


def vector(n):
    return bp.arange(float(n)) + 1


def pytest_generate_tests(metafunc):
    for name, table in (("of_size", OF_SIZE), ("of_tensor", OF_TENSOR), ("of_two", OF_TWO)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, table)


@kind
def test_number_of_a_size(run, of_size):
    f = run(lambda x: x * OF_SIZE[of_size](x.shape[0]), dynamic={"x": {0: "n"}})
    for n in SIZES:
        yield f(vector(n))


@kind
def test_number_of_a_size_after_a_large_one(run, of_size):
    f = run(lambda x: x * OF_SIZE[of_size](x.shape[0]), dynamic={"x": {0: "n"}})
    for n in (1000, 8, 9, 3, 1000):
        yield f(vector(n))


@kind
def test_tensor_of_a_size(run, of_tensor):
    f = run(OF_TENSOR[of_tensor], dynamic={"x": {0: "n"}})
    for n in SIZES:
        yield f(vector(n))


# Sizes of two arguments that Python compares.
OF_TWO = {
    "==": lambda n, m: 5 if n == m else 4,
    "<": lambda n, m: 5 if n < m else 4,
    "min": lambda n, m: min(n, m),
    "max": lambda n, m: max(n, m),
    "difference": lambda n, m: abs(n - m),
    "product": lambda n, m: 5 if n * m == 24 else 4,
    "multiple": lambda n, m: 5 if n % m == 0 else 4,
    "tuple": lambda n, m: 5 if (n, m) == (8, 3) else 4,
    "sorted": lambda n, m: sorted([n, m, 5])[1],
}


@kind
def test_number_of_two_sizes(run, of_two):
    f = run(lambda x, y: x * OF_TWO[of_two](x.shape[0], y.shape[0]), dynamic={"x": {0: "n"}, "y": {0: "m"}})
    for n, m in ((8, 3), (8, 8), (3, 8), (8, 3), (12, 2), (5, 5), (1, 9), (8, 8)):
        yield f(vector(n), vector(m))


@kind
def test_limit_that_changes(run):
    o = types.SimpleNamespace(limit=8)
    f = run(lambda x: x * (5 if x.shape[0] < o.limit else 4), dynamic={"x": {0: "n"}})
    for o.limit in (8, 20):
        for n in (8, 9, 3, 30):
            yield f(vector(n))


@kind
def test_store_of_a_size(run):
    o = types.SimpleNamespace(n=0)

    def step(x):
        o.n = x.shape[0]
        return x * 2

    f = run(step, state=lambda: o.n, dynamic={"x": {0: "n"}})
    for n in (8, 9, 3, 8):
        yield f(vector(n))


@kind
def test_state_beside_a_size(run):
    o = types.SimpleNamespace(t=0)

    def step(x):
        o.t += 1
        return x * o.t

    f = run(step, state=lambda: o.t, dynamic={"x": {0: "n"}})
    for n in (8, 9, 3, 8):
        yield f(vector(n))
