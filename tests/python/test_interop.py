"""Memory shared with NumPy and others: the buffer protocol and DLPack, both ways."""

import array
import gc
import sys

import backplane as bp
import numpy as np
import pytest

NUMPY_DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
                "float64", "complex64", "complex128"]


def address(x):
    return x.__array_interface__["data"][0] if isinstance(x, np.ndarray) else x.numpy().__array_interface__["data"][0]


@pytest.mark.parametrize("name", NUMPY_DTYPES)
@pytest.mark.parametrize("way_in", [bp.asarray, bp.from_dlpack])
def test_numpy_there_and_back_shares_memory(name, way_in):
    source = np.arange(6).astype(name).reshape(2, 3)
    tensor = way_in(source)
    assert tensor.dtype.name == name and tensor.shape == (2, 3)
    for back in (tensor.numpy(), np.asarray(tensor), np.from_dlpack(tensor), np.asarray(memoryview(tensor))):
        assert back.dtype == source.dtype
        assert np.shares_memory(back, source)
        np.testing.assert_array_equal(back, source)


def test_strided_memory_is_shared():
    source = np.arange(24.0).reshape(4, 6)
    for part in (source[::2, 1:4], source.T, source[1], source[:, 2]):
        tensor = bp.asarray(part)
        assert np.shares_memory(tensor.numpy(), part)
        np.testing.assert_array_equal(tensor.numpy(), part)
        np.testing.assert_array_equal((tensor + 0).numpy(), part)


def test_what_cannot_be_shared_is_copied():
    source = np.arange(6.0)
    backwards = bp.asarray(source[::-1])
    np.testing.assert_array_equal(backwards.numpy(), source[::-1])
    records = np.zeros(3, dtype=[("a", "i1"), ("b", "<f4")])
    records["b"] = [1, 2, 3]
    assert bp.asarray(records["b"]).tolist() == [1, 2, 3]


OTHER_ELEMENTS = {
    "the other byte order": (np.arange(3, dtype=">f8"), r"array.astype\(array.dtype.newbyteorder"), "Python objects": (np.asarray([1, None, 2]), r"array.astype\(float\)"),
    "texts": (np.asarray(["1", "2", "3"]), r"array.astype\(float\)"), "records": (np.zeros(3, dtype=[("a", "i1"), ("b", "<f4")]), r"array\['name'\]"),
    "long doubles": (np.ones(3, np.longdouble), r"array.astype\('float64'\)"), "dtype datetime64": (np.zeros(3, "M8[s]"), r"array.astype\('int64'\)"),
    "dtype timedelta64": (np.zeros(3, "m8[s]"), r"array.astype\('int64'\)"), "bytes without a dtype": (np.zeros(3, "V2"), r"array.view\(ml_dtypes.bfloat16\)"),
}  # fmt: skip


@pytest.mark.parametrize("what", OTHER_ELEMENTS)
def test_elements_that_no_dtype_holds_are_named_with_a_way_out(what):
    array, fix = OTHER_ELEMENTS[what]
    for call in (lambda: bp.asarray(array), lambda: bp.ones(3) + array):
        with pytest.raises(TypeError, match=f"asarray: found .*{what}.* Fix: .*{fix}"):
            call()


def test_bfloat16_of_numpy_comes_in():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.arange(6, dtype=ml_dtypes.bfloat16).reshape(2, 3)
    for made in (bp.asarray(array), bp.from_numpy(array), bp.asarray(array.T).T, bp.asarray(array[:, ::-1]).flip(1), bp.asarray([array])[0]):
        assert made.dtype is bp.bfloat16 and made.tolist() == array.tolist()
    assert (bp.ones(3) + array).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert bp.asarray(bp.ones(2, dtype=bp.bfloat16).numpy()).tolist() == [1, 1]
    shared = bp.asarray(array)
    array[0, 0] = 7
    assert shared[0, 0].item() == 7
    number = bp.asarray(ml_dtypes.bfloat16(1.5))
    assert number.dtype is bp.bfloat16 and number.item() == 1.5
    with pytest.raises(TypeError, match=r"float8_e4m3fn.*array.astype\('float32'\)"):
        bp.asarray(array.astype(ml_dtypes.float8_e4m3fn))


def test_what_is_masked_is_not_read():
    values = np.asarray([1.0, 2.0])
    with pytest.raises(ValueError, match=r"asarray: found a masked array.* Fix: array.filled\(value\)"):
        bp.asarray(np.ma.masked_array(values, [False, True]))
    for array in (np.ma.masked_array(values), np.ma.masked_array(values, [False, False])):
        assert bp.asarray(array).tolist() == [1.0, 2.0]


