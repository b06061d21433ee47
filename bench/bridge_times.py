"""Times the bridge to PyTorch: operators of torch.ops.bp beside PyTorch's own, and a compiled training step beside eager PyTorch.

Out: JSON on standard output, {case: {"backplane": ns, "torch": ns}}: the processor times of the turn whose ratio is the median. Both
sides of a case run in turns, so that other work on the machine meets both. One thread, the native kernels.
"""

import copy
import json
import time

import backplane as bp
import backplane.torch
import torch
from backplane.torch import _native_ops
from torch import func, nn

TURNS = 21
ops, aten = torch.ops.bp, torch.ops.aten


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm, self.second_norm = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in self.project(self.norm(x)).chunk(3, -1))
        x = x + self.join(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.narrow(nn.functional.gelu(self.widen(self.second_norm(x)), approximate="tanh"))


class Transformer(nn.Module):
    """4 layers of width 128 over 64 characters, as GPT-2 has them."""

    def __init__(self, letters=256, width=128, length=64, layers=4, heads=4):
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, width), nn.Parameter(torch.randn(length, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters, bias=False)

    def forward(self, x, y):
        found = self.head(self.norm(self.blocks(self.letters(x) + self.places)))
        return nn.functional.cross_entropy(found.flatten(0, 1), y.flatten())


def training_steps():
    """(a step that torch.compile compiles for Backplane, the same step of eager PyTorch)."""
    model = Transformer()
    x, y = torch.randint(256, (8, 64)), torch.randint(256, (8, 64))

    def step_of(module, called):
        def step():
            module.zero_grad()
            loss = called(x, y)
            loss.backward()
            return loss.item()

        return step

    twin = copy.deepcopy(model)
    return step_of(model, torch.compile(model, backend="backplane")), step_of(twin, twin)


def backward_of(operator, x, y):
    one = torch.ones_like(x)
    return lambda: torch.autograd.grad(operator(x, y), x, one)


def cases():
    """{case: (ours, PyTorch's, calls per turn)}."""
    x, y = torch.randn(1), torch.randn(1)
    leaf = x.clone().requires_grad_()
    rows, others, matrices = torch.randn(8, 16), torch.randn(8, 16), torch.randn(8, 4, 4)
    weight, bias = torch.ones(16), torch.zeros(16)
    norm, norm_of_aten = lambda x: ops.layer_norm(x, weight, bias), lambda x: aten.layer_norm(x, [16], weight, bias)
    return {
        "torch.ops: add": (lambda: ops.add(x, y), lambda: aten.add(x, y), 2000),
        "torch.ops: add, recorded": (lambda: ops.add(leaf, y), lambda: aten.add(leaf, y), 1000),
        "torch.ops: multiply, forward and backward": (backward_of(ops.multiply, leaf, y), backward_of(aten.mul, leaf, y), 200),
        "torch.ops: vmap(add)": (lambda: func.vmap(ops.add)(rows, others), lambda: func.vmap(aten.add)(rows, others), 100),
        "torch.ops: vmap(matmul)": (lambda: func.vmap(ops.matmul)(matrices, matrices), lambda: func.vmap(aten.matmul)(matrices, matrices), 100),
        "torch.ops: vmap(layer_norm)": (lambda: func.vmap(norm)(rows), lambda: func.vmap(norm_of_aten)(rows), 100),
        "torch.ops: vmap(grad of sum(sin))": (
            lambda: func.vmap(func.grad(lambda x: ops.sum(ops.sin(x))))(rows),
            lambda: func.vmap(func.grad(lambda x: aten.sum(aten.sin(x))))(rows),
            30,
        ),
        "torch.compile: training step, 4 layers, 128 wide": (*training_steps(), 2),
    }


def timed(function, calls):
    start = time.process_time_ns()
    for _ in range(calls):
        function()
    return (time.process_time_ns() - start) / calls


def main():
    if not _native_ops.registered:
        raise SystemExit("bridge_times: the native part of the bridge is missing. Fix: python -m backplane.torch build")
    torch.set_num_threads(1)
    bp.set_num_threads(1)
    torch.manual_seed(0)
    found = {}
    for name, (ours, theirs, calls) in cases().items():
        for _ in range(5):  # the third call runs what the second one planned
            ours()
            theirs()
        turns = [{"backplane": timed(ours, calls), "torch": timed(theirs, calls)} for _ in range(TURNS)]
        found[name] = sorted(turns, key=lambda turn: turn["backplane"] / turn["torch"])[TURNS // 2]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
