"""Several devices of one process: collectives between four simulated devices, and data-parallel training on them."""

import numpy as np
import pytest

import backplane as bp

d = bp.distributed
F = bp.nn.functional
FOUR = ["sim:0", "sim:1", "simh:0", "simh:1"]
NUMPY = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}


@pytest.fixture
def group(simulator):
    return d.DeviceGroup(FOUR)


def made(group, shape, dtype="float32"):
    draw = np.random.default_rng(3)
    arrays = [(draw.integers(-4, 5, shape) / 2).astype(dtype) for _ in range(group.size)]
    return arrays, [bp.asarray(a, device=device) for a, device in zip(arrays, group.devices)]


def same(found, expected, group):
    for x, device in zip(found, group.devices):
        assert x.device == device
    for x, array in zip(found, expected):
        np.testing.assert_allclose(x.numpy(), array, rtol=1e-6)


@pytest.mark.parametrize("shape", [(), (3,), (8, 3), (0,)])
@pytest.mark.parametrize("op", NUMPY)
def test_all_reduce(group, shape, op):
    arrays, tensors = made(group, shape)
    same(group.all_reduce(tensors, op), [NUMPY[op](arrays, axis=0)] * 4, group)


def test_others(group):
    arrays, tensors = made(group, (8, 3))
    same(group.reduce_scatter(tensors), np.split(np.sum(arrays, axis=0), 4), group)
    same(group.all_gather(tensors), [np.concatenate(arrays)] * 4, group)
    same(group.broadcast(tensors[2]), [arrays[2]] * 4, group)
    same(group.scatter(tensors[1]), np.split(arrays[1], 4), group)
    same(group.all_gather([x[0, 0] for x in tensors]), [np.asarray([a[0, 0] for a in arrays])] * 4, group)


def test_halves_reduce_in_float32(group):
    tensors = [bp.full((5,), value, dtype=bp.float16, device=device) for value, device in zip([2048.0, 1.0, 1.0, 1.0], group.devices)]
    assert group.all_reduce(tensors)[0].tolist() == [2052.0] * 5  # 2048 + 1 is 2048 in float16; 2051 rounds to 2052


def test_gradients(group):
    _, tensors = made(group, (6,))
    for x in tensors:
        x.requires_grad = True
    sum((x.to("cpu") ** 2).sum() for x in group.all_reduce(tensors)).backward()
    total = np.sum([x.detach().numpy() for x in tensors], axis=0)
    same([x.grad for x in tensors], [2 * 4 * total] * 4, group)
    with pytest.raises(bp.ArgumentValueError, match="inside a transform"):
        bp.grad(lambda tensors: group.all_reduce(tensors)[0].sum())([x.detach() for x in tensors])


def test_refusals(group):
    _, tensors = made(group, (6,))
    for call, error in [
        (lambda: group.all_reduce(tensors[:3]), bp.ArgumentTypeError),
        (lambda: group.all_reduce(tensors[::-1]), bp.ArgumentValueError),
        (lambda: group.all_reduce(tensors, "average"), bp.ArgumentValueError),
        (lambda: group.all_reduce([*tensors[:3], bp.ones(7, device="simh:1")]), bp.ShapeError),
        (lambda: group.reduce_scatter(tensors), bp.ShapeError),
        (lambda: group.scatter(tensors[0]), bp.ShapeError),
        (lambda: group.all_reduce([x > 0 for x in tensors]), bp.DtypeError),
        (lambda: group.all_reduce([x.astype(bp.int32) for x in tensors], "mean"), bp.DtypeError),
        (lambda: d.DeviceGroup([]), bp.ArgumentValueError),
    ]:
        with pytest.raises(error):
            call()


def test_digits_on_four_devices_equal_one(simulator):
    """The losses of one device with the whole batch, and replicas that stay the same."""
    draw = np.random.default_rng(0)
    target = draw.integers(0, 10, 320)
    blurred = draw.normal(size=(10, 1, 8, 8))[target] + draw.normal(size=(320, 1, 8, 8)) / 4
    images, labels = bp.asarray(blurred.astype("float32")), bp.asarray(target)
    bp.manual_seed(0)
    model = bp.nn.Sequential(bp.nn.Conv2d(1, 4, 3, padding=1), bp.nn.ReLU(), bp.nn.MaxPool2d(2), bp.nn.Flatten(), bp.nn.Linear(64, 10))
    loss = lambda model, x, y: F.cross_entropy(model(x), y)
    make = lambda model: bp.optim.AdamW(model.parameters(), lr=1e-2)
    runs = [d.DeviceReplicas(model, devices, make) for devices in (["cpu"], FOUR)]
    losses = [[run.step(loss, images[i : i + 40], labels[i : i + 40]).item() for i in range(0, 320, 40)] for run in runs]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
    assert losses[0][-1] < losses[0][0]
    for one, *others in zip(*(replica.parameters() for replica in runs[1].models)):
        for other in others:
            np.testing.assert_array_equal(other.detach().numpy(), one.detach().numpy())
    for p, q in zip(runs[0].models[0].parameters(), runs[1].models[0].parameters()):
        np.testing.assert_allclose(q.detach().numpy(), p.detach().numpy(), rtol=1e-3, atol=1e-5)
    with pytest.raises(bp.ShapeError):
        runs[1].step(loss, images[:42], labels[:42])
