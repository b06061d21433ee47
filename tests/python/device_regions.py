"""What a backend's compiler keeps to: a region gives what its ops give one by one, to the bit, over any layout and dtype.

The tests of a backend derive a class from `RegionLaws` and have a fixture `device`."""

import re
from concurrent.futures import ThreadPoolExecutor

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(5)
FLOATS = (bp.float32, bp.float64, bp.float16, bp.bfloat16)
INTEGERS = (bp.int8, bp.int16, bp.int32, bp.int64, bp.uint8, bp.uint16, bp.uint32, bp.uint64)

LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.T,
    "from an offset": lambda x: x[1:, 2:],
    "every second": lambda x: x[::2, ::2],
    "backward": lambda x: x[::-1, ::-1],
    "one row": lambda x: x[2],
    "repeated": lambda x: bp.broadcast_to(x[1], (4, 9)),
    "a single element": lambda x: x[1, 1],
}


def tensor(device, dtype, shape):
    if dtype == bp.bool:
        values = RNG.integers(0, 2, shape)
    elif dtype in INTEGERS:
        values = RNG.integers(0, 120, shape)
    else:
        values = RNG.standard_normal(shape)
    return bp.asarray(values, device="cpu").astype(dtype).to(device)


def regions(function, *tensors):
    """How many regions the plan has, and of how many nodes all together."""
    plan = bp.explain_plan(function)(*tensors)
    return tuple(map(int, re.search(r"(\d+) regions? of (\d+) nodes", plan).groups()))


def words(tensor):
    host = tensor.to("cpu")
    return host.astype(bp.float32).numpy() if host.dtype in (bp.float16, bp.bfloat16) else host.numpy()


def same(function, *tensors):
    expected = function(*tensors)
    found = bp.compile(function)(*tensors)
    expected, found = ([x] if isinstance(x, bp.Tensor) else list(x) for x in (expected, found))
    assert len(expected) == len(found)
    for one, other in zip(expected, found):
        assert (one.shape, one.dtype, one.device) == (other.shape, other.dtype, other.device)
        np.testing.assert_array_equal(words(one), words(other))


def fused(nodes, function, *tensors):
    assert regions(function, *tensors) == (1, nodes)
    same(function, *tensors)


