"""The collectives as functions: each calls an op, so that grad, jvp, vmap, compile and make_graph work through it."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Any, Literal, overload

import backplane as bp
from backplane import Tensor

from ._connection import ops
from ._groups import Group, chosen
from ._world import world

__all__ = [
    "Work", "all_gather", "all_reduce", "all_to_all", "barrier", "broadcast", "gather", "recv", "reduce", "reduce_scatter", "scatter", "send",
]  # fmt: skip

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
_names: dict[str, str] = {}  # of a file, its last part; of a file of this package, ""


def _name_of(file: str) -> str:
    name = _names[file] = "" if file.startswith(_PACKAGE) else os.path.basename(file)
    return name


def site() -> str:
    """The line of the user's program that is running: for errors, on every rank."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        name = _names[file] if file in _names else _name_of(file)
        if name:
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def _rank(name: str, argument: str, value: Any, group: Group) -> int:
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise bp.ArgumentTypeError(f"{name}: argument {argument}: found {value!r}, expected a rank of the group")
    number = value.__index__()
    if not 0 <= number < group.size:
        raise bp.ArgumentValueError(f"{name}: argument {argument}: found {number}, expected a rank of the group, from 0 to {group.size - 1}")
    return number


def _tensor(name: str, x: Any) -> Tensor:
    if isinstance(x, Tensor):
        return x
    if isinstance(x, (dict, set, str)) or x is None:
        raise bp.ArgumentTypeError(f"{name}: argument x: found a value of type {type(x).__name__}, expected a tensor; bp.tree.map calls it for each tensor of a container")
    return bp.asarray(x)


_WAITED = "{}: the work was waited for before; keep the tensor that wait() gave"


class Work:
    """A collective that has begun, as `all_reduce(x, async_op=True)` gives it: the data moves while the program computes.

    It works on a copy of x as x was then. Each rank waits for its works in the order in which they began, once each; gradients lead
    through wait() to x.
    """

    def __init__(self, name: str, x: Tensor, words: dict[str, Any]) -> None:
        self._name, self._x, self._words = name, x, words
        self._call: Tensor | None = getattr(ops(), f"{name}_start")(x, **words)

    def wait(self) -> Tensor:
        """The result, when it is there. Errors: those of the collective; ArgumentValueError where it was waited for before."""
        if self._call is None:
            raise bp.ArgumentValueError(_WAITED.format(self._name))
        call, self._call = self._call, None
        result: Tensor = getattr(ops(), f"{self._name}_finish")(call, self._x, **self._words)
        return result

    def __repr__(self) -> str:
        return f"<Work: {self._name} at {self._words['site']}, {'waited for' if self._call is None else 'begun'}>"


class _DeviceWork(Work):
    """Of a tensor that travels from device to device: the call itself returns at once, as all work on devices does."""

    def __init__(self, name: str, x: Tensor, words: dict[str, Any]) -> None:
        self._name, self._words = name, words
        self._call = getattr(ops(), name)(x, **words)

    def wait(self) -> Tensor:
        if self._call is None:
            raise bp.ArgumentValueError(_WAITED.format(self._name))
        result, self._call = self._call, None
        return result


def _called(name: str, x: Any, async_op: bool, words: dict[str, Any]) -> Any:
    tensor = _tensor(name, x)
    if not async_op:
        return getattr(ops(), name)(tensor, **words)
    on_device = world(name).has_device_provider and tensor.device != bp.Device("cpu")
    return (_DeviceWork if on_device else Work)(name, tensor, words)


@overload
def all_reduce(x: Any, op: str = "sum", *, group: Group | None = None, async_op: Literal[False] = False) -> Tensor: ...
@overload
def all_reduce(x: Any, op: str = "sum", *, group: Group | None = None, async_op: Literal[True]) -> Work: ...
def all_reduce(x: Any, op: str = "sum", *, group: Group | None = None, async_op: bool = False) -> Tensor | Work:
    """The sum of x over the ranks of the group, on each of them. op: "sum", "mean", "max", "min" or "prod".

    x: a tensor of the same shape and dtype on every rank. Half floats reduce in float32. bool takes "max" (or), "min" and "prod" (and).
    async_op: gives a Work at once, whose wait() gives the result.
    The gradient of the sum is the sum of the ranks' cotangents; equal maxima share theirs.
    Errors: DtypeError for a mean of integers or an order of complex numbers; DeviceError where a rank is lost, late or calls something else.
    """
    g = chosen("all_reduce", group)
    if not async_op and isinstance(x, Tensor):  # the call that training loops make most
        total: Tensor = ops().all_reduce(x, n=g.size, op=op, group=g.name, site=site())
        return total
    result: Tensor | Work = _called("all_reduce", x, async_op, {"n": g.size, "op": op, "group": g.name, "site": site()})
    return result


