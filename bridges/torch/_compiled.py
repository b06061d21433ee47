"""The backend of torch.compile: AOTAutograd's forward and backward graphs as graphs of Backplane.

`torch.compile(model, backend="backplane", options={"device": "vulkan"})` finds `backend` through the entry point
torch_dynamo_backends. Tensors of PyTorch's CPU and of its device "backplane" share memory with Backplane's where a graph runs on their
device.
"""

from __future__ import annotations

import math

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

import backplane as bp

from ._aten_rows import has_row
from ._device import is_device, name_of
from ._graph_functions import GraphFunction
from ._graph_rewrites import fuse_norms, join_before_merging
from ._host_steps import host_step
from ._random_inputs import lift_random
from ._tensors import from_torch, to_torch_tensor

__all__ = ["backend"]

_OPTIONS = {"device"}
_KEPT_SIZES = 32  # plans of a graph with dynamic sizes that are kept, one per combination of sizes


def backend(module: torch.fx.GraphModule, example_inputs: list[torch.Tensor], *, options: dict[str, str] | None = None, mode: str | None = None):
    """torch.compile's backend "backplane".

    options: {"device": name}, the device of Backplane that runs the graphs. Unless given, it is that of the program's tensors on the
    PyTorch device, or the CPU. Results lie where the program has them, on PyTorch's CPU or its device.
    PyTorch's CPU computes operators without a row, such as custom operators of others, as backplane.torch.fallbacks() counts.
    Errors: ArgumentValueError for another option; MissingRuleError, with their names, for operators that neither Backplane nor
    PyTorch's CPU may compute.
    """
    options = dict(options or {})
    unknown = sorted(options.keys() - _OPTIONS)
    if unknown:
        raise bp.ArgumentValueError(f'torch.compile: argument options: found {unknown[0]!r}, expected "device"')
    chosen = options.get("device")
    if chosen is not None:
        bp.Device(str(chosen))

    def forward_compiler(graph, inputs):
        return make_boxed_func(CompiledGraph(graph, chosen, _visible_results()))

    def backward_compiler(graph, inputs):
        return make_boxed_func(CompiledGraph(graph, chosen, math.inf))

    compiled = aot_autograd(fw_compiler=forward_compiler, bw_compiler=backward_compiler, decompositions=_decompositions(), partition_fn=_partitioned)
    return compiled(module, example_inputs)


def _partitioned(joint, inputs, **options):
    """(forward graph, backward graph). The backward graph gets no views, which would be copied to row-major order, but the tensors under them."""
    with torch._functorch.config.patch(recompute_views=True):
        return min_cut_rematerialization_partition(joint, inputs, **options)


def _visible_results():
    """How many of a forward graph's results the program sees. The others are read by the backward graph, whatever their strides are."""
    context = torch._guards.TracingContext.try_get()
    metadata = None if context is None else context.fw_metadata
    return math.inf if metadata is None else metadata.num_forward


_table = {}


def _decompositions():
    """PyTorch's own, without those of operators that have a row."""
    if not _table:
        _table.update({overload: rule for overload, rule in torch._decomp.core_aten_decompositions().items() if not has_row(overload)})
        _table[torch.ops.aten.transpose.int] = _transposed  # the partitioner knows permute as a view, and not transpose
    return _table


def _transposed(x, first, second):
    axes = list(range(x.dim()))
    if axes:
        axes[first], axes[second] = axes[second], axes[first]
    return torch.ops.aten.permute.default(x, axes)


