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
