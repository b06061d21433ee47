"""What the functional transforms are for, each result checked against a closed form or finite differences.

    python examples/transforms.py [--out FOLDER]

Per-sample gradients, a Hessian, a Jacobian both ways, Newton's method through jvp(grad(f)), and meta-learning (MAML):
grad through an inner grad, inside vmap. Prints the errors that it found and writes FOLDER/transforms.png; a result that is
off by more than its bound ends the script with an error.
"""

import argparse
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import tqdm
import transforms_pictures

import backplane as bp
from backplane import Tensor

Array = np.ndarray[Any, Any]
Weights = dict[str, Tensor]


def check(what: str, found: Any, expected: Any, bound: float) -> None:
    """Compares two arrays by the largest difference, relative to the largest value."""
    found, expected = np.asarray(found), np.asarray(expected)
    error = float(np.max(np.abs(found - expected)) / max(1.0, float(np.max(np.abs(expected)))))
    print(f"{what:58} {error:.1e}  (bound {bound:.0e})")
    if not error <= bound:
        raise SystemExit(f"{what}: off by {error:.3g}, more than {bound:.0e}")


def logistic_data(count: int, features: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, features))
    y = (x @ rng.standard_normal(features) + 0.3 * rng.standard_normal(count) > 0).astype(float)
    return bp.asarray(x), bp.asarray(y)