class CompiledGraph:
    """One of AOTAutograd's graphs, as a function of PyTorch's tensors and integers. It is traced once per combination of sizes.

    visible: how many of its results have the strides that PyTorch inferred; the others are row-major.
    """

    def __init__(self, module, device, visible):
        device = str(_device_of(module) if device is None else device)
        module, self._draws = lift_random(module)
        join_before_merging(module)
        if device == "cpu":
            fuse_norms(module)
        with _disable_current_modes():  # AOTAutograd's fake tensors are active here; the graph's constants are real ones
            self._function = GraphFunction(module, device, "torch.compile", host_step)
        self._device = None if device == "cpu" else device
        self._results = [_Result(x, i < visible) for i, x in enumerate(self._function.results)]
        self._plans = {}
        self._parameters = {}

    def __call__(self, *inputs):
        inputs = [*inputs, *(draw(inputs) for draw in self._draws)]
        tensors = [self._converted(i, x) if isinstance(x, torch.Tensor) else x for i, x in enumerate(inputs)]
        key = tuple(x if not isinstance(x, bp.Tensor) else tuple(x.shape) for x in tensors)
        plan = self._plans.pop(key, None) or self._traced(tensors)
        self._plans[key] = plan
        if len(self._plans) > _KEPT_SIZES:
            del self._plans[next(iter(self._plans))]
        graph, form = plan
        found = iter(graph(*(x for x in tensors if isinstance(x, bp.Tensor)))) if graph is not None else iter(())
        return [result.returned(next(found)) if is_tensor else value for (is_tensor, value), result in zip(form, self._results)]

    def _converted(self, place, x):
        """A tensor over the memory of x; of a parameter it is kept as long as the parameter's memory is the same one."""
        if self._device is not None or not isinstance(x, torch.nn.Parameter):
            return from_torch(x, self._device)
        memory = (x.data_ptr(), x.shape, x.stride())
        kept = self._parameters.get(place)
        if kept is None or kept[0] != memory:
            kept = self._parameters[place] = (memory, from_torch(x))
        return kept[1]

    def _traced(self, inputs):
        """(the graph, of each result whether it is a tensor, and its value otherwise)."""
        form = []

        def run(*tensors):
            given = iter(tensors)
            found = bp.unguarded(self._function, *(next(given) if isinstance(x, bp.Tensor) else x for x in inputs))
            bp.unguarded(form.extend, [(isinstance(x, bp.Tensor), None if isinstance(x, bp.Tensor) else x) for x in found])
            return [x for x in found if isinstance(x, bp.Tensor)]

        graph = bp.make_graph(run)(*(x for x in inputs if isinstance(x, bp.Tensor)))
        return (graph if any(is_tensor for is_tensor, _ in form) else None), form


def _device_of(module):
    """The device of Backplane that the graph's tensors lie on."""
    for node in module.graph.nodes:
        for x in pytree.tree_leaves(node.meta.get("val")):
            if isinstance(x, torch.Tensor) and is_device(x.device):
                return name_of(x.device)
    return "cpu"


class _Result:
    """What PyTorch inferred of a result: where it lies, and where its strides count and are not row-major ones, the strides."""

    def __init__(self, result, has_strides):
        expected = result.meta.get("val") if isinstance(result, torch.fx.Node) else None
        is_tensor = isinstance(expected, torch.Tensor)
        self._device = expected.device if is_tensor and is_device(expected.device) else None
        self._strides = self._order = None
        if is_tensor and has_strides and not expected.is_contiguous():
            if all(type(n) is int for n in (*expected.shape, *expected.stride())):
                self._strides = expected.stride() if expected.numel() > 1 else None
            else:
                self._order = _order_of(expected)

    def returned(self, x):
        """A tensor of PyTorch with these strides, over the memory of x if it has them."""
        found = to_torch_tensor(x, self._device)
        strides = self._strides if self._order is None else _dense_strides(found.shape, self._order)
        if strides is None or found.stride() == strides:
            return found
        return torch.empty_strided(found.shape, strides, dtype=found.dtype, device=found.device).copy_(found)


def _order_of(expected):
    """The axes of a tensor with dynamic sizes, from the outermost in memory on; None where its elements do not fill the memory."""
    sizes, strides = ([n.node.hint if isinstance(n, torch.SymInt) else n for n in ns] for ns in (expected.shape, expected.stride()))
    if None in sizes or None in strides:
        return None
    order = sorted(range(len(sizes)), key=lambda axis: -strides[axis])
    return order if _dense_strides(sizes, order) == tuple(strides) else None


def _dense_strides(sizes, order):
    strides, step = [0] * len(sizes), 1
    for axis in reversed(order):
        strides[axis], step = step, step * sizes[axis]
    return tuple(strides)
