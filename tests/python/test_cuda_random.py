"""Random numbers on CUDA, which one kernel makes in registers: their bits are those of the decompositions, at sizes that end within a block of
Philox and whose second half begins within one."""

import backplane as bp
import numpy as np
import pytest

SHAPES = [(), (2,), (7,), (1024,), (5, 1001), (0, 3)]
REAL = [bp.float16, bp.bfloat16, bp.float32, bp.float64]
COMPLEX = [bp.complex64, bp.complex128]
INTEGERS = [bp.int8, bp.int16, bp.int32, bp.int64, bp.uint8, bp.uint16, bp.uint32, bp.uint64]


def numbers(x):
    return (x.astype(bp.float32) if x.dtype == bp.bfloat16 else x).numpy()


def drawn(draw, device, seed=5):
    generator = bp.Generator(seed)
    generator.state = (2**33 + seed, 2**32 - 3)  # blocks whose count's upper word changes
    made = draw(device=device, generator=generator)
    assert made.device == device
    return numbers(made.to("cpu"))


def alike(draw, cuda):
    np.testing.assert_array_equal(drawn(draw, cuda), drawn(draw, bp.device("cpu")), strict=True)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", REAL + COMPLEX, ids=str)
def test_uniform_has_the_cpus_bits(cuda, shape, dtype):
    alike(lambda **where: bp.uniform(shape, dtype=dtype, **where), cuda)
    alike(lambda **where: bp.uniform(shape, low=-0.3, high=7, dtype=dtype, **where), cuda)
    alike(lambda **where: bp.uniform(shape, low=1000, high=1001, dtype=dtype, **where), cuda)


def composed_normal(shape, mean, std, dtype, device, generator):
    """The decomposition in ops/random.yaml, op by op."""
    wide, has_parts = dtype in (bp.float64, bp.complex128), dtype in COMPLEX
    u = bp.uniform((2, *shape), dtype=bp.float64 if wide else bp.float32, device=device, generator=generator)
    logarithm, angle = bp.log(1 - u[0]), u[1] * (2 * np.pi)
    r = bp.sqrt(-logarithm if has_parts else logarithm * -2)
    z = bp.complex_from(r * bp.cos(angle), r * bp.sin(angle)) if has_parts else r * bp.cos(angle)
    return (z if mean == 0 and std == 1 else z * std + mean).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", REAL + COMPLEX, ids=str)
@pytest.mark.parametrize("mean, std", [(0, 1), (1e-3, 1e4)])
def test_normal_has_the_bits_of_its_decomposition(cuda, shape, dtype, mean, std):
    found = drawn(lambda **where: bp.normal(shape, mean=mean, std=std, dtype=dtype, **where), cuda)
    expected = drawn(lambda **where: composed_normal(shape, mean, std, dtype, **where), cuda)
    np.testing.assert_array_equal(found, expected, strict=True)
    on_host = drawn(lambda **where: bp.normal(shape, mean=mean, std=std, dtype=dtype, **where), bp.device("cpu"))
    tolerance = {bp.float16: 2e-3, bp.bfloat16: 1e-2}.get(dtype, 1e-13 if dtype in (bp.float64, bp.complex128) else 1e-5)
    np.testing.assert_allclose(found, on_host, rtol=tolerance, atol=tolerance * max(std, 1))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_have_the_cpus_bits(cuda, shape, dtype):
    least, most = bp.iinfo(dtype).min, min(bp.iinfo(dtype).max, 2**63 - 1)
    for low, high in [(least, least + 1), (most - 6, most), (least // 2, most // 2 + 1)]:
        alike(lambda **where: bp.randint(low, high, shape, dtype=dtype, **where), cuda)


@pytest.mark.parametrize("width", [1, 2, 3, 5, 2**32 - 1, 2**32, 2**32 + 1, 2**62 + 1, 2**63 - 1])
def test_integers_of_every_width(cuda, width):
    alike(lambda **where: bp.randint(0, width, (1000,), **where), cuda)
    if width < 2**63 - 1:
        alike(lambda **where: bp.randint(-1, width - 1, (1000,), **where), cuda)


def test_more_integers_than_2_to_the_63_are_composed(cuda):
    alike(lambda **where: bp.randint(-(2**62), 2**62 + 5, (100,), **where), cuda)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("p", [0, 1 / 3, True])
def test_bools_have_the_cpus_bits(cuda, shape, p):
    alike(lambda **where: bp.bernoulli(p, shape, **where), cuda)


@pytest.mark.parametrize("draw", [
    lambda **where: bp.uniform((1 << 16,), low=2, high=3, **where),
    lambda **where: bp.normal((1 << 16,), mean=2, std=3, **where),
    lambda **where: bp.randint(0, 10, (1 << 16,), **where),
    lambda **where: bp.bernoulli(0.5, (1 << 16,), **where),
], ids=["uniform", "normal", "randint", "bernoulli"])  # fmt: skip
def test_a_draw_takes_no_memory_but_its_result(cuda, draw):
    bp.reset_peak_memory_stats(cuda)
    before = bp.memory_stats(cuda)["peak_bytes"]
    made = draw(device=cuda)
    assert bp.memory_stats(cuda)["peak_bytes"] - before < made.nbytes * 1.5


def test_what_the_ops_refuse_is_refused(cuda):
    def refused(error, match, draw):
        for device in (bp.device("cpu"), cuda):
            with pytest.raises(error, match=match):
                draw(device)

    for low, high in [(2, 1), (-3e38, 3e38), (0, float("inf")), (float("nan"), 1), (0, float("nan")), (1e39, 2e39)]:
        refused(ValueError, "bp::uniform: found .*, expected ", lambda device: bp.uniform((2,), low=low, high=high, device=device))
    for std in (-1, -1e-9, float("nan")):
        refused(ValueError, "bp::normal: found .*, expected std from 0 on", lambda device: bp.normal((2,), std=std, device=device))
    for p in (-0.5, 1.0001, float("nan")):
        refused(ValueError, "bp::bernoulli: found .*, expected p from 0 to 1", lambda device: bp.bernoulli(p, (2,), device=device))
    for low, high in [(5, 5), (5, 4), (0, 300), (-200, 0)]:
        refused((ValueError, OverflowError), "bp::randint", lambda device: bp.randint(low, high, (2,), dtype=bp.int8, device=device))
    refused(bp.DtypeError, "a floating or complex dtype", lambda device: bp.normal((2,), dtype=bp.int32, device=device))


@pytest.mark.parametrize("mean, std", [(float("inf"), 1), (1e39, 1), (0, 1e39), (float("nan"), 1)])
def test_a_mean_or_deviation_beyond_the_dtype_is_composed(cuda, mean, std):
    def draw(**where):
        return bp.normal((9,), mean=mean, std=std, dtype=bp.float32, **where)

    np.testing.assert_allclose(drawn(draw, cuda), drawn(draw, bp.device("cpu")), rtol=1e-5)
