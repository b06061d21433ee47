"""The edges of the package: other libraries' memory, limits of memory, sizes that no machine has, copies of namespaces."""

import copy
import ctypes
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import backplane as bp

C_TYPES = {
    ctypes.c_bool: "bool", ctypes.c_byte: "int8", ctypes.c_ubyte: "uint8", ctypes.c_short: "int16",
    ctypes.c_ushort: "uint16", ctypes.c_int: "int32", ctypes.c_uint: "uint32", ctypes.c_long: "int64",
    ctypes.c_ulong: "uint64", ctypes.c_longlong: "int64", ctypes.c_ulonglong: "uint64", ctypes.c_float: "float32",
    ctypes.c_double: "float64", ctypes.c_size_t: "uint64", ctypes.c_int8: "int8", ctypes.c_uint16: "uint16",
}  # fmt: skip


@pytest.mark.parametrize("c_type", C_TYPES, ids=lambda t: t.__name__)
def test_arrays_of_ctypes_are_shared(c_type):
    for extents in [(3,), (1,), (0,), (2, 3), (2, 1, 4), (2, 0)]:
        array_type = c_type
        for extent in reversed(extents):
            array_type = array_type * extent
        array = array_type()
        x = bp.asarray(array)
        assert x.dtype.name == C_TYPES[c_type] and x.shape == extents
        if x.size:
            flat = (c_type * x.size).from_buffer(array)
            flat[:] = [i % 2 for i in range(x.size)]
            assert x.tolist() == np.ctypeslib.as_array(array).tolist(), "asarray shares the memory"
    assert bp.asarray(c_type(1)).item() == 1


def test_other_arrays_of_ctypes_are_refused():
    class Pair(ctypes.Structure):
        _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_double)]

    for array in [(Pair * 2)(), (ctypes.c_char * 3)(), (ctypes.c_wchar * 3)(), (ctypes.c_longdouble * 2)(),
                  (ctypes.c_int.__ctype_be__ * 2)(), (ctypes.c_void_p * 2)()]:  # fmt: skip
        with pytest.raises(bp.BackplaneError, match="asarray"):
            bp.asarray(array)


def run(code, seconds=60):
    """The output of code in a process of its own, which must end in time."""
    done = subprocess.run(
        [sys.executable, "-c", "import backplane as bp\n" + textwrap.dedent(code)],
        capture_output=True, text=True, timeout=seconds,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_no_memory_is_served_beyond_a_limit_not_even_what_was_kept():
    """Whatever lies in the caches: an allocation that would exceed the limit fails."""
    out = run(
        """
        for size in (300, 5000, 100_000, 3_000_000):
            del_me = [bp.zeros(size, dtype=bp.uint8) for _ in range(8)]
        del del_me
        for limit in (0, 1, 64):
            bp.set_memory_limit(limit)
            for size in (300, 5000, 100_000, 3_000_000):
                try:
                    bp.zeros(size, dtype=bp.uint8)
                    print("served", size, "under", limit)
                except MemoryError:
                    pass
            assert bp.memory_stats()["limit_bytes"] == limit
        bp.set_memory_limit(None)
        bp.zeros(3_000_000, dtype=bp.uint8)
        """
    )
    assert out == []


def test_a_limit_counts_what_is_reserved():
    out = run(
        """
        kept = [bp.zeros(1 << 20, dtype=bp.uint8) for _ in range(8)]
        del kept
        bp.empty_cache()
        held = bp.memory_stats()["reserved_bytes"]
        bp.set_memory_limit(held + (3 << 20))
        mine = []
        try:
            while True:
                mine.append(bp.zeros(1 << 20, dtype=bp.uint8))
        except MemoryError:
            pass
        assert bp.memory_stats()["reserved_bytes"] <= held + (3 << 20)
        print(len(mine))
        """
    )
    assert out in (["2"], ["3"])


def test_namespaces_of_ops_are_copied_and_pickled_as_themselves():
    for thing in (bp.ops, bp.ops.bp):
        for way in (copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))):
            assert way(thing) is thing
    assert copy.deepcopy({"ops": bp.ops})["ops"].bp is bp.ops.bp
    gone = pickle.dumps(bp.ops.bp).replace(b"bp", b"zz")
    with pytest.raises(Exception, match="zz"):
        pickle.loads(gone)


