"""Data-parallel training on every rank, against the same steps of one process on the joined batch."""

import os
import tempfile
import threading

import numpy as np

import backplane as bp
from backplane import nn, optim

d = bp.distributed
F = nn.functional
STEPS = 6


def examples(rows):
    draw = np.random.default_rng(0)
    return bp.asarray(draw.normal(size=(rows, 5)), dtype=bp.float32), bp.asarray(draw.normal(size=(rows, 2)), dtype=bp.float32)


def made(make_optimizer, seed):
    """A model whose first values depend on the seed."""
    generator = bp.Generator(seed)
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2))
    with bp.no_grad():
        for p in model.parameters():
            p.detach()[...] = bp.normal(p.shape, generator=generator) * 0.5
    return model, make_optimizer(model)


def loss_of(model, x, y):
    return F.mse_loss(model(x), y)


def functional(model, optimizer, clip):
    def step(x, y):
        loss, gradients = bp.value_and_grad(loss_of)(model, x, y)
        if clip:
            gradients, _ = nn.utils.clip_grad_norm(gradients, 0.3)
        optimizer.update(model, gradients)
        return loss

    return step


def by_backward(model, optimizer, clip):
    def step(x, y):
        optimizer.zero_grad()
        loss = loss_of(model, x, y)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 0.3)
        optimizer.step()
        return loss.detach()

    return step


def compiled(model, optimizer, clip):
    return bp.compile(functional(model, optimizer, clip), state=[model, optimizer])


def trained(step, x, y):
    return [float(step(x[i * 12 : (i + 1) * 12], y[i * 12 : (i + 1) * 12])) for i in range(STEPS)]


