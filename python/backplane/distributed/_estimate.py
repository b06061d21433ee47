"""How long a training step would take on many ranks: a simulation from the figures of a processor and of a network."""

from __future__ import annotations

import math
from dataclasses import dataclass

import backplane as bp

__all__ = ["Estimate", "Network", "TransformerShape", "estimate"]


@dataclass(frozen=True)
class Network:
    """The links between ranks. Machines have local_ranks each; links within one are faster than those between machines.

    bandwidth, local_bandwidth: bytes per second that a rank sends, and receives at the same time. latency, local_latency: seconds of one
    message. A collective is a ring: within machines first, and the ranks of one place in all machines each have a ring between them.
    """

    bandwidth: float
    latency: float
    local_ranks: int
    local_bandwidth: float
    local_latency: float

    def _ring(self, steps_of: float, size: float, ranks: int, is_local: bool) -> float:
        """steps_of (ranks - 1) steps, each of size / ranks bytes."""
        speed, delay = (self.local_bandwidth, self.local_latency) if is_local else (self.bandwidth, self.latency)
        return steps_of * (ranks - 1) * (size / ranks / speed + delay)

    def _spread(self, ranks: int) -> tuple[int, int]:
        """(ranks of one machine, machines)."""
        local = math.gcd(ranks, self.local_ranks) if ranks > self.local_ranks else ranks
        return local, ranks // local

    def all_gather(self, size: float, ranks: int) -> float:
        """Seconds until each rank has `size` bytes. Each begins with 1 / ranks of them."""
        local, machines = self._spread(ranks)
        return self._ring(1, size / local, machines, False) + self._ring(1, size, local, True)

    def reduce_scatter(self, size: float, ranks: int) -> float:
        """Seconds until each rank has 1 / ranks of the sum of `size` bytes of each."""
        return self.all_gather(size, ranks)

    def all_reduce(self, size: float, ranks: int) -> float:
        """Seconds until each rank has the sum of `size` bytes of each."""
        return 2 * self.all_gather(size, ranks)


@dataclass(frozen=True)
class TransformerShape:
    """A decoder of layers with grouped attention and a gated MLP, as Llama's: sizes as in its configuration."""

    layers: int
    width: int
    heads: int
    key_value_heads: int
    hidden: int
    vocabulary: int

    @property
    def layer_parameters(self) -> int:
        head = self.width // self.heads
        return self.width * (2 * self.width + 2 * self.key_value_heads * head + 3 * self.hidden + 2)

    @property
    def parameters(self) -> int:
        return self.layers * self.layer_parameters + (2 * self.vocabulary + 1) * self.width

    def layer_flops(self, tokens: int, length: int) -> float:
        """Floating-point operations of one layer's forward pass over sequences of `length` tokens; attention counted whole."""
        return tokens * (2.0 * self.layer_parameters + 4.0 * length * self.width)

    def head_flops(self, tokens: int) -> float:
        return 2.0 * tokens * self.vocabulary * self.width


@dataclass(frozen=True)
class Estimate:
    """step: seconds. compute: the part in which a rank computes. exposed: the rest, in which it waits for data. bytes_sent: of one rank
    and step. tokens_per_second: of one rank."""

    step: float
    compute: float
    exposed: float
    bytes_sent: float
    tokens_per_second: float


class _Clock:
    """A rank's two queues: what it computes and what it exchanges; each works in order."""

    def __init__(self) -> None:
        self.computed = self.exchanged = self.busy = 0.0

    def compute(self, seconds: float, after: float = 0.0) -> float:
        self.computed = max(self.computed, after) + seconds
        self.busy += seconds
        return self.computed

    def exchange(self, seconds: float, after: float = 0.0) -> float:
        self.exchanged = max(self.exchanged, after) + seconds
        return self.exchanged