def test_the_vandermonde_matrix_is_numpys():
    for x in ([1.0, 2.0, 3.0], [2.5], [], [0.0, -1.0]):
        x = np.asarray(x)
        for n in (None, 0, 1, 2, 5):
            for increasing in (False, True):
                expected = np.vander(x, n, increasing)
                found = bp.vander(bp.asarray(x), n, increasing)
                assert found.shape == expected.shape and np.array_equal(np.asarray(found), expected)
    for dtype in (bp.bool, bp.int8, bp.uint8, bp.int32, bp.int64):
        integers = bp.vander(bp.asarray([1, 1], dtype=bp.bool) if dtype == bp.bool else bp.asarray([2, 99], dtype=dtype), 4)
        assert integers.dtype == bp.int64
        assert integers.tolist() == ([[1] * 4] * 2 if dtype == bp.bool else [[8, 4, 2, 1], [99**3, 99**2, 99, 1]])
    gradient = bp.grad(lambda v: bp.vander(v, 4).sum())(bp.asarray([2.0, 0.0]))
    assert gradient.tolist() == [1 + 4 + 12, 1]
    with pytest.raises(bp.BackplaneError, match="vander: argument n"):
        bp.vander(bp.ones(2), -1)


SIZES = {
    "vander": "bp.vander(bp.ones(3), {n})",
    "linspace": "bp.linspace(0.0, 1.0, {n})",
    "logspace": "bp.logspace(0.0, 1.0, {n})",
    "geomspace": "bp.geomspace(1.0, 2.0, {n})",
    "histogram": "bp.histogram(bp.ones(3), bins={n})",
    "array_split": "bp.array_split(bp.ones(3), {n})",
    "chunk": "bp.chunk(bp.ones(3), {n})",
    "split": "bp.split(bp.ones(3), {n})",
    "tile": "bp.tile(bp.ones(3), {n})",
    "repeat": "bp.repeat(bp.ones(3), {n})",
    "eye": "bp.eye({n})",
    "identity": "bp.identity({n})",
    "tri": "bp.tri({n})",
    "arange": "bp.arange({n})",
    "zeros": "bp.zeros({n})",
    "full": "bp.full(({n},), 1)",
    "indices": "bp.indices(({n}, 2))",
    "diff": "bp.diff(bp.ones(3), n={n})",
    "pad": "bp.pad(bp.ones(3), {n})",
    "one_hot": "bp.nn.functional.one_hot(bp.asarray([0, 0]), {n})",
    "bincount": "bp.bincount(bp.asarray([0, 1]), minlength={n})",
    "matrix_power": "bp.linalg.matrix_power(bp.eye(2), {n})",
    "permutation": "bp.permutation({n})",
    "rot90": "bp.rot90(bp.ones((2, 2)), {n})",
    "triu_indices": "bp.triu_indices({n})",
    "tril_indices": "bp.tril_indices({n})",
    "fft": "bp.fft.fft(bp.ones(3), n={n})",
    "fftfreq": "bp.fft.fftfreq({n})",
    "rfftfreq": "bp.fft.rfftfreq({n})",
}


@pytest.mark.parametrize("name", SIZES)
def test_a_size_that_no_machine_has_ends_at_once(name):
    """A call with a number of 2**61 or 2**31 ends, with a result or an error, before it works through the number."""
    run(
        f"""
        bp.set_memory_limit(1 << 30)
        for n in (2**61, 2**40, 2**31):
            try:
                {SIZES[name].format(n="n")}
            except (bp.BackplaneError, ValueError, MemoryError, OverflowError):
                pass
        {SIZES[name].format(n="1")}
        """,
        seconds=30,
    )


@pytest.mark.parametrize("k", [2**63 - 1, 2**63 - 2, 2**40, 3, 2, -2, -3, -(2**40), -(2**63)])
def test_diagonals_far_outside(k):
    """A diagonal beyond the corners is as good as one at them; the sum of a place and k must not wrap."""
    x, near = bp.ones((3, 4)), max(-5, min(k, 5))
    assert bp.tril(x, k=k).tolist() == np.tril(np.ones((3, 4)), near).tolist()
    assert bp.triu(x, k=k).tolist() == np.triu(np.ones((3, 4)), near).tolist()
    assert bp.tri(3, 4, k=k).tolist() == np.tri(3, 4, near).tolist()
    assert bp.eye(3, 4, k=k).tolist() == np.eye(3, 4, near).tolist()