class Foreign:
    """An array of a library that supports DLPack, and is not a sequence to Python."""

    def __init__(self, *values):
        self.array = np.asarray(values)
        self.ndim = self.array.ndim

    def __dlpack__(self, **wishes):
        return self.array.__dlpack__(**wishes)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays_of_other_libraries_stand_in_lists_and_beside_tensors():
    assert bp.asarray([Foreign(1.0, 2.0), Foreign(3.0, 4.0)]).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert bp.asarray([[Foreign(1, 2)], [[3, 4]]]).tolist() == [[[1, 2]], [[3, 4]]]
    assert (bp.ones(2) + Foreign(1.0, 2.0)).tolist() == (Foreign(1.0, 2.0) + bp.ones(2)).tolist() == [2.0, 3.0]
    with pytest.raises(bp.ShapeError, match="expected a sequence of 2"):
        bp.asarray([Foreign(1, 2), Foreign(1, 2, 3)])


class Picture:
    """As an image of Pillow: no buffer, and no __array__."""

    __array_interface__ = {"shape": (2, 3), "typestr": "|u1", "version": 3, "data": bytes(range(6))}


def test_an_object_that_describes_its_memory_as_an_array():
    x = bp.asarray(Picture())
    assert x.dtype is bp.uint8 and x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert bp.asarray(Picture(), dtype=bp.float32).sum().item() == 15 and bp.tensor(Picture()).shape == (2, 3)


def test_copy_wishes():
    source = np.arange(3.0)
    assert np.shares_memory(bp.asarray(source).numpy(), source)
    assert np.shares_memory(bp.asarray(source, copy=False).numpy(), source)
    assert not np.shares_memory(bp.asarray(source, copy=True).numpy(), source)
    assert bp.asarray(source, dtype=bp.float32).dtype is bp.float32
    with pytest.raises(ValueError, match="copy"):
        bp.asarray(source, dtype=bp.float32, copy=False)
    tensor = bp.asarray(source)
    assert bp.asarray(tensor) is tensor
    assert bp.asarray(tensor, copy=True) is not tensor


def test_writes_are_seen_on_both_sides():
    source = np.zeros(3)
    tensor = bp.asarray(source)
    source[0] = 1
    tensor += 1
    np.from_dlpack(tensor)[2] = 9
    assert tensor.tolist() == [2, 1, 9] and source.tolist() == [2, 1, 9]


def test_read_only_stays_read_only():
    source = np.arange(3.0)
    source.flags.writeable = False
    for tensor in (bp.asarray(source), bp.from_dlpack(source)):
        assert not np.asarray(tensor).flags.writeable
        assert not np.from_dlpack(tensor).flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            tensor += 1
        with pytest.raises(BufferError, match="read-only"):
            tensor.__dlpack__()
    assert bp.asarray(b"ab").tolist() == [97, 98]


EXPORTS = {
    "numpy": (lambda x: x.numpy(), ValueError),
    "asarray": (np.asarray, ValueError),
    "array": (np.array, ValueError),
    "to_numpy": (bp.to_numpy, ValueError),
    "memoryview": (memoryview, BufferError),
    "from_dlpack": (np.from_dlpack, BufferError),
    "capsule": (lambda x: x.__dlpack__(), BufferError),
    "copied capsule": (lambda x: x.__dlpack__(max_version=(1, 0), copy=True), BufferError),
}


@pytest.mark.parametrize("name", EXPORTS)
@pytest.mark.parametrize("of", ["leaf", "result", "view"])
def test_a_history_is_not_lost_unseen(name, of):
    export, error = EXPORTS[name]
    x = bp.ones(3).requires_grad_()
    x = {"leaf": x, "result": x * 2, "view": x[1:]}[of]
    with pytest.raises(error, match=r"requires a gradient.*use x\.detach\(\)"):
        export(x)
    export(x.detach())
    assert x.tolist() and x[0].item() and float(x[0]) and repr(x)


def test_the_refusal_names_the_op_that_made_the_tensor():
    x = bp.ones(3, dtype=bp.bfloat16).requires_grad_() * 2
    with pytest.raises(ValueError, match=r"numpy: .*made by bp::multiply.*x\.detach\(\)"):
        x.numpy()


def test_without_recording_it_is_exported_read_only():
    x = bp.ones(3).requires_grad_()
    with bp.no_grad():
        for export in (bp.to_numpy, np.asarray, np.from_dlpack):
            assert export(x).tolist() == [1, 1, 1] and not export(x).flags.writeable
        with pytest.raises(BufferError, match="read-only"):
            x.__dlpack__()
    assert x.detach().numpy().flags.writeable


def test_memory_outlives_either_side():
    source = np.arange(1000.0)
    references = sys.getrefcount(source)
    tensor = bp.asarray(source)
    assert sys.getrefcount(source) > references
    view = tensor[10:20]
    back = view.numpy()
    del tensor, view
    gc.collect()
    assert back[0] == 10
    del back
    gc.collect()
    assert sys.getrefcount(source) == references
    kept = np.from_dlpack(bp.asarray([1.0, 2.0]))
    gc.collect()
    assert kept.tolist() == [1, 2]


def test_dlpack_versions_and_devices():
    x = bp.asarray([1.0])
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(x.__dlpack__())
    assert x.__dlpack_device__() == (1, 0)
    copied = bp.from_dlpack(x, copy=True)
    copied += 1
    assert x.item() == 1.0
    with pytest.raises((ValueError, BufferError)):
        x.__dlpack__(dl_device=(2, 0))


