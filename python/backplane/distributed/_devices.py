"""Several devices of one process: collectives between them, and a model with a replica on each."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

import backplane as bp
from backplane import Tensor

from ._data_parallel import _in_buckets_of

__all__ = ["DeviceGroup", "DeviceReplicas"]

_COMBINE = {"sum": "add", "mean": "add", "max": "maximum", "min": "minimum", "prod": "multiply"}


class DeviceGroup:
    """Devices of this process, in an order: `DeviceGroup(["cuda:0", "cuda:1"])`. A collective takes one tensor per device.

    The tensors of a call have one shape and dtype, and tensor i lies on device i; so do the results. Tensors travel by copies between the
    devices, and each device reduces its part of the elements. backward() goes through them. Within grad, vmap and compile tensors do not
    change their device, and neither do these: call them on the results of a transformed function.
    Reductions add in the order of devices, float16 and bfloat16 in float32.
    """

    def __init__(self, devices: Sequence[Any]) -> None:
        found = [bp.Device(d) if isinstance(d, str) else d for d in devices]
        if not found:
            raise bp.ArgumentValueError("DeviceGroup: argument devices: found an empty list, expected at least one device")
        self.devices = tuple(found)
        self.size = len(found)

    def __repr__(self) -> str:
        return f"DeviceGroup({', '.join(map(str, self.devices))})"

    def _checked(self, name: str, tensors: Sequence[Tensor]) -> list[Tensor]:
        given = list(tensors)
        if len(given) != self.size or not all(isinstance(x, Tensor) for x in given):
            raise bp.ArgumentTypeError(f"{name}: argument tensors: expected {self.size} tensors, one per device; found {len(given)} values")
        for x, device in zip(given, self.devices):
            if x.device != device:
                raise bp.ArgumentValueError(f"{name}: argument tensors: found a tensor on {x.device}, expected {device}. Fix: x.to({str(device)!r})")
            if x.shape != given[0].shape or x.dtype != given[0].dtype:
                raise bp.ShapeError(
                    f"{name}: argument tensors: found {x.dtype.name} {tuple(x.shape)} and {given[0].dtype.name} {tuple(given[0].shape)}, expected one shape and dtype"
                )
        return given

    def _reduced(self, name: str, parts: list[Tensor], op: str, device: Any) -> Tensor:
        """The reduction of parts that lie anywhere, on a device."""
        if op not in _COMBINE:
            raise bp.ArgumentValueError(f"{name}: argument op: found {op!r}, expected 'sum', 'mean', 'max', 'min' or 'prod'")
        dtype = parts[0].dtype
        is_half = dtype in (bp.float16, bp.bfloat16)
        if op == "mean" and not ("floating" in dtype.kind or "complex" in dtype.kind):
            raise bp.DtypeError(f"{name}: argument tensors: found {dtype.name}, expected a floating or complex dtype for op 'mean'; cast them first")
        if dtype == bp.bool and op in ("sum", "mean"):
            raise bp.DtypeError(f"{name}: argument tensors: found bool, expected numbers for op {op!r}; cast them first")
        moved = [x.to(device).astype(bp.float32) if is_half else x.to(device) for x in parts]
        if dtype == bp.bool:
            combine = bp.logical_or if op == "max" else bp.logical_and
        else:
            combine = getattr(bp, _COMBINE[op])
        total: Tensor = functools.reduce(combine, moved)
        if op == "mean":
            total = total / self.size
        return total.astype(dtype) if is_half else total

    def all_reduce(self, tensors: Sequence[Tensor], op: str = "sum") -> list[Tensor]:
        """The sum of the tensors, on each device. op: "sum", "mean", "max", "min" or "prod"."""
        given = self._checked("all_reduce", tensors)
        x = given[0]
        if x.size < self.size or self.size == 1:
            total = self._reduced("all_reduce", given, op, self.devices[0])
            return [total.to(device) for device in self.devices]
        cuts = [i * x.size // self.size for i in range(self.size + 1)]
        flat = [y.reshape((-1,)) for y in given]
        blocks = [self._reduced("all_reduce", [y[a:b] for y in flat], op, device) for a, b, device in zip(cuts, cuts[1:], self.devices)]
        return [bp.concat([block.to(device) for block in blocks]).reshape(x.shape) for device in self.devices]

    def reduce_scatter(self, tensors: Sequence[Tensor], op: str = "sum") -> list[Tensor]:
        """Block i along axis 0 of the sum of the tensors, on device i. Errors: ShapeError where the devices do not divide axis 0."""
        given = self._checked("reduce_scatter", tensors)
        rows = self._rows("reduce_scatter", given[0])
        return [self._reduced("reduce_scatter", [x[i * rows : (i + 1) * rows] for x in given], op, device) for i, device in enumerate(self.devices)]

    def all_gather(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The tensors, joined along axis 0, on each device; numbers become a vector."""
        given = [x.reshape((1,)) if x.ndim == 0 else x for x in self._checked("all_gather", tensors)]
        return [bp.concat([x.to(device) for x in given]) for device in self.devices]

    def broadcast(self, x: Tensor) -> list[Tensor]:
        """x on each device, wherever it lies."""
        return [x.to(device) for device in self.devices]

    def scatter(self, x: Tensor) -> list[Tensor]:
        """Block i along axis 0 of x on device i. Errors: ShapeError where the devices do not divide axis 0."""
        rows = self._rows("scatter", x)
        return [x[i * rows : (i + 1) * rows].to(device) for i, device in enumerate(self.devices)]

    def _rows(self, name: str, x: Tensor) -> int:
        if x.ndim == 0 or x.shape[0] % self.size:
            raise bp.ShapeError(f"{name}: found shape {tuple(x.shape)}, expected a size of axis 0 that {self.size} divides, the number of devices")
        return int(x.shape[0]) // self.size


