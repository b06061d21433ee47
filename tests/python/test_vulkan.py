"""The Vulkan backend: what a device gives is what the CPU gives, in order, over any layout."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import backplane as bp
import numpy as np
import pytest
from device_calls import LAYOUTS, RNG, normal, same


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", [bp.add, bp.subtract, bp.multiply])
def test_binary_ops_over_layouts(vulkan, op, layout):
    view = LAYOUTS[layout]
    same(lambda x, y: op(view(x), view(y)), vulkan, normal(7, 9), normal(7, 9), rtol=1e-6)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copy_over_layouts_is_exact(vulkan, layout):
    array = normal(7, 9)
    array[1, 1] = np.nan
    same(lambda x: bp.copy(LAYOUTS[layout](x)), vulkan, array, rtol=0)


@pytest.mark.parametrize("shapes", [((3, 1), (4,)), ((5, 1, 2), (1, 3, 1)), ((), (2, 2)), ((1,), (0,)), ((300, 1), (1, 700))])
def test_binary_ops_broadcast(vulkan, shapes):
    same(bp.multiply, vulkan, *(normal(*shape) for shape in shapes), rtol=1e-6)


def test_more_dimensions_than_the_shader_walks(vulkan):
    x, y = normal(2, 3, 2, 3, 2, 3), normal(3, 2, 3, 2, 3, 2)
    same(lambda x, y: bp.permute_dims(x, (4, 1, 0, 5, 2, 3)) + bp.permute_dims(y, (1, 0, 3, 2, 5, 4)), vulkan, x, y)


def test_numbers_and_fills(vulkan):
    same(lambda x: x * 2.5 + 1, vulkan, normal(5, 3), rtol=1e-6)
    assert bp.full((2, 3), -1.5, device=vulkan).tolist() == [[-1.5] * 3] * 2
    assert bp.zeros((0, 4), device=vulkan).shape == (0, 4)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint64", "float16", "float64", "complex64", "complex128"])
def test_a_fill_converts_its_number(vulkan, dtype):
    """Of words that repeat, and of others; over counts that are no whole words."""
    for number in (0, 1, 2.5, 7):
        for size in (1, 3, 8, 1001):
            np.testing.assert_array_equal(bp.full(size, number, dtype=dtype, device=vulkan).numpy(), bp.full(size, number, dtype=dtype).numpy())


@pytest.mark.parametrize(
    "shapes",
    [((3, 4), (4, 5)), ((16, 16), (16, 16)), ((17, 33), (33, 19)), ((1, 100), (100, 1)), ((4,), (4,)), ((4,), (4, 3)),
     ((2, 4), (4,)), ((3, 0), (0, 2)), ((0, 3), (3, 2)), ((5, 3, 4), (4, 2)), ((2, 1, 3, 4), (5, 4, 6)), ((3,), (2, 3, 4))],
)
def test_matmul(vulkan, shapes):
    same(bp.matmul, vulkan, *(normal(*shape) for shape in shapes), rtol=1e-4, atol=1e-4)


def test_matmul_of_a_transposed_view(vulkan):
    same(lambda x, y: x @ y.T, vulkan, normal(20, 30), normal(10, 30), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("accumulate", [False, True])
def test_what_is_put_along_an_axis_keeps_its_order(vulkan, accumulate):
    x, values, places = normal(4, 9, 3), normal(4, 50, 3), RNG.integers(-9, 9, (4, 50, 3))

    def put(device):
        arrays = [bp.asarray(array, device=device) for array in (x, places, values)]
        return bp.ops.bp.put_along_axis(*arrays, axis=1, accumulate=accumulate).numpy()

    if accumulate:  # the CPU adds in float64
        np.testing.assert_allclose(put(vulkan), put("cpu"), rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(put(vulkan), put("cpu"))


def test_an_index_along_an_axis_out_of_range_is_named(vulkan):
    with pytest.raises(bp.DataError, match=r"found index 3 along axis 1, expected one in \[-3, 3\)"):
        bp.take_along_axis(bp.zeros((2, 3), device=vulkan), bp.asarray([[0], [3]], device=vulkan), axis=1).numpy()


EMPTY = {
    "take_along_axis": lambda x, at, y: bp.take_along_axis(x, at, axis=1),
    "put_along_axis": lambda x, at, y: bp.ops.bp.put_along_axis(x, at, y, axis=1),
    "put_along_axis, broadcast": lambda x, at, y: bp.ops.bp.put_along_axis(x, at[:1], y, axis=1),
    "take": lambda x, at, y: bp.take(x, at[0], axis=1),
    "take_put": lambda x, at, y: bp.ops.bp.take_put(x, at[0], y, axis=1),
    "index": lambda x, at, y: bp.ops.bp.index(x.T, [at[0]]),
    "index_put": lambda x, at, y: bp.ops.bp.index_put(x.T, [at[0]], y.T),
    "index of nothing": lambda x, at, y: bp.ops.bp.index(x, [at[0] + 2]),
    "index_put of nothing": lambda x, at, y: bp.ops.bp.index_put(x, [at[0] + 2], x[:1]),
}


@pytest.mark.parametrize("device", ["cpu", "vulkan"])
@pytest.mark.parametrize("case", EMPTY)
def test_an_index_into_no_elements_is_refused(vulkan, device, case):
    x, at, y = (array.to(device) for array in (bp.zeros((2, 0)), bp.asarray([[0], [0]]), bp.ones((2, 1))))
    with pytest.raises(bp.DataError, match="index [02]"):
        EMPTY[case](x, at, y)
        bp.synchronize(vulkan)
    assert EMPTY[case](x, at[:, :0], y[:, :0]).numpy().size == 0


@pytest.mark.parametrize("shapes", [((1, 5001), (5001, 1)), ((3, 4097), (4097, 5)), ((2, 33, 65), (2, 65, 31)), ((70, 66), (66, 130))])
def test_products_with_a_long_inner_dimension_or_many_blocks(vulkan, shapes):
    same(bp.matmul, vulkan, *(normal(*shape) for shape in shapes), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.int32], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("sizes", [(48, 512, 10), (3, 33, 5), (17, 64, 9), (1, 40, 70), (33, 2, 1)])
def test_products_of_transposed_views(vulkan, dtype, sizes):
    """The inner dimension lies in order on either side, on both or on none."""
    rows, inner, columns = sizes
    x, y = (RNG.integers(-9, 9, shape).astype(dtype) for shape in ((rows, inner), (inner, columns)))
    for left, right in ((x, y), (x.T.copy().T, y), (x, y.T.copy().T), (x.T.copy().T, y.T.copy().T)):
        found = bp.matmul(*(bp.asarray(a.T.copy(), device=vulkan).T if a.flags.f_contiguous else bp.asarray(a, device=vulkan)
                            for a in (left, right)))
        np.testing.assert_array_equal(found.numpy(), x @ y)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32", "int64"])
@pytest.mark.parametrize("size", [1, 2, 5, 8, 514])
def test_neighbours_in_pairs(vulkan, dtype, size):
    """Even and odd counts, operands that begin inside of a word, numbers, results that are wider or narrower than operands."""
    host = bp.asarray(RNG.integers(0, 2 if dtype == "bool" else 100, (2, size + 1))).astype(dtype)
    there = host.to(vulkan)
    for begin in (0, 1):
        x, y, a, b = (t[begin:begin + size] for t in (*host, *there))
        pairs = [(x == y, a == b), (bp.where(x == y, x, y), bp.where(a == b, a, b)), (bp.where(x == y, x, 1), bp.where(a == b, a, 1))]
        if dtype != "bool":
            pairs += [(x < 50, a < 50), (x * y, a * b), (3 - x, 3 - a), (bp.maximum(x, y), bp.maximum(a, b))]
        for expected, found in pairs:
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found.to("cpu").astype("float64").numpy(), expected.astype("float64").numpy())


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 6])
def test_elementwise_loops_of_any_rank(vulkan, rank):
    """Rows in the push constants, and rows in memory."""
    shape = (2, 3, 1, 5, 2, 7)[:rank]
    same(lambda x, y: bp.where(x.T > y.T, bp.permute_dims(x, tuple(range(rank))[::-1]) * y.T, y.T[..., :1]), vulkan,
          normal(*shape), normal(*shape), rtol=1e-6)


def test_a_gradient_stays_on_the_device(vulkan):
    x = bp.asarray(normal(3, 4), device=vulkan).requires_grad_()
    w = bp.asarray(normal(4, 2), device=vulkan)
    (x @ w).backward(bp.ones((3, 2), device=vulkan))
    assert x.grad.device == vulkan
    np.testing.assert_allclose(x.grad.numpy(), np.ones((3, 2), np.float32) @ w.numpy().T, rtol=1e-5, atol=1e-6)


def test_long_chains_run_in_order(vulkan):
    x = bp.zeros(1000, device=vulkan)
    one = bp.ones(1000, device=vulkan)
    for _ in range(1000):  # many batches, each of which overwrites blocks that the ones before it read
        x = x + one
    bp.synchronize(vulkan)
    assert (x.numpy() == 1000).all()


def test_a_source_may_change_once_it_was_copied(vulkan):
    source = np.ones(100_000, np.float32)
    x = bp.asarray(source, device=vulkan)
    source[:] = 7
    assert (x.numpy() == 1).all()


def test_threads_share_the_device(vulkan):
    from concurrent.futures import ThreadPoolExecutor

    def work(seed):
        array = np.random.default_rng(seed).standard_normal((40, 40)).astype(np.float32)
        x = bp.asarray(array, device=vulkan)
        for _ in range(20):
            x = (x @ x.T) * 0.01
            host = x.numpy()
        return array, host

    with ThreadPoolExecutor(4) as pool:
        for array, found in pool.map(work, range(8)):
            for _ in range(20):
                array = (array @ array.T) * np.float32(0.01)
            np.testing.assert_allclose(found, array, rtol=1e-2, atol=1e-3)


def _elementwise(entry):
    tensors = [arg["type"] == "Tensor" and "float32" in arg["accepts"] for arg in entry["args"]]
    plain = all(tensors) and len(tensors) <= 2 and "composite" not in entry["flags"]
    return plain and "float32" in entry["scalar"]["dtypes"] and entry["results"][0]["dtype"] == "compute"


REGISTRY = json.loads((pathlib.Path(bp.__file__).parent / "samples.json").read_text())["ops"]


@pytest.mark.parametrize("entry", filter(_elementwise, REGISTRY), ids=lambda entry: entry["name"])
def test_an_elementwise_op_of_the_registry_is_a_kernel(vulkan, entry):
    op = getattr(bp.ops.bp, entry["name"].split("::")[1])
    arrays = [np.array([[0.3, 0.6, 0.9], [1.2, 2.5, 0.1]], np.float32), np.array([0.5, 0.2, 1.5], np.float32)]
    arrays = arrays[: len(entry["args"])]
    same(op, vulkan, *arrays, rtol=1e-4, atol=1e-5)
    inputs = [bp.asarray(array, device=vulkan) for array in arrays]
    bp.reset_call_counts()
    op(*inputs)
    counts = bp.call_counts()
    assert (counts.kernels, counts.decompositions) == (1, 0)


def test_an_error_in_data_names_the_op_and_leaves_the_device_usable(vulkan):
    x = bp.asarray([4, 5, 6], device=vulkan)
    with pytest.raises(bp.DataError, match=r"index.*found index 9 along axis 0, expected one in \[-3, 3\)"):
        bp.take(x, bp.asarray([0, 9], device=vulkan)).numpy()
    with pytest.raises(bp.DataError, match="floor_divide.*an integer divisor is 0"):
        (x // bp.asarray([1, 0, 2], device=vulkan)).numpy()
    assert (x + 1).tolist() == [5, 6, 7]


HALVES = (bp.float16, bp.bfloat16)


@pytest.mark.parametrize("dtype", [bp.bool, bp.int8, bp.uint64, bp.float16, bp.bfloat16, bp.float64, bp.complex64], ids=str)
def test_reductions_scans_and_sorts_over_sizes(vulkan, dtype):
    """Sizes about the shaders' runs, workgroups and slices."""
    ops = [bp.sum, lambda x: bp.cumsum(x, 0, dtype=dtype if dtype == bp.complex64 else bp.float64)]
    if dtype != bp.complex64:
        ops += [bp.max, bp.argmin, lambda x: bp.argsort(x, descending=True)]
    for size in (1, 7, 8, 9, 255, 257, 5000, 70000):
        host = bp.asarray(RNG.integers(0, 2 if size > 999 or dtype == bp.bool else 100, size)).astype(dtype)
        x = host.to(vulkan)
        for op in ops:
            found, expected = (op(t).to("cpu").astype(bp.complex128).numpy() for t in (x, host))
            np.testing.assert_allclose(found, expected, rtol=1e-2 if dtype in HALVES else 1e-5)