def estimate(
    shape: TransformerShape, ranks: int, network: Network, *, flops: float, tokens: int, length: int, strategy: str = "sharded", tensor_parallel: int = 1,
    recompute: float = 0.0, parameter_bytes: int = 2, gradient_bytes: int = 4,
) -> Estimate:
    """Simulates one training step of a transformer on each of `ranks` alike ranks.

    flops: operations per second that one rank achieves in a step without communication: measured, not a peak. tokens: per rank and step
    (with tensor_parallel, per group of that many ranks). length: of a sequence.
    strategy: "sharded" gathers the parameters of a layer before its forward and backward pass, one layer ahead, and scatters its gradients
    (ZeRO's third stage, FSDP); "replicated" sums the gradients of each layer while earlier layers go on (data parallel).
    tensor_parallel: ranks that divide each layer, and sum its activations twice per pass. recompute: the share of the forward pass that
    the backward pass repeats. parameter_bytes, gradient_bytes: of one number in transit.
    Left out: the input, the optimiser's step, ranks that are slower than others, and links that several rings share.
    Errors: ArgumentValueError for numbers that are not positive, or ranks that tensor_parallel does not divide.
    """
    for name, value in (("ranks", ranks), ("flops", flops), ("tokens", tokens), ("length", length), ("tensor_parallel", tensor_parallel)):
        if not value > 0:
            raise bp.ArgumentValueError(f"estimate: argument {name}: found {value!r}, expected a positive number")
    if ranks % tensor_parallel:
        raise bp.ArgumentValueError(f"estimate: argument tensor_parallel: found {tensor_parallel}, expected a divisor of {ranks}, the number of ranks")
    if strategy not in ("sharded", "replicated"):
        raise bp.ArgumentValueError(f"estimate: argument strategy: found {strategy!r}, expected 'sharded' or 'replicated'")
    group, t = ranks // tensor_parallel, tensor_parallel
    whole = [shape.layer_parameters / t] * shape.layers
    edge = (2 * shape.vocabulary + 1) * shape.width / t  # the embedding and the head, which travel as one more layer
    forward = shape.layer_flops(tokens, length) / t / flops
    head = shape.head_flops(tokens) / t / flops
    sums = 2 * network.all_reduce(tokens * shape.width * parameter_bytes, t)  # of activations, in one layer and pass
    gather = {size: network.all_gather(size * parameter_bytes, group) for size in {*whole, edge}}
    scatter = {size: network.reduce_scatter(size * gradient_bytes, group) for size in {*whole, edge}}
    clock = _Clock()
    if strategy == "sharded":
        ready = clock.exchange(gather[edge])
        for size in whole:
            # The gathering of a layer begins when the layer before begins to compute.
            arrived = clock.exchange(gather[size], ready)
            ready = max(clock.computed, arrived)
            clock.compute(forward + sums, arrived)
    else:
        for _ in whole:
            clock.compute(forward + sums)
    clock.compute(3 * head)
    if strategy == "sharded":
        arrived = clock.exchange(gather[whole[-1]], clock.computed)
        for i, size in reversed(list(enumerate(whole))):
            start = max(clock.computed, arrived)
            arrived = clock.exchange(gather[whole[i - 1]], start) if i else 0.0
            clock.exchange(scatter[size], clock.compute((2 + recompute) * forward + sums, start))
        clock.exchange(scatter[edge], clock.computed)
    else:
        for size in reversed(whole):
            clock.exchange(2 * scatter[size], clock.compute((2 + recompute) * forward + sums))
        clock.exchange(2 * scatter[edge], clock.computed)
    step = max(clock.computed, clock.exchanged)
    compute = (3 + recompute) * forward * shape.layers + 3 * head
    share = (group - 1) / group
    passes = 2 * parameter_bytes + gradient_bytes if strategy == "sharded" else 2 * gradient_bytes
    sent = (sum(whole) + edge) * passes * share + 4 * shape.layers * 2 * tokens * shape.width * parameter_bytes * (t - 1) / t
    return Estimate(step, compute, step - compute, sent, tokens / t / step)
