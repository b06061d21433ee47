"""Hamiltonian Monte Carlo: samples of a banana-shaped distribution, many chains at once, in one compiled loop.

    python examples/hmc.py [--device cpu] [--samples 400] [--chains 64] [--out FOLDER]

Each chain integrates Hamilton's equations with the gradient of the log density (Neal, 2011). vmap runs the chains together, and
bp.scan the steps of a trajectory. Draws FOLDER/hmc.png.
"""

import argparse
import pathlib
from typing import Any

import numpy as np
import tqdm

import backplane as bp
from backplane import Tensor

STEP, LEAPS, BLOCK = 0.12, 16, 20


def log_density(q: Tensor) -> Tensor:
    """A normal variable x of deviation 1, and y around x² / 2 with deviation 0.5."""
    x, y = q[0], q[1]
    return bp.distributions.Normal(0.0, 1.0).log_prob(x) + bp.distributions.Normal(0.0, 0.5).log_prob(y - 0.5 * x * x)


def energy(q: Tensor, p: Tensor) -> Tensor:
    return 0.5 * (p * p).sum() - log_density(q)


def trajectory(q: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
    """The leapfrog method."""
    slope = bp.grad(log_density)

    def leap(carry: Any, _: Any) -> Any:
        q, p = carry
        p = p + 0.5 * STEP * slope(q)
        q = q + STEP * p
        return (q, p + 0.5 * STEP * slope(q)), ()

    (q, p), _ = bp.scan(leap, (q, p), length=LEAPS)
    return q, p


def sample(q: Tensor, p: Tensor, chance: Tensor) -> tuple[Tensor, Tensor]:
    """One step of one chain: (the next place, was the trajectory accepted)."""
    new_q, new_p = trajectory(q, p)
    accepted = bp.log(chance) < energy(q, p) - energy(new_q, new_p)
    return bp.where(accepted, new_q, q), accepted


@bp.compile
def block(q: Tensor, momenta: Tensor, chances: Tensor) -> Any:
    """Several samples of all chains."""

    def step(q: Tensor, given: Any) -> Any:
        q, accepted = bp.vmap(sample)(q, *given)
        return q, (q, accepted)

    return bp.scan(step, q, (momenta, chances))


def picture(samples: Any, path: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    left.plot(*samples.reshape(-1, 2)[::7].T, ".", markersize=1.5, alpha=0.4)
    left.plot(*samples[:, 0].T, linewidth=0.4, color="tab:red")
    left.set_title("samples, and the path of one chain")
    right.hist(samples[..., 0].ravel(), bins=60, density=True)
    x = np.linspace(-4, 4, 200)
    right.plot(x, np.exp(-x * x / 2) / np.sqrt(2 * np.pi))
    right.set_title("the first coordinate and its density")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--chains", type=int, default=64)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    options = parser.parse_args()
    bp.manual_seed(0)
    rows, accepted = [], []
    with bp.device(options.device):
        q = bp.zeros((options.chains, 2))
        for _ in tqdm.trange(max(1, options.samples // BLOCK), desc="HMC"):
            momenta, chances = bp.normal((BLOCK, options.chains, 2)), bp.uniform((BLOCK, options.chains))
            q, (places, good) = block(q, momenta, chances)
            rows.append(places.to("cpu").numpy())
            accepted.append(float(good.astype(bp.float32).mean()))
    samples = np.concatenate(rows)[BLOCK:]
    x, y = samples[..., 0], samples[..., 1]
    print(f"{x.size} samples, {np.mean(accepted):.1%} accepted; mean of x {x.mean():+.3f} (0), variance {x.var():.3f} (1); mean of y {y.mean():.3f} (0.5)")
    if abs(x.mean()) > 0.1 or abs(x.var() - 1) > 0.15 or abs(y.mean() - 0.5) > 0.1:
        raise SystemExit("the moments of the samples differ from the distribution's")
    options.out.mkdir(parents=True, exist_ok=True)
    picture(samples, options.out / "hmc.png")


if __name__ == "__main__":
    main()
