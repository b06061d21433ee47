"""`default_dtype(float64)`: floats that name no dtype are of that one, wherever they come from; float32 stays what it was at the end.

The law: what a call gives under a default is what it gives where that dtype is named, or where its integers were cast to it first.
"""

import contextlib
import subprocess
import sys

import backplane as bp
import numpy as np
import pytest

FLOATS = (bp.float16, bp.bfloat16, bp.float32, bp.float64)
COMPLEX = {bp.float64: bp.complex128}
INTS, BOOLS = bp.asarray([[1, 2, 3], [4, 5, 7]]), bp.asarray([True, False, True])


@pytest.fixture(params=FLOATS, ids=str)
def dtype(request):
    with bp.default_dtype(request.param):
        yield request.param
    assert bp.default_dtype() is bp.float32


# What makes floats of no float.
MADE = {
    "asarray of a number": lambda: bp.asarray(0.1),
    "asarray of numbers": lambda: bp.asarray([[0.1, 2], [3, 4]]),
    "asarray of nothing": lambda: bp.asarray([]),
    "asarray of Python's type": lambda: bp.asarray([1, 2], dtype=float),
    "zeros": lambda: bp.zeros((2, 3)),
    "ones": lambda: bp.ones(2),
    "eye": lambda: bp.eye(3),
    "full": lambda: bp.full(3, 0.1),
    "full of a list": lambda: bp.zeros([2]),
    "arange": lambda: bp.arange(0, 1, 0.25),
    "linspace": lambda: bp.linspace(0, 1, 4),
    "logspace": lambda: bp.logspace(0, 1, 3),
    "empty": lambda: bp.empty(3),
    "tri": lambda: bp.tri(3),
    "rand": lambda: bp.rand(3),
    "randn": lambda: bp.randn(3),
    "one_hot": lambda: bp.one_hot(bp.asarray([0, 1]), 2),
    "quotient": lambda: INTS / 3,
    "quotient of ints": lambda: INTS / INTS,
    "number beside ints": lambda: INTS + 0.1,
    "number before bools": lambda: 0.1 * BOOLS,
    "power": lambda: INTS**0.5,
    "sine of ints": lambda: bp.sin(INTS),
    "sine of a number": lambda: bp.sin(0.1),
    "sum of numbers": lambda: bp.add(0.1, 0.2),
    "choice of numbers": lambda: bp.where(BOOLS, 0.1, 0.2),
    "mean of ints": lambda: bp.mean(INTS),
    "mean of bools": lambda: BOOLS.mean(),
    "std of ints": lambda: INTS.std(axis=0),
    "median of ints": lambda: bp.median(INTS),
    "quantile of ints": lambda: bp.quantile(INTS, 0.3),
    "softmax of ints": lambda: bp.softmax(INTS),
    "average of ints": lambda: bp.average(INTS, axis=1, weights=bp.asarray([1, 2, 1])),
    "list beside ints": lambda: bp.add(bp.asarray([1, 2]), [0.1, 0.2]),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_floats_of_no_dtype_are_the_default(name, dtype):
    assert MADE[name]().dtype is dtype


@pytest.mark.parametrize("make", [lambda: bp.asarray(1j), lambda: bp.asarray([1j, 2]), lambda: INTS * 1j, lambda: bp.full(2, 1j), lambda: bp.fft.fft(INTS)])
def test_complex_numbers_follow(make):
    for real in (bp.float32, bp.float64):
        with bp.default_dtype(real):
            assert make().dtype is COMPLEX.get(real, bp.complex64)


def test_what_has_a_dtype_keeps_it(dtype):
    for kept in (bp.float32, bp.float16, bp.float64):
        x = bp.ones(3, dtype=kept)
        assert (x + 0.1).dtype is (x * INTS[0]).dtype is bp.sin(x).dtype is bp.ones_like(x).dtype is x.mean().dtype is kept
    assert (INTS + 1).dtype is bp.arange(3).dtype is INTS.sum().dtype is bp.full(2, 3).dtype is bp.int64
    assert bp.asarray(np.zeros(2, np.float32)).dtype is bp.float32 and INTS.float().dtype is bp.float32 and (INTS > 0.5).dtype is bp.bool


# Values that float32 has not.
DIGITS = {
    "asarray": (lambda: bp.asarray([0.1, 1e300]), np.asarray([0.1, 1e300])),
    "full": (lambda: bp.full(2, 0.1), np.full(2, 0.1)),
    "linspace": (lambda: bp.linspace(0, 1, 7), np.linspace(0, 1, 7)),
    "quotient": (lambda: INTS / 3, np.asarray(INTS) / 3),
    "number": (lambda: INTS * 0.1, np.asarray(INTS) * 0.1),
    "sine": (lambda: bp.sin(INTS), np.sin(np.asarray(INTS))),
    "sine of a number": (lambda: bp.sin(0.1), np.sin(0.1)),
    "mean": (lambda: INTS.mean(), np.asarray(INTS).mean()),
    "comparison": (lambda: bp.asarray([2**24 + 1]) > 2.0**24 + 0.5, np.asarray([True])),
    "fft": (lambda: bp.fft.rfft(INTS), np.fft.rfft(np.asarray(INTS))),
    "list": (lambda: bp.add(bp.asarray([1, 2]), [0.1, 0.2]), np.asarray([1.1, 2.2])),
}


@pytest.mark.parametrize("name", DIGITS)
def test_all_digits_are_kept(name):
    call, expected = DIGITS[name]
    with bp.default_dtype(bp.float64):
        np.testing.assert_allclose(np.asarray(call()), expected, rtol=1e-15)


def test_gradients_and_batches_see_the_default(dtype):
    x = bp.ones(3)
    assert bp.grad(lambda x: (x * INTS[0] / 2).sum())(x).dtype is dtype
    assert bp.vmap(lambda row: row / 2)(INTS).dtype is bp.vmap(lambda row: bp.ones(2) + row)(bp.asarray([1, 2])).dtype is dtype


def test_a_compiled_function_is_one_per_default():
    half = bp.compile(lambda n: n / 2 + bp.ones(3))
    for _ in range(2):
        for dtype in FLOATS:
            with bp.default_dtype(dtype):
                assert half(INTS).dtype is dtype
    graph = bp.make_graph(lambda n: n / 3)(INTS)
    with bp.default_dtype(bp.float64), pytest.raises(ValueError, match="differs from the traced one: default dtype: found float64, had float32"):
        graph(INTS)
    assert graph(INTS).dtype is bp.float32


def test_the_setting_is_set_and_put_back():
    before = bp.default_dtype("float64")
    assert bp.default_dtype() is bp.get_default_dtype() is bp.float64 and before.before is bp.float32 and "float32" in repr(before)
    bp.set_default_dtype(bp.float32)
    with contextlib.suppress(ZeroDivisionError), bp.default_dtype(bp.float64), bp.default_dtype(bp.float16):
        assert bp.zeros(1).dtype is bp.float16
        raise ZeroDivisionError
    assert bp.default_dtype() is bp.float32
    info = bp.__array_namespace_info__()
    with bp.default_dtype(bp.float64):
        assert info.default_dtypes()["real floating"] is bp.float64 and info.default_dtypes()["complex floating"] is bp.complex128
        assert bp.result_type(INTS, 1.5) is bp.float64 and repr(bp.ones(1)) == "tensor([1.])" and "float32" in repr(bp.ones(1, dtype=bp.float32))
    for bad, error in ((bp.int64, TypeError), ("complex64", TypeError), (3, TypeError), ("f9", TypeError)):
        for change in (bp.set_default_dtype, bp.default_dtype):
            with pytest.raises(error, match="dtype"):
                change(bad)


def test_the_setting_is_of_all_threads_and_a_block_of_its_own():
    program = ("import threading, backplane as bp\nfound = []\n"
               "def look():\n    t = threading.Thread(target=lambda: found.append(bp.ones(1).dtype.name)); t.start(); t.join()\n"
               "with bp.default_dtype(bp.float64):\n    look()\n"
               "bp.set_default_dtype(bp.float64); look()\nbp.set_default_dtype(bp.float32); look()\nprint(found, bp.ones(1).dtype)")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "['float32', 'float64', 'float32'] backplane.float32", done.stderr
