"""Laws of what Python makes of dynamic sizes: answers do not depend on earlier calls, and no special size goes unseen."""

import itertools
import math
import types

import backplane as bp
import pytest

DYNAMIC = {"x": {0: "n"}}


def vector(n):
    return bp.arange(float(n)) + 1


def eagerly(function, n):
    return function(vector(n)).tolist()


# What follows from comparisons and whole-number arithmetic: one graph per outcome, and none that is wrong.
FOLLOWED = {
    "equal": lambda n: 5 if n == 8 else 4,
    "in a tuple": lambda n: 5 if n in (8, 3) else 4,
    "between": lambda n: 5 if 4 < n < 9 else 4,
    "product": lambda n: 5 if n * 3 == 24 else 4,
    "quotient": lambda n: 5 if n // 4 >= 2 else 4,
    "remainder": lambda n: n % 5,
    "min": lambda n: min(n, 8),
    "distance": lambda n: abs(n - 8),
    "even half": lambda n: n // 2 * 2,
    "square": lambda n: n**2,
    "digit": lambda n: 5 if n // 10 % 10 == 1 else 4,
    "type": lambda n: 5 if type(n) is int and isinstance(n, int) else 4,
}  # fmt: skip
# What code of C, or text, makes of a size: the function is run at each.
LOST = {
    "hash": lambda n: hash(n) % 7 == 1,
    "text": lambda n: str(n).startswith("1"),
    "set": lambda n: n in {8, 3},
    "list": lambda n: [0, 0, 0, 1][n % 4],
    "bits": lambda n: n & (n - 1) == 0,
    "bit_length": lambda n: n.bit_length() > 3,
    "float": lambda n: float(n) > 8.5,
    "float on the left": lambda n: 0.5 * n == 4,
    "root": lambda n: math.sqrt(n) == 3,
    "gcd": lambda n: math.gcd(n, 12) == 4,
    "bytes": lambda n: len(bytes(n)) == 9,
    "format": lambda n: "%d" % n == "8",
    "range": lambda n: 8 in range(n),
}


@pytest.mark.parametrize("name", [*FOLLOWED, *LOST])
def test_answers_do_not_depend_on_the_order_of_calls(name):
    number = {**FOLLOWED, **LOST}[name]

    def function(x):
        return x * number(x.shape[0])

    for order in itertools.islice(itertools.permutations((9, 8, 3, 10, 12)), 0, 120, 37):
        compiled = bp.compile(function, dynamic=DYNAMIC)
        for n in (*order, *order):
            try:
                assert compiled(vector(n)).tolist() == eagerly(function, n), (order, n)
            except bp.ShapeError as error:
                assert "cannot be dynamic" in str(error)
                break


@pytest.mark.parametrize("name", FOLLOWED)
def test_a_graph_is_right_or_says_no_at_every_size(name):
    def function(x):
        return x * FOLLOWED[name](x.shape[0])

    graph = bp.make_graph(function, dynamic=DYNAMIC)(vector(9))
    taken = 0
    for n in range(130):
        try:
            found = graph(vector(n)).tolist()
        except bp.ShapeError as error:
            assert "relies on" in str(error)
            continue
        taken += 1
        assert found == eagerly(function, n), n
    assert taken > 1


@pytest.mark.parametrize("name", LOST)
def test_a_graph_alone_refuses_what_is_not_known_at_other_sizes(name):
    def function(x):
        return x * (2 if LOST[name](x.shape[0]) else 3)

    with pytest.raises(bp.ShapeError, match=f'the size "n" cannot be dynamic.*{__file__}:'):
        bp.make_graph(function, dynamic=DYNAMIC)(vector(9))


def test_a_special_size_is_a_constraint_with_its_line():
    def function(x):
        return x * (5 if x.shape[0] == 8 else 4)

    graph = bp.make_graph(function, dynamic=DYNAMIC)(vector(9))
    assert "constraint n != 8" in str(graph)
    line = function.__code__.co_firstlineno + 1
    with pytest.raises(bp.ShapeError, match=rf"relies on n != 8, found 8 and 8: .*{__file__}:{line}"):
        graph(vector(8))


def test_comparisons_need_no_run_at_new_sizes():
    runs = []

    def function(x):
        bp.unguarded(runs.append, 1)
        return x * (5 if x.shape[0] == 8 else x.shape[0] % 3) / x.shape[0]

    compiled = bp.compile(function, dynamic=DYNAMIC)
    compiled(vector(9))
    traced = len(runs)
    for n in (10, 11, 12, 77, 500):
        assert compiled(vector(n)).tolist() == function(vector(n)).tolist()
        runs.pop()
    assert len(runs) == traced


def test_what_nobody_follows_is_run_once_at_each_size():
    runs = []

    def function(x):
        bp.unguarded(runs.append, 1)
        return x * (5 if x.shape[0] in {8, 3} else 4)

    compiled = bp.compile(function, dynamic=DYNAMIC)
    compiled(vector(9))
    traced = len(runs)
    for n in (10, 11, 10, 11, 9, 8, 8):
        compiled(vector(n))
    lines = bp.compile_log()[-3:]
    assert len(runs) == traced + 3
    assert sum("ran once at new sizes, since it calls hash() of a size" in line for line in lines) == 2
    assert sum("traced for this size alone" in line for line in lines) == 1
    assert f"{__file__}:{function.__code__.co_firstlineno + 2}" in lines[0]


def test_sizes_are_returned_and_stored_as_they_are_at_each_call():
    o = types.SimpleNamespace(n=0, seen=[])

    def stores_and_returns(x):
        o.n = x.shape[0]
        o.seen.append(x.shape)
        return x * 2, x.shape, x.shape[0] // 2, len(x), {"size": x.size}

    compiled = bp.compile(stores_and_returns, dynamic=DYNAMIC)
    for count, n in enumerate((9, 5, 6, 9, 30), 1):
        result = compiled(vector(n))
        assert result[1:] == ((n,), n // 2, n, {"size": n})
        assert o.n == n and o.seen[-1] == (n,) and len(o.seen) == count
        assert all(type(number) is int for number in (o.n, o.seen[-1][0], *result[1], *result[2:4]))
    assert sum("stores_and_returns: traced" in line for line in bp.compile_log()) == 1


def test_a_store_happens_once_at_each_call():
    o = types.SimpleNamespace(t=0)

    def step(x):
        o.t += 1
        return x / x.shape[0]

    compiled = bp.compile(step, dynamic=DYNAMIC)
    for n in (9, 5, 6, 9):
        compiled(vector(n))
    assert o.t == 4
