"""Measures the programs of memory_cases.py: the most memory that the loss and all its gradients take, beside the arrays that are given.

    memory_peaks.py [WORD...]

Out: JSON on standard output, {"cells": [{name, peaks: {way: bytes}}]}; progress on standard error. Each library is asked by its own counts:
ours by memory_stats of the host's allocator, for a compiled function at its second call (what it keeps between calls, too); JAX by the
buffers that XLA has assigned to the compiled function; PyTorch by the profiler's record of each allocation.
"""

import json
import sys
import types

import memory_cases


def is_float(array):
    return array.dtype.kind == "f"


class Ours:
    ways = ("eager", "compiled")

    def __init__(self):
        import backplane as bp

        self.bp = bp
        self.names = types.SimpleNamespace(
            exp=bp.exp, log=bp.log, tanh=bp.tanh, sqrt=bp.sqrt, relu=bp.relu, sigmoid=bp.sigmoid, where=bp.where, einsum=bp.einsum,
            reshape=bp.reshape, permute=bp.permute_dims, take=lambda x, i, axis: bp.take(x, i, axis=axis), sort=bp.sort,
            take_along=lambda x, i, axis: bp.take_along_axis(x, i, axis=axis), pad=bp.pad, conv2d=lambda x, w: bp.conv2d(x, w, padding=[1, 1]),
            concat=lambda xs, axis: bp.concat(xs, axis=axis), stack=lambda xs, axis: bp.stack(xs, axis=axis),
            sum=lambda x, axis=None: bp.sum(x) if axis is None else bp.sum(x, axis=axis, keepdims=True),
            mean=lambda x, axis=None: bp.mean(x) if axis is None else bp.mean(x, axis=axis, keepdims=True),
            max=lambda x, axis: bp.max(x, axis=axis, keepdims=True), cumsum=lambda x, axis: bp.cumulative_sum(x, axis=axis),
            lower=lambda n: bp.tril(bp.ones((n, n), dtype=bp.bool)), diagonal=lambda x, k: bp.diagonal(x, k, 1, 2),
            add_at=lambda x, i, v: bp.index_add(x, 0, i, v),
            scan=lambda f, h, xs: bp.scan(lambda h, x: (f(h, x),) * 2, h, xs)[0])

    def peaks(self, case):
        bp = self.bp
        given = case.inputs()
        floats = [i for i, array in enumerate(given) if is_float(array)]
        arrays = [bp.asarray(array, copy=True) for array in given]
        before = bp.memory_stats("cpu")["allocated_bytes"]

        def loss(*arrays):
            return case.function(self.names, *arrays)

        def eager(*arrays):
            leaves = [a.detach() for a in arrays]
            for i in floats:
                leaves[i].requires_grad = True
            loss(*leaves).backward()
            return [leaves[i].grad for i in floats]

        found = {}
        for way, function in (("eager", eager), ("compiled", bp.compile(bp.grad(loss, argnums=tuple(floats))))):
            function(*arrays)
            bp.reset_peak_memory_stats("cpu")
            function(*arrays)
            found[way] = bp.memory_stats("cpu")["peak_bytes"] - before
        return found


