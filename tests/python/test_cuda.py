"""The CUDA backend: what a device gives is what the CPU gives, in order, over any layout; and how it says that there is
no device, which needs the plugin but no driver. `./dev test cuda` runs this on the emulated driver."""

import ctypes
import subprocess
import sys

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(13)


def _normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def _same(function, device, *arrays, **tolerance):
    expected = function(*(bp.asarray(array, device="cpu") for array in arrays)).numpy()
    found = function(*(bp.asarray(array, device=device) for array in arrays))
    assert found.device == device and found.dtype == bp.float32
    np.testing.assert_allclose(found.numpy(), expected, **tolerance)


LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.T,
    "from an offset": lambda x: x[1:, 2:],
    "every second": lambda x: x[::2, ::2],
    "backward": lambda x: x[::-1, ::-1],
    "one row": lambda x: x[2],
    "empty": lambda x: x[:0],
    "a single element": lambda x: x[1, 1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", [bp.add, bp.subtract, bp.multiply])
def test_binary_ops_over_layouts(cuda, op, layout):
    view = LAYOUTS[layout]
    _same(lambda x, y: op(view(x), view(y)), cuda, _normal(7, 9), _normal(7, 9), rtol=1e-6)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copy_over_layouts_is_exact(cuda, layout):
    _same(lambda x: bp.copy(LAYOUTS[layout](x)), cuda, _normal(7, 9), rtol=0)


@pytest.mark.parametrize("shapes", [((3, 1), (4,)), ((5, 1, 2), (1, 3, 1)), ((), (2, 2)), ((1,), (0,)), ((300, 1), (1, 700))])
def test_binary_ops_broadcast(cuda, shapes):
    _same(bp.multiply, cuda, *(_normal(*shape) for shape in shapes), rtol=1e-6)


def test_more_dimensions_than_one_launch_walks(cuda):
    x, order = _normal(*(2,) * 10), (9, 4, 1, 7, 0, 5, 8, 2, 6, 3)
    _same(lambda x: bp.permute_dims(x, order) + bp.flip(x), cuda, x, rtol=1e-6)


def test_numbers_and_fills(cuda):
    _same(lambda x: x * 2.5 + 1, cuda, _normal(5, 3), rtol=1e-6)
    assert bp.full((2, 3), -1.5, device=cuda).tolist() == [[-1.5] * 3] * 2


@pytest.mark.parametrize(
    "shapes",
    [((3, 4), (4, 5)), ((17, 33), (33, 19)), ((1, 100), (100, 1)), ((4,), (4,)), ((4,), (4, 3)), ((2, 4), (4,)),
     ((3, 0), (0, 2)), ((0, 3), (3, 2)), ((5, 3, 4), (5, 4, 2)), ((5, 3, 4), (4, 2)), ((2, 1, 3, 4), (5, 4, 6)),
     ((3,), (2, 3, 4))],
)
def test_matmul(cuda, shapes):
    _same(bp.matmul, cuda, *(_normal(*shape) for shape in shapes), rtol=1e-4, atol=1e-4)


# How operands of 5 by 6 and 6 by 7 elements may lie, beside as they are made.
MATRICES = {
    "contiguous": lambda m: m,
    "transposed": lambda m: bp.copy(m.mT).mT,
    "a row of padding": lambda m: bp.concat([m, m], axis=1)[:, : m.shape[1]],
    "a transposed one of padding": lambda m: bp.concat([m, m], axis=0).mT[:, : m.shape[0]].mT,
    "an odd offset": lambda m: bp.concat([bp.zeros(1, dtype=m.dtype, device=m.device), bp.reshape(m, (-1,))])[1:].reshape(m.shape),
    "every second column": lambda m: bp.repeat(m, 2, axis=1)[:, ::2],
    "backward": lambda m: bp.copy(m[::-1])[::-1],
    "one row for all": lambda m: bp.broadcast_to(m[:1], m.shape),
}


@pytest.mark.parametrize("y_layout", MATRICES)
@pytest.mark.parametrize("x_layout", MATRICES)
def test_matmul_over_layouts(cuda, x_layout, y_layout):
    _same(lambda x, y: MATRICES[x_layout](x) @ MATRICES[y_layout](y), cuda, _normal(5, 6), _normal(6, 7), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128", "int32"])
def test_matmul_dtypes(cuda, dtype):
    x, y = (bp.astype(bp.asarray(RNG.integers(-4, 5, shape)), getattr(bp, dtype)) for shape in ((3, 9, 4), (4, 70)))
    if dtype.startswith("complex"):
        x, y = x * (1 + 2j), y * (2 - 1j)
    found = x.to(cuda) @ y.to(cuda)
    assert found.dtype == x.dtype
    assert (found.to("cpu") == x @ y).all()  # integers: exact in every dtype


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("function", ["fftn", "ifftn", "rfftn", "irfftn"])
@pytest.mark.parametrize(
    "shape, axes", [((5,), (0,)), ((6,), (0,)), ((4, 6), (0,)), ((3, 5, 4), (1,)), ((3, 5, 4), (2, 0)), ((2, 3, 4, 5), (1, 2, 3)), ((2, 3, 2, 2), (3, 1, 0, 2))]
)
def test_fourier_transforms(cuda, function, shape, axes, norm):
    x = _normal(*shape) if function == "rfftn" else (_normal(*shape) + 1j * _normal(*shape)).astype(np.complex64)
    transform = getattr(bp.fft, function)
    expected = transform(bp.asarray(x, device="cpu"), axes=axes, norm=norm)
    with bp.allow_host_fallback():
        found = transform(bp.asarray(x, device=cuda), axes=axes, norm=norm)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)


def _cufft_transforms():
    return _counter("libcufft.so.12", "emulated_cufft_transforms")


# A transform to reals over several axes takes two; one over more axes than a plan has runs on the host.
@pytest.mark.parametrize(
    "function, shape, transforms",
    [("fftn", (4, 6), 1), ("rfftn", (4, 6), 1), ("irfftn", (4, 6), 2), ("irfftn", (6,), 1), ("fftn", (2, 2, 2, 2), 0), ("fftn", (0,), 0)],
)
def test_transforms_that_the_library_computes(cuda, function, shape, transforms):
    x = bp.asarray(_normal(3, *shape) + (0 if function == "rfftn" else 1j), device=cuda)
    axes = tuple(range(1, len(shape) + 1))
    before = _cufft_transforms()
    if 0 in shape:
        with pytest.raises(ValueError):
            getattr(bp.fft, function)(x, axes=axes)
    else:
        getattr(bp.fft, function)(x, axes=axes)
    assert _cufft_transforms() - before == transforms


def test_fourier_transforms_over_layouts(cuda):
    x = (_normal(6, 8) + 1j * _normal(6, 8)).astype(np.complex64)
    for layout in LAYOUTS:
        if layout not in ("empty", "a single element"):
            view = LAYOUTS[layout]
            expected = bp.fft.ifft(view(bp.asarray(x, device="cpu"))).numpy()
            np.testing.assert_allclose(bp.fft.ifft(view(bp.asarray(x, device=cuda))).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_an_offset_that_no_complex_number_has_is_copied_for_the_library(cuda):
    x = _normal(9)
    expected = bp.fft.rfft(bp.asarray(x, device="cpu")[1:]).numpy()
    np.testing.assert_allclose(bp.fft.rfft(bp.asarray(x, device=cuda)[1:]).numpy(), expected, rtol=1e-4, atol=1e-5)


def _counter(library, name):
    """How much has gone to a stand-in of tests/cuda/libraries."""
    try:
        count = getattr(ctypes.CDLL(library), name)
    except (OSError, AttributeError):
        pytest.skip(f"the stand-in for {library} is not on LD_LIBRARY_PATH")
    count.restype = ctypes.c_uint64
    return count()


def _cublaslt_products():
    return _counter("libcublasLt.so.13", "emulated_cublaslt_products")


@pytest.mark.parametrize(
    "x, y, products",
    [
        ((5, 6), (6, 7), 1),
        ((6,), (6,), 1),
        ((3, 5, 6), (3, 6, 7), 1),
        ((3, 5, 6), (6, 7), 1),  # a taller left operand
        ((5, 6), (3, 6, 7), 1),
        ((2, 3, 5, 6), (2, 3, 6, 7), 1),  # one batch of six
        ((2, 1, 5, 6), (3, 6, 7), 2),
        ((5, 0), (0, 7), 0),
        ((0, 6), (6, 7), 0),
        ((70, 1, 2, 2), (1, 70, 2, 2), 0),  # more batches than calls are worth
    ],
)
def test_products_that_the_library_computes(cuda, x, y, products):
    before = _cublaslt_products()
    _same(bp.matmul, cuda, _normal(*x), _normal(*y), rtol=1e-4, atol=1e-5)
    assert _cublaslt_products() - before == products


@pytest.mark.parametrize("layout", MATRICES)
def test_views_that_the_library_takes_uncopied(cuda, layout):
    x, y = MATRICES[layout](bp.asarray(_normal(5, 6), device=cuda)), bp.asarray(_normal(6, 7), device=cuda)
    before = _cublaslt_products()
    x @ y
    own = layout in ("every second column", "backward", "one row for all")
    assert _cublaslt_products() - before == (0 if own else 1)


def test_what_the_library_has_no_algorithm_for_goes_to_the_own_kernel(cuda, monkeypatch):
    before = _cublaslt_products()
    monkeypatch.setenv("BACKPLANE_EMULATED_CUBLASLT_REFUSES", "1")
    _same(bp.matmul, cuda, _normal(11, 12), _normal(12, 13), rtol=1e-4, atol=1e-5)
    assert _cublaslt_products() == before


LIBRARIES = {
    "cublaslt": ("libcublasLt.so.13", "products go by the backend's own kernel"),
    "cufft": ("libcufft.so.12", "Fourier transforms run on the host"),
}


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_missing_library_is_said_with_what_is_done_instead(cuda, name):
    library, instead = LIBRARIES[name]
    said = cuda.properties[name]
    try:
        ctypes.CDLL(library)
        assert said[0].isdigit()
    except OSError:
        assert said.startswith(f"not found, so {instead}") and "Fix:" in said


def test_why_a_transform_runs_on_the_host_although_there_is_a_library(cuda):
    x = bp.ones((2, 2, 2, 2), device=cuda)
    with bp.host_fallback("forbid"), pytest.raises(NotImplementedError, match="declined: (found 4 axes; cuFFT takes 1 to 3|libcufft.so.12 not found)"):
        bp.fft.fftn(x)


def test_a_second_device_has_its_own_library_handles(cuda):
    try:
        other = bp.device("cuda:1")
    except ValueError:
        pytest.skip("one device alone")
    _same(lambda x, y: x @ y, other, _normal(4, 5), _normal(5, 6), rtol=1e-4, atol=1e-5)
    x = _normal(4, 6)
    np.testing.assert_allclose(bp.fft.rfft(bp.asarray(x, device=other)).numpy(), bp.fft.rfft(bp.asarray(x)).numpy(), rtol=1e-4, atol=1e-4)


# Sizes at which kernels take another way: totals of chunks, lines that no block sorts, sums over many blocks of threads.
@pytest.mark.parametrize("shape, axis", [((300_000,), 0), ((3, 40_000), 1), ((9_000, 3), 0), ((700, 300), 0)])
def test_reductions_in_chunks(cuda, shape, axis):
    x = RNG.integers(-9, 9, shape).astype(np.float32)  # sums of these are exact in any order
    _same(lambda x: bp.sum(x, axis=axis), cuda, x, rtol=0)
    _same(lambda x: bp.max(x, axis=axis), cuda, x, rtol=0)


def test_a_sum_of_nothing_is_written_whole(cuda):
    _same(lambda x: bp.sum(x, axis=0), cuda, _normal(0, 70), rtol=0)
    _same(lambda x: bp.prod(x, axis=1), cuda, _normal(3, 0, 4), rtol=0)


@pytest.mark.parametrize("length", [1024, 1025, 5000])
@pytest.mark.parametrize("descending", [False, True])
def test_long_lines_are_sorted_and_stable(cuda, length, descending):
    x = RNG.integers(0, 50, (2, length)).astype(np.float32)
    order = bp.argsort(bp.asarray(x, device=cuda), axis=1, descending=descending).numpy()
    np.testing.assert_array_equal(order, np.argsort(-x if descending else x, axis=1, kind="stable"))


def test_running_sums_of_long_lines(cuda):
    x = RNG.integers(-9, 9, (3, 1000)).astype(np.float32)
    _same(lambda x: bp.cumulative_sum(x, axis=1), cuda, x, rtol=0)


def test_an_error_of_the_data_names_the_op_and_leaves_the_device_usable(cuda):
    x = bp.asarray([7, 8], device=cuda)
    with pytest.raises(Exception, match="floor_divide: an integer divisor is 0"):
        (x // bp.asarray([2, 0], device=cuda)).tolist()
    with pytest.raises(Exception, match="index 5 along axis 0"):
        bp.take(x, bp.asarray([0, 5], device=cuda), axis=0).tolist()
    assert (x // bp.asarray([2, 4], device=cuda)).tolist() == [3, 2]


def test_long_chains_run_in_order(cuda):
    x = bp.zeros(1000, device=cuda)
    one = bp.ones(1000, device=cuda)
    for _ in range(1000):  # each block is overwritten while the work that reads it may still run
        x = x + one
    bp.synchronize(cuda)
    assert (x.numpy() == 1000).all()


def test_a_source_may_change_once_it_was_copied(cuda):
    source = np.ones(100_000, np.float32)
    x = bp.asarray(source, device=cuda)
    source[:] = 7
    assert (x.numpy() == 1).all()


def test_it_is_listed(cuda):
    (listed,) = [info for info in bp.devices() if info.device == cuda]
    assert listed.plugin == "backplane_cuda" and listed.description and listed.total_memory > 0


def test_it_offers_the_extensions_of_devices(cuda):
    for name in ("callbacks", "capture", "features", "memory", "peer", "pinned", "reset", "streams", "time"):
        assert name == "features" or cuda.has(name), name
    assert cuda.has("f16") and cuda.has("bf16") and cuda.has("f64") and cuda.has("subgroups") and not cuda.has("no such thing")
    assert cuda.features == sorted(cuda.features) and all(map(cuda.has, cuda.features))
    properties = cuda.properties
    major = int(properties["compute_capability"].split(".")[0])
    assert cuda.has("tensor_cores") == (major >= 7) and properties["multiprocessors"] > 0 and properties["subgroup_size"] == 32
    assert properties["integrated"] in (True, False) and properties["pci_bus"].count(":") == 2 and "." in properties["driver_version"]


def test_a_greater_priority_goes_first(cuda):
    least, greatest = bp.stream_priorities(cuda)
    assert least == 0 < greatest
    low, high = bp.Stream(cuda), bp.Stream(cuda, priority=greatest)
    x = bp.ones(3, device=cuda)
    with high:
        y = x + 1
    with low:
        z = x + 2
    assert y.tolist() == [2] * 3 and z.tolist() == [3] * 3 and high.priority == greatest
    with pytest.raises(ValueError, match="expected 0 to"):
        bp.Stream(cuda, priority=-1)


@pytest.fixture(scope="module")
def second(cuda):
    try:
        return bp.device("cuda:1")
    except (ValueError, bp.DeviceError) as error:
        pytest.skip(f"device 'cuda:1': {error}")


def test_devices_copy_to_each_other(cuda, second):
    x = bp.sin(bp.arange(300_000, dtype="float32", device=cuda))
    expected = x.numpy()
    moved = x.to(second)
    x.copy_(bp.zeros_like(x))  # comes after the copy
    assert moved.device == second
    np.testing.assert_array_equal((moved + 0).numpy(), expected)


def test_a_copy_between_devices_is_in_order_on_both(cuda, second):
    for i in range(10):
        x = bp.full((5000,), float(i), device=cuda)
        there = (x + 1).to(second)
        del x
        x = bp.full((5000,), -1.0, device=cuda)  # may have the memory that the copy reads, once it has
        assert there.to(cuda).sum().item() == 5000 * (i + 1) and x is not None


def test_kinds_of_memory(cuda):
    assert bp.memory_kinds(cuda) == ["device", "host_visible"]
    for kind in bp.memory_kinds(cuda):
        x = bp.empty_in(kind, (4, 5), dtype="float32", device=cuda, alignment=4096)
        x.copy_(bp.ones((4, 5), device=cuda))
        assert (x + 1).tolist() == [[2.0] * 5] * 4


def test_a_replay_finds_what_is_wrong_with_its_data(cuda):
    x, at = bp.asarray([7, 8, 9], device=cuda), bp.asarray([0, 1], device=cuda)
    with bp.capture(cuda) as recording:
        y = bp.take(x, at, axis=0) // at[1]
    for index, expected in ((1, "7, 8"), (3, "index 3 along axis 0"), (2, "3, 4"), (0, "divisor is 0")):
        at.copy_(bp.asarray([0, index], device=cuda))
        recording.replay()
        if "," in expected:
            assert y.tolist() == [7 // index, [7, 8, 9][index] // index]
            continue
        with pytest.raises(Exception, match=expected):
            y.tolist()


def test_a_device_is_reset(cuda, second):
    pinned = bp.pin(bp.arange(3), cuda)
    lost, stream, event = bp.ones(4, device=second), bp.Stream(second), bp.Event().record(bp.Stream(second))
    with bp.capture(second) as recording:
        lost + 1
    second.reset()
    for use in (lost.tolist, lambda: lost + 1, lambda: lost.to("cpu"), stream.synchronize, recording.replay):
        with pytest.raises(bp.DeviceLostError, match="reset"):
            use()
    x = bp.ones(4, device=second)
    with bp.Stream(second):
        assert (x + 1).to(cuda).tolist() == [2] * 4
    assert event.query() and pinned.to(second, non_blocking=True).tolist() == [0, 1, 2]
    cuda.reset()
    assert pinned.tolist() == [0, 1, 2] and pinned.to(second, non_blocking=True).tolist() == [0, 1, 2]
    assert (bp.ones(2, device=second).to(cuda) + 1).tolist() == [2, 2]


UNLOAD = """
import gc
import backplane as bp
device = bp.device("cuda")
x = bp.ones(3, device=device)
with bp.capture(device) as recording:
    x += 1
recording.replay()
stream, pinned = bp.Stream(device), bp.pin(bp.ones(3), device)
stream.on_complete(lambda: print("completed"))
event = stream.record()
event.synchronize()
print(x.tolist())
del device, x, recording, stream, pinned, event
gc.collect()
bp.unload_plugin("backplane_cuda")
print("unloaded")
"""


def test_the_plugin_goes_when_nothing_of_it_is_held(cuda):
    done = subprocess.run([sys.executable, "-c", UNLOAD], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["completed", "[2.0, 2.0, 2.0]", "unloaded"], done.stderr


def test_without_a_driver_it_says_so():
    try:
        bp.device("cuda")
    except ValueError as error:
        pytest.skip(f"device 'cuda': {error}")
    except bp.DeviceError as error:
        assert "device cuda: no dr" in str(error) and "Fix: " in str(error)
        assert "cuda" not in [info.name for info in bp.devices()]
    else:
        pytest.skip("device 'cuda': there is one")
