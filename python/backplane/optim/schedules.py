"""Schedules as functions of the step's number, under optax's names: for the optimisers that are pure functions, and for loops of your own.

    schedule = bp.optim.schedules.warmup_cosine_decay_schedule(0.0, 1e-3, warmup_steps=100, decay_steps=1000)
    adam = bp.optim.adam(lr=schedule)

A schedule takes an int or a tensor and returns a tensor without axes, also in compiled functions and loops. The first step is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import backplane as bp
from backplane import Tensor

from .._calls._ops import refuse_names as _refuse_names

__all__ = [
    "constant_schedule", "cosine_decay_schedule", "cosine_onecycle_schedule", "exponential_decay", "join_schedules", "linear_onecycle_schedule",
    "linear_schedule", "piecewise_constant_schedule", "piecewise_interpolate_schedule", "polynomial_schedule", "sgdr_schedule",
    "warmup_constant_schedule", "warmup_cosine_decay_schedule", "warmup_exponential_decay_schedule",
]  # fmt: skip
__dir__ = __all__.copy

Schedule = Callable[[Any], Tensor]


def _number(step: Any) -> Tensor:
    return step.astype(bp.float64) if isinstance(step, Tensor) else bp.asarray(float(step), dtype=bp.float64)


def _positive(name, argument, value):
    if not value > 0:
        raise bp.ArgumentValueError(f"{name}: argument {argument}: found {value}, expected a number above 0")
    return value


def constant_schedule(value: float) -> Schedule:
    """The same value at each step."""
    return lambda step: bp.zeros_like(_number(step)) + value


def polynomial_schedule(init_value: float, end_value: float, power: float, transition_steps: int, transition_begin: int = 0) -> Schedule:
    """From init_value to end_value in transition_steps steps after transition_begin, as (1 - share) ** power of the difference."""
    if transition_steps <= 0:
        return constant_schedule(init_value)

    def schedule(step: Any) -> Tensor:
        left = 1 - bp.clip(_number(step) - transition_begin, 0, transition_steps) / transition_steps
        return (init_value - end_value) * left**power + end_value

    return schedule


def linear_schedule(init_value: float, end_value: float, transition_steps: int, transition_begin: int = 0) -> Schedule:
    """From init_value to end_value along a line."""
    return polynomial_schedule(init_value, end_value, 1, transition_steps, transition_begin)


def cosine_decay_schedule(init_value: float, decay_steps: int, alpha: float = 0.0, exponent: float = 1.0) -> Schedule:
    """From init_value to alpha times it in decay_steps steps along half a cosine to the power of exponent. Errors: ArgumentValueError for no steps."""
    _positive("cosine_decay_schedule", "decay_steps", decay_steps)

    def schedule(step: Any) -> Tensor:
        share = bp.minimum(_number(step), decay_steps) / decay_steps
        return init_value * ((1 - alpha) * (0.5 * (1 + bp.cos(math.pi * share))) ** exponent + alpha)

    return schedule


def exponential_decay(
    init_value: float, transition_steps: int, decay_rate: float, transition_begin: int = 0, staircase: bool = False, end_value: float | None = None
) -> Schedule:
    """init_value times decay_rate ** (step / transition_steps) after transition_begin; staircase: of whole powers. end_value: a bound.

    Errors: ArgumentValueError for no steps, and for a rate of 0.
    """
    _positive("exponential_decay", "transition_steps", transition_steps)
    _positive("exponential_decay", "decay_rate", decay_rate)

    def schedule(step: Any) -> Tensor:
        after = _number(step) - transition_begin
        power = after / transition_steps
        found = init_value * decay_rate ** bp.maximum(bp.floor(power) if staircase else power, 0)
        if end_value is None:
            return found
        return bp.maximum(found, end_value) if decay_rate < 1 else bp.minimum(found, end_value)

    return schedule


def piecewise_constant_schedule(init_value: float, boundaries_and_scales: Mapping[int, float] | None = None) -> Schedule:
    """init_value, times each scale from its boundary on."""
    pairs = sorted((boundaries_and_scales or {}).items())

    def schedule(step: Any) -> Tensor:
        t = _number(step)
        found = bp.zeros_like(t) + init_value
        for boundary, scale in pairs:
            found = bp.where(t >= boundary, found * scale, found)
        return found

    return schedule


def piecewise_interpolate_schedule(interpolate_type: str, init_value: float, boundaries_and_scales: Mapping[int, float] | None = None) -> Schedule:
    """The values of piecewise_constant_schedule at the boundaries, and between them a line ("linear") or half a cosine ("cosine")."""
    if interpolate_type not in ("linear", "cosine"):
        raise bp.ArgumentValueError(f"piecewise_interpolate_schedule: argument interpolate_type: found {interpolate_type!r}, expected 'linear' or 'cosine'")
    points = [(0, init_value)]
    for boundary, scale in sorted((boundaries_and_scales or {}).items()):
        points.append((boundary, points[-1][1] * scale))

    def schedule(step: Any) -> Tensor:
        t = _number(step)
        found = bp.zeros_like(t) + points[-1][1]
        for (start, first), (end, last) in reversed(list(zip(points, points[1:]))):
            share = bp.clip((t - start) / max(end - start, 1), 0, 1)
            share = share if interpolate_type == "linear" else (1 - bp.cos(math.pi * share)) / 2
            found = bp.where(t < end, first + (last - first) * share, found)
        return found

    return schedule


def _onecycle(name, kind, transition_steps, peak_value, places, scales):
    _positive(name, "transition_steps", transition_steps)
    return piecewise_interpolate_schedule(kind, peak_value, dict(zip((int(place * transition_steps) for place in places), scales)))


def cosine_onecycle_schedule(
    transition_steps: int, peak_value: float, pct_start: float = 0.3, div_factor: float = 25.0, final_div_factor: float = 1e4
) -> Schedule:
    """From peak_value / div_factor to peak_value in the first pct_start of the steps, then to peak_value / (div_factor · final_div_factor)."""
    scales = div_factor, 1 / (div_factor * final_div_factor)
    return _onecycle("cosine_onecycle_schedule", "cosine", transition_steps, peak_value / div_factor, (pct_start, 1), scales)


def linear_onecycle_schedule(
    transition_steps: int, peak_value: float, pct_start: float = 0.3, pct_final: float = 0.85, div_factor: float = 25.0, final_div_factor: float = 1e4
) -> Schedule:
    """Along lines from peak_value / div_factor to peak_value at pct_start, back at pct_final, and to peak_value / (div_factor · final_div_factor)."""
    scales = div_factor, 1 / div_factor, 1 / final_div_factor
    return _onecycle("linear_onecycle_schedule", "linear", transition_steps, peak_value / div_factor, (pct_start, pct_final, 1), scales)


def join_schedules(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """One schedule after the other; each begins with step 0 at its boundary. Errors: ArgumentValueError for another number of boundaries."""
    if len(boundaries) != len(schedules) - 1:
        raise bp.ArgumentValueError(f"join_schedules: argument boundaries: found {len(boundaries)}, expected {len(schedules) - 1}, one between two schedules")

    def schedule(step: Any) -> Tensor:
        t = _number(step)
        found = schedules[0](t)
        for boundary, part in zip(boundaries, schedules[1:]):
            found = bp.where(t < boundary, found, part(t - boundary))
        return found

    return schedule


def warmup_constant_schedule(init_value: float, peak_value: float, warmup_steps: int) -> Schedule:
    """From init_value to peak_value along a line in warmup_steps steps, then peak_value."""
    return linear_schedule(init_value, peak_value, warmup_steps)


def warmup_cosine_decay_schedule(
    init_value: float, peak_value: float, warmup_steps: int, decay_steps: int, end_value: float = 0.0, exponent: float = 1.0
) -> Schedule:
    """A line to peak_value in warmup_steps steps, then half a cosine to end_value at step decay_steps, which counts the warm-up."""
    alpha = 0.0 if peak_value == 0 else end_value / peak_value
    after = cosine_decay_schedule(peak_value, decay_steps - warmup_steps, alpha, exponent)
    return join_schedules([linear_schedule(init_value, peak_value, warmup_steps), after], [warmup_steps])


def warmup_exponential_decay_schedule(
    init_value: float, peak_value: float, warmup_steps: int, transition_steps: int, decay_rate: float, transition_begin: int = 0,
    staircase: bool = False, end_value: float | None = None,
) -> Schedule:  # fmt: skip
    """A line to peak_value in warmup_steps steps, then exponential_decay."""
    after = exponential_decay(peak_value, transition_steps, decay_rate, transition_begin, staircase, end_value)
    return join_schedules([linear_schedule(init_value, peak_value, warmup_steps), after], [warmup_steps])


def sgdr_schedule(cosine_kwargs: Sequence[Mapping[str, Any]]) -> Schedule:
    """Several warmup_cosine_decay_schedules, each after the decay_steps of the one before (Loshchilov and Hutter, 2017)."""
    parts, boundaries, step = [], [], 0
    for arguments in cosine_kwargs:
        parts.append(warmup_cosine_decay_schedule(**arguments))
        step += arguments["decay_steps"]
        boundaries.append(step)
    return join_schedules(parts, boundaries[:-1])


TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _refuse_names(__name__)
del TYPE_CHECKING