def test_what_meets_at_one_place_is_added_in_order(vulkan):
    places, values = RNG.integers(0, 5, 3000), normal(3000, 3)

    def put(device):
        arrays = (bp.asarray(array, device=device) for array in (places, values))
        return bp.ops.bp.index_put(bp.zeros((5, 3), device=device), [next(arrays)], next(arrays), accumulate=True).numpy()

    np.testing.assert_array_equal(put(vulkan), put(vulkan))
    np.testing.assert_allclose(put(vulkan), put("cpu"), rtol=1e-5, atol=1e-4)  # the CPU adds in float64


def test_random_numbers_are_the_cpus(vulkan):
    x, y = (bp.rand(1001, generator=bp.Generator(7), device=device) for device in (vulkan, "cpu"))
    np.testing.assert_array_equal(x.numpy(), y.numpy())


def test_it_is_listed(vulkan):
    (listed,) = [info for info in bp.devices() if info.device == vulkan]
    assert listed.plugin == "backplane_vulkan" and listed.description and listed.total_memory > 0


def test_every_shader_is_valid(tmp_path):
    if not shutil.which("spirv-val"):
        pytest.skip("no spirv-val (Debian: spirv-tools)")
    folder = pathlib.Path(os.environ["BACKPLANE_BUILD"]) / "backends" / "vulkan" / "shaders"
    shaders = sorted(folder.glob("*.spv.inc"))
    if not shaders:
        pytest.skip("this build has no Vulkan backend")
    for words in shaders:
        binary = tmp_path / words.stem
        binary.write_bytes(b"".join(int(word, 16).to_bytes(4, "little") for word in re.findall("0x[0-9a-f]+", words.read_text())))
        done = subprocess.run(["spirv-val", "--target-env", "vulkan1.2", binary], capture_output=True, text=True)
        assert done.returncode == 0, f"{words.name}: {done.stderr}"
