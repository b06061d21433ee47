"""A training step of a small transformer in float32, the same in both libraries: eager, seconds per step and the first losses."""

import time

WIDTH, HEADS, LAYERS, TOKENS, BATCH, VOCABULARY = 512, 8, 4, 256, 16, 1000
STEPS = 10


def network(parts, weights, tokens):
    """Logits of shape (BATCH, TOKENS, VOCABULARY)."""
    x = weights["embedding"][tokens]
    for layer in range(LAYERS):
        def of(name):
            return weights[f"{name}{layer}"]

        h = parts["layer_norm"](x, of("scale"), of("shift"))
        q, k, v = (parts["swap"]((h @ of(name)).reshape((BATCH, TOKENS, HEADS, WIDTH // HEADS))) for name in ("q", "k", "v"))
        x = x + parts["swap"](parts["attention"](q, k, v)).reshape((BATCH, TOKENS, WIDTH)) @ of("o")
        x = x + parts["gelu"](parts["layer_norm"](x, of("scale"), of("shift")) @ of("up")) @ of("down")
    return x @ weights["head"]


def steps(library):
    if hasattr(library, "bp"):
        bp = library.bp
        parts = {"layer_norm": bp.layer_norm, "attention": bp.attention, "gelu": bp.gelu, "swap": lambda x: bp.swapaxes(x, 1, 2)}

        def loss_of(logits, labels):
            return bp.mean(bp.cross_entropy(logits.reshape((-1, VOCABULARY)), labels))

        no_grad = bp.no_grad
    else:
        torch = library.torch
        F = torch.nn.functional
        parts = {"layer_norm": lambda x, w, b: F.layer_norm(x, w.shape, w, b), "attention": F.scaled_dot_product_attention,
                 "gelu": F.gelu, "swap": lambda x: x.transpose(1, 2)}

        def loss_of(logits, labels):
            return F.cross_entropy(logits.reshape((-1, VOCABULARY)), labels)

        no_grad = torch.no_grad
    shapes = {"embedding": (VOCABULARY, WIDTH), "head": (WIDTH, VOCABULARY)}
    for layer in range(LAYERS):
        shapes |= {f"{name}{layer}": (WIDTH, WIDTH) for name in "qkvo"}
        shapes |= {f"up{layer}": (WIDTH, 4 * WIDTH), f"down{layer}": (4 * WIDTH, WIDTH), f"scale{layer}": (WIDTH,), f"shift{layer}": (WIDTH,)}
    weights = {name: (library.tensor(shape, "float32") * 0.02).requires_grad_() for name, shape in shapes.items()}
    tokens = library.tensor((BATCH, TOKENS), "int64", VOCABULARY)
    labels = library.tensor((BATCH * TOKENS,), "int64", VOCABULARY)

    def step():
        loss = loss_of(network(parts, weights, tokens), labels)
        loss.backward()
        with no_grad():
            for weight in weights.values():
                weight -= 0.1 * weight.grad
                weight.grad = None
        return loss

    losses = [float(step().item()) for _ in range(STEPS)]
    library.wait()
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    library.wait()
    return {"losses": losses, "seconds": (time.perf_counter() - start) / STEPS}
