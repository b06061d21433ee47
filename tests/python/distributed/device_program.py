"""Ranks that are threads, each on a CUDA device of its own, whose tensors travel by the device provider: the checks that the others pass.

test_device_provider.py runs it in a process on the emulated driver and NCCL's stand-in.
"""

import sys
import threading

import collective_checks
import numpy as np
from collective_checks import d, mine, operands, same

import backplane as bp

collective_checks.SHAPES = [(), (0,), (4, 3)]
DEVICE_OPS = ["all_reduce", "reduce_scatter", "reduce", "all_gather", "gather", "scatter", "all_to_all", "broadcast"]


def on_device(check):
    def call():
        with bp.device(f"cuda:{d.rank()}"):
            check()

    return call


def where(report):
    return {(row.op.split("::")[1], row.how) for row in report.rows if row.op.startswith("collective::")}


def check_no_staging():
    """Every collective is a kernel of the device; what NCCL lacks is done by the host."""
    x = bp.ones((4, 3)) * (d.rank() + 1)
    d.barrier()
    with bp.placement() as report:
        results = [d.all_reduce(x), d.reduce_scatter(x), d.reduce(x), d.all_gather(x), d.gather(x), d.scatter(x), d.all_to_all(x), d.broadcast(x)]
        work = d.all_reduce(x, async_op=True)
        results.append(work.wait())
        d.barrier()
    d.barrier()  # a report counts the calls of all ranks
    assert all(result.device == x.device for result in results)
    found = where(report)
    assert {(name, "kernel") for name in DEVICE_OPS} <= found, found
    assert not {name for name, how in found if how != "kernel"} - {"barrier"}, found
    with bp.placement() as report:
        top = d.all_reduce(bp.asarray([float("nan"), 1.0 + d.rank()]), "max")
        d.barrier()
    assert ("all_reduce", "host fallback") in where(report)
    assert np.isnan(top[0].item()) and top[1].item() == d.size()
    try:
        work.wait()
    except bp.ArgumentValueError as error:
        assert "was waited for before" in str(error)
    else:
        raise AssertionError("a work was waited for twice")


def check_streams():
    """A call is ordered behind the work that makes its operand, and before the work that reads its result."""
    x = mine(operands((64, 64), "float32"), "float32")
    for _ in range(5):
        with bp.Stream(x.device):
            total = d.all_reduce(x @ x)
        expected = sum(a @ a for a in operands((64, 64), "float32"))
        np.testing.assert_allclose((total + 1).numpy(), expected + 1, rtol=1e-4, atol=1e-3)


def check_gradients():
    x = bp.ones((2, 2)) * (d.rank() + 1)
    gradient = bp.grad(lambda x: (d.all_reduce(x) ** 2).sum())(x)
    total, n = sum(range(1, d.size() + 1)), d.size()
    same(gradient, np.full((2, 2), 2.0 * total * n, np.float32), "gradient on a device")
    same(bp.vmap(lambda row: d.all_reduce(row))(x), np.full((2, 2), total, np.float32), "vmap on a device")


def check_divided_layers():
    """Of tensor-parallel layers nothing goes through the host."""
    nn = bp.nn
    whole = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 4))
    with bp.no_grad():
        for p in whole.parameters():  # alike on all ranks
            p.detach()[...] = bp.asarray(np.random.default_rng(p.size).normal(size=p.shape).astype("float32"))
    part = nn.Sequential(d.ColumnParallelLinear(whole[0]), d.RowParallelLinear(whole[1]))
    x = bp.ones((3, 4))
    d.barrier()
    with bp.placement() as report:
        value, gradients = bp.value_and_grad(lambda model: (model(x) ** 2).sum())(part)
        d.barrier()
    d.barrier()
    assert not {name for name, how in where(report) if how == "host fallback"}, report
    expected = bp.grad(lambda model: (model(x) ** 2).sum())(whole)
    np.testing.assert_allclose(gradients[1].bias.detach().numpy(), expected[1].bias.detach().numpy(), rtol=1e-4)


def check_groups():
    alone = d.new_group([d.rank()])
    same(d.all_reduce(bp.ones(3), group=alone), np.ones(3, np.float32), "a group of one")
    backward = d.new_group(range(d.size())[::-1])
    same(d.all_gather(bp.asarray([d.rank()]), group=backward), list(range(d.size()))[::-1], "a group in another order")


def check_mismatch():
    """One rank's tensor is on a device, the other's on the host: an error on both, and not a wait without end."""
    x = bp.ones(3) if d.rank() == 0 else bp.ones(3, device="cpu")
    try:
        d.all_reduce(x)
    except bp.DeviceError as error:
        assert "disagree" in str(error) and "on the device" in str(error), error
    else:
        raise AssertionError("a mismatch of devices was not refused")


def check_other_device():
    d.all_reduce(bp.ones(3))
    other = bp.ones(3, device=f"cuda:{1 - d.rank()}")
    try:
        d.all_reduce(other)
    except bp.DeviceError as error:
        assert "a rank uses one device in a group" in str(error), error
    else:
        raise AssertionError("a second device was not refused")


CHECKS = {name: f for name, f in globals().items() if name.startswith("check_")}
CHECKS["reductions"], CHECKS["moves"] = collective_checks.check_reductions, collective_checks.check_moves

if __name__ == "__main__":
    for name in sys.argv[1:] or CHECKS:
        d.run_threads(2, on_device(CHECKS[name]), devices="nccl", timeout=30)
        print(f"{name} passed", flush=True)
    assert threading.active_count() == 1
