"""Generators hand out positions; equal positions give equal bits."""

import copy
import os
import pickle

import backplane as bp
import pytest


def test_a_seed_is_a_sequence():
    first, second = bp.Generator(7), bp.Generator(7)
    a, b = bp.uniform((5,), generator=first), bp.uniform((5,), generator=first)
    assert a.tolist() != b.tolist()
    assert bp.uniform((5,), generator=second).tolist() == a.tolist()
    assert bp.uniform((5,), generator=second).tolist() == b.tolist()
    assert bp.uniform((5,), generator=bp.Generator(8)).tolist() != a.tolist()


def test_the_default_generator():
    bp.manual_seed(3)
    a = bp.normal((4,))
    bp.manual_seed(3)
    assert bp.normal((4,)).tolist() == a.tolist()
    assert bp.normal((4,), generator=None).tolist() != a.tolist()


def test_calls_draw_from_disjoint_ranges():
    generator = bp.Generator(1)
    drawn = [set(bp.random_bits((64,), dtype=bp.uint64, generator=generator).tolist()) for _ in range(8)]
    drawn.append(set(bp.normal((64,), dtype=bp.float64, generator=generator).tolist()))
    assert len(set.union(*drawn)) == sum(map(len, drawn))


def test_state_goes_back_and_survives():
    generator = bp.Generator(5)
    bp.uniform((3,), generator=generator)
    state = generator.state
    again = pickle.loads(pickle.dumps(generator))
    twin = copy.deepcopy(generator)
    expected = bp.uniform((3,), generator=generator).tolist()
    assert bp.uniform((3,), generator=again).tolist() == expected
    assert bp.uniform((3,), generator=twin).tolist() == expected
    generator.state = state
    assert bp.uniform((3,), generator=generator).tolist() == expected


def test_a_generator_in_another_process_is_a_copy():
    generator = bp.Generator(5)
    bp.uniform((3,), generator=generator)

    def draw():
        return bp.uniform((2,), generator=generator).tolist() + bp.uniform((2,)).tolist()

    reader, writer = os.pipe()
    if not (child := os.fork()):
        os.write(writer, repr(draw()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as drawn:
        assert drawn.read() == repr(draw())


def test_every_size_of_call_moves_on():
    generator = bp.Generator(2)
    for shape in ((), (0,), (1000,)):
        before = generator.state
        bp.uniform(shape, generator=generator)
        assert generator.state[1] > before[1]


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "a"])
def test_wrong_seeds(seed):
    with pytest.raises(ValueError, match="seed"):
        bp.Generator(seed)
    with pytest.raises(ValueError, match="seed"):
        bp.manual_seed(seed)


def test_wrong_states():
    with pytest.raises(TypeError, match="state"):
        bp.Generator(1).state = 3


FLOATING = [bp.float16, bp.bfloat16, bp.float32, bp.float64]
COMPLEX = [bp.complex64, bp.complex128]
OTHER = [bp.bool, bp.int8, bp.int32, bp.int64, bp.uint8, bp.uint64]


@pytest.mark.parametrize("dtype", OTHER, ids=str)
def test_only_floating_and_complex_numbers_are_drawn(dtype):
    like = bp.zeros(3, dtype=dtype)
    for draw in [lambda: bp.uniform((3,), dtype=dtype), lambda: bp.normal((3,), dtype=dtype), lambda: bp.rand(3, dtype=dtype),
                 lambda: bp.randn(3, dtype=dtype), lambda: bp.rand_like(like), lambda: bp.randn_like(like)]:  # fmt: skip
        with pytest.raises(bp.DtypeError, match=f"found dtype {dtype.name}, expected a floating or complex dtype"):
            draw()


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_both_parts_of_a_complex_number_are_drawn(dtype):
    drawn = bp.rand(20000, dtype=dtype)
    for part in (bp.real(drawn), bp.imag(drawn)):
        assert bp.unique(part).size > 19000  # as fine as the dtype's parts
        assert float(bp.min(part)) >= 0 and float(bp.max(part)) < 1
        assert abs(float(bp.mean(part)) - 0.5) < 0.02
    normal = bp.normal((20000,), mean=1, std=3, dtype=dtype)
    for part, mean in ((bp.real(normal), 1), (bp.imag(normal), 0)):
        assert abs(float(bp.mean(part)) - mean) < 0.1
        assert abs(float(bp.var(part)) - 4.5) < 0.3
    assert abs(float(bp.mean((bp.real(normal) - 1) * bp.imag(normal)))) < 0.2


@pytest.mark.parametrize("dtype", FLOATING + COMPLEX, ids=str)
@pytest.mark.parametrize("low, high", [(1, 2), (-2, -1), (0, 1), (1000, 1001), (-0.3, 0.3)])
def test_uniform_stays_below_high(dtype, low, high):
    drawn = bp.uniform((300000,), low=low, high=high, dtype=dtype)
    for part in (bp.real(drawn), bp.imag(drawn)) if dtype in COMPLEX else (drawn,):
        assert float(bp.min(part)) >= float(bp.asarray(low, dtype=part.dtype))
        assert float(bp.max(part)) < float(bp.asarray(high, dtype=part.dtype)) or low == 1000  # one value of bfloat16


@pytest.mark.parametrize("low, high", [(2, 1), (-3e38, 3e38), (0, float("inf")), (float("nan"), 1), (0, float("nan")), (1e39, 2e39)])
def test_uniform_refuses_what_the_dtype_does_not_hold(low, high):
    with pytest.raises(ValueError, match="bp::uniform: found .*, expected "):
        bp.uniform((2,), low=low, high=high)


@pytest.mark.parametrize("wrong", [-1, -1e-9, float("nan")])
def test_a_negative_deviation_is_refused(wrong):
    with pytest.raises(ValueError, match="bp::normal: found .*, expected std from 0 on"):
        bp.normal((2,), std=wrong)


@pytest.mark.parametrize("p", [-0.5, 1.0001, float("nan"), float("inf")])
def test_what_is_no_probability_is_refused(p):
    with pytest.raises(ValueError, match="bp::bernoulli: found .*, expected p from 0 to 1"):
        bp.bernoulli(p, (2,))
    with pytest.raises(ValueError, match="bp::dropout: found .*, expected p from 0 to 1"):
        bp.dropout(bp.ones(2), p=p)


@pytest.mark.parametrize("name", ["uniform", "normal"])
def test_numpys_order_of_arguments(name):
    draw, words = getattr(bp, name), {"uniform": ("low", "high"), "normal": ("mean", "std")}[name]
    expected = draw((2, 3), **dict(zip(words, (5.0, 7.0))), generator=bp.Generator(3)).tolist()
    for args, more in [((5.0, 7.0, (2, 3)), {}), ((5, 7, [2, 3]), {}), ((5.0, 7.0), {"size": (2, 3)}), ((), {**dict(zip(words, (5, 7))), "size": (2, 3)})]:
        assert draw(*args, **more, generator=bp.Generator(3)).tolist() == expected
    assert draw(2, 3).shape == (2, 3) == draw(size=(2, 3)).shape and draw((2, 3, 4)).shape == (2, 3, 4)
    for shape in ((4.0, 3, 4), (4.0, 3), (2, (3,))):
        with pytest.raises(bp.ArgumentTypeError, match=f"{name}: argument 'shape'"):
            draw(shape)
