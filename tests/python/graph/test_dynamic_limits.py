"""Laws of what a graph of dynamic sizes makes of numbers that Python computed of them: right at each size, or refused there."""

import backplane as bp
import numpy as np
import pytest


def tensor(*shape, seed=0):
    return bp.asarray(np.random.default_rng(seed).standard_normal(shape).astype("float32"))


# What Python computes of sizes; whether a graph has it at all of them (None: it is refused, since floats are rounded).
NUMBERS = {
    "rounded up": (lambda n, m: (n + 7) // 8, (50, 3), True),
    "windows": (lambda n, m: max((n - 8) // 4 + 1, 0), (40, 3), False),
    "windows of the second": (lambda n, m: (m + 3) // 4, (2, 40), True),
    "even part": (lambda n, m: n // 2 * 2, (9, 3), True),
    "blocks": (lambda n, m: (n + 3) // 4 * 12 + 5, (50, 3), True),
    "product": (lambda n, m: (n - 1) * (m - 2), (9, 6), True),
    "of two": (lambda n, m: (n + m) // 4, (9, 6), False),
    "float": (lambda n, m: round(n * 0.7), (7, 3), None),
    "two quotients": (lambda n, m: n // 9 + n // 5, (24, 5), False),
    "remainder": (lambda n, m: n // 8 % 2, (24, 5), False),
    "root": (lambda n, m: int(n**0.5), (32, 4), None),
    "greater": (lambda n, m: n if n > m else 0, (24, 2), False),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_of_sizes_is_right_or_refused(name):
    number, example, everywhere = NUMBERS[name]
    make = bp.make_graph(lambda x: bp.full((1,), number(*x.shape)) + x.sum(), dynamic={"x": {0: "n", 1: "m"}})
    if everywhere is None:
        with pytest.raises(bp.ShapeError, match=f'the size "n" cannot be dynamic.*{__file__}'):
            make(bp.zeros(example))
        return
    graph = make(bp.zeros(example))
    refused = 0
    for n, m in [(n, m) for n in range(1, 70, 2) for m in (1, 4, 7, 18, 51, example[1])] + [(n, example[1]) for n in range(1, 70)]:
        try:
            found = graph(bp.zeros((n, m))).item()
        except bp.ShapeError as error:
            refused += "relies on" in str(error)
            continue
        assert found == number(n, m), (n, m)
    assert not (refused and everywhere)


@pytest.mark.parametrize("stride, window", [(5, 10), (6, 9), (7, 3), (16, 20)])
def test_windows_at_strides_are_found_at_every_size(stride, window):
    kernel = tensor(1, 1, window)
    graph = bp.make_graph(lambda x: bp.nn.functional.conv1d(x, kernel, stride=stride), dynamic={"x": {0: "batch", 2: "time"}})(tensor(2, 1, 400))
    for time in range(window, window + 60):
        assert graph(tensor(3, 1, time)).shape == (3, 1, (time - window) // stride + 1)


def test_a_limit_of_one_size_is_no_relation_of_two():
    def function(x):
        return x * 2 if x.shape[1] >= 4 else x * 3

    graph = bp.make_graph(function, dynamic={"x": {0: "batch", 1: "time"}})(tensor(4, 10))
    assert "constraint 4 <= time" in str(graph) and "batch <= time" not in str(graph)
    assert graph(tensor(64, 4)).tolist() == function(tensor(64, 4)).tolist()
    images = {"x": {0: "batch", 2: "height", 3: "width"}}
    pooled = bp.make_graph(lambda x: bp.nn.functional.max_pool2d(x, 2), dynamic=images)(tensor(2, 3, 32, 32))
    assert pooled(tensor(64, 3, 32, 32)).shape == (64, 3, 16, 16)
    with pytest.raises(bp.ShapeError, match="m \\+ 1 <= n"):
        bp.make_graph(lambda x: x + (1 if x.shape[0] > x.shape[1] else 2), dynamic={"x": {0: "n", 1: "m"}})(tensor(24, 2))(tensor(5, 7))
