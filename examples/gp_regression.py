"""Gaussian process regression: kernel parameters by marginal likelihood, predictions with their uncertainty.

    python examples/gp_regression.py [--device cpu] [--steps 150] [--out FOLDER]

The likelihood is one compiled step with its gradient through a Cholesky factor. The same mean comes from conjugate gradients (bp.cg),
which need no factor. Draws FOLDER/gp_regression.png.
"""

import argparse
import pathlib
from typing import Any

import numpy as np
import tqdm

import backplane as bp
from backplane import Tensor, optim

Parameters = dict[str, Tensor]


def kernel(p: Parameters, a: Tensor, b: Tensor) -> Tensor:
    """Squared exponential, by named axes: a distance for each pair."""
    i, j = bp.dims(2)
    distance = (a[i] - b[j]) / bp.exp(p["length"])
    return (bp.exp(p["scale"]) * bp.exp(-0.5 * distance * distance)).order(i, j)


def covariance(p: Parameters, x: Tensor) -> Tensor:
    return kernel(p, x, x) + (bp.exp(p["noise"]) + 1e-4) * bp.eye(x.shape[0], dtype=x.dtype, device=x.device)


def negative_log_likelihood(p: Parameters, x: Tensor, y: Tensor) -> Tensor:
    factor = bp.linalg.cholesky(covariance(p, x))
    z = bp.linalg.solve_triangular(factor, y[:, None], upper=False)[:, 0]
    return 0.5 * (z * z).sum() + bp.log(bp.linalg.diagonal(factor)).sum() + 0.5 * x.shape[0] * float(np.log(2 * np.pi))


def predict(p: Parameters, x: Tensor, y: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
    factor = bp.linalg.cholesky(covariance(p, x))
    cross = bp.linalg.solve_triangular(factor, kernel(p, x, at), upper=False)
    weights = bp.linalg.solve_triangular(factor, y[:, None], upper=False)
    variance = bp.exp(p["scale"]) - (cross * cross).sum(axis=0)
    return (cross * weights).sum(axis=0), bp.sqrt(bp.maximum(variance, 1e-9))


def train(x: Tensor, y: Tensor, steps: int) -> tuple[Parameters, list[float]]:
    p = {name: bp.asarray(value, dtype=x.dtype).to(x.device) for name, value in (("length", 0.0), ("scale", 0.0), ("noise", -1.0))}
    adam = optim.adam(lr=0.05)
    state = adam.init(p)

    @bp.compile
    def step(p: Parameters, state: Any) -> Any:
        loss, gradient = bp.value_and_grad(negative_log_likelihood)(p, x, y)
        updates, state = adam.update(gradient, state, p)
        return optim.apply_updates(p, updates), state, loss

    losses = []
    for _ in tqdm.trange(steps, desc="marginal likelihood"):
        p, state, loss = step(p, state)
        losses.append(float(loss))
    return p, losses


def picture(x: Tensor, y: Tensor, at: Tensor, mean: Tensor, deviation: Tensor, losses: list[float], path: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    grid, middle, spread = (one.to("cpu").numpy() for one in (at, mean, deviation))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4))
    left.fill_between(grid, middle - 2 * spread, middle + 2 * spread, alpha=0.25, label="two standard deviations")
    left.plot(grid, middle, label="mean")
    left.plot(x.to("cpu").numpy(), y.to("cpu").numpy(), "k.", label="data")
    left.legend()
    right.plot(losses)
    right.set(xlabel="step", ylabel="negative log likelihood")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    points = np.sort(rng.uniform(-4, 4, 60)).astype("float32")
    values = (np.sin(2 * points) + 0.3 * points + 0.2 * rng.standard_normal(60)).astype("float32")
    x, y = (bp.asarray(one).to(options.device) for one in (points, values))
    at = bp.linspace(-5.0, 5.0, 200, dtype=bp.float32).to(options.device)
    with bp.device(options.device):
        p, losses = train(x, y, options.steps)
        mean, deviation = predict(p, x, y, at)
        weights, count = bp.cg(covariance(p, x), y, tol=1e-6, maxiter=500)
        by_cg = kernel(p, at, x) @ weights
    error = float(bp.max(bp.abs(by_cg - mean)))
    print(f"log likelihood {-losses[0]:.1f} -> {-losses[-1]:.1f}; noise {float(bp.exp(0.5 * p['noise'])):.3f} (true 0.2); conjugate gradients: {int(count)} steps, off by {error:.1e}")
    if not (losses[-1] < losses[0] and error < 2e-2):
        raise SystemExit("the likelihood did not rise, or the two means differ")
    options.out.mkdir(parents=True, exist_ok=True)
    picture(x, y, at, mean, deviation, losses, options.out / "gp_regression.png")


if __name__ == "__main__":
    main()
