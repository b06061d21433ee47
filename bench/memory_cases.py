"""The programs of `./dev bench memory`: losses of arrays, written once for all libraries.

A program takes the library's names (`m`, see memory_peaks.py), then its arrays; all float arrays are differentiated. Sizes are float32.
"""

import dataclasses
import typing

import numpy as np


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    function: typing.Callable
    inputs: typing.Callable[[], tuple]


CASES = []


def case(name, *inputs):
    def add(function):
        CASES.append(Case(name, function, lambda: tuple(make(i) for i, make in enumerate(inputs))))
        return function

    return add


def normal(*shape, scale=1.0):
    return lambda seed: (np.random.default_rng(seed).standard_normal(shape, dtype=np.float32) * np.float32(scale)).astype(np.float32)


def positions(size, *shape):
    return lambda seed: np.random.default_rng(seed).integers(0, size, shape)


def weight(*shape):
    return normal(*shape, scale=shape[0] ** -0.5)


# ---- parts of one array

@case("a loop over columns", normal(32, 256, 128))
def columns(m, x):
    h = x[:, 0]
    for t in range(1, x.shape[1]):
        h = m.tanh(x[:, t] + h)
    return m.sum(h)


@case("a loop over rows", normal(128, 64, 64))
def rows(m, x):
    h = x[0]
    for t in range(1, x.shape[0]):
        h = m.tanh(x[t] * 0.5 + h)
    return m.sum(h)


@case("256 windows", normal(16, 263, 64))
def windows(m, x):
    total = 0.0
    for t in range(256):
        total = total + m.sum(m.tanh(x[:, t : t + 8]))
    return total


@case("64 gathers", normal(4096, 64), positions(4096, 64, 128))
def gathers(m, x, places):
    total = 0.0
    for t in range(64):
        total = total + m.sum(m.tanh(m.take(x, places[t], 0)))
    return total


@case("48 gathers along an axis", normal(256, 512), positions(512, 48, 256, 16))
def gathers_along(m, x, places):
    total = 0.0
    for t in range(48):
        total = total + m.sum(m.tanh(m.take_along(x, places[t], 1)))
    return total


@case("strided slices", normal(512, 512))
def strided(m, x):
    total = 0.0
    for step in (2, 3, 4, 5, 6, 7, 8):
        for start in range(3):
            total = total + m.sum(m.tanh(x[start::step, ::step]))
    return total


@case("shifted pads", normal(256, 256))
def pads(m, x):
    h = x
    for step in range(1, 9):
        h = m.tanh(h + m.pad(h[step:], ((0, step), (0, 0))) + m.pad(h[:, :-step], ((0, 0), (step, 0))))
    return m.sum(h)


@case("a stencil of slices, 8 times", normal(258, 258))
def stencil(m, x):
    for _ in range(8):
        inner = 0.25 * (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2])
        x = m.pad(m.tanh(inner), ((1, 1), (1, 1)))
    return m.sum(x)


@case("blocks of a matrix", normal(512, 512))
def blocks(m, x):
    total = 0.0
    for i in range(0, 512, 64):
        for j in range(0, 512, 64):
            block = x[i : i + 64, j : j + 64]
            total = total + m.sum(block @ block)
    return total


@case("halves, split and joined", normal(128, 1024))
def halves(m, x):
    for _ in range(8):
        n = x.shape[1] // 2
        left, right = x[:, :n], x[:, n:]
        x = m.concat([m.tanh(left + right), m.sigmoid(left - right)], 1)
    return m.sum(x)


# ---- recurrences

@case("a recurrent network", normal(32, 64, 64), weight(64, 128), weight(128, 128), normal(128))
def recurrent(m, x, w, u, b):
    h = m.tanh(x[:, 0] @ w + b)
    for t in range(1, x.shape[1]):
        h = m.tanh(x[:, t] @ w + h @ u + b)
    return m.sum(h)


@case("all states of a recurrent network", normal(32, 64, 64), weight(64, 128), weight(128, 128), normal(128))
def recurrent_states(m, x, w, u, b):
    h, states = m.tanh(x[:, 0] @ w + b), []
    for t in range(1, x.shape[1]):
        h = m.tanh(x[:, t] @ w + h @ u + b)
        states.append(h)
    return m.mean(m.stack(states, 1) ** 2)


@case("an LSTM", normal(32, 32, 64), weight(64, 512), weight(128, 512), normal(512))
def lstm(m, x, w, u, b):
    h = c = m.tanh(x[:, 0] @ w + b)[:, :128]
    for t in range(1, x.shape[1]):
        gates = x[:, t] @ w + h @ u + b
        i, f, o, g = (gates[:, k * 128 : (k + 1) * 128] for k in range(4))
        c = m.sigmoid(f) * c + m.sigmoid(i) * m.tanh(g)
        h = m.sigmoid(o) * m.tanh(c)
    return m.sum(h)


@case("a GRU", normal(32, 32, 64), weight(64, 384), weight(128, 384), normal(384))
def gru(m, x, w, u, b):
    h = m.tanh(x[:, 0] @ w + b)[:, :128]
    for t in range(1, x.shape[1]):
        a, s = x[:, t] @ w + b, h @ u
        r, z = m.sigmoid(a[:, :128] + s[:, :128]), m.sigmoid(a[:, 128:256] + s[:, 128:256])
        h = (1 - z) * m.tanh(a[:, 256:] + r * s[:, 256:]) + z * h
    return m.sum(h)


@case("a scan", normal(64, 32, 128), weight(128, 128))
def scanned(m, x, u):
    return m.sum(m.scan(lambda h, x: m.tanh(x + h @ u), x[0], x))


