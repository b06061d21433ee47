"""Per-sample gradients: differentially private training, and which samples a model finds hard.

    python examples/per_sample_gradients.py [--device cpu] [--steps 150] [--out FOLDER]

vmap(grad(loss)) gives one gradient per sample in one pass. DP-SGD (Abadi and others, 2016) clips each, adds noise to their sum and
takes a step. The norms of the gradients show the samples with wrong labels. Draws FOLDER/per_sample_gradients.png.
"""

import argparse
import pathlib
from typing import Any

import numpy as np
import tqdm

import backplane as bp
from backplane import Tensor, nn, optim

SAMPLES, FEATURES, WRONG = 512, 8, 0.05
CLIP, NOISE, RATE = 1.0, 0.6, 1.0


def data() -> tuple[Any, Any, Any]:
    """(x, y, which labels are wrong)."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((SAMPLES, FEATURES)).astype("float32")
    y = (x @ rng.standard_normal(FEATURES) + 0.5 * x[:, 0] * x[:, 1] > 0).astype("float32")
    wrong = rng.random(SAMPLES) < WRONG
    return x, np.where(wrong, 1 - y, y).astype("float32"), wrong


def gradients_of_samples(model: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, dict[str, Tensor], Tensor]:
    """(losses, gradients by name with the samples as first axis, norms)."""

    def loss_of(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return nn.functional.binary_cross_entropy_with_logits(nn.functional_call(model, parameters, (x,))[0], y)

    losses, gradients = bp.vmap(bp.value_and_grad(loss_of), in_axes=(None, 0, 0))(dict(model.named_parameters()), x, y)
    squares = [(g * g).reshape(SAMPLES, -1).sum(axis=-1) for g in gradients.values()]
    return losses, gradients, bp.sqrt(sum(squares[1:], squares[0]))


def train(model: nn.Module, x: Tensor, y: Tensor, steps: int) -> list[float]:
    optimizer = optim.SGD(model.parameters(), lr=RATE)

    @bp.compile(state=[model, optimizer])
    def step(x: Tensor, y: Tensor, noises: list[Tensor]) -> Tensor:
        losses, gradients, norms = gradients_of_samples(model, x, y)
        share = CLIP / bp.maximum(norms, CLIP)
        private = {}
        for (name, g), noise in zip(gradients.items(), noises, strict=True):
            i = bp.dims(1)
            private[name] = ((share[i] * g[i]).sum(i) + NOISE * CLIP * noise) / SAMPLES
        optimizer.update(model, private)
        return losses.mean()

    losses = []
    for _ in tqdm.trange(steps, desc="private training"):
        noises = [bp.normal(p.shape, device=p.device) for p in model.parameters()]
        losses.append(float(step(x, y, noises)))
    return losses


def check(model: nn.Module, x: Tensor, y: Tensor) -> None:
    """The mean of the gradients is the gradient of the mean."""
    _, gradients, _ = gradients_of_samples(model, x, y)
    loss = nn.functional.binary_cross_entropy_with_logits(model(x)[:, 0], y)
    for one, other in zip(gradients.values(), bp.gradients(loss, list(model.parameters())), strict=True):
        if not bp.allclose(one.mean(axis=0), other, atol=1e-5):
            raise SystemExit("the mean of the gradients is not the gradient of the mean")


def picture(norms: Any, wrong: Any, losses: list[float], path: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    bins = np.linspace(0, norms.max(), 30)
    left.hist([norms[~wrong], norms[wrong]], bins=bins, stacked=True, label=["right label", "wrong label"])
    left.set(xlabel="norm of the gradient of a sample", yscale="log")
    left.legend()
    right.plot(losses)
    right.set(xlabel="step", ylabel="mean loss")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    options = parser.parse_args()
    bp.manual_seed(0)
    points, labels, wrong = data()
    x, y = (bp.asarray(one).to(options.device) for one in (points, labels))
    with bp.device(options.device):
        model = nn.Sequential(nn.Linear(FEATURES, 16), nn.Tanh(), nn.Linear(16, 1)).to(options.device)
        check(model, x, y)
        losses = train(model, x, y, options.steps)
        norms = gradients_of_samples(model, x, y)[2].detach().to("cpu").numpy()
    hardest = np.argsort(-norms)[: int(wrong.sum())]
    found = float(np.mean(wrong[hardest]))
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}; of the {int(wrong.sum())} samples with the largest gradients, {found:.0%} have a wrong label (by chance {WRONG:.0%})")
    if not (losses[-1] < losses[0] and found > 0.25):
        raise SystemExit("the training did not lower the loss, or the gradients do not show the wrong labels")
    options.out.mkdir(parents=True, exist_ok=True)
    picture(norms, wrong, losses, options.out / "per_sample_gradients.png")


if __name__ == "__main__":
    main()
