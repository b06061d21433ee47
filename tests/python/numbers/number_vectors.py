"""Losses and norms over an axis: as functions of rows of three numbers, differentiated along the first number of each argument.

A `Vector` has a formula of lists of jets, whose result is the first element of the op's result, and how the op is called on arguments
of shape (points, 3). `sizes` are the sizes of which value, first and second derivative are sums, as functions of the
floats, of the argument along which it is first: where they cancel, errors are in units of these.
"""

import math
from dataclasses import dataclass

import numpy as np
from mpmath import mp
from number_jets import exp, jet, log, maximum, power, sqrt
from number_references import DEFAULT, HALVES, n, relu

LENGTH = 3


@dataclass(frozen=True)
class Vector:
    formula: object
    call: object
    arguments: int = 1
    sizes: tuple = (None, None, None)
    bound: tuple = DEFAULT
    halves: tuple = HALVES
    orders: int = 2
    magnitude: float | None = None  # arguments are at most this; any where it is None


def norm(x, p=2):
    if p == 2:
        return sqrt(sum((v * v for v in x), jet(0)))
    total = sum((power(abs(v), p) for v in x), jet(0))
    return power(total, mp.mpf(1) / p)


def mean(x):
    return sum(x, jet(0)) / len(x)


def deviations(x):
    m = mean(x)
    return [v - m for v in x]


def standard(x, eps):
    d = deviations(x)
    return d[0] / sqrt(mean([v * v for v in d]) + n(eps))


def cosine(x, y):
    return sum((a * b for a, b in zip(x, y)), jet(0)) / (maximum(norm(x), n(1e-8)) * maximum(norm(y), n(1e-8)))


def log_sum(*terms):
    return log(sum((exp(t) for t in terms), jet(0)))


def spread_of(x):
    return float(np.sqrt(np.var(x[0]) + 1e-5))


def largest(x):
    return float(np.abs(x[0]).max())


def deviation_of(x):
    return largest(x) / 1e3 + float(np.std(np.asarray(x[0]) / max(largest(x), 1e-300))) * largest(x)


def spacing(*x):
    """Differences from the largest are rounded."""
    return 0 if x[0][0] == max(x[0]) else largest(x)


def per_length(x, power=1, more=0.0):
    return 1 / (mp.mpf(math.hypot(*x[0])) + more) ** power


BY_LENGTH = (lambda *x: 0, lambda *x: per_length(x), lambda *x: per_length(x, 2))
OF_NORM = (lambda *x: 0, lambda *x: 0, lambda *x: per_length(x))
BY_SPREAD = (lambda *x: 1, lambda *x: 1 / spread_of(x), lambda *x: 1 / spread_of(x) ** 2)
TEN = (16, 32, 64)

