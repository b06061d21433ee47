"""Bools are the byte 0 or 1 from the moment they enter, at every door; and kernels do not rely on it."""

import ctypes
import pathlib
import subprocess
import sys

import backplane as bp
import numpy as np
import pytest

LAWS = pathlib.Path(__file__).with_name("laws")

BYTES = np.random.default_rng(5).integers(0, 256, 2048).astype(np.uint8)
BYTES[::3] = 0
BYTES[1::7] = 255


def odd(shape=(2048,)):
    return BYTES.reshape(shape).view(np.bool_)


class Capsule:
    """An exporter whose bools are any bytes: NumPy's, under the protocol's own version of the name."""

    def __init__(self, array, versioned):
        self.array, self.versioned = array, versioned

    def __dlpack__(self, **wishes):
        return self.array.__dlpack__(**(wishes if self.versioned else {}))

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def pickled(array):
    rebuild, (data, *rest) = bp.asarray(array != 0).__reduce__()
    return rebuild(array.tobytes(), *rest)


DOORS = {
    "asarray": bp.asarray,
    "asarray copy": lambda a: bp.asarray(a, copy=True),
    "memoryview": lambda a: bp.asarray(memoryview(a)),
    "strided": lambda a: bp.asarray(np.repeat(a.view(np.uint8), 2, axis=-1).view(np.bool_)[..., ::2]),
    "backwards": lambda a: bp.asarray(np.ascontiguousarray(a[..., ::-1])[..., ::-1]),
    "column order": lambda a: bp.asarray(np.asfortranarray(a)),
    "broadcast": lambda a: bp.asarray(np.broadcast_to(a, (2, *a.shape)))[1],
    "from_dlpack": bp.from_dlpack,
    "from_dlpack 1": lambda a: bp.from_dlpack(Capsule(a, True)),
    "from_dlpack 0": lambda a: bp.from_dlpack(Capsule(a, False)),
    "pickle": pickled,
    "list of arrays": lambda a: bp.stack([bp.asarray(row) for row in a]),
}


@pytest.mark.parametrize("shape", [(2048,), (32, 64), (4, 8, 64)])
@pytest.mark.parametrize("door", DOORS)
def test_bools_are_made_so_at_the_door(door, shape):
    found = DOORS[door](odd(shape))
    np.testing.assert_array_equal(found.numpy().view(np.uint8), (BYTES != 0).reshape(shape).astype(np.uint8))


def test_proper_bools_are_shared():
    proper = BYTES != 0
    for tensor in (bp.asarray(proper), bp.from_dlpack(proper), bp.asarray(proper, copy=False)):
        assert np.shares_memory(tensor.numpy(), proper)


@pytest.mark.parametrize("door", [bp.asarray, bp.from_dlpack, lambda a, copy: bp.asarray(a[::2], copy=copy)])
def test_a_copy_that_is_not_allowed_is_refused(door):
    with pytest.raises(ValueError, match="copy.*found False.*need a copy"):
        door(odd(), copy=False)
    door(BYTES != 0, copy=False)


def test_a_buffer_that_needs_a_copy_for_another_reason_is_refused_too():
    with pytest.raises(ValueError, match="copy.*found False.*strides"):
        bp.asarray(np.arange(4.0)[::-1], copy=False)


def test_foreign_structures():
    memory = (ctypes.c_ubyte * 4)(0, 2, 255, 1)
    found = bp.asarray(np.ctypeslib.as_array(memory).view(np.bool_))
    assert found.tolist() == [False, True, True, True]
    assert int(bp.count_nonzero(found)) == 3


def spoiled(shape):
    """Bools whose bytes were changed behind our back after they entered: the writer's fault, but no reason to crash."""
    memory = np.zeros(shape, np.bool_)
    tensor = bp.asarray(memory)
    memory.view(np.uint8)[...] = BYTES[: memory.size].reshape(shape)
    return tensor


SELECTIONS = {
    "argwhere": lambda m, x: bp.argwhere(m),
    "nonzero": lambda m, x: bp.nonzero(m)[0],
    "masked_select": lambda m, x: bp.masked_select(x, m),
    "index": lambda m, x: x[m],
    "rows": lambda m, x: bp.stack([x, x], axis=-1)[m],
    "where": lambda m, x: bp.where(m, x, -x),
    "count_nonzero": lambda m, x: bp.count_nonzero(m),
    "any": lambda m, x: bp.any(m),
    "all": lambda m, x: bp.all(m),
    "not": lambda m, x: bp.nonzero(~m)[0],
    "put": lambda m, x: put(x, m),
    "sum": lambda m, x: bp.sum(m),
    "cast": lambda m, x: bp.cast(m, bp.int64),
    "float": lambda m, x: bp.cast(m, bp.float32),
    "sort": lambda m, x: bp.cast(bp.sort(m), bp.uint8),
    "argsort": lambda m, x: bp.sort(bp.argsort(m)),
    "multiply": lambda m, x: m * x,
}


