"""Trains a transformer on characters, as one compiled step, and writes text with it.

    python examples/char_transformer.py [--device cpu] [--steps 400] [--text FILE] [--out FOLDER]

A run that is stopped continues at its latest checkpoint in FOLDER. The text is that of the guides unless a file is named.
"""

import argparse
import pathlib
from typing import Any, cast

import tqdm

import backplane as bp
from backplane import Tensor, nn, optim

WIDTH, HEADS, LAYERS, CONTEXT, BATCH = 128, 4, 4, 64, 16


class Block(nn.Module):
    """Causal attention and a network of two layers, each normalised before and added to its input."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor, cache: list[Tensor] | None = None) -> Tensor:
        batch, length, _ = x.shape
        parts = self.qkv(self.norm1(x)).reshape((batch, length, 3, HEADS, WIDTH // HEADS))
        q, k, v = (bp.swapaxes(parts[:, :, i], 1, 2) for i in range(3))
        if cache is not None:
            if cache:
                k, v = bp.concat([cache[0], k], axis=2), bp.concat([cache[1], v], axis=2)
            cache[:] = [k, v]
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
        x = x + self.out(bp.swapaxes(y, 1, 2).reshape((batch, length, WIDTH)))
        return cast(Tensor, x + self.mlp(self.norm2(x)))


class Transformer(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.characters, self.places = nn.Embedding(size, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, size)

    def forward(self, x: Tensor, caches: list[list[Tensor]] | None = None, start: int = 0) -> Tensor:
        y = self.characters(x) + self.places(bp.arange(start, start + x.shape[1], device=x.device))
        for i, block in enumerate(self.blocks):
            y = block(y, None if caches is None else caches[i])
        return cast(Tensor, self.head(self.norm(y)))


def loss_of(model: Transformer, x: Tensor, y: Tensor) -> Tensor:
    logits = model(x)
    return nn.functional.cross_entropy(logits.reshape((-1, logits.shape[-1])), y.reshape((-1,)))


def write(model: Transformer, start: list[int], count: int, generator: bp.Generator) -> list[int]:
    """Draws characters one by one; keys and values of earlier ones are kept."""
    found, device = list(start), model.head.weight.device
    caches: list[list[Tensor]] = [[] for _ in range(LAYERS)]
    given = found
    with bp.no_grad():
        for _ in range(count):
            if len(found) >= CONTEXT and caches[0]:  # begin again with the latest half
                caches, given = [[] for _ in range(LAYERS)], found[-CONTEXT // 2 :]
            at = caches[0][0].shape[2] if caches[0] else 0
            if at + len(given) > CONTEXT:
                caches, given, at = [[] for _ in range(LAYERS)], found[-CONTEXT // 2 :], 0
            logits = model(bp.asarray([given], device=device), caches, at)[0, -1].to("cpu")
            found.append(bp.distributions.Categorical(logits=logits / 0.8).sample(generator=generator).item())
            given = found[-1:]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--text", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/demo/characters"))
    options = parser.parse_args()
    guides = pathlib.Path(__file__).parents[1] / "docs" / "guides"
    text = options.text.read_text() if options.text else "".join(path.read_text() for path in sorted(guides.glob("*.md")))
    characters = sorted(set(text))
    codes = bp.asarray([characters.index(c) for c in text], dtype=bp.int64)

    bp.manual_seed(0)
    model = Transformer(len(characters)).to(options.device)
    optimizer = optim.AdamW(model.parameters(), lr=2e-3)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=options.steps)
    generator = bp.Generator(1)
    run: dict[str, Any] = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
    manager = bp.CheckpointManager(options.out, max_to_keep=2)
    if done := manager.latest_step() or 0:
        generator.state = manager.restore(into=run)["generator"]

    @bp.compile(state=[model, optimizer])
    def step(x: Tensor, y: Tensor) -> Tensor:
        loss, gradients = bp.value_and_grad(loss_of)(model, x, y)
        optimizer.update(model, nn.utils.clip_grad_norm(gradients, 1.0)[0])
        return loss

    with tqdm.tqdm(range(done, options.steps), desc=f"training on {options.device}", unit="step", initial=done, total=options.steps) as progress:
        for number in progress:
            begin = bp.randint(0, codes.size - CONTEXT - 1, (BATCH, 1), dtype=bp.int64, generator=generator)
            batch = bp.take(codes, (begin + bp.arange(CONTEXT + 1)).reshape((-1,))).reshape((BATCH, CONTEXT + 1)).to(options.device)
            loss = step(batch[:, :-1], batch[:, 1:])
            scheduler.step()
            progress.set_postfix(loss=f"{loss.item():.3f}", refresh=False)
            if (number + 1) % 100 == 0 or number + 1 == options.steps:
                manager.save(number + 1, {**run, "generator": generator.state})
    print("".join(characters[code] for code in write(model, [codes[0].item()], 300, bp.Generator(2))))


if __name__ == "__main__":
    main()
