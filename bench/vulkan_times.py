"""What the Vulkan backend takes, as JSON: what a hundred small ops and a step of training make the driver do, host time per small
op, bandwidths, the rate of products, a chain of ops fused and one by one, steps of training.

Times are the best of several turns; those of training are processor time too, which a busy machine distorts less.
"""

import json
import re
import resource
import sys
import time

import numpy as np

import backplane as bp

TURNS = 7
SMALL_OPS = 100


def processor_time():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def best(work, turns=TURNS, clock=time.perf_counter):
    def once():
        start = clock()
        work()
        return clock() - start

    once()
    return min(once() for _ in range(turns))


def host_time_of_small_op(device):
    """Seconds until the call returns, of adding vectors of 1,000; the device's work lies outside."""
    x = bp.ones(1000, dtype=bp.float32, device=device)
    times = []
    for _ in range(3 * TURNS):
        bp.synchronize(device)
        start = time.perf_counter()
        for _ in range(SMALL_OPS):
            x + x
        times.append((time.perf_counter() - start) / SMALL_OPS)
    return min(times)


COUNTS = ("submissions", "recorded_commands", "recorded_barriers", "driver_objects_made")


def counted(device, work, warm_up=3):
    """What `work` makes the driver do, once all that it needs is made."""
    for _ in range(warm_up):
        work()
        bp.synchronize(device)
    before = bp.device(device).properties
    work()
    bp.synchronize(device)
    after = bp.device(device).properties
    return {name: after[name] - before[name] for name in COUNTS}


def counts_of_small_ops(device):
    x = bp.ones(1000, dtype=bp.float32, device=device)

    def work():
        y = x
        for _ in range(SMALL_OPS):
            y = y + x

    return counted(device, work)


def bandwidths(device, size):
    """Bytes per second of a copy and of an addition."""
    x, y = (bp.ones(size, dtype=bp.float32, device=device) for _ in range(2))

    def run(op):
        op()
        bp.synchronize(device)

    return {"copy": 8 * size / best(lambda: run(lambda: bp.copy(x))), "add": 12 * size / best(lambda: run(lambda: x + y))}


def product_rate(device, side):
    x = bp.ones((side, side), dtype=bp.float32, device=device)

    def run():
        x @ x
        bp.synchronize(device)

    return 2 * side**3 / best(run)


def chain(x, y):
    return bp.maximum((x * y + 1) * x - y, x)


def fused_chain(device, size):
    """What five elementwise ops dispatch as one graph, and seconds of them compiled and one by one."""
    x, y = (bp.ones(size, dtype=bp.float32, device=device) for _ in range(2))
    kernels, regions = map(int, re.search(r"(\d+) kernel calls, (\d+) regions", bp.explain_plan(chain)(x, y)).groups())

    def run(function):
        function(x, y)
        bp.synchronize(device)

    compiled = bp.compile(chain)
    return {"dispatches": kernels + regions, "fused": best(lambda: run(compiled)), "one by one": best(lambda: run(chain))}


def network(weights, x, labels, generator):
    """The loss of the digits' network."""
    x = bp.relu(bp.batch_norm(bp.conv2d(x, weights["conv1"], padding=(1, 1)), weights["scale1"], weights["shift1"])[0])
    x = bp.conv2d(bp.max_pool2d(x, (2, 2)), weights["conv2"], padding=(1, 1))
    x = bp.relu(bp.batch_norm(x, weights["scale2"], weights["shift2"])[0])
    x = bp.dropout(bp.reshape(x, (48, 512)), p=0.3, generator=generator)
    x = x @ bp.matrix_transpose(weights["linear"]) + weights["bias"]
    return bp.mean(bp.cross_entropy(x, labels))


def training_steps(device):
    """Steps of the network on 48 images of noise: as the demo writes it, and as one compiled function."""
    generator = bp.Generator(0)
    images = np.random.default_rng(0).random((48, 1, 8, 8), dtype=np.float32)
    labels = bp.asarray(np.arange(48) % 10, device=device)
    shapes = {"conv1": (16, 1, 3, 3), "scale1": (16,), "shift1": (16,), "conv2": (32, 16, 3, 3), "scale2": (32,), "shift2": (32,),
              "linear": (10, 512), "bias": (10,)}
    weights = {name: bp.normal(shape, std=0.1, dtype=bp.float32, device=device, generator=generator)
               for name, shape in shapes.items()}
    leaves = {name: bp.copy(weight).requires_grad_() for name, weight in weights.items()}

    def eager():
        loss = network(leaves, bp.asarray(images, device=device), labels, generator)
        loss.backward()
        with bp.no_grad():
            for weight in leaves.values():
                weight -= 0.01 * weight.grad
                weight.grad = None
        loss.item()

    @bp.compile
    def update(weights, x, labels):
        loss, gradients = bp.value_and_grad(lambda weights: network(weights, x, labels, generator))(weights)
        return loss, {name: weight - 0.01 * gradients[name] for name, weight in weights.items()}

    def compiled():
        nonlocal weights
        loss, weights = update(weights, bp.asarray(images, device=device), labels)
        loss.item()

    return {how: {"wall": best(step, 20), "processor": best(step, 20, processor_time),
                  "counts": None if str(device) == "cpu" else counted(device, step)}
            for how, step in (("eager", eager), ("compiled", compiled))}


def main():
    device = bp.device(sys.argv[1])
    (info,) = [info for info in bp.devices() if info.device == device]
    software = "llvmpipe" in info.description
    print(json.dumps({"device": info.description, "software": software, "host": host_time_of_small_op(device),
                      "small ops": counts_of_small_ops(device),
                      "bandwidths": bandwidths(device, (1 if software else 64) << 20),
                      "product": product_rate(device, 512 if software else 4096),
                      "chain": fused_chain(device, (1 if software else 16) << 20),
                      "steps": {str(name): training_steps(name) for name in (bp.device("cpu"), device)}}))


if __name__ == "__main__":
    main()