class Jax:
    ways = ("jax.jit",)

    def __init__(self):
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_platforms", "cpu")
        self.jax, self.jnp = jax, jnp
        self.names = types.SimpleNamespace(
            exp=jnp.exp, log=jnp.log, tanh=jnp.tanh, sqrt=jnp.sqrt, relu=jax.nn.relu, sigmoid=jax.nn.sigmoid, where=jnp.where, einsum=jnp.einsum,
            reshape=jnp.reshape, permute=jnp.transpose, take=lambda x, i, axis: jnp.take(x, i, axis=axis), sort=jnp.sort,
            take_along=lambda x, i, axis: jnp.take_along_axis(x, i, axis=axis), pad=jnp.pad,
            conv2d=lambda x, w: jax.lax.conv(x, w, (1, 1), "SAME"),
            concat=lambda xs, axis: jnp.concatenate(xs, axis=axis), stack=lambda xs, axis: jnp.stack(xs, axis=axis),
            sum=lambda x, axis=None: jnp.sum(x, axis=axis, keepdims=axis is not None),
            mean=lambda x, axis=None: jnp.mean(x, axis=axis, keepdims=axis is not None),
            max=lambda x, axis: jnp.max(x, axis=axis, keepdims=True), cumsum=lambda x, axis: jnp.cumsum(x, axis=axis),
            lower=lambda n: jnp.tril(jnp.ones((n, n), dtype=bool)), diagonal=lambda x, k: jnp.diagonal(x, k, 1, 2),
            add_at=lambda x, i, v: x.at[i].add(v), scan=lambda f, h, xs: jax.lax.scan(lambda h, x: (f(h, x), None), h, xs)[0])

    def peaks(self, case):
        given = case.inputs()
        floats = tuple(i for i, array in enumerate(given) if is_float(array))
        gradient = self.jax.grad(lambda *arrays: case.function(self.names, *arrays), argnums=floats)
        memory = self.jax.jit(gradient).lower(*given).compile().memory_analysis()
        return {"jax.jit": memory.temp_size_in_bytes + memory.output_size_in_bytes}


class Torch:
    ways = ("torch",)

    def __init__(self):
        import torch
        import torch.nn.functional as F

        self.torch = torch

        def pad(x, widths):
            return F.pad(x, [n for pair in reversed(widths) for n in pair])

        def scan(f, h, xs):
            for x in xs:
                h = f(h, x)
            return h

        self.names = types.SimpleNamespace(
            exp=torch.exp, log=torch.log, tanh=torch.tanh, sqrt=torch.sqrt, relu=torch.relu, sigmoid=torch.sigmoid, where=torch.where,
            einsum=torch.einsum, reshape=torch.reshape, permute=torch.permute, sort=lambda x: torch.sort(x)[0], pad=pad, scan=scan,
            take=lambda x, i, axis: x[i], take_along=lambda x, i, axis: torch.take_along_dim(x, i, axis),
            conv2d=lambda x, w: F.conv2d(x, w, padding=1), concat=torch.cat, stack=torch.stack,
            sum=lambda x, axis=None: torch.sum(x) if axis is None else torch.sum(x, axis, keepdim=True),
            mean=lambda x, axis=None: torch.mean(x) if axis is None else torch.mean(x, axis, keepdim=True),
            max=lambda x, axis: torch.amax(x, axis, keepdim=True), cumsum=torch.cumsum,
            lower=lambda n: torch.tril(torch.ones((n, n), dtype=torch.bool)), diagonal=lambda x, k: torch.diagonal(x, k, 1, 2),
            add_at=lambda x, i, v: x.index_add(0, i, v))

    def peaks(self, case):
        torch = self.torch
        given = [torch.from_numpy(array.copy()) for array in case.inputs()]
        floats = [tensor for tensor in given if tensor.is_floating_point()]
        for tensor in floats:
            tensor.requires_grad_(True)

        def run():
            for tensor in floats:
                tensor.grad = None
            case.function(self.names, *given).backward()

        run()
        for tensor in floats:
            tensor.grad = None
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
            run()
        now = most = 0
        events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
        for event in sorted(events, key=lambda e: e.start_ns()):
            now += event.nbytes()
            most = max(most, now)
        return {"torch": most}


def main():
    words = sys.argv[1:]
    libraries = []
    for library in (Ours, Torch, Jax):
        try:
            libraries.append(library())
        except ImportError as error:
            print(f"memory: left out: {error}", file=sys.stderr)
    cells = []
    for case in memory_cases.CASES:
        if not all(word in case.name for word in words):
            continue
        peaks = {}
        for library in libraries:
            peaks.update(library.peaks(case))
        print(f"{case.name}: " + ", ".join(f"{way} {peak / 1e6:.2f} MB" for way, peak in peaks.items()), file=sys.stderr, flush=True)
        cells.append({"name": case.name, "peaks": peaks})
    json.dump({"cells": cells}, sys.stdout)


if __name__ == "__main__":
    main()
