"""A graph neural network with attention finds the communities of a random graph from a few labels.

    python examples/graph_attention.py [--device cpu] [--steps 150] [--out FOLDER]

A layer gathers along the edges, weighs these by bp.segment_softmax, and sums at the nodes by segment_sum (Velickovic and others, 2018).
Draws FOLDER/graph_attention.png.
"""

import argparse
import pathlib
from typing import Any

import numpy as np
import tqdm

import backplane as bp
from backplane import Tensor, nn, optim

NODES, COMMUNITIES, LABELS, WIDTH = 240, 4, 6, 16


def random_graph(seed: int = 0) -> tuple[Any, Any]:
    """(edges (2, m) in both directions and to each node itself, communities): dense within communities, thin between them."""
    rng = np.random.default_rng(seed)
    community = np.arange(NODES) % COMMUNITIES
    chance = np.where(community[:, None] == community, 0.18, 0.006)
    linked = np.triu(rng.random((NODES, NODES)) < chance, 1)
    linked = linked | linked.T | np.eye(NODES, dtype=bool)
    return np.stack(np.nonzero(linked)), community


class Attention(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.values, self.query, self.key = nn.Linear(inputs, outputs), nn.Linear(outputs, 1), nn.Linear(outputs, 1)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges[0], edges[1]
        h = self.values(x)
        score = nn.functional.leaky_relu(self.query(h)[target] + self.key(h)[source], 0.2)[:, 0]
        weight = bp.segment_softmax(score, target, NODES)
        return bp.segment_sum(weight[:, None] * h[source], target, NODES)


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Parameter(0.1 * bp.normal((NODES, WIDTH)))
        self.first, self.second = Attention(WIDTH, WIDTH), Attention(WIDTH, COMMUNITIES)

    def forward(self, edges: Tensor) -> Tensor:
        return self.second(nn.functional.elu(self.first(self.embedding, edges)), edges)


def train(model: nn.Module, edges: Tensor, labels: Tensor, known: Tensor, steps: int) -> list[float]:
    optimizer = optim.AdamW(model.parameters(), lr=2e-2, weight_decay=5e-3)

    @bp.compile(state=[model, optimizer])
    def step(edges: Tensor, labels: Tensor) -> Tensor:
        def loss_of(model: nn.Module) -> Tensor:
            return nn.functional.cross_entropy(model(edges)[known], labels[known])

        loss, gradients = bp.value_and_grad(loss_of)(model)
        optimizer.update(model, gradients)
        return loss

    return [float(step(edges, labels)) for _ in tqdm.trange(steps, desc="graph attention")]


def picture(edges: Any, community: Any, found: Any, losses: list[float], path: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    angle = 2 * np.pi * (community + np.linspace(0, 0.8, NODES)) / COMMUNITIES
    radius = 1 + 0.3 * np.random.default_rng(1).standard_normal(NODES)
    place = np.stack([radius * np.cos(angle), radius * np.sin(angle)])
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4.5))
    for a, b in edges.T:
        left.plot(place[0, [a, b]], place[1, [a, b]], color="0.85", linewidth=0.4, zorder=0)
    left.scatter(*place, c=found, cmap="tab10", s=14)
    left.set_title("communities found")
    right.plot(losses)
    right.set(xlabel="step", ylabel="cross entropy of the labels")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    options = parser.parse_args()
    bp.manual_seed(0)
    links, community = random_graph()
    known = bp.asarray(np.arange(COMMUNITIES * LABELS)).to(options.device)
    edges, labels = (bp.asarray(one).to(options.device) for one in (links, community))
    with bp.device(options.device):
        model = Network().to(options.device)
        losses = train(model, edges, labels, known, options.steps)
        with bp.no_grad():
            found = bp.argmax(model(edges), axis=-1).to("cpu").numpy()
    unseen = np.arange(NODES) >= COMMUNITIES * LABELS
    accuracy = float(np.mean(found[unseen] == community[unseen]))
    print(f"{COMMUNITIES * LABELS} labels: {accuracy:.1%} of the other {int(unseen.sum())} nodes in their community (by chance {1 / COMMUNITIES:.0%})")
    if accuracy < 0.8:
        raise SystemExit("the network did not find the communities")
    options.out.mkdir(parents=True, exist_ok=True)
    picture(links, community, found, losses, options.out / "graph_attention.png")


if __name__ == "__main__":
    main()
