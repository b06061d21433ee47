"""A product and its addend, in one call: the bits of `x @ y + z`, on one thread and on several, in every layout."""

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(5)
DTYPES = [bp.float16, bp.bfloat16, bp.float32, bp.float64, bp.complex64, bp.complex128]
# x, y and z; the larger ones are cut into blocks of rows or of columns
SHAPES = [
    ((4, 3), (3, 2), (2,)),
    ((3,), (3,), ()),
    ((5, 3), (3,), (5,)),
    ((3,), (2, 3, 4), (2, 1)),
    ((4, 0), (0, 2), (2,)),
    ((0, 3), (3, 2), (2,)),
    ((2, 1, 4, 3), (5, 3, 2), (2, 5, 4, 2)),
    ((6, 4, 3), (3, 2), (6, 1, 2)),
    ((700, 64), (64, 96), (96,)),
    ((40, 64), (64, 1500), (40, 1)),
    ((3, 200, 64), (64, 96), (96,)),
    ((3, 200, 64), (64, 96), (3, 200, 96)),
]
LAYOUTS = {
    "contiguous": lambda x: x,
    "turned": lambda x: bp.copy(x.mT).mT if x.ndim > 1 else x,
    "every second": lambda x: bp.repeat(x, 2, axis=-1)[..., ::2] if x.ndim > 0 else x,
    "backward": lambda x: bp.flip(bp.copy(bp.flip(x))) if x.ndim > 0 else x,
}


def numbers(shape, dtype):
    real = bp.asarray(RNG.standard_normal(shape))
    return (real + 1j * bp.asarray(RNG.standard_normal(shape)) if dtype in (bp.complex64, bp.complex128) else real).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_the_bits_are_those_of_two_calls(shapes, dtype):
    x, y, z = (numbers(shape, dtype) for shape in shapes)
    for layout in LAYOUTS.values():
        found, expected = bp.matmul_add(x, layout(y), layout(z)), x @ layout(y) + layout(z)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        if dtype in (bp.float16, bp.bfloat16):  # rounded once, or with the product where a processor multiplies these
            once = x.astype(bp.float32) @ layout(y).astype(bp.float32) + layout(z).astype(bp.float32)
            error = bp.abs(found.astype(bp.float32) - once)
            assert bp.all(error <= bp.finfo(dtype).eps * bp.maximum(bp.abs(once), bp.abs(expected.astype(bp.float32)) + 1))
        else:
            assert bp.all(found == expected)


def test_linear_and_addmm_are_one_kernel():
    x, weight, bias = numbers((2, 4, 3), bp.float32), numbers((5, 3), bp.float32), numbers((5,), bp.float32)
    matrix = numbers((4, 5), bp.float32)
    for call in (lambda: bp.linear(x, weight, bias), lambda: bp.addmm(bias, x, weight.mT), lambda: bp.addmm(matrix, x[0], weight.mT)):
        before = bp.call_counts()
        call()
        after = bp.call_counts()
        assert (after.kernels - before.kernels, after.decompositions - before.decompositions) == (1, 0)


def test_a_bias_that_would_enlarge_the_product_is_refused():
    x, weight = numbers((4, 3), bp.float32), numbers((1, 3), bp.float32)
    for shape in ((6,), (2, 4, 1)):
        with pytest.raises(bp.ShapeError, match="linear: .*a bias that broadcasts to x times weight"):
            bp.linear(x, weight, numbers(shape, bp.float32))


def test_what_enlarges_the_product_is_added_by_addmm():
    x, y = numbers((4, 3), bp.float32), numbers((3, 1), bp.float32)
    for shape in ((6,), (2, 4, 1), (4, 5)):
        z = numbers(shape, bp.float32)
        assert bp.all(bp.addmm(z, x, y) == z + x @ y)


def test_what_does_not_broadcast_to_the_product_is_refused():
    x, y = numbers((4, 3), bp.float32), numbers((3, 1), bp.float32)
    for shape in ((6,), (2, 4, 1), (3, 1)):
        with pytest.raises(bp.ShapeError, match="argument z"):
            bp.matmul_add(x, y, numbers(shape, bp.float32))


def test_a_result_that_is_given_may_be_what_is_added():
    x, y, z = numbers((4, 3), bp.float32), numbers((3, 2), bp.float32), numbers((4, 2), bp.float32)
    expected = x @ y + z
    z[:] = bp.matmul_add(x, y, z)
    assert bp.all(z == expected)
