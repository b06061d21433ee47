"""Datasets, samplers and the loader: every example once, in order or not, here or in workers, and again from a kept position."""

import os
import random

import numpy as np
import pytest

import backplane as bp
from backplane import data
from sanitized import SANITIZED

# Workers are forked beside threads of the loader. A thread may then hold a lock of the address sanitizer's allocator.
WORKERS = [0] if SANITIZED else [0, 2]
X, Y = bp.arange(20).reshape(10, 2), bp.arange(10)


class Numbers(data.Dataset):
    def __init__(self, bad=None):
        self.bad = bad

    def __len__(self):
        return 7

    def __getitem__(self, i):
        if i == self.bad:
            raise KeyError("bad example")
        return {"a": np.full(2, i, dtype=np.float32), "i": i, "name": str(i)}


class Stream(data.IterableDataset):
    def __iter__(self):
        info = data.get_worker_info()
        return iter(range(info.id, 10, info.num_workers) if info else range(10))


def numbers(loader):
    return [batch[1].tolist() for batch in loader]


@pytest.mark.parametrize("workers", WORKERS)
def test_batches_of_examples(workers):
    batches = list(data.DataLoader(Numbers(), batch_size=3, num_workers=workers))
    assert [batch["i"].tolist() for batch in batches] == [[0, 1, 2], [3, 4, 5], [6]]
    assert batches[1]["a"].tolist() == [[3, 3], [4, 4], [5, 5]] and batches[2]["name"] == ["6"]
    dataset = data.TensorDataset(X, Y)
    assert numbers(data.DataLoader(dataset, batch_size=4, num_workers=workers)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(data.DataLoader(dataset, batch_size=4, drop_last=True)) == 2
    shuffled = numbers(data.DataLoader(dataset, batch_size=4, shuffle=True, generator=bp.Generator(0), num_workers=workers))
    assert sorted(sum(shuffled, [])) == list(range(10)) and shuffled[0] != [0, 1, 2, 3]
    with pytest.raises(KeyError, match="bad example"):
        list(data.DataLoader(Numbers(bad=4), batch_size=2, num_workers=workers))
    found = [batch.tolist() for batch in data.DataLoader(Stream(), batch_size=3, num_workers=workers)]
    assert sorted(sum(found, [])) == list(range(10))
    assert [x.tolist() for x in data.DataLoader([1, 2], batch_size=None, num_workers=workers, collate_fn=bp.asarray)] == [1, 2]
    if os.path.isdir("/dev/shm"):
        assert not [name for name in os.listdir("/dev/shm") if name.startswith("psm_")]


def shuffled(seed, workers=0, rows=10, **options):
    return data.DataLoader(data.TensorDataset(X[:rows], Y[:rows]), **{"batch_size": 3, "shuffle": True, **options}, generator=bp.Generator(seed), num_workers=workers)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("then", WORKERS)
def test_a_position_is_resumed(workers, then):
    loader = shuffled(3, workers)
    batches = iter(loader)
    for _ in range(2):
        next(batches)
    state = loader.state_dict()
    rest, following = numbers(batches), numbers(loader)
    again = shuffled(99, then)
    again.load_state_dict(state)
    assert again.state_dict() == state
    assert numbers(again) == rest and numbers(again) == following


def test_a_position_between_passes_is_resumed():
    loader = shuffled(3)
    numbers(loader)
    state = loader.state_dict()
    again = shuffled(99)
    again.load_state_dict(state)
    assert [numbers(again), numbers(again)] == [numbers(loader), numbers(loader)]


def test_an_order_is_drawn_when_its_pass_begins():
    bp.manual_seed(5)
    expected = list(data.RandomSampler(range(3), num_samples=9))
    bp.manual_seed(5)
    found = []
    for i in data.RandomSampler(range(3), num_samples=9):
        found.append(i)
        bp.normal(4)
    assert found == expected


def test_positions_of_other_loaders_are_refused():
    state = shuffled(3).state_dict()
    for options in ({"rows": 9}, {"batch_size": 2}, {"shuffle": False}):
        with pytest.raises(bp.ArgumentValueError, match="make the loader as it was"):
            shuffled(3, **options).load_state_dict(state)
    with pytest.raises(bp.ArgumentValueError, match="num_workers is 0"):
        data.DataLoader(Stream(), num_workers=2).load_state_dict(data.DataLoader(Stream()).state_dict())
    with pytest.raises(bp.ArgumentValueError, match="expected what state_dict"):
        shuffled(3).load_state_dict({})


class Draws(Numbers):
    def __getitem__(self, i):
        return int(np.random.randint(1 << 30)), random.getrandbits(30), int(bp.randint(0, 1 << 30, ()))


@pytest.mark.skipif(SANITIZED, reason="workers are forked; see WORKERS")
def test_workers_draw_different_numbers_and_the_same_again():
    passes = []
    for _ in range(2):
        loader = data.DataLoader(Draws(), batch_size=None, num_workers=2, generator=bp.Generator(1), collate_fn=list)
        passes.append(list(loader))
    assert passes[0] == passes[1]
    assert all(len(set(column)) == 7 for column in zip(*passes[0]))


def test_parts_and_sums_of_datasets():
    whole = data.TensorDataset(X, Y)
    a, b = data.random_split(whole, [0.7, 0.3], generator=bp.Generator(0))
    assert len(a) == 7 and sorted(int(y) for part in (a, b) for _, y in part) == list(range(10))
    both = data.ConcatDataset([a, b])
    assert len(both) == 10 and both[-1][1] == b[2][1] and data.Subset(whole, [4, 2])[1][1] == 2
    assert data.StackDataset(x=X, y=Y)[3]["y"] == 3
    with pytest.raises(bp.ShapeError, match="TensorDataset"):
        data.TensorDataset(X, Y[:3])
    with pytest.raises(bp.ArgumentValueError, match="random_split"):
        data.random_split(whole, [3, 3])


def test_samplers():
    assert sorted(data.RandomSampler(range(6))) == list(range(6)) and len(list(data.RandomSampler(range(3), num_samples=8))) == 8
    assert sorted(data.WeightedRandomSampler([0, 1, 2, 0], 2, replacement=False)) == [1, 2]
    drawn = list(data.WeightedRandomSampler([1, 0, 3], 4000, generator=bp.Generator(1)))
    assert 1 not in drawn and abs(drawn.count(2) / 4000 - 0.75) < 0.03
    assert list(data.BatchSampler(range(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    with pytest.raises(bp.ArgumentValueError, match="argument sampler: found one with shuffle"):
        data.DataLoader(range(3), sampler=[0], shuffle=True)


def test_collating():
    assert data.default_collate([1, 2]).dtype == bp.int64 and data.default_collate([1.0, 2.0]).dtype == bp.float32
    assert data.default_collate([(1, "a"), (2, "b")])[1] == ["a", "b"]
    with pytest.raises(bp.ArgumentValueError, match="expected one shape"):
        data.default_collate([bp.ones(2), bp.ones(3)])
