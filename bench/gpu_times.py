"""Times the cases of gpu_cases.py on a GPU with one library, and what the host pays for small calls.

    gpu_times.py ours|torch [WORD...]

Out: JSON on standard output, {"device", "seconds": {case: s}, "absent": {case: why}, "small": {what: s}}. Inputs are random. A time is the
best of several turns of calls, each turn about 20 milliseconds long and ended by waiting for the device; what small calls cost the host is
measured without waiting for each.
"""

import json
import sys
import time

import gpu_cases
import gpu_training

TURNS, TURN = 5, 2e-2
SMALL = 200


class Ours:
    def __init__(self):
        import backplane as bp

        self.device = bp.device("cuda")
        self.names = {"bp": bp, "device": self.device}
        self.generator = bp.Generator(0)
        self.bp = bp

    def title(self):
        return next(info.description for info in self.bp.devices() if info.device == self.device)

    def wait(self):
        self.bp.synchronize(self.device)

    def tensor(self, shape, dtype, below=None):
        bp = self.bp
        if below is not None:
            drawn = bp.uniform(shape, high=below, dtype=bp.float64, device=self.device, generator=self.generator)
            return bp.astype(bp.floor(drawn), getattr(bp, dtype))
        return bp.astype(bp.normal(shape, dtype=bp.float32, device=self.device, generator=self.generator), getattr(bp, dtype))

    def compiled(self, function):
        return self.bp.compile(function)

    def captured(self, function):
        with self.bp.capture(self.device) as recording:
            function()
        return recording.replay


class Torch:
    def __init__(self):
        import torch

        self.torch, self.device = torch, torch.device("cuda")
        self.names = {"torch": torch, "F": torch.nn.functional, "device": self.device}
        torch.manual_seed(0)
        torch.backends.cudnn.allow_tf32 = False  # float32 is float32 on both sides, as in torch's products

    def title(self):
        return f"PyTorch {self.torch.__version__}, {self.torch.cuda.get_device_name()}"

    def wait(self):
        self.torch.cuda.synchronize()

    def tensor(self, shape, dtype, below=None):
        torch = self.torch
        if below is not None:
            return torch.randint(below, shape, device=self.device).to(getattr(torch, dtype))
        return torch.randn(shape, device=self.device).to(getattr(torch, dtype))

    def compiled(self, function):
        return self.torch.compile(function)

    def captured(self, function):
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            function()
        return graph.replay


def best(library, work):
    """Seconds of one call."""
    def turn(calls):
        library.wait()
        start = time.perf_counter()
        for _ in range(calls):
            work()
        library.wait()
        return (time.perf_counter() - start) / calls

    turn(1)
    once = turn(2)
    if once > 1:
        return once
    calls = max(1, min(1000, int(TURN / once)))
    return min(turn(calls) for _ in range(TURNS))


def host_time(library, work):
    """Seconds until a call of `work` returns, while the device has room for more."""
    for _ in range(SMALL):
        work()
    times = []
    for _ in range(20):
        library.wait()
        start = time.perf_counter()
        for _ in range(SMALL):
            work()
        times.append((time.perf_counter() - start) / SMALL)
    library.wait()
    return min(times)


def chain(x, y):
    z = (x * y + 1) * x - y
    return (z * z).tanh()


def small_calls(library):
    """What the host pays for small calls; and chains of calls in one piece beside one by one."""
    x, y = (library.tensor((1000,), "float32") for _ in range(2))
    wide = [library.tensor((64 << 20,), "float32") for _ in range(2)]

    def twenty():
        z = x
        for _ in range(20):
            z = z + y
        return z

    found = {"add, host": host_time(library, lambda: x + y), "20 adds": best(library, twenty)}
    found["20 adds, captured"] = best(library, library.captured(twenty))
    found["20 adds, captured, host"] = host_time(library, library.captured(twenty))
    found["chain"] = best(library, lambda: chain(*wide))
    start = time.perf_counter()
    compiled = library.compiled(chain)
    compiled(*wide)
    library.wait()
    found["chain, first compiled call"] = time.perf_counter() - start
    found["chain, compiled"] = best(library, lambda: compiled(*wide))
    return found


def main():
    kind, words = sys.argv[1], sys.argv[2:]
    library = {"ours": Ours, "torch": Torch}[kind]()
    found = {"device": library.title(), "seconds": {}, "absent": {}, "small": {}}
    for case in gpu_cases.CASES:
        if not all(word in case.name for word in words):
            continue
        start = time.perf_counter()
        try:
            values = {name: library.tensor(*what) for name, what in case.inputs.items()}
            work = eval(f"lambda {', '.join(values)}: {getattr(case, kind)}", dict(library.names))
            found["seconds"][case.name] = best(library, lambda: work(**values))
        except Exception as error:  # one case says why it has no time; the others go on
            found["absent"][case.name] = f"{type(error).__name__}: {error}"[:400]
        values = None
        print(f"{kind}: {case.name}: {found['seconds'].get(case.name, 'absent')} ({time.perf_counter() - start:.1f} s)", file=sys.stderr, flush=True)
    if not words:
        for name, measure in (("small", small_calls), ("training", gpu_training.steps)):
            try:
                found[name] = measure(library)
            except Exception as error:
                found["absent"][name] = f"{type(error).__name__}: {error}"[:400]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