@case("running sums", normal(256, 1024))
def running(m, x):
    for _ in range(6):
        x = m.tanh(m.cumsum(x, 1) * 0.01)
    return m.sum(x)


# ---- networks

@case("a deep perceptron", normal(256, 256), *[weight(256, 256)] * 12)
def perceptron(m, x, *weights):
    for w in weights:
        x = m.relu(x @ w)
    return m.mean(x**2)


def softmax(m, x):
    e = m.exp(x - m.max(x, -1))
    return e / m.sum(e, -1)


def layer_norm(m, x, scale, shift):
    centred = x - m.mean(x, -1)
    return centred / m.sqrt(m.mean(centred * centred, -1) + 1e-5) * scale + shift


@case("an attention block", normal(4, 128, 128), *[weight(128, 128)] * 4)
def attention(m, x, query, key, value, out):
    def heads(y):
        return m.permute(m.reshape(y, (4, 128, 4, 32)), (0, 2, 1, 3))

    q, k, v = heads(x @ query), heads(x @ key), heads(x @ value)
    weights = softmax(m, (q @ m.permute(k, (0, 1, 3, 2))) * 32**-0.5)
    return m.mean((x + m.reshape(m.permute(weights @ v, (0, 2, 1, 3)), (4, 128, 128)) @ out) ** 2)


@case("two transformer layers", normal(4, 64, 128), *[weight(128, 128)] * 4, weight(128, 512), weight(512, 128), normal(128), normal(128))
def transformer(m, x, query, key, value, out, up, down, scale, shift):
    for _ in range(2):
        weights = softmax(m, ((x @ query) @ m.permute(x @ key, (0, 2, 1))) * 128**-0.5)
        x = layer_norm(m, x + (weights @ (x @ value)) @ out, scale, shift)
        inner = x @ up
        x = layer_norm(m, x + (0.5 * inner * (1 + m.tanh(0.797 * (inner + 0.0447 * inner * inner * inner)))) @ down, scale, shift)
    return m.mean(x**2)


@case("attention under a causal mask", normal(8, 128, 64))
def causal(m, x):
    scores = x @ m.permute(x, (0, 2, 1)) * 0.125
    weights = softmax(m, m.where(m.lower(128), scores, -1e9))
    return m.sum((weights @ x) ** 2)


@case("a stack of convolutions", normal(4, 8, 64, 64), *[normal(8, 8, 3, 3, scale=0.1)] * 5)
def convolutions(m, x, *kernels):
    for w in kernels:
        x = m.relu(m.conv2d(x, w))
    return m.mean(x**2)


@case("residual convolutions", normal(4, 8, 64, 64), *[normal(8, 8, 3, 3, scale=0.1)] * 6)
def residual(m, x, *kernels):
    for first, second in zip(kernels[::2], kernels[1::2]):
        x = x + m.conv2d(m.relu(m.conv2d(m.relu(x), first)), second)
    return m.mean(x**2)


@case("concatenations of features", normal(256, 64), weight(64, 64), weight(128, 64), weight(192, 64), weight(256, 64))
def dense(m, x, *weights):
    for w in weights:
        x = m.concat([x, m.relu(x @ w)], 1)
    return m.mean(x**2)


@case("gated linear units", normal(256, 256), *[weight(128, 256)] * 4)
def gated(m, x, *weights):
    h = x[:, :128] * m.sigmoid(x[:, 128:])
    for w in weights:
        y = h @ w
        h = y[:, :128] * m.sigmoid(y[:, 128:])
    return m.sum(h)


# ---- selection and order

@case("an embedding", normal(4096, 64), positions(4096, 16, 128), weight(64, 64))
def embedding(m, table, words, w):
    x = m.take(table, words, 0)
    return m.mean(m.tanh(x @ w) ** 2)


@case("messages on a graph, 4 rounds", normal(1024, 64), positions(1024, 4096), positions(1024, 4096), weight(64, 64))
def messages(m, x, senders, receivers, w):
    for _ in range(4):
        x = m.tanh(m.add_at(x * 0.5, receivers, m.take(x, senders, 0) @ w))
    return m.mean(x**2)


@case("sorted rows", normal(256, 1024))
def ordered(m, x):
    return m.sum(m.tanh(m.sort(x)) * m.sort(x * x))


@case("a chain of conditions", normal(256, 1024))
def conditions(m, x):
    for k in range(8):
        x = m.where(x > 0.1 * k, m.tanh(x), x * 0.9)
    return m.sum(x)


@case("diagonals", normal(64, 128, 128))
def diagonals(m, x):
    total = 0.0
    for k in range(-16, 16):
        total = total + m.sum(m.tanh(m.diagonal(x, k)))
    return total


# ---- reductions and products

@case("sums of exponentials", normal(64, 128, 128))
def exponentials(m, x):
    total = 0.0
    for axis in range(3):
        top = m.max(x, axis)
        total = total + m.sum(m.log(m.sum(m.exp(x - top), axis)))
    return total


@case("a chain of einsums", normal(8, 64, 64), normal(8, 64, 64), weight(64, 64))
def einsums(m, x, y, w):
    z = m.einsum("bij,bjk->bik", x, y)
    z = m.tanh(m.einsum("bik,kl->bil", z, w))
    return m.sum(m.einsum("bil,bjl->bij", z, x) ** 2) * 1e-3


@case("outer sums", normal(512, 64), normal(512, 64))
def outer(m, x, y):
    total = 0.0
    for k in range(8):
        total = total + m.mean(m.tanh(x[:, None, k] + y[None, :, k]) ** 2)
    return total
