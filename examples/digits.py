"""Trains a small convolutional network on scikit-learn's 1,797 handwritten digits, 600 of them held out, on a named device.

    python examples/digits.py [--device cpu] [--plugin FILE.so] [--out FOLDER]

Writes FOLDER/NAME.json (losses, accuracy, how calls reached the device), NAME-loss.png and NAME-misread.png. The device
is a name: nothing in the script depends on which one it is, and one seed gives one run on all of them.
"""

import argparse
import json
import pathlib
import random
import time
from collections.abc import Iterator
from typing import Any, cast

import digits_pictures
import tqdm

import backplane as bp
from backplane import Generator, Tensor

Tensors = dict[str, Tensor]

HELD_OUT = 600
BATCH = 48


def make_network(device: str, generator: Generator) -> tuple[Tensors, Tensors]:
    """Two convolutions of 16 and 32 channels, each normalised, and a linear layer; values drawn as He et al. (2015) say."""

    def weights(*shape: int) -> Tensor:
        fan_in = 1
        for size in shape[1:]:
            fan_in *= size
        return bp.normal(shape, std=(2 / fan_in) ** 0.5, dtype=bp.float32, device=device, generator=generator)

    def constant(number: float, *shape: int) -> Tensor:
        return bp.full(shape, number, dtype=bp.float32, device=device)

    parameters = {
        "conv1": weights(16, 1, 3, 3), "scale1": constant(1, 16), "shift1": constant(0, 16),
        "conv2": weights(32, 16, 3, 3), "scale2": constant(1, 32), "shift2": constant(0, 32),
        "linear": weights(10, 512), "bias": constant(0, 10),
    }
    for parameter in parameters.values():
        parameter.requires_grad = True
    running = {"mean1": constant(0, 16), "var1": constant(1, 16), "mean2": constant(0, 32), "var2": constant(1, 32)}
    return parameters, running


def normalise(x: Tensor, parameters: Tensors, running: Tensors, layer: int, training: bool) -> Tensor:
    scale, shift = parameters[f"scale{layer}"], parameters[f"shift{layer}"]
    if not training:
        return bp.batch_norm_inference(x, running[f"mean{layer}"], running[f"var{layer}"], scale, shift)
    y, mean, var = bp.batch_norm(x, scale, shift)
    for name, batch_value in ((f"mean{layer}", mean), (f"var{layer}", var)):
        running[name] = 0.9 * running[name] + 0.1 * batch_value.detach()
    return y


def logits(images: Tensor, parameters: Tensors, running: Tensors, generator: Generator | None = None) -> Tensor:
    """images: (n, 1, 8, 8). With a generator it is training: batch statistics and dropout."""
    training = generator is not None
    x = bp.conv2d(images, parameters["conv1"], padding=(1, 1))
    x = bp.relu(normalise(x, parameters, running, 1, training))
    x = bp.max_pool2d(x, (2, 2))
    x = bp.conv2d(x, parameters["conv2"], padding=(1, 1))
    x = bp.relu(normalise(x, parameters, running, 2, training))
    x = bp.reshape(x, (images.shape[0], 512))
    if training:
        x = bp.dropout(x, p=0.3, generator=generator)
    return x @ bp.matrix_transpose(parameters["linear"]) + parameters["bias"]


def step(parameters: Tensors, velocities: Tensors, rate: float) -> None:
    """Stochastic gradient descent with momentum 0.9."""
    with bp.no_grad():
        for name, parameter in parameters.items():
            assert parameter.grad is not None
            velocities[name] = 0.9 * velocities[name] + parameter.grad
            parameter -= rate * velocities[name]
            parameter.grad = None


def load_digits(seed: int) -> Any:
    """(training images, labels), (held-out images, labels): NumPy arrays, images (n, 1, 8, 8) in [0, 1]."""
    from sklearn.datasets import load_digits as load

    data = cast(Any, load())  # its own hints name the tuple that another argument asks for
    images = (data.images / 16).astype("float32")[:, None]
    labels = data.target.astype("int64")
    order = list(range(len(images)))
    random.Random(seed).shuffle(order)
    held_out, training = order[:HELD_OUT], order[HELD_OUT:]
    return (images[training], labels[training]), (images[held_out], labels[held_out])


def steps_of(images: Any, options: argparse.Namespace) -> int:
    epochs: int = options.epochs
    return epochs * (len(images) // BATCH)


def batches_of(images: Any, labels: Any, options: argparse.Namespace) -> Iterator[tuple[Tensor, Tensor, float]]:
    """Images, labels and the rate of each step."""
    batches, total = len(images) // BATCH, steps_of(images, options)
    order = list(range(len(images)))
    shuffle = random.Random(options.seed).shuffle
    for number in range(total):
        if number % batches == 0:
            shuffle(order)
        chosen = order[number % batches * BATCH:][:BATCH]
        # Warmed up over two epochs: at full rate from the start, rounding differences grow tenfold every few steps.
        warm = min(1, (number + 1) / (2 * batches))
        yield (bp.asarray(images[chosen], device=options.device), bp.asarray(labels[chosen], device=options.device),
               options.rate * warm * (1 - number / total))


def train(images: Any, labels: Any, options: argparse.Namespace, generator: Generator) -> tuple[Tensors, Tensors, list[float]]:
    parameters, running = make_network(options.device, generator)
    velocities = {name: bp.zeros_like(parameter) for name, parameter in parameters.items()}
    losses = []
    schedule = batches_of(images, labels, options)
    with tqdm.tqdm(schedule, desc=f"training on {options.device}", unit="step", mininterval=0.5, total=steps_of(images, options)) as progress:
        for x, y, rate in progress:
            loss = bp.mean(bp.cross_entropy(logits(x, parameters, running, generator), y))
            loss.backward()
            step(parameters, velocities, rate)
            losses.append(loss.item())
            progress.set_postfix(loss=f"{losses[-1]:.4f}", refresh=False)
    return parameters, running, losses


def predict(images: Any, parameters: Tensors, running: Tensors, device: str) -> list[int]:
    predictions: list[int] = []
    with bp.no_grad():
        for start in range(0, len(images), 200):
            x = bp.asarray(images[start:start + 200], device=device)
            predictions += bp.argmax(logits(x, parameters, running), axis=1).tolist()
    return predictions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--plugin", help="a plugin to load first")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/demo"))
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    if options.plugin:
        bp.load_plugin(options.plugin)
    (images, labels), (held_out_images, held_out_labels) = load_digits(options.seed)
    start = time.perf_counter()
    parameters, running, losses = train(images, labels, options, bp.Generator(options.seed))
    predictions = predict(held_out_images, parameters, running, options.device)
    right = sum(int(guess == label) for guess, label in zip(predictions, held_out_labels))
    calls = bp.call_counts()
    result = {"device": options.device, "held_out": len(predictions), "accuracy": right / len(predictions), "losses": losses,
              "seconds": time.perf_counter() - start, "calls": {name: getattr(calls, name) for name in ("kernels", "decompositions", "host_fallbacks")}}

    options.out.mkdir(parents=True, exist_ok=True)
    name = options.device.replace(":", "-")
    (options.out / f"{name}.json").write_text(json.dumps(result))
    digits_pictures.loss_curve(losses, options.out / f"{name}-loss.png")
    digits_pictures.misread(held_out_images, held_out_labels, predictions, options.out / f"{name}-misread.png")
    print(f"{options.device}: {result['accuracy']:.2%} of {len(predictions)} held-out digits read right, "
          f"{result['seconds']:.0f} s; pictures in {options.out}")


if __name__ == "__main__":
    main()
