"""Attributes that a compiled function changes and sets back, among reads of all attributes: one trace, whose guards have the first values."""

import gc
import weakref

import pytest

import backplane as bp
from backplane import nn, optim


def traces_of(function, *calls, **options):
    """The results of a compiled function, and how often it ran."""
    runs = []

    def counted(*args):
        bp.unguarded(runs.append, None)
        return function(*args)

    compiled = bp.compile(counted, **options)
    return [compiled(*args) for args in calls], len(runs)


X = bp.ones((3, 2))


@pytest.mark.parametrize("deep", [False, True])
def test_a_step_that_evaluates_and_trains(deep):
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(2)) if deep else nn.Dropout(0.5))
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        model.eval()
        before = model(x).mean()
        model.train()
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return before

    found, runs = traces_of(step, *[(X,)] * 6, state=[model, optimizer])
    _, first = traces_of(step, (X,), state=[model, optimizer])
    assert runs == first and model.training and len({x.item() for x in found}) == 6


class Holder:
    def __init__(self):
        self.scale, self.mode = 2.0, "train"


def test_what_was_there_first_is_guarded():
    holder = Holder()

    def f(x):
        holder.mode = "eval"
        named = vars(holder).copy()
        holder.mode = "train"
        return x * named["scale"]

    compiled = bp.compile(f)
    assert compiled(bp.ones(1)).item() == 2 and compiled(bp.ones(1)).item() == 2
    holder.scale = 5.0
    assert compiled(bp.ones(1)).item() == 5 and holder.mode == "train"


def test_a_mode_that_the_function_leaves():
    model = nn.Sequential(nn.Dropout(0.5))

    def f(x):
        was = model.training
        model.eval()
        return x * (2.0 if was else 3.0)

    compiled = bp.compile(f, state=[model])
    assert [compiled(bp.ones(1)).item() for _ in range(3)] == [2.0, 3.0, 3.0]
    model.train()
    assert compiled(bp.ones(1)).item() == 2.0 and not model.training


def test_what_stood_there_is_not_held():
    holder = Holder()
    holder.kept = bp.ones(1000)
    reference = weakref.ref(holder.kept)

    def f(x):
        holder.mode = "eval"
        return x * holder.scale

    compiled = bp.compile(f)
    compiled(bp.ones(1))
    del holder.kept
    gc.collect()
    assert reference() is None and compiled(bp.ones(1)).item() == 2


def test_a_refused_trace_sets_all_back():
    holder = Holder()

    def f(x):
        holder.mode = "eval"
        holder.scale = 7.0
        return x * float(x.sum())

    with pytest.raises(bp.ArgumentValueError, match="has no value yet"):
        bp.compile(f)(bp.ones(1))
    assert vars(holder) == {"scale": 2.0, "mode": "train"}


def test_options_that_alternate():
    """A graph is kept for each; the weight decay of a step is that of its call."""
    weights = [bp.ones(2).requires_grad_() for _ in range(2)]
    optimizers = [optim.SGD([w], lr=1.0) for w in weights]

    def step_of(weight, optimizer):
        def step():
            optimizer.zero_grad()
            (weight * 0.0).sum().backward()
            optimizer.step()

        return step

    runs = []
    plain, step = (step_of(*one) for one in zip(weights, optimizers))

    def counted():
        bp.unguarded(runs.append, None)
        step()

    compiled = bp.compile(counted, state=[weights[1], optimizers[1]])
    seen = []
    for i in range(12):
        for optimizer in optimizers:
            optimizer.param_groups[0]["weight_decay"] = (0.0, 0.5, 0.25)[i % 3]
        plain()
        compiled()
        assert weights[0].tolist() == weights[1].tolist()
        seen.append(len(runs))
    assert seen[2] == seen[-1]