def check_equals_one_process():
    n, r = d.size(), d.rank()
    x, y = examples(12 * STEPS)
    for make in (lambda m: optim.SGD(m.parameters(), lr=0.1, momentum=0.9), lambda m: optim.AdamW(m.parameters(), lr=1e-2)):
        # Several threads cannot trace one function at the same time.
        are_threads = threading.current_thread() is not threading.main_thread()
        for form in (functional, by_backward) if are_threads else (functional, by_backward, compiled):
            for clip in (False, True):
                model, optimizer = made(make, 0)
                alone = trained(form(model, optimizer, clip), x, y)
                own, own_optimizer = made(make, r)  # rank 0's values are everybody's
                step = d.data_parallel(form(own, own_optimizer, clip), state=[own, own_optimizer])
                part = lambda t: t.reshape((STEPS, 12, -1))[:, r::n].reshape((STEPS * (12 // n), -1))
                k = 12 // n
                losses = [float(step(part(x)[i * k : (i + 1) * k], part(y)[i * k : (i + 1) * k])) for i in range(STEPS)]
                np.testing.assert_allclose(losses, alone, rtol=2e-5, err_msg=f"{form.__name__}, clip {clip}")
                for p, q in zip(model.parameters(), own.parameters()):
                    np.testing.assert_allclose(q.detach().numpy(), p.detach().numpy(), rtol=1e-4, atol=1e-6, err_msg=form.__name__)
                    everywhere = d.all_gather(q.detach().reshape((1, -1))).numpy()
                    assert (everywhere == everywhere[0]).all(), "the ranks' models differ"


def check_divided_state():
    """Each rank keeps its part of the optimiser's state; the digits are those of the whole state."""
    n, r = d.size(), d.rank()
    x, y = examples(12 * STEPS)
    for name in ("AdamW", "SGD"):
        make = getattr(optim, name)
        options = {"lr": 1e-2} if name == "AdamW" else {"lr": 0.1, "momentum": 0.9}
        model, optimizer = made(lambda m: make(m.parameters(), **options), 0)
        alone = trained(functional(model, optimizer, False), x, y)
        own, divided = made(lambda m: d.ZeroRedundancyOptimizer(m.parameters(), make, **options), 0)
        total = sum(p.size for p in model.parameters())
        kept = sum(t.size for s in (divided.optimizer.init_state() or divided.optimizer.state).values() for t in s.values() if t.ndim)
        assert kept <= (-(-total // n)) * (2 if name == "AdamW" else 1)
        k, losses = 12 // n, []
        for form in (functional, by_backward):
            step = form(own, divided, False)
            for i in range(STEPS // 2):
                at = len(losses)
                a, b = (t[at * 12 : (at + 1) * 12][r::n] for t in (x, y))
                losses.append(d.all_reduce(step(a, b), "mean").item())
        np.testing.assert_allclose(losses, alone, rtol=2e-5, err_msg=name)
        divided.load_state_dict(divided.state_dict())
    try:
        d.ZeroRedundancyOptimizer(own.parameters(), optim.Muon)
    except bp.ArgumentValueError:
        return
    raise AssertionError("Muon was accepted")


def check_pure_functions():
    """The optimisers in lower case, and averages that a program makes by itself."""
    n, r = d.size(), d.rank()
    sgd = optim.sgd(lr=0.1, momentum=0.9)
    x = bp.asarray(np.random.default_rng(1).normal(size=(12, 3)))
    params = {"w": bp.ones(3, dtype=bp.float64)}
    loss = lambda p, x: ((x @ p["w"]) ** 2).mean()
    expected, _ = sgd.update(bp.grad(loss)(params, x), sgd.init(params), params)

    def step(x):
        gradients = bp.grad(loss)(params, x)
        found, _ = sgd.update(gradients, sgd.init(params), params)
        again, _ = sgd.update(d.average_gradients(gradients, bucket_bytes=1), sgd.init(params), params)
        return found["w"], again["w"]

    for found in d.data_parallel(step, state=params)(x[r::n]):
        np.testing.assert_allclose(found.numpy(), expected["w"].numpy(), rtol=1e-12)


def check_finds_state():
    model, optimizer = made(lambda m: optim.SGD(m.parameters(), lr=0.1), d.rank())

    @d.data_parallel
    def step(x, y):
        loss, gradients = bp.value_and_grad(loss_of)(model, x, y)
        optimizer.update(model, gradients)
        return loss

    x, y = examples(4)
    step(x, y)
    for p in model.parameters():
        everywhere = d.all_gather(p.detach().reshape((1, -1))).numpy()
        assert (everywhere == everywhere[0]).all()
    try:
        d.data_parallel(lambda x: x)(x)
    except bp.ArgumentValueError as error:
        assert "give state=" in str(error)
    else:
        raise AssertionError("a step without state was accepted")
    try:
        lbfgs = optim.LBFGS(model.parameters())
        d.data_parallel(lambda: lbfgs.step(lambda: bp.zeros(())), state=model)()
    except bp.MissingRuleError:
        pass
    else:
        raise AssertionError("LBFGS was accepted")


def check_samplers():
    n, r = d.size(), d.rank()
    data = bp.data.TensorDataset(bp.arange(26))
    for shuffle in (False, True):
        sampler = bp.data.DistributedSampler(data, shuffle=shuffle, drop_last=True)
        sampler.set_epoch(3)
        batches = [batch[0].tolist() for batch in bp.data.DataLoader(data, batch_size=2, sampler=sampler)]
        seen = d.all_gather(bp.asarray(sum(batches, []))).tolist()
        assert len(set(seen)) == len(seen) == 26 // n * n
        # Resumed after one batch of all ranks.
        sampler.set_epoch(3, start=2 * n)
        assert [batch[0].tolist() for batch in bp.data.DataLoader(data, batch_size=2, sampler=sampler)] == batches[1:]
        # Together the ranks have one process's batch.
        alone = bp.data.DistributedSampler(data, 1, 0, shuffle=shuffle)
        alone.set_epoch(3)
        assert sorted(d.all_gather(bp.asarray(batches[0])).tolist()) == sorted(list(alone)[: 2 * n])
    every = bp.data.DistributedSampler(data)
    assert len(list(every)) == -(-26 // n) and set(d.all_gather(bp.asarray(list(every))).tolist()) == set(range(26))


def check_saving():
    folder = tempfile.mkdtemp() if d.rank() == 0 else ""
    folder = bytes(d.broadcast(bp.asarray(list(folder.encode().ljust(200, b"\0")), dtype=bp.uint8)).tolist()).rstrip(b"\0").decode()
    path = os.path.join(folder, "run.safetensors")
    model, optimizer = made(lambda m: optim.AdamW(m.parameters()), d.rank())
    d.save({"model": model, "step": 3}, path)
    saved = bp.load(path)
    first = d.broadcast(next(iter(model.parameters())).detach())
    assert saved["step"] == 3 and (next(iter(saved["model"].values())) == first).all()
    try:
        d.on_one_rank(lambda: 1 / 0)
    except ZeroDivisionError:
        assert d.rank() == 0
    except bp.DeviceError as error:
        assert d.rank() != 0 and "rank 0" in str(error)
    else:
        raise AssertionError("the error of one rank is lost")
    assert d.on_one_rank(lambda: 7) == (7 if d.rank() == 0 else None)


CHECKS = {name: f for name, f in globals().items() if name.startswith("check_")}
