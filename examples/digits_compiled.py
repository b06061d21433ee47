"""Trains the network of digits.py once op by op and once with each step compiled whole, and takes the result out of Python.

    python examples/digits_compiled.py [--plugin FILE.so --runs-on NAME] [--out FOLDER]

A compiled step is the forward pass, the gradient and the update in one graph. Both runs draw the same numbers, so they have the same
losses. What was trained is then written with `bp.export` to FOLDER/digits.safetensors, and the command `backplane run`, started without
an environment, reads the held-out digits with it, on the CPU and on each device of --runs-on.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import time
from collections.abc import Callable
from typing import Any

import digits
import numpy as np
import tqdm

import backplane as bp
from backplane import Generator, Tensor

Tensors = dict[str, Tensor]
State = tuple[Tensors, Tensors, Tensors]  # parameters, velocities, running statistics


def compiled_step(generator: Generator) -> Callable[..., Any]:
    """From a state, a batch and a rate to the next state and the loss. The old state's memory is the new one's."""

    def step(parameters: Tensors, velocities: Tensors, running: Tensors, x: Tensor, y: Tensor, rate: Tensor) -> tuple[State, Tensor]:
        def loss_of(parameters: Tensors) -> tuple[Tensor, Tensors]:
            statistics = dict(running)
            loss = bp.mean(bp.cross_entropy(digits.logits(x, parameters, statistics, generator), y))
            return loss, statistics

        (loss, statistics), gradients = bp.value_and_grad(loss_of, has_aux=True)(parameters)
        moved = {name: 0.9 * velocities[name] + gradient for name, gradient in gradients.items()}
        changed = {name: parameter - rate * moved[name] for name, parameter in parameters.items()}
        return (changed, moved, statistics), loss

    return bp.compile(step, donate=(0, 1, 2))


def train_compiled(images: Any, labels: Any, options: argparse.Namespace, generator: Generator) -> tuple[Tensors, Tensors, list[float]]:
    parameters, running = digits.make_network("cpu", generator)
    state: State = ({name: p.detach() for name, p in parameters.items()}, {name: bp.zeros_like(p) for name, p in parameters.items()}, running)
    step = compiled_step(generator)
    losses = []
    schedule = digits.batches_of(images, labels, options)
    with tqdm.tqdm(schedule, desc="training compiled", unit="step", mininterval=0.5, total=digits.steps_of(images, options)) as progress:
        for x, y, rate in progress:
            state, loss = step(*state, x, y, bp.asarray(rate, dtype=bp.float32))
            losses.append(loss.item())
    return state[0], state[2], losses


def read_by_runner(model: pathlib.Path, images: Any, device: str, plugin: str | None) -> list[int]:
    """The labels that `backplane run` finds, started with an empty environment, so without Python."""
    runner = shutil.which("backplane")
    assert runner is not None, "the command backplane is not on the PATH"
    given, found = model.with_name("held-out.npy"), model.with_name("labels.npy")
    np.save(given, images)
    command = [runner, "run", str(model), "--input", str(given), "--output", str(found), "--device", device]
    command += ["--plugin", plugin] if plugin and device != "cpu" else []
    subprocess.run(["env", "-i", *command], check=True)
    labels: list[int] = np.load(found).tolist()
    return labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plugin", help="a plugin to load first, here and in the runner")
    parser.add_argument("--runs-on", action="append", default=[], help="a further device for the runner")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/demo"))
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.device = "cpu"

    (images, labels), (held_out, held_out_labels) = digits.load_digits(options.seed)
    runs = []
    for train in (digits.train, train_compiled):
        start = time.perf_counter()
        parameters, running, losses = train(images, labels, options, Generator(options.seed))
        runs.append((losses, time.perf_counter() - start))
    (eager, eager_seconds), (compiled, compiled_seconds) = runs
    apart = max(abs(a - b) for a, b in zip(eager, compiled))
    print(f"{len(eager)} steps: {eager_seconds:.1f} s op by op, {compiled_seconds:.1f} s compiled ({compiled_seconds / eager_seconds:.2f}); "
          f"losses at most {apart:.1e} apart, the last {eager[-1]:.6f} and {compiled[-1]:.6f}")

    options.out.mkdir(parents=True, exist_ok=True)
    model = options.out / "digits.safetensors"

    def classify(x: Tensor) -> Tensor:
        return bp.argmax(digits.logits(x, parameters, running), axis=1)

    bp.export(classify, (bp.asarray(held_out[:2]),), model, dynamic={"x": {0: "digits"}})
    expected = digits.predict(held_out, parameters, running, "cpu")
    right = sum(int(guess == label) for guess, label in zip(expected, held_out_labels))
    print(f"{model}: {os.path.getsize(model)} bytes; {right / len(expected):.2%} of {len(expected)} held-out digits read right")
    for device in ["cpu", *options.runs_on]:
        found = read_by_runner(model, held_out, device, options.plugin)
        same = sum(int(a == b) for a, b in zip(found, expected))
        print(f"backplane run on {device}, without Python: {same} of {len(expected)} labels are those")
        if found != expected:
            raise SystemExit(f"the runner's labels on {device} differ")
    if apart > 1e-5:
        raise SystemExit(f"losses differ by {apart:.1e}")


if __name__ == "__main__":
    main()
