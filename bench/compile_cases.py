"""The cases of `./dev bench compile`: functions of containers of arrays, written once for all libraries.

A function takes the library's names first (`m`, see compile_libraries.py), then its arguments. A Case says with which inputs, what of it is
differentiated, and which function of compile_loops.cpp computes the same by hand. Sizes are float32.
"""

import dataclasses
import typing

import numpy as np


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    function: typing.Callable
    inputs: typing.Callable[[], tuple]
    differentiated: int = 0  # how many of the first arguments
    backward: bool = False  # forward and backward, for a cotangent that is the last argument of the call
    step: typing.Callable | None = None  # of gradients: what the function's first argument becomes
    loop: str | None = None
    group: str = "memory"  # or "compute"; "adam"
    slow: bool = False  # left out of --quick

    @property
    def title(self):
        return self.name + (", forward + backward" if self.backward else "")


def normal(*shape, seed=0, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape, dtype=np.float32) * np.float32(scale)).astype(np.float32)


# ---- memory-bound formulas

def gelu(m, x):
    return 0.5 * x * (1 + m.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def layer_norm(m, x, weight, bias):
    mean = m.mean(x, axis=-1, keepdims=True)
    centred = x - mean
    variance = m.mean(centred * centred, axis=-1, keepdims=True)
    return centred / m.sqrt(variance + 1e-5) * weight + bias


def log_softmax(m, logits):
    shifted = logits - m.max(logits, axis=-1, keepdims=True)
    return shifted - m.log(m.sum(m.exp(shifted), axis=-1, keepdims=True))


def cross_entropy(m, logits, targets):
    """Of targets that are probabilities."""
    return -m.sum(targets * log_softmax(m, logits)) * (1 / logits.shape[0])


def adam(m, parameters, gradients, means, squares, step):
    corrections = 1 - 0.9**step, 1 - 0.999**step
    updated = []
    for p, g, mean, square in zip(parameters, gradients, means, squares):
        mean = 0.9 * mean + 0.1 * g
        square = 0.999 * square + 0.001 * g * g
        updated.append((p - 1e-3 * (mean / corrections[0]) / (m.sqrt(square / corrections[1]) + 1e-8), mean, square))
    return updated


ADAM_SHAPES = [(128, 160)] * 45 + [(512, 32)] * 5


def adam_inputs():
    def like(seed, scale=1.0):
        return [normal(*shape, seed=seed + i, scale=scale) for i, shape in enumerate(ADAM_SHAPES)]

    return like(0), like(100, 0.1), like(200, 0.1), [np.abs(a) for a in like(300, 0.01)], np.float32([7])


def softmax_targets(*shape):
    x = np.exp(normal(*shape, seed=5))
    return (x / x.sum(-1, keepdims=True)).astype(np.float32)


# ---- networks

def mlp(m, parameters, x):
    for weight, bias in parameters[:-1]:
        x = m.relu(x @ weight + bias)
    weight, bias = parameters[-1]
    return x @ weight + bias


def mlp_inputs():
    sizes = [784, 512, 512, 10]
    return [(normal(a, b, seed=a + b, scale=a**-0.5), normal(b, seed=b)) for a, b in zip(sizes, sizes[1:])], normal(256, 784)


def softmax(m, x):
    e = m.exp(x - m.max(x, axis=-1, keepdims=True))
    return e / m.sum(e, axis=-1, keepdims=True)


def attention(m, p, x, heads):
    batch, length, width = x.shape

    def split(y):
        return m.permute(m.reshape(y, (batch, length, heads, width // heads)), (0, 2, 1, 3))

    q, k, v = (split(x @ p[name]) for name in ("query", "key", "value"))
    weights = softmax(m, (q @ m.permute(k, (0, 1, 3, 2))) * (width // heads) ** -0.5)
    mixed = m.reshape(m.permute(weights @ v, (0, 2, 1, 3)), (batch, length, width))
    return layer_norm(m, x + mixed @ p["out"], p["scale"], p["shift"])


def attention_parameters(width, seed=0):
    weights = {name: normal(width, width, seed=seed + i, scale=width**-0.5) for i, name in enumerate(("query", "key", "value", "out"))}
    return weights | {"scale": 1 + normal(width, seed=seed + 8, scale=0.1), "shift": normal(width, seed=seed + 9, scale=0.1)}


def attention_block(m, p, x):
    return attention(m, p, x, 8)


def transformer_layer(m, p, x):
    x = attention(m, p["attention"], x, 4)
    inner = gelu(m, x @ p["up"] + p["up_bias"]) @ p["down"] + p["down_bias"]
    return layer_norm(m, x + inner, p["scale"], p["shift"])


def transformer_loss(m, parameters, x, targets):
    for layer in parameters["layers"]:
        x = transformer_layer(m, layer, x)
    logits = x @ parameters["head"]
    return cross_entropy(m, m.reshape(logits, (-1, logits.shape[-1])), targets)


def transformer_inputs(width=128, inner=512, words=256, batch=8, length=64):
    def layer(seed):
        return {"attention": attention_parameters(width, seed), "up": normal(width, inner, seed=seed + 20, scale=width**-0.5),
                "up_bias": normal(inner, seed=seed + 21, scale=0.1), "down": normal(inner, width, seed=seed + 22, scale=inner**-0.5),
                "down_bias": normal(width, seed=seed + 23, scale=0.1), "scale": 1 + normal(width, seed=seed + 24, scale=0.1),
                "shift": normal(width, seed=seed + 25, scale=0.1)}

    parameters = {"layers": [layer(0), layer(50)], "head": normal(width, words, seed=99, scale=width**-0.5)}
    return parameters, normal(batch, length, width, seed=1), softmax_targets(batch * length, words)


def descend(parameter, gradient):
    return parameter - 0.01 * gradient


def gru(m, p, start, xs):
    """The states after each of the steps, by the library's own loop."""
    width = start.shape[-1]

    def step(h, x):
        of_x, of_h = x @ p["input"] + p["input_bias"], h @ p["hidden"] + p["hidden_bias"]
        reset = m.sigmoid(of_x[:, :width] + of_h[:, :width])
        update = m.sigmoid(of_x[:, width:2 * width] + of_h[:, width:2 * width])
        new = m.tanh(of_x[:, 2 * width:] + reset * of_h[:, 2 * width:])
        h = (1 - update) * new + update * h
        return h, h

    return m.scan(step, start, xs)[1]


def gru_inputs(steps=64, batch=32, width=128):
    parameters = {"input": normal(width, 3 * width, scale=width**-0.5), "input_bias": normal(3 * width, scale=0.1),
                  "hidden": normal(width, 3 * width, seed=1, scale=width**-0.5), "hidden_bias": normal(3 * width, seed=1, scale=0.1)}
    return parameters, normal(batch, width, seed=2), normal(steps, batch, width, seed=3)


def mobile_kernels():
    """Shape, stride and groups of fifteen kernels: as many groups as channels, between kernels of one pixel."""
    kernels, channels = [((16, 3, 3, 3), 2, 1)], 16
    for filters, stride in ((32, 1), (64, 2), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1)):
        kernels += [((channels, 1, 3, 3), stride, channels), ((filters, channels, 1, 1), 1, 1)]
        channels = filters
    return kernels


def mobile_network(m, layers, x):
    for (w, bias), (_, stride, groups) in zip(layers, mobile_kernels()):
        x = m.relu(m.conv2d(x, w, stride, groups) + bias)
    return x


def mobile_inputs():
    layers = [(normal(*shape, seed=i, scale=float(np.prod(shape[1:]) / 2) ** -0.5), normal(shape[0], 1, 1, seed=i, scale=0.1))
              for i, (shape, _, _) in enumerate(mobile_kernels())]
    return layers, normal(1, 3, 160, 160)


def both(name, function, inputs, differentiated, cotangent, **facts):
    """The case forward, and forward + backward."""
    loop = facts.pop("loop", None)
    return [Case(name, function, inputs, loop=loop, **facts),
            Case(name, function, lambda: (*inputs(), cotangent()), differentiated, True, loop=loop and loop + "_backward", **facts)]


CASES = [
    *both("GELU by its formula, 1 Mi", gelu, lambda: (normal(1024, 1024),), 1, lambda: normal(1024, 1024, seed=9), loop="gelu"),
    *both("layer norm from parts, 4096 × 256", layer_norm, lambda: (normal(4096, 256), normal(256, seed=1), normal(256, seed=2)), 3,
          lambda: normal(4096, 256, seed=9), loop="layer_norm"),
    *both("softmax with cross-entropy, 4096 × 256", cross_entropy, lambda: (normal(4096, 256), softmax_targets(4096, 256)), 1,
          lambda: np.float32(1.5), loop="cross_entropy"),
    Case("Adam, 1 Mi in 50 tensors", adam, adam_inputs, loop="adam", group="adam"),
    *both("MLP, 256 × 784-512-512-10", mlp, mlp_inputs, 1, lambda: normal(256, 10, seed=9), group="compute"),
    *both("attention block, 4 × 128 × 256, 8 heads", attention_block, lambda: (attention_parameters(256), normal(4, 128, 256, seed=7)), 2,
          lambda: normal(4, 128, 256, seed=9), group="compute"),
    Case("training step of a transformer, 2 layers, 8 × 64 × 128", transformer_loss, transformer_inputs, 1, step=descend, group="compute",
         slow=True),
    Case("15 convolutions with bias and ReLU, 160 × 160", mobile_network, mobile_inputs, group="compute"),
    *both("GRU, 64 steps of 32 × 128 by scan", gru, gru_inputs, 2, lambda: normal(64, 32, 128, seed=9), group="compute", slow=True),
]


# ---- what a compiler costs besides

def fifty_ops(m, x):
    """50 calls, all of them needed."""
    for i in range(16):
        x = m.tanh(x * (1 + 0.01 * i)) + x
    return m.exp(x) + x


def one_op(m, x):
    return x + 1


def chosen(words, quick):
    return [case for case in CASES if all(word.lower() in case.title.lower() for word in words) and not (quick and case.slow)]