def put(x, mask):
    x = x + 0
    x[mask] = 7
    return x


@pytest.mark.parametrize("name", SELECTIONS)
def test_what_selects_takes_any_byte_but_0_for_true(name):
    x = bp.asarray(np.random.default_rng(2).standard_normal(2048).astype(np.float32))
    found, expected = SELECTIONS[name](spoiled((2048,)), x), SELECTIONS[name](bp.asarray(BYTES != 0), x)
    np.testing.assert_array_equal(np.asarray(found != 0) if found.dtype is bp.bool else found.numpy(),
                                  np.asarray(expected != 0) if found.dtype is bp.bool else expected.numpy())


@pytest.mark.parametrize("shape", [(1,), (7,), (2048,), (32, 64), (2, 3, 341)])
def test_no_kernel_leaves_its_memory_for_such_bytes(shape):
    mask, proper = spoiled(shape), bp.zeros(shape, dtype=bp.bool)
    for reduced in (bp.unique_values, bp.sum, bp.sort, bp.argsort, bp.prod, bp.any):
        reduced(mask)
    for binary in (bp.logical_and, bp.bitwise_or, bp.bitwise_xor, bp.equal, bp.not_equal):
        assert binary(mask, proper).shape == shape
    assert bp.argwhere(mask).shape[0] == int(bp.count_nonzero(mask)) == bp.masked_select(mask, mask).shape[0]
    into = bp.zeros(shape)
    into[mask] = 1.0
    assert float(into.sum()) == int(bp.count_nonzero(mask))


def test_bools_that_nobody_has_written_are_bools():
    for _ in range(3):
        spoiled_memory = bp.full((100_000,), 255, dtype=bp.uint8)
        del spoiled_memory
        fresh = bp.empty((100_000,), dtype=bp.bool)
        assert int((fresh == True).sum()) + int((fresh == False).sum()) == 100_000  # noqa: E712


def test_no_op_relies_on_the_bytes():
    """For every entry that takes bools: it stays in its memory, it ends, and any byte but 0 is true."""
    done = subprocess.run([sys.executable, str(LAWS / "odd_bools.py")], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, f"status {done.returncode} after {done.stdout[-300:]}\n{done.stderr[-4000:]}"
    assert len(done.stdout.splitlines()) > 150, done.stdout
    wrong = [line for line in done.stdout.splitlines() if line.startswith("wrong")]
    assert not wrong, "\n".join(wrong)


def written_by_bytes(shape):
    """A tensor whose bools NumPy writes as any bytes."""
    tensor = bp.zeros(shape, dtype=bp.bool)
    memory = np.asarray(tensor).view(np.uint8)
    memory[...] = BYTES[: memory.size].reshape(memory.shape)
    return tensor


def test_bools_of_a_python_kernel_are_made_so():
    @bp.custom_op("own::odd_bools")
    def one(x: bp.Tensor) -> bp.Tensor:
        return written_by_bytes(x.shape)

    @bp.custom_op("own::odd_parts")
    def parts(x: bp.Tensor) -> list[bp.Tensor]:
        return [written_by_bytes(x.shape), x + 1, written_by_bytes(x.shape)[..., ::2]]

    @bp.custom_op("own::odd_pair")
    def pair(x: bp.Tensor) -> tuple[bp.Tensor, bp.Tensor]:
        return written_by_bytes(x.shape), written_by_bytes(x.shape).T

    @bp.custom_op("own::odd_change", mutates_args=("x",))
    def change(x: bp.Tensor) -> None:
        np.asarray(x).view(np.uint8)[...] = BYTES[:64].reshape(x.shape)

    x, expected = bp.zeros((8, 8)), (BYTES[:64] != 0).astype(np.uint8).reshape(8, 8)
    changed, view = bp.zeros((8, 8), dtype=bp.bool), bp.zeros((8, 16), dtype=bp.bool)[:, ::2]
    change(changed)
    change(view)
    first, second, every_second = parts(x)
    for found, wanted in [(one(x), expected), (first, expected), (every_second, expected[..., ::2]), (pair(x)[0], expected),
                          (pair(x)[1], expected.T), (changed, expected), (view, expected)]:  # fmt: skip
        np.testing.assert_array_equal(found.numpy().view(np.uint8), wanted)
    assert second.tolist() == bp.ones((8, 8)).tolist()


def test_from_numpy_never_copies_and_says_so_of_itself():
    for array in (odd(), np.arange(4.0)[::-1], np.zeros(9, np.uint8)[1:].view(np.float32)):
        with pytest.raises(ValueError, match="from_numpy: a tensor cannot share this memory.*asarray, which copies") as raised:
            bp.from_numpy(array)
        assert "copy=" not in str(raised.value) and "found False" not in str(raised.value)
