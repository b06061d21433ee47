"""What programs do around tensors in plain Python works in compiled functions, with one trace."""

import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import itertools
import json
import math
import operator
import re
import types

import numpy as np
import pytest

import backplane as bp


@dataclasses.dataclass
class Pair:
    w: object
    b: object = None


Named = collections.namedtuple("Named", "a b")


class Mode(enum.Enum):
    TRAIN = 1
    EVAL = 2


class Scaled:
    factor = 2.0

    @property
    def doubled(self):
        return self.factor * 2

    @functools.cached_property
    def kept(self):
        return self.factor * 3

    def __getattr__(self, name):
        if name == "virtual":
            return 7.0
        raise AttributeError(name)


OBJECT = Scaled()


@contextlib.contextmanager
def block(value):
    yield value


@functools.lru_cache(None)
def twice(n):
    return n * 2


@functools.singledispatch
def dispatched(x):
    return x


@dispatched.register(bp.Tensor)
def _(x):
    return x * 5


def matched(x):
    match {"k": x}:
        case {"k": bp.Tensor() as found}:
            return found * 2


def caught(x):
    try:
        if x.ndim != 5:
            raise KeyError(f"found {x.shape}")
    except KeyError as error:
        return x * len(str(error))


def with_a_block(x):
    with block(3.0) as factor:
        return x * factor


def generated(x):
    def numbers():
        yield from (x * i for i in range(3))

    return sum(numbers())


def queued(x):
    queue = collections.deque([x], maxlen=2)
    queue.append(x * 2)
    return queue[0] + queue.popleft()


def grouped(x):
    groups = collections.defaultdict(list)
    groups[x.ndim].append(x)
    return groups[2][0]


def edited(x):
    some = [x, x[:1]]
    some.sort(key=lambda t: t.shape[0])
    some.extend(some[:])
    some.reverse()
    some.insert(0, x * 3)
    return some.pop(0) + some[-1]


IDIOMS = {
    "types": lambda x: x if isinstance(x, bp.Tensor) and hasattr(x, "shape") and not callable(x) and not isinstance(x, (str, list)) else None,
    "sizes": lambda x: x * len(x) * x.shape[0] / math.sqrt(x.shape[-1]) * np.prod(x.shape),
    "text of sizes": lambda x: x * len(f"{x.shape} {x.dtype} {x.device} {x.ndim}"),
    "rows": lambda x: sum([row * i for i, row in enumerate(x)]),
    "unpacking": lambda x: (lambda a, *rest: a + rest[0])(*x),
    "reduce": lambda x: functools.reduce(operator.add, [x, x, x]),
    "namedtuple": lambda x: Named(x, 1)._replace(b=2).a,
    "dataclass": lambda x: dataclasses.replace(Pair(x), b=x * 2).b,
    "dict": lambda x: sum(v for k, v in {**{"a": x}, "b": x * 2}.items() if k.startswith("a")),
    "enum": lambda x: x * (2 if Mode(1) is Mode.TRAIN else 3),
    "object": lambda x: x * OBJECT.doubled * OBJECT.kept * OBJECT.virtual,
    "lru_cache": lambda x: x * twice(x.shape[0]),
    "dispatch": lambda x: dispatched(x),
    "partial": lambda x: functools.partial(operator.mul, 2)(x),
    "copy": lambda x: copy.copy([x])[0],
    "largest": lambda x: max([x, x * 2], key=lambda t: t.ndim),
    "product": lambda x: x * len(list(itertools.product([1, 2], [3, 4]))),
    "library": lambda x: x * json.loads('{"a": 2}')["a"] * len(re.sub("a", "bb", "aa")),
    "filter": lambda x: next(filter(lambda t: t.ndim > 1, [x[0], x])),
    "zip": lambda x: dict(zip("ab", [x, x * 2]))["b"],
    "truth": lambda x: x if [x] and {"a": x} and (x,) != () and x is not None else None,
    "keys": lambda x: {x.shape: x, x.dtype: 1}[x.shape] * len({x.shape, x.shape}),
    "namespace": lambda x: types.SimpleNamespace(a=x).a,
    "numpy": lambda x: np.asarray([1.0, 2.0, 3.0], np.float32) * x + np.float32(2),
    "array of indices": lambda x: x[np.array([0, 1])],
    "shape compared": lambda x: x * (x.shape == (2, 3)) * (list(x.shape) == [2, 3]),
    **{f.__name__: f for f in (matched, caught, with_a_block, generated, queued, grouped, edited)},
}


@pytest.mark.parametrize("name", IDIOMS)
def test_an_idiom_is_the_eager_one(name):
    function, runs = IDIOMS[name], []

    def counted(x):
        bp.unguarded(runs.append, None)
        return function(x)

    function(bp.ones((2, 3)))  # fills caches of Python's own
    compiled = bp.compile(counted)
    for i in range(3):
        x = bp.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0 + i]])
        np.testing.assert_allclose(compiled(x).numpy(), function(x).numpy(), rtol=1e-6)
    assert len(runs) == 1, bp.compile_log()[-3:]
