"""Trains a small network in two stages on two ranks: a pipeline over microbatches, by send and recv, beside the same on one process.

    backplane launch -n 2 examples/pipeline.py [--steps 30] [--microbatches 4]

Stage 0 computes the first half of the network and sends its results on; stage 1 computes the loss, and the gradients come back. Each rank
has the parameters and the optimiser of its own stage alone. Rank 0 prints each step's loss beside that of one process, which it computes for comparison.
"""

import argparse

import backplane as bp
from backplane import Tensor, nn, optim

d = bp.distributed
WIDTH, BATCH = 64, 32


def make_stages() -> list[nn.Module]:
    """Both halves, from one seed."""
    bp.manual_seed(0)
    return [
        nn.Sequential(nn.Linear(16, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh()),
        nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1)),
    ]


def batch_of(step: int) -> tuple[Tensor, Tensor]:
    x = bp.normal((BATCH, 16), generator=bp.Generator(step))
    return x, bp.sin(x.sum(axis=1, keepdims=True))


def forward_first(stage: nn.Module, x: Tensor) -> Tensor:
    """A number with the gradient of the loss, which comes back from the next stage."""
    return d.send(stage(x), dest=1).sum()


def forward_last(stage: nn.Module, like: Tensor, y: Tensor) -> Tensor:
    return nn.functional.mse_loss(stage(d.recv(like, source=0)), y)


def pipeline_step(stage: nn.Module, optimizer: optim.Optimizer, x: Tensor, y: Tensor, microbatches: int) -> Tensor:
    """One step over all microbatches: all results go forward before the first gradient comes back. The loss, on both ranks."""
    rows = BATCH // microbatches
    parts = [(x[i : i + rows], y[i : i + rows]) for i in range(0, BATCH, rows)]
    if d.rank() == 0:
        pulls = [bp.vjp(lambda model, part=part: forward_first(model, part), stage)[1] for part, _ in parts]
    else:
        like = bp.zeros((rows, WIDTH))
        both = [bp.vjp(lambda model, h, target=target: forward_last(model, h, target), stage, like) for _, target in parts]
        losses, pulls = [value for value, _ in both], [pull for _, pull in both]
    total = None
    for pull in pulls:  # in the order in which the parts went forward
        gradients = pull(bp.asarray(1.0 / microbatches))[0]
        total = gradients if total is None else bp.tree.map(lambda a, b: a + b, total, gradients)
    optimizer.update(stage, total)
    loss = sum(losses, bp.zeros(())) / microbatches if d.rank() == 1 else bp.zeros(())
    return d.broadcast(loss.detach(), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--microbatches", type=int, default=4)
    given = parser.parse_args()
    d.init()
    if d.size() != 2:
        raise SystemExit(f"pipeline.py: found {d.size()} ranks, expected 2: backplane launch -n 2 examples/pipeline.py")
    if BATCH % given.microbatches:
        raise SystemExit(f"pipeline.py: found --microbatches {given.microbatches}, expected a divisor of {BATCH}")
    stage = make_stages()[d.rank()]
    optimizer = optim.AdamW(stage.parameters(), lr=1e-2)
    whole = nn.Sequential(*make_stages())
    alone = optim.AdamW(whole.parameters(), lr=1e-2)
    kept = sum(p.size for p in stage.parameters())
    print(f"rank {d.rank()} has {kept:,} of {sum(p.size for p in whole.parameters()):,} parameters", flush=True)
    worst = 0.0
    for step in range(given.steps):
        x, y = batch_of(step)
        loss = pipeline_step(stage, optimizer, x, y, given.microbatches).item()
        if d.rank() == 0:
            value, gradients = bp.value_and_grad(lambda model: nn.functional.mse_loss(model(x), y))(whole)
            alone.update(whole, gradients)
            worst = max(worst, abs(loss - value.item()) / value.item())
            print(f"step {step}: loss {loss:.6f}, of one process {value.item():.6f}", flush=True)
    if d.rank() == 0:
        print(f"largest relative difference: {worst:.1e}", flush=True)
        if worst > 1e-4:
            raise SystemExit("the pipeline's losses differ from those of one process")


if __name__ == "__main__":
    main()
