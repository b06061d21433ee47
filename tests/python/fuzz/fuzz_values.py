"""Values that an argument was not made for: numbers at every edge, wrong kinds of object, tensors of any dtype, shape and layout.

Everything is drawn from a random.Random that the caller seeds, so that one seed gives one case.
"""

import math

import backplane as bp
import numpy as np

DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DTYPES += ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
SMALL_INTS = (0, 1, -1, 2, -2, 3, 4, 5, 7, -3, 64, 65)
# Nothing between 2**20 and 2**40: such a size is not refused at once, and takes seconds to fill.
EDGE_INTS = (127, 128, 255, 256, 32767, 65536, 2**40, 2**62, 2**63 - 1, -(2**31) - 1, -(2**63), 2**63, 2**64, -(2**70), 10**30)
FLOATS = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, -2.0, 2.0, 1e308, -1e308, 5e-324, 1e-45, 2.0**63)
COMPLEXES = (1j, complex(math.nan, 0), complex(math.inf, -1), 2 + 0j)


class RefusesIndex:
    """An object that says it is an integer and then fails."""

    def __index__(self):
        raise ZeroDivisionError("an __index__ that fails")


class LyingSequence:
    """A sequence whose length differs from its number of elements."""

    def __len__(self):
        return 3

    def __getitem__(self, i):
        if i >= 1:
            raise IndexError(i)
        return 1


# Exceptions of the caller's own objects pass through a call as they are.
OWN_ERRORS = (ZeroDivisionError,)


def number(rng):
    return rng.choice(rng.choice((SMALL_INTS, SMALL_INTS, EDGE_INTS, FLOATS, COMPLEXES)))


def integer(rng):
    return rng.choice(SMALL_INTS if rng.random() < 0.6 else EDGE_INTS)


def odd_object(rng):
    makers = (
        lambda: None,
        lambda: "x",
        lambda: "",
        lambda: "é" * 300,
        lambda: "float32",
        lambda: b"abc",
        lambda: bytearray(4),
        lambda: [],
        lambda: (),
        lambda: [[]],
        lambda: [None],
        lambda: ["a", 1],
        lambda: [1.5, math.nan],
        lambda: {},
        lambda: {"a": 1},
        lambda: {1, 2},
        lambda: object(),
        lambda: len,
        lambda: int,
        lambda: True,
        lambda: range(3),
        lambda: iter([1]),
        lambda: slice(0, 1),
        lambda: ...,
        lambda: RefusesIndex(),
        lambda: LyingSequence(),
        lambda: np.int64(2),
        lambda: np.float32(1.5),
        lambda: np.bool_(True),
        lambda: np.array([1, 2]),
        lambda: np.array(3),
        lambda: np.array(["a"]),
        lambda: np.dtype("float32"),
        lambda: np.datetime64("2026-01-01"),
        lambda: bp.float32,
        lambda: bp.Generator(1),
        lambda: bp,
        lambda: number(rng),
        lambda: tensor(rng),
        lambda: [tensor(rng)],
    )
    return rng.choice(makers)()


def int_list(rng):
    kind = rng.random()
    if kind < 0.1:
        return [rng.choice((0, 1, 2, -1))] * rng.choice((33, 64, 65, 1000))
    if kind < 0.2:
        return [integer(rng) for _ in range(rng.randint(1, 3))] + [odd_object(rng)]
    if kind < 0.3:
        return tuple(rng.choice((2**31, 2**32, 2**40)) for _ in range(rng.randint(1, 4)))
    return [integer(rng) if rng.random() < 0.5 else rng.randint(-3, 4) for _ in range(rng.randint(0, 5))]


def shape(rng):
    return tuple(rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 5)) for _ in range(rng.choice((0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5))))


def elements(rng, shape, dtype):
    """NumPy values of any kind: ordinary ones, or those at the edges of the dtype."""
    count = math.prod(shape)
    if dtype == "bool":
        flat = [rng.random() < 0.5 for _ in range(count)]
    elif dtype.startswith(("int", "uint")):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        pool = (0, 1, 2, 3, low, high) if rng.random() < 0.4 else (0, 1, 2, max(low, -1))
        flat = [rng.choice(pool) for _ in range(count)]
    else:
        pool = (0.0, -0.0, math.nan, math.inf, -math.inf, 1e30) if rng.random() < 0.3 else (0.5, -1.5, 2.0, 0.0)
        flat = [rng.choice(pool) for _ in range(count)]
    with np.errstate(all="ignore"):
        return np.array(flat, dtype="float32" if dtype == "bfloat16" else dtype).reshape(shape)


def laid_out(rng, x):
    """A view that holds other strides than a fresh tensor: negative, zero, overlapping, permuted, or off the start."""
    way = rng.choice(("none", "none", "flip", "step", "expand", "overlap", "permute", "offset", "empty"))
    if way == "flip" and x.ndim:
        return x[::-1]
    if way == "step" and x.ndim:
        return x[..., ::2]
    if way == "expand":
        return bp.broadcast_to(x, (rng.choice((0, 1, 3)), *x.shape))
    if way == "overlap" and x.ndim and x.shape[0] > 1:
        return bp.unfold(x, 0, 2, 1)
    if way == "permute":
        return bp.permute_dims(x, tuple(reversed(range(x.ndim))))
    if way == "offset" and x.ndim:
        return x[1:]
    if way == "empty" and x.ndim:
        return x[:0]
    return x


def placed(rng, x):
    """Now and then on the simulated accelerator, where its plugin was loaded."""
    elsewhere = rng.random() < 0.08 and any(str(device).startswith("sim") for device in bp.devices())
    return x.to("sim:0") if elsewhere else x


def tensor(rng, dtype=None):
    dtype = dtype or rng.choice(DTYPES)
    made = bp.asarray(elements(rng, shape(rng), dtype), dtype=getattr(bp, dtype))
    return laid_out(rng, placed(rng, made))
