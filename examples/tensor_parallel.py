"""Trains a small transformer whose weights are divided among the ranks, beside the whole one on each rank.

    backplane launch -n 4 examples/tensor_parallel.py [--steps 10] [--width 128] [--heads 8]

Each rank has a part of the attention's heads and of the MLP's features. It prints the parameters and the optimiser's memory of each rank,
and each step's loss beside that of the whole model, which rank 0 computes for comparison.
"""

import argparse

import backplane as bp
from backplane import Tensor, nn, optim

d = bp.distributed
F = nn.functional


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def divide(self) -> None:
        self.attention = d.ParallelAttention(self.attention)
        self.up, self.down = d.ColumnParallelLinear(self.up), d.RowParallelLinear(self.down)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        y = self.norm1(x)
        x = x + self.attention(y, y, y, attn_mask=mask)[0]
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    """The next of 16 symbols."""

    def __init__(self, width: int, heads: int, layers: int, length: int) -> None:
        super().__init__()
        self.symbols, self.places = nn.Embedding(16, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.head = nn.Linear(width, 16)

    def forward(self, x: Tensor) -> Tensor:
        mask = bp.triu(bp.ones((x.shape[1], x.shape[1]), dtype=bp.bool), k=1)
        y = self.symbols(x) + self.places(bp.arange(x.shape[1]))
        for block in self.blocks:
            y = block(y, mask)
        return self.head(y)


def loss_of(model: Model, x: Tensor) -> Tensor:
    return F.cross_entropy(model(x[:, :-1]).reshape((-1, 16)), x[:, 1:].reshape((-1,)))


def step(model: Model, optimizer: optim.Optimizer, x: Tensor) -> float:
    value, gradients = bp.value_and_grad(loss_of)(model, x)
    optimizer.update(model, gradients)
    return float(value.item())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--layers", type=int, default=2)
    given = parser.parse_args()
    d.init(timeout=30)

    def made() -> tuple[Model, optim.Optimizer]:
        bp.manual_seed(0)  # alike on all ranks
        model = Model(given.width, given.heads, given.layers, 32)
        return model, optim.AdamW(model.parameters(), lr=3e-3)

    model, _ = made()
    for block in model.blocks:
        block.divide()
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)
    whole, alone = made()
    own, blocks = sum(p.nbytes for p in model.blocks.parameters()), sum(p.nbytes for p in whole.blocks.parameters())
    worst = 0.0
    for number in range(given.steps):
        start = bp.randint(0, 16, (8, 1), generator=bp.Generator(number))
        x = (start + bp.arange(33) * 3) % 16  # counts by three
        loss = step(model, optimizer, x)
        if d.rank() == 0:
            expected = step(whole, alone, x)
            worst = max(worst, abs(loss - expected) / expected)
            print(f"step {number}: loss {loss:.6f}, of the whole model {expected:.6f}", flush=True)
    state = sum(t.nbytes for p in model.blocks.parameters() for t in optimizer.state[p].values() if t.ndim)
    d.barrier()
    print(f"rank {d.rank()} of {d.size()}: blocks {own / 1024:,.0f} of {blocks / 1024:,.0f} KiB ({own / blocks:.3f}), their optimiser's state {state / 1024:,.0f} KiB", flush=True)
    if d.rank() == 0:
        print(f"largest relative difference: {worst:.1e}", flush=True)
        if worst > 1e-3:
            raise SystemExit("the divided model and the whole one have different losses")


if __name__ == "__main__":
    main()
