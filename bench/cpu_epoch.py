"""One training epoch of the demo's network: with the demo's own code, and the same written in PyTorch.

Both take the same images and labels, in the order they lie, in batches of the demo's size. State lives from call to call.
"""

import functools
import pathlib
import sys

import numpy as np

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"
TRAINING = 1197  # images of the demo's training set
RATE = 0.01


def data(batch):
    draw = np.random.default_rng(0)
    images = draw.random((TRAINING, 1, 8, 8), dtype=np.float32)
    labels = draw.integers(0, 10, TRAINING)
    return [(images[at:at + batch], labels[at:at + batch]) for at in range(0, TRAINING - batch + 1, batch)]


def demo():
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    import digits

    return digits


@functools.cache
def ours():
    import backplane as bp

    digits = demo()
    generator = bp.Generator(0)
    parameters, running = digits.make_network("cpu", generator)
    velocities = {name: bp.zeros_like(parameter) for name, parameter in parameters.items()}
    batches = data(digits.BATCH)

    def epoch():
        for images, labels in batches:
            x, y = bp.asarray(images), bp.asarray(labels)
            loss = bp.mean(bp.cross_entropy(digits.logits(x, parameters, running, generator), y))
            loss.backward()
            digits.step(parameters, velocities, RATE)
            loss.item()

    return epoch


@functools.cache
def torch():
    import torch
    from torch import nn

    network = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                            nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten(),
                            nn.Dropout(0.3), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(network.parameters(), lr=RATE, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    batches = data(demo().BATCH)

    def epoch():
        for images, labels in batches:
            loss = criterion(network(torch.from_numpy(images)), torch.from_numpy(labels))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()

    return epoch


def epoch(library):
    {"ours": ours, "torch": torch}[library]()()