class DeviceReplicas:
    """A model on several devices of this process: each has a replica with an optimiser, and computes a part of each batch.

        replicas = DeviceReplicas(model, ["cuda:0", "cuda:1"], lambda model: bp.optim.AdamW(model.parameters()))
        loss = replicas.step(lambda model, x, y: F.mse_loss(model(x), y), x, y)

    models: the replicas; models[0] on the first device is what one saves and evaluates. The model that is given stays as it is.
    One thread gives work to all devices, which compute at the same time.
    """

    def __init__(self, model: Any, devices: Sequence[Any], make_optimizer: Callable[[Any], Any]) -> None:
        self.group = DeviceGroup(devices)
        self.models = [copy.deepcopy(model).to(device) for device in self.group.devices]
        self.optimizers = [make_optimizer(replica) for replica in self.models]

    def step(self, loss: Callable[..., Tensor], *batch: Tensor, bucket_bytes: int = 32 << 20) -> Tensor:
        """One training step; returns the mean of the devices' losses, on the first device.

        loss: a function of a model and of tensors, a mean over its examples. batch: tensors whose axis 0 is divided among the devices.
        The gradients are averaged over the devices in buckets of bucket_bytes. The result equals the step of one device on the whole
        batch. Each replica keeps running statistics (BatchNorm) of its part, and draws random numbers of its own.
        Errors: ShapeError where the devices do not divide axis 0.
        """
        parts = list(zip(*(self.group.scatter(x) for x in batch)))
        both = [bp.value_and_grad(loss)(model, *part) for model, part in zip(self.models, parts)]
        leaves, structures = zip(*(bp.tree.flatten(gradients) for _, gradients in both))
        places = [i for i, x in enumerate(leaves[0]) if isinstance(x, Tensor)]
        columns = [[own[i] for own in leaves] for i in places]
        means = _in_buckets_of(columns, lambda tensors: self.group.all_reduce(tensors, "mean"), bucket_bytes)
        for i, mean in zip(places, means):
            for own, x in zip(leaves, mean):
                own[i] = x
        for model, optimizer, own, structure in zip(self.models, self.optimizers, leaves, structures):
            optimizer.update(model, bp.tree.unflatten(structure, own))
        return self.group._reduced("step", [value.detach() for value, _ in both], "mean", self.group.devices[0])