class RegionLaws:
    @pytest.mark.parametrize("dtype", FLOATS, ids=str)
    def test_a_chain_of_floats(self, device, dtype):
        """Half floats are rounded after each op: sums of large and small ones show that."""
        fused(7, lambda x, y: bp.tanh(x * y + 1000) - bp.exp(x) * 0.1 + y, tensor(device, dtype, (37, 41)), tensor(device, dtype, (37, 41)))

    @pytest.mark.parametrize("dtype", INTEGERS, ids=str)
    def test_integers_wrap_as_they_do_alone(self, device, dtype):
        fused(4, lambda x, y: (x * y + 100) * x - y, tensor(device, dtype, (300,)), tensor(device, dtype, (300,)))

    @pytest.mark.parametrize("dtype", [bp.complex64, bp.complex128], ids=str)
    def test_complex_numbers(self, device, dtype):
        def function(x, y):
            z = bp.exp(x * y) + (2 - 1j)
            return z, bp.abs(z) + 1, bp.equal(z, x)

        x, y = (tensor(device, bp.float64, (5, 7)) + 1j * tensor(device, bp.float64, (5, 7)) for _ in range(2))
        same(function, x.astype(dtype), y.astype(dtype))

    def test_comparisons_selections_and_bools(self, device):
        def function(x, y, keep):
            larger = (x > y) & keep
            return bp.where(larger, x, y * 2), ~larger, bp.where(larger, x, 0.5)

        fused(6, function, tensor(device, bp.float32, (9, 8)), tensor(device, bp.float32, (9, 8)), tensor(device, bp.bool, (9, 8)))

    @pytest.mark.parametrize("to", [bp.bool, *INTEGERS, *FLOATS, bp.complex64], ids=str)
    @pytest.mark.parametrize("dtype", [bp.bool, bp.int8, bp.uint64, bp.float16, bp.float32, bp.float64], ids=str)
    def test_casts_between_the_ops_of_a_region(self, device, dtype, to):
        """Conversions that the core would make of operands are made too."""
        x, y = tensor(device, dtype, (50,)), tensor(device, bp.int32, (50,))
        same(lambda x, y: (bp.equal(x, x), x.astype(to), bp.where(y > 60, x.astype(to), x.astype(to))), x, y)

    def test_calls_of_numbers_alone_run_where_the_node_does(self, device):
        """The exponent's share of a power's derivative has no tensor: bp::equal(2, 0)."""
        x = tensor(device, bp.float32, (4, 3))
        for function in (bp.grad(lambda x: (x**2).sum()), bp.hessian(lambda x: (x**3).mean()), bp.grad(lambda x: bp.abs(x * 1j).sum())):
            same(function, x)

    def test_operands_of_two_dtypes(self, device):
        fused(3, lambda x, y: (x + y) * 2 - x, tensor(device, bp.int8, (20, 3)), tensor(device, bp.int32, (20, 3)))

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_layouts(self, device, layout):
        x, y = (LAYOUTS[layout](tensor(device, bp.float32, (7, 9))) for _ in range(2))
        fused(3, lambda x, y: (x * y + 1) * x, x, y)

    @pytest.mark.parametrize("shapes", [((3, 1), (4,)), ((5, 1, 2), (1, 3, 1)), ((), (2, 2)), ((300, 1), (1, 70)), ((4, 1, 3), (4, 5, 3))])
    def test_what_broadcasts_is_read_where_it_lies(self, device, shapes):
        x, y = (tensor(device, bp.float32, shape) for shape in shapes)
        fused(3, lambda x, y: (x + y) * x - y, x, y)

    def test_values_of_one_element_are_computed_once(self, device):
        def function(x, scale):
            factor = bp.exp(scale) + 1
            return x * factor, factor

        same(function, tensor(device, bp.float32, (5, 6)), tensor(device, bp.float32, (1, 1)))

    def test_views_that_keep_the_elements_order_do_not_end_a_region(self, device):
        def function(x, y):
            return bp.squeeze(bp.expand_dims(x * 2, axis=1) + bp.expand_dims(y, axis=1), axis=1) - 1

        same(function, tensor(device, bp.float32, (4, 6)), tensor(device, bp.float32, (4, 6)))

    def test_special_numbers(self, device):
        x = bp.asarray(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38], np.float32), device=device)
        same(lambda x: (bp.maximum(x, float("-inf")) * -0.0, bp.where(bp.isnan(x), float("nan"), x) + 0.0, bp.sign(-x) * float("inf")), x)

    def test_results_of_the_whole_graph_and_of_its_middle(self, device):
        def function(x):
            y = x * 3
            z = y + 1
            return z, y, z - y

        fused(3, function, tensor(device, bp.int64, (100,)))

    def test_what_may_refuse_its_data_still_does(self, device):
        x, y = tensor(device, bp.int32, (4,)), bp.asarray([1, 0, 2, 3], device=device).astype(bp.int32)
        with pytest.raises(bp.DataError, match="floor_divide.*an integer divisor is 0"):
            bp.compile(lambda x, y: (x + 1) // y * 2)(x, y).numpy()

    def test_no_path_leaves_a_region_and_comes_back(self, device):
        def function(x):
            y = bp.tanh(x) + 1
            return bp.exp(y @ y - y) * 2

        assert regions(function, tensor(device, bp.float32, (8, 8))) == (2, 5)
        same(function, tensor(device, bp.float32, (8, 8)))

    def test_a_region_runs_on_many_threads(self, device):
        compiled = bp.compile(lambda x: bp.tanh(x * 2) + x)
        x = tensor(device, bp.float32, (64, 64))
        expected = (bp.tanh(x * 2) + x).numpy()
        with ThreadPoolExecutor(4) as pool:
            for found in pool.map(lambda _: compiled(x).numpy(), range(32)):
                np.testing.assert_array_equal(found, expected)
