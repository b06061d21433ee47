"""The pictures of digits.py: the loss curve, and a sheet of the digits that were misread. In: NumPy arrays; out: PNG files."""

import math
import pathlib
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  (the backend is chosen first: there may be no display)


def loss_curve(losses: list[float], path: pathlib.Path) -> None:
    figure, axes = pyplot.subplots(figsize=(7, 4))
    axes.semilogy(losses, linewidth=0.8)
    axes.set(xlabel="step", ylabel="cross-entropy", title="Training loss")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120, bbox_inches="tight")
    pyplot.close(figure)


def misread(images: Any, labels: Any, predictions: list[int], path: pathlib.Path, columns: int = 8) -> None:
    """Each misread image (n, 1, 8, 8) with its predicted and its true label."""
    wrong = [index for index, guess in enumerate(predictions) if guess != labels[index]]
    rows = max(1, math.ceil(len(wrong) / columns))
    figure, grid = pyplot.subplots(rows, columns, figsize=(columns * 1.2, rows * 1.5), squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    for axes, index in zip(grid.flat, wrong):
        axes.imshow(images[index, 0], cmap="gray_r")
        axes.set_title(f"{predictions[index]}, is {labels[index]}", fontsize=8)
    figure.suptitle(f"{len(wrong)} misread of {len(predictions)}")
    figure.savefig(path, dpi=120, bbox_inches="tight")
    pyplot.close(figure)
