"""A training step of a two-layer transformer over characters, op by op: once over our functions and once over PyTorch's.

Both are the same code, since backplane.nn.functional has PyTorch's names; state lives from call to call.
"""

import functools

import numpy as np

CHARACTERS, BATCH, LENGTH, WIDTH, HEADS, LAYERS = 65, 16, 64, 128, 4, 2
RATE = 0.01


def arrays():
    """{name: parameter}, and the characters with those that follow them."""
    draw = np.random.default_rng(0)

    def normal(*shape):
        return (draw.standard_normal(shape) * shape[-1] ** -0.5).astype(np.float32)

    parameters = {"characters": normal(CHARACTERS, WIDTH), "positions": normal(LENGTH, WIDTH), "head": normal(CHARACTERS, WIDTH)}
    for i in range(LAYERS):
        shapes = {"heads": (3 * WIDTH, WIDTH), "out": (WIDTH, WIDTH), "up": (4 * WIDTH, WIDTH), "down": (WIDTH, 4 * WIDTH)}
        parameters.update({f"{name} {i}": normal(*shape) for name, shape in shapes.items()})
        parameters.update({f"{name} bias {i}": np.zeros(shape[0], np.float32) for name, shape in shapes.items()})
        for norm in ("first", "second"):
            parameters.update({f"{norm} scale {i}": np.ones(WIDTH, np.float32), f"{norm} shift {i}": np.zeros(WIDTH, np.float32)})
    text = draw.integers(0, CHARACTERS, (BATCH, LENGTH + 1))
    return parameters, text[:, :-1].copy(), text[:, 1:].reshape(-1).copy()


def loss(F, p, characters, following):
    def linear(x, name, i):
        return F.linear(x, p[f"{name} {i}"], p[f"{name} bias {i}"])

    def norm(x, name, i):
        return F.layer_norm(x, (WIDTH,), p[f"{name} scale {i}"], p[f"{name} shift {i}"])

    x = F.embedding(characters, p["characters"]) + p["positions"]
    for i in range(LAYERS):
        heads = linear(norm(x, "first", i), "heads", i).reshape(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)
        x = x + linear(mixed.permute(0, 2, 1, 3).reshape(BATCH, LENGTH, WIDTH), "out", i)
        x = x + linear(F.gelu(linear(norm(x, "second", i), "up", i)), "down", i)
    return F.cross_entropy(F.linear(x, p["head"]).reshape(-1, CHARACTERS), following)


def stepper(library, F, take):
    parameters, characters, following = arrays()
    p = {name: take(value) for name, value in parameters.items()}
    characters, following = take(characters), take(following)
    for parameter in p.values():
        parameter.requires_grad = True

    def step():
        value = loss(F, p, characters, following)
        value.backward()
        with library.no_grad():
            for parameter in p.values():
                parameter -= RATE * parameter.grad
                parameter.grad = None
        return value.item()

    return step


@functools.cache
def ours():
    import backplane as bp

    return stepper(bp, bp.nn.functional, lambda a: bp.asarray(a, copy=True))


@functools.cache
def torch():
    import torch

    return stepper(torch, torch.nn.functional, lambda a: torch.from_numpy(a.copy()))


def step(library):
    return {"ours": ours, "torch": torch}[library]()()
