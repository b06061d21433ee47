"""A training script that knows only the name of a device: a CNN with batch norm, and a transformer with dropout and autocast.

    python training.py [DEVICE]     a name of PyTorch's ("cpu") or of Backplane ("bp:vulkan")
"""

import sys

import torch
from torch import nn


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4),
        )  # fmt: skip

    def forward(self, x):
        return self.body(x)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.places = nn.Embedding(32, 16), nn.Parameter(torch.randn(12, 16) * 0.1)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True), 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 4)

    def forward(self, tokens):
        return self.head(self.layers(self.embedding(tokens) + self.places).mean(1))


def train(make, inputs, device, steps, autocast):
    """The losses, and the state afterwards."""
    torch.manual_seed(0)
    model = make().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    labels = (torch.arange(len(inputs)) % 4).to(device)
    inputs, losses = inputs.to(device), []
    for _ in range(steps):
        with torch.autocast(torch.device(device).type, dtype=torch.bfloat16, enabled=autocast):
            loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, model.state_dict()


def images():
    return torch.randn(16, 1, 12, 12, generator=torch.Generator().manual_seed(1))


def tokens():
    return torch.randint(32, (16, 12), generator=torch.Generator().manual_seed(2))


RUNS = {"cnn": (Cnn, images, False), "transformer": (Transformer, tokens, False), "transformer with autocast": (Transformer, tokens, True)}


def main(name="cpu"):
    if name.startswith("bp:"):
        import backplane.torch

        name = backplane.torch.device(name.removeprefix("bp:"))
    for title, (make, inputs, autocast) in RUNS.items():
        losses, _ = train(make, inputs(), name, 8, autocast)
        print(title, " ".join(f"{loss:.4f}" for loss in losses))


if __name__ == "__main__":
    main(*sys.argv[1:])