def logistic_loss(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Of one sample: w and x (features,), y a number without dimensions."""
    z = (w * x).sum()
    return bp.log1p(bp.exp(-bp.abs(z))) + bp.maximum(z, 0) - y * z


def per_sample_gradients() -> Any:
    """vmap(grad(loss)): one gradient per sample, in one pass. For this loss it is (sigmoid(w x) - y) x."""
    x, y = logistic_data(64, 5)
    w = bp.asarray(np.linspace(-1, 1, 5))
    found = bp.vmap(bp.grad(logistic_loss), in_axes=(None, 0, 0))(w, x, y)
    sigmoid = 1 / (1 + np.exp(-(x.numpy() @ w.numpy())))
    check("per-sample gradients: vmap(grad(loss))", found.numpy(), (sigmoid - y.numpy())[:, None] * x.numpy(), 1e-12)
    return found.numpy()


def hessian_of_the_mean_loss() -> Any:
    """Its Hessian is X^T diag(p (1 - p)) X / n."""
    x, y = logistic_data(64, 5)
    w = bp.asarray(np.linspace(-1, 1, 5))
    found = bp.hessian(lambda v: bp.vmap(logistic_loss, in_axes=(None, 0, 0))(v, x, y).mean())(w)
    p = 1 / (1 + np.exp(-(x.numpy() @ w.numpy())))
    check("Hessian: jacfwd(jacrev(mean loss))", found.numpy(), (x.numpy().T * (p * (1 - p))) @ x.numpy() / 64, 1e-12)
    return found.numpy()


def spherical(v: Tensor) -> Tensor:
    """(r, theta, phi) to Cartesian coordinates."""
    r, theta, phi = v[0], v[1], v[2]
    return bp.stack([r * bp.sin(theta) * bp.cos(phi), r * bp.sin(theta) * bp.sin(phi), r * bp.cos(theta)])


def jacobian_both_ways() -> None:
    """Of spherical coordinates: the determinant is r^2 sin(theta)."""
    v = bp.asarray(np.array([2.0, 0.7, -1.1]))
    reverse, forward = bp.jacrev(spherical)(v).numpy(), bp.jacfwd(spherical)(v).numpy()
    check("Jacobian: jacrev = jacfwd", reverse, forward, 1e-14)
    check("Jacobian: its determinant", np.linalg.det(forward), 4 * np.sin(0.7), 1e-13)


def rosenbrock(v: Tensor) -> Tensor:
    return (100 * (v[1:] - v[:-1] ** 2) ** 2 + (1 - v[:-1]) ** 2).sum()


def conjugate_gradient(product: Callable[[Tensor], Tensor], b: Tensor, steps: int) -> Tensor:
    """Solves A x = b for x, given v -> A v, by Hestenes and Stiefel (1952); stops where A is not positive."""
    x, r = bp.zeros_like(b), b
    p, rr = r, float((r * r).sum())
    for _ in range(steps):
        ap = product(p)
        curvature = float((p * ap).sum())
        if rr < 1e-28 or curvature <= 0:
            break
        x, r = x + (rr / curvature) * p, r - (rr / curvature) * ap
        before, rr = rr, float((r * r).sum())
        p = r + (rr / before) * p
    return x


def newton() -> Array:
    """Minimises Rosenbrock's function; a Hessian-vector product is jvp(grad(f)), and no Hessian is ever made."""
    gradient = bp.grad(rosenbrock)
    x = bp.asarray(np.array([-1.2, 1.0]))
    path = [x.numpy()]
    for _ in tqdm.trange(60, desc="Newton", leave=False):
        g = gradient(x)
        if float((g * g).sum()) < 1e-24:
            break
        step = conjugate_gradient(lambda v: bp.jvp(gradient, (x,), (v,))[1], g, 4)  # noqa: B023  (used at once)
        step = step if float((step * step).sum()) > 0 else g
        rate, here = 1.0, float(rosenbrock(x))
        while float(rosenbrock(x - rate * step)) > here - 1e-4 * rate * float((g * step).sum()) and rate > 1e-8:
            rate /= 2
        x = x - rate * step
        path.append(x.numpy())
    check(f"Newton through jvp(grad(f)): the minimum, {len(path) - 1} steps", x.numpy(), [1.0, 1.0], 1e-9)
    return np.array(path)


def sine_network(weights: Weights, x: Tensor) -> Tensor:
    """One hidden layer of tanh: x (points, 1)."""
    return bp.tanh(x @ weights["w1"] + weights["b1"]) @ weights["w2"] + weights["b2"]


def squared_error(weights: Weights, x: Tensor, y: Tensor) -> Tensor:
    return ((sine_network(weights, x) - y) ** 2).mean()


def adapted(weights: Weights, x: Tensor, y: Tensor, rate: float = 0.05) -> Weights:
    """The weights after one inner step of gradient descent."""
    gradients = bp.grad(squared_error)(weights, x, y)
    return {name: weights[name] - rate * gradients[name] for name in weights}


def meta_loss(weights: Weights, tasks: tuple[Tensor, ...]) -> Any:
    """The mean error on new points of each task, after one step on its own: all tasks at once."""

    def of_task(x: Tensor, y: Tensor, new_x: Tensor, new_y: Tensor) -> Tensor:
        return squared_error(adapted(weights, x, y), new_x, new_y)

    return bp.vmap(of_task)(*tasks).mean()


def sine_tasks(rng: np.random.Generator, count: int, points: int = 10) -> tuple[Tensor, ...]:
    amplitude, phase = rng.uniform(0.5, 2, (count, 1, 1)), rng.uniform(0, np.pi, (count, 1, 1))
    x, new_x = rng.uniform(-3, 3, (2, count, points, 1))
    return tuple(map(bp.asarray, (x, amplitude * np.sin(x + phase), new_x, amplitude * np.sin(new_x + phase))))


def meta_learning(steps: int = 150) -> list[float]:
    """Finn, Abbeel and Levine, Model-Agnostic Meta-Learning, 2017, on sines; its gradient against finite differences."""
    rng = np.random.default_rng(3)
    sizes = {"w1": (1, 20), "b1": (20,), "w2": (20, 1), "b2": (1,)}
    weights = {name: bp.asarray(rng.standard_normal(shape) * 0.5) for name, shape in sizes.items()}
    tasks = sine_tasks(rng, 8)
    gradients = bp.grad(meta_loss)(weights, tasks)
    direction = {name: bp.asarray(rng.standard_normal(shape)) for name, shape in sizes.items()}

    def moved(step: float) -> float:
        return float(meta_loss({name: weights[name] + step * direction[name] for name in weights}, tasks))

    slope = sum(float((gradients[name] * direction[name]).sum()) for name in weights)
    check("MAML: grad(vmap(loss after an inner grad))", slope, (moved(1e-5) - moved(-1e-5)) / 2e-5, 1e-7)
    losses = []
    value_and_grad = bp.value_and_grad(meta_loss)
    for _ in tqdm.trange(steps, desc="MAML", leave=False):
        loss, gradients = value_and_grad(weights, sine_tasks(rng, 16))
        weights = {name: weights[name] - 0.02 * gradients[name] for name in weights}
        losses.append(float(loss))
    first, last = np.mean(losses[:20]), np.mean(losses[-20:])
    print(f"MAML: error after one inner step, first and last 20 of {steps}: {first:.3f} -> {last:.3f}")
    if not last < first:
        raise SystemExit("MAML: meta-learning did not lower the error")
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    gradients = per_sample_gradients()
    hessian = hessian_of_the_mean_loss()
    jacobian_both_ways()
    path = newton()
    losses = meta_learning()
    picture = options.out / "transforms.png"
    transforms_pictures.save(picture, gradients, hessian, path, losses)
    print(f"written: {picture}")


if __name__ == "__main__":
    main()