def test_a_capsule_is_consumed_once():
    class Exporter:
        def __init__(self, tensor):
            self.capsule = tensor.__dlpack__(max_version=(1, 0))

        def __dlpack__(self, **wishes):
            return self.capsule

    exporter = Exporter(bp.asarray([1.0, 2.0]))
    assert bp.from_dlpack(exporter).tolist() == [1, 2]
    with pytest.raises(TypeError, match="consumed"):
        bp.from_dlpack(exporter)


def test_exporters_of_before_dlpack_1():
    class Older:
        def __dlpack__(self, stream=None):
            return bp.asarray([3.0]).__dlpack__()

        def __dlpack_device__(self):
            return (1, 0)

    assert bp.from_dlpack(Older()).item() == 3.0
    assert bp.asarray(Older()).item() == 3.0


def test_other_exporters_and_scalars():
    assert bp.asarray(array.array("i", [1, 2])).dtype is bp.int32
    assert bp.asarray(np.float64(2.5)).dtype is bp.float64
    assert bp.asarray(memoryview(np.arange(3.0))).tolist() == [0, 1, 2]
    assert bp.asarray(np.empty((0, 3))).shape == (0, 3)
    assert bp.asarray(np.array(5)).item() == 5


def test_bfloat16_goes_by_dlpack():
    x = bp.asarray([1.0, 2.0], dtype=bp.bfloat16)
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(x)
    if not hasattr(bp.bfloat16, "dtype"):  # which it has where ml_dtypes is
        with pytest.raises(TypeError, match="bfloat16"):
            x.numpy()
    assert bp.from_dlpack(x).tolist() == [1, 2]


def test_numpy_protocols():
    x = bp.asarray([1.0, 2.0])
    assert np.asarray(x, dtype=np.int32).dtype == np.int32
    assert not np.shares_memory(np.array(x, copy=True), x.numpy())
    assert x.__array_namespace__() is bp
    assert np.sum(x.numpy()) == 3


def test_memoryview_of_tensors():
    x = bp.asarray([[1, 2], [3, 4]], dtype=bp.int32)
    view = memoryview(x)
    assert (view.format, view.shape, view.strides, view.nbytes) == ("i", (2, 2), (8, 4), 16)
    assert view.tolist() == [[1, 2], [3, 4]]
    assert bytes(view) == x.numpy().tobytes()
    with pytest.raises(BufferError, match="contiguous"):
        x.T.__buffer__(0) if hasattr(x, "__buffer__") else hash_of_bytes(x.T)


def hash_of_bytes(tensor):
    import zlib

    return zlib.crc32(tensor)


@pytest.mark.parametrize(
    "values, dtype, shape",
    [
        (1, "int64", ()),
        (True, "bool", ()),
        ([True, False], "bool", (2,)),
        ([1, 2.5], "float32", (2,)),
        ([[1, 2], [3, 4j]], "complex64", (2, 2)),
        ([], "float32", (0,)),
        ([[], []], "float32", (2, 0)),
        (range(3), "int64", (3,)),
        (((1,), (2,)), "int64", (2, 1)),
        ([np.float32(1), 2], "float32", (2,)),
    ],
)
def test_python_values(values, dtype, shape):
    x = bp.asarray(values)
    assert x.dtype.name == dtype and x.shape == shape
    np.testing.assert_array_equal(x.numpy(), np.asarray(values))


def test_wide_values_keep_their_digits():
    assert bp.asarray(0.1, dtype=bp.float64).item() == 0.1
    assert bp.asarray([0.1 + 0.2j], dtype=bp.complex128)[0].item() == 0.1 + 0.2j
    assert bp.asarray(2**53 + 1).item() == 2**53 + 1


@pytest.mark.parametrize(
    "values, error",
    [(np.datetime64("2026-01-01"), TypeError), (np.timedelta64(1, "s"), TypeError), ([[1, 2], [3]], ValueError), ([1, [2]], ValueError), ("12", TypeError), ([None], TypeError), (2**70, ValueError),
     ({}, TypeError), (object(), TypeError)],
)
def test_values_that_are_none(values, error):
    with pytest.raises(error, match="found"):
        bp.asarray(values)


def test_a_list_that_contains_itself():
    values = []
    values.append(values)
    with pytest.raises(ValueError, match="levels"):
        bp.asarray(values)


def test_memory_of_a_capsule_without_a_version_is_read_only():
    """It cannot say whether it may be written: JAX's and MLX's arrays never change."""

    class Older:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self, **_):
            return self.tensor.__dlpack__()

        def __dlpack_device__(self):
            return (1, 0)

    x = bp.asarray([1.0, 2.0])
    shared = bp.from_dlpack(Older(x))
    with pytest.raises(bp.ArgumentValueError, match="read-only memory of another library; copy it"):
        shared += 1
    copied = bp.from_dlpack(Older(x), copy=True)
    copied += 1
    assert shared.tolist() == x.tolist() == [1, 2] and copied.tolist() == [2, 3]
