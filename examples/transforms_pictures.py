"""The picture of transforms.py: its four results beside each other. In: NumPy arrays; out: a PNG file."""

import pathlib
from typing import Any

import matplotlib

matplotlib.use("Agg")
import numpy as np  # noqa: E402  (the backend is chosen first: there may be no display)
from matplotlib import pyplot  # noqa: E402


def save(path: pathlib.Path, gradients: Any, hessian: Any, newton_path: Any, losses: list[float]) -> None:
    figure, ((samples, matrix), (valley, meta)) = pyplot.subplots(2, 2, figsize=(10, 8))
    samples.boxplot(gradients)
    samples.set(title="Per-sample gradients: vmap(grad(loss))", xlabel="weight", ylabel="gradient")
    shown = matrix.imshow(hessian, cmap="coolwarm", vmin=-abs(hessian).max(), vmax=abs(hessian).max())
    figure.colorbar(shown, ax=matrix)
    matrix.set_title("Hessian of the mean loss")
    x, y = np.meshgrid(np.linspace(-1.6, 1.4, 200), np.linspace(-0.6, 1.6, 200))
    valley.contour(x, y, np.log10(100 * (y - x**2) ** 2 + (1 - x) ** 2 + 1e-3), levels=20, linewidths=0.6)
    valley.plot(*newton_path.T, "o-", color="black", markersize=3, linewidth=1)
    valley.set_title(f"Newton through jvp(grad(f)): {len(newton_path) - 1} steps")
    meta.plot(losses, linewidth=0.9)
    meta.set(title="MAML: error after one inner step", xlabel="step", ylabel="mean squared error")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