@overload
def all_gather(x: Any, *, group: Group | None = None, async_op: Literal[False] = False) -> Tensor: ...
@overload
def all_gather(x: Any, *, group: Group | None = None, async_op: Literal[True]) -> Work: ...
def all_gather(x: Any, *, group: Group | None = None, async_op: bool = False) -> Tensor | Work:
    """The tensors of all ranks, joined along axis 0 in the order of ranks, on each of them; numbers become a vector.

    async_op: gives a Work at once, whose wait() gives the result.
    """
    g = chosen("all_gather", group)
    result: Tensor | Work = _called("all_gather", x, async_op, {"n": g.size, "group": g.name, "site": site()})
    return result


@overload
def reduce_scatter(x: Any, op: str = "sum", *, group: Group | None = None, async_op: Literal[False] = False) -> Tensor: ...
@overload
def reduce_scatter(x: Any, op: str = "sum", *, group: Group | None = None, async_op: Literal[True]) -> Work: ...
def reduce_scatter(x: Any, op: str = "sum", *, group: Group | None = None, async_op: bool = False) -> Tensor | Work:
    """The sum of x over the ranks, of which each rank receives its block along axis 0. op: as for all_reduce.

    async_op: gives a Work at once, whose wait() gives the result.
    Errors: ShapeError where the number of ranks does not divide axis 0.
    """
    g = chosen("reduce_scatter", group)
    result: Tensor | Work = _called("reduce_scatter", x, async_op, {"n": g.size, "op": op, "group": g.name, "site": site()})
    return result


def broadcast(x: Any, root: int = 0, *, group: Group | None = None) -> Tensor:
    """x of the rank `root`, on every rank. The others give a tensor of the same shape and dtype."""
    g = chosen("broadcast", group)
    return ops().broadcast(_tensor("broadcast", x), root=_rank("broadcast", "root", root, g), group=g.name, site=site())


def reduce(x: Any, root: int = 0, op: str = "sum", *, group: Group | None = None) -> Tensor:
    """The sum of x over the ranks, on the rank `root`; zeros on the others. op: as for all_reduce."""
    g = chosen("reduce", group)
    return ops().reduce(_tensor("reduce", x), n=g.size, root=_rank("reduce", "root", root, g), op=op, group=g.name, site=site())


def all_to_all(x: Any, *, group: Group | None = None) -> Tensor:
    """Exchanges blocks along axis 0: block j of rank i becomes block i of rank j."""
    g = chosen("all_to_all", group)
    return ops().all_to_all(_tensor("all_to_all", x), n=g.size, group=g.name, site=site())


def scatter(x: Any, root: int = 0, *, group: Group | None = None) -> Tensor:
    """Block i along axis 0 of x of the rank `root`, on rank i. The others give a tensor of the same shape and dtype."""
    g = chosen("scatter", group)
    return ops().scatter(_tensor("scatter", x), n=g.size, root=_rank("scatter", "root", root, g), group=g.name, site=site())


def gather(x: Any, root: int = 0, *, group: Group | None = None) -> Tensor:
    """The tensors of all ranks, joined along axis 0, on the rank `root`; zeros on the others."""
    g = chosen("gather", group)
    return ops().gather(_tensor("gather", x), n=g.size, root=_rank("gather", "root", root, g), group=g.name, site=site())


def send(x: Any, dest: int, *, group: Group | None = None) -> Tensor:
    """Sends x to the rank `dest`, which calls recv.

    The result is empty. Its sum is 0 and carries the gradient: the backward pass of `send(x, dest=1).sum()` receives the cotangent of x
    from that rank, whose backward pass goes through its recv.
    """
    g = chosen("send", group)
    return ops().send(_tensor("send", x), dest=_rank("send", "dest", dest, g), group=g.name, site=site())


def recv(like: Any, source: int, *, group: Group | None = None) -> Tensor:
    """The tensor that the rank `source` sends, of the shape and dtype of `like`. The gradient with respect to `like` sends the cotangent back."""
    g = chosen("recv", group)
    return ops().recv(_tensor("recv", like), source=_rank("recv", "source", source, g), group=g.name, site=site())


def barrier(*, group: Group | None = None) -> None:
    """Waits until every rank of the group is there."""
    g = chosen("barrier", group)
    ops().barrier(group=g.name, site=site())