VECTORS = {
    "vector_norm": Vector(norm, lambda op, x: op(x, axis=[1]), sizes=OF_NORM),
    "vector_norm, ord 3": Vector(lambda x: norm(x, 3), lambda op, x: op(x, axis=[1], ord=3), sizes=OF_NORM, bound=TEN),
    "vector_norm, ord 0.5": Vector(lambda x: norm(x, mp.mpf("0.5")), lambda op, x: op(x, axis=[1], ord=0.5), sizes=OF_NORM, bound=(16, 64, 256), orders=1, magnitude=2.0**12),
    "std": Vector(lambda x: sqrt(mean([v * v for v in deviations(x)])), lambda op, x: op(x, axis=[1]), sizes=(lambda *x: largest(x), lambda *x: 1.0, lambda *x: 1 / deviation_of(x)), bound=TEN),
    "cross_entropy": Vector(lambda x: log_sum(*(v - x[0] for v in x)), lambda op, x: op(x, (x[:, 0] * 0).astype("int64")), magnitude=20, sizes=(spacing, lambda *x: 0, lambda *x: 0), bound=(32, 32, 64), halves=(1, 4, 64)),
    "log_softmax": Vector(lambda x: -log_sum(*(v - x[0] for v in x)), lambda op, x: op(x)[:, 0], magnitude=20, sizes=(spacing, lambda *x: 0, lambda *x: 0), bound=(32, 32, 64), halves=(1, 4, 64)),
    "normalize": Vector(lambda x: x[0] / maximum(norm(x), n(1e-12)), lambda op, x: op(x, axis=[1])[:, 0], sizes=BY_LENGTH),
    "cosine_similarity": Vector(cosine, lambda op, x, y: op(x, y), 2, sizes=(lambda *x: 1.0, *BY_LENGTH[1:]), bound=TEN),
    "pairwise_distance": Vector(
        lambda x, y: norm([a - b + n(1e-6) for a, b in zip(x, y)]),
        lambda op, x, y: op(x, y),
        2,
        sizes=(lambda *x: 1.0, lambda *x: 1.0, lambda *x: 1.0),
        magnitude=20,
    ),
    "rms_norm": Vector(
        lambda x: x[0] / sqrt(mean([v * v for v in x]) + n(1e-6)), lambda op, x: op(x)[:, 0], sizes=(lambda *x: 0, lambda *x: per_length(x, 1, 1e-3), lambda *x: per_length(x, 2, 1e-3)), bound=TEN
    ),
    "layer_norm": Vector(lambda x: standard(x, 1e-5), lambda op, x: op(x)[:, 0], sizes=BY_SPREAD, magnitude=20, bound=TEN),
    "group_norm": Vector(lambda x: standard(x, 1e-5), lambda op, x: op(x, 1)[:, 0], sizes=BY_SPREAD, magnitude=20, bound=TEN),
    "batch_norm": Vector(lambda x: standard(x, 1e-5), lambda op, x: op(x.mT)[0][0], sizes=BY_SPREAD, magnitude=20, bound=TEN),
    "batch_norm_inference": Vector(
        lambda x: (x[0] - 1) / sqrt(jet(4) + n(1e-5)), lambda op, x: op(x, x[0] * 0 + 1, x[0] * 0 + 4)[:, 0], sizes=(lambda *x: 1.0, lambda *x: 0.0, lambda *x: 0.0)
    ),
    "local_response_norm": Vector(
        lambda x: x[0] / power(1 + (x[0] * x[0] + x[1] * x[1]) * (n(1e-4) / 3), n(0.75)), lambda op, x: op(x, 3)[:, 0], magnitude=20, bound=TEN, sizes=(lambda *x: 0.0, lambda *x: 1.0, lambda *x: 1e-2)
    ),
    "multi_margin_loss": Vector(
        lambda x: (relu(1 - x[0] + x[1]) + relu(1 - x[0] + x[2])) / 3, lambda op, x: op(x, (x[:, 0] * 0).astype("int64")), magnitude=20, sizes=(lambda *x: 20.0, lambda *x: 0.0, lambda *x: 0.0)
    ),
    "multilabel_margin_loss": Vector(
        lambda x: (relu(1 - x[0] + x[1]) + relu(1 - x[0] + x[2])) / 3,
        lambda op, x: op(x, (x * 0).astype("int64") - x.astype("int64") * 0 + _first_label(x)),
        magnitude=20,
        sizes=(lambda *x: 20.0, lambda *x: 0.0, lambda *x: 0.0),
    ),
    # Two steps, the label 1, blank 0: the ways 1 1, 0 1 and 1 0, of x[0] and x[1] at both steps.
    "ctc_loss": Vector(lambda x: -log_sum(x[1] + x[1], x[0] + x[1], x[1] + x[0]), lambda op, x: _ctc(op, x), magnitude=20, sizes=(lambda *x: 20.0, lambda *x: 1.0, lambda *x: 1.0), bound=(8, 64, 256)),
}
# Derivatives of the above, which are measured as theirs.
DERIVATIVES = {"layer_norm_grad": "layer_norm", "batch_norm_grad": "batch_norm", "vector_norm_slope": "vector_norm"}


def _first_label(x):
    import backplane as bp

    return bp.asarray([0, -1, -1])


def _ctc(op, x):
    import backplane as bp

    count = x.shape[0]
    steps = bp.stack([x, x])
    ones = bp.ones((count,), dtype=bp.int64)
    return op(steps, bp.ones((count, 1), dtype=bp.int64), ones * 2, ones)
