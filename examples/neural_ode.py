"""A neural ODE: a network that learns the dynamics of a spiral from noisy points on it.

    python examples/neural_ode.py [--device cpu] [--steps 200] [--out FOLDER]

The network is the right side of dy/dt = f(y). The gradient goes through the solver (bp.odeint, method "rk4"), in one compiled step.
Draws FOLDER/neural_ode.png.
"""

import argparse
import pathlib

import tqdm

import backplane as bp
from backplane import Tensor, nn, optim

POINTS, BATCH, LENGTH = 200, 24, 12


def spiral(y: Tensor, t: Tensor) -> Tensor:
    """The true dynamics: a slow spiral inwards, of the cubes of the coordinates."""
    return (y**3) @ bp.asarray([[-0.1, 2.0], [-2.0, -0.1]], dtype=y.dtype, device=y.device)


class Dynamics(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 2))

    def forward(self, y: Tensor) -> Tensor:
        return self.net(y**3)


def solve(model: nn.Module, y0: Tensor, t: Tensor, steps: int = 1) -> Tensor:
    return bp.odeint(lambda y, _: model(y), y0, t, method="rk4", steps=steps)


def train(model: nn.Module, path: Tensor, t: Tensor, steps: int) -> list[float]:
    optimizer = optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.0)

    def loss_of(model: nn.Module, windows: Tensor) -> Tensor:
        return bp.abs(solve(model, windows[0], t[:LENGTH]) - windows).mean()

    @bp.compile(state=[model, optimizer])
    def step(windows: Tensor) -> Tensor:
        loss, gradients = bp.value_and_grad(loss_of)(model, windows)
        optimizer.update(model, gradients)
        return loss

    losses = []
    progress = tqdm.trange(steps, desc="neural ODE")
    for _ in progress:
        starts = bp.randint(0, POINTS - LENGTH, (BATCH,)).to(path.device)
        begin, after = bp.dims(sizes=(BATCH, LENGTH))
        windows = path[starts[begin] + after].order(after, begin)
        losses.append(float(step(windows)))
        progress.set_postfix(loss=f"{losses[-1]:.4f}")
    return losses


def picture(path: Tensor, found: Tensor, losses: list[float], file: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    left.plot(*path.to("cpu").numpy().T, ".", label="data")
    left.plot(*found.to("cpu").numpy().T, label="learned")
    left.legend()
    right.semilogy(losses)
    right.set(xlabel="step", ylabel="mean absolute error")
    figure.tight_layout()
    figure.savefig(file, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    options = parser.parse_args()
    bp.manual_seed(0)
    t = bp.linspace(0.0, 10.0, POINTS, dtype=bp.float32)
    start = bp.asarray([2.0, 0.0])
    clean = bp.odeint(spiral, start, t)
    path = (clean + 0.02 * bp.normal(clean.shape)).to(options.device)
    with bp.device(options.device):
        model = Dynamics().to(options.device)
        times = t.to(options.device)
        losses = train(model, path, times, options.steps)
        with bp.no_grad():
            found = solve(model, start.to(options.device), times, steps=2)
    print(f"mean absolute error of windows {losses[0]:.3f} -> {sum(losses[-10:]) / 10:.3f}")
    if not sum(losses[-10:]) / 10 < 0.5 * losses[0]:
        raise SystemExit("the network did not learn the dynamics")
    options.out.mkdir(parents=True, exist_ok=True)
    picture(path, found, losses, options.out / "neural_ode.png")


if __name__ == "__main__":
    main()
