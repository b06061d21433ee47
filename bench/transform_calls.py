"""Times transforms from Python: ours, PyTorch's (torch.func) and JAX's, in one process and in turns, best of many.

Out: JSON on standard output, {case: {library: nanoseconds}}. Small calls are on one-element float32 tensors; per-sample gradients
on a network of 64-128-128-10 and 256 samples, beside the loop over samples. One thread. JAX's calls are not compiled: a
compiled function is another thing to compare, with another cost before the first call.
"""

import json
import time

import backplane as bp
import numpy as np
import torch

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    jax = None

torch.set_num_threads(1)
ROUNDS = 7
SIZES = (64, 128, 128, 10)
BATCH = 256


def network_arrays():
    rng = np.random.default_rng(0)
    weights = [(rng.standard_normal((i, o)) / i**0.5).astype(np.float32) for i, o in zip(SIZES, SIZES[1:])]
    return weights, rng.standard_normal((BATCH, SIZES[0])).astype(np.float32), rng.standard_normal((BATCH, SIZES[-1])).astype(np.float32)


def loss(weights, x, y):
    """Of one sample: x (64,), y (10,). The same code serves every library: tanh is a method or a function of it."""
    hidden = x
    for weight in weights[:-1]:
        hidden = TANH(hidden @ weight)
    return ((hidden @ weights[-1] - y) ** 2).sum()


class Library:
    """One library's own: how it makes tensors, its transforms, tanh."""

    def __init__(self, name, make, vmap, grad, tanh, wait=lambda result: result):
        self.name, self.make, self.vmap, self.grad, self.tanh, self.wait = name, make, vmap, grad, tanh, wait
        one = np.ones(1, np.float32)
        self.a, self.b = make(one), make(one)
        weights, x, y = network_arrays()
        self.weights, self.x, self.y = [make(w) for w in weights], make(x), make(y)

    def cases(self):
        add = self.vmap(lambda a, b: a + b)
        gradient = self.grad(lambda a: (a * a).sum())
        # vmap(grad): of a sum over the one row, so that the loss has no dimensions.
        rows = self.vmap(self.grad(lambda a: (a * a).sum()))
        row = self.make(np.ones((1, 1), np.float32))
        sample = self.grad(loss)
        samples = self.vmap(sample, in_axes=(None, 0, 0)) if self.name != "torch" else self.vmap(sample, in_dims=(None, 0, 0))
        return {
            "vmap(add)": (lambda: add(self.a, self.b), 2000),
            "grad of sum(mul)": (lambda: gradient(self.a), 1000),
            "vmap(grad)": (lambda: rows(row), 500),
            "per-sample gradients": (lambda: self.wait(samples(self.weights, self.x, self.y)), 2),
            "per-sample gradients, loop": (lambda: [self.wait(sample(self.weights, self.x[i], self.y[i])) for i in range(BATCH)], 1),
        }


def libraries():
    found = [
        Library("backplane", lambda a: bp.asarray(a.copy()), bp.vmap, bp.grad, bp.tanh),
        Library("torch", lambda a: torch.from_numpy(a.copy()), torch.func.vmap, torch.func.grad, torch.tanh),
    ]
    if jax:
        found.append(Library("jax", jnp.asarray, jax.vmap, jax.grad, jnp.tanh, jax.block_until_ready))
    return found


def time_to_write_the_gradients():
    """Filling, in memory that is there already, as many bytes as the per-sample gradients have."""
    target = np.empty((BATCH, sum(i * o for i, o in zip(SIZES, SIZES[1:]))), np.float32)
    target.fill(0)
    start = time.perf_counter()
    target.fill(1)
    return (time.perf_counter() - start) * 1e9


def best_times():
    global TANH
    best = {"per-sample gradients, bytes": {"numpy": min(time_to_write_the_gradients() for _ in range(ROUNDS))}}
    for turn in range(ROUNDS):
        for library in libraries():
            TANH = library.tanh
            for case, (function, number) in library.cases().items():
                if turn >= 2 and case.endswith("loop"):
                    continue
                function()
                start = time.perf_counter()
                for _ in range(number):
                    function()
                nanoseconds = (time.perf_counter() - start) / number * 1e9
                row = best.setdefault(case, {})
                row[library.name] = min(nanoseconds, row.get(library.name, nanoseconds))
    return best


if __name__ == "__main__":
    print(json.dumps(best_times()))
