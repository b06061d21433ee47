"""What PyTorch's CPU computes in Backplane's place: whether it may, and how often it did."""

from __future__ import annotations

import collections
import os
import warnings

import backplane as bp

__all__ = ["check_host", "connect", "fallbacks", "forbid_fallbacks", "host_may_compute", "note_host", "reset_fallbacks"]

_POLICIES = {"allow": 0, "warn": 1, "forbid": 2}


class _State:
    native = None  # it counts the calls on the device, once that is registered
    policy: int | None = None
    steps: collections.Counter[str] = collections.Counter()  # of compiled graphs


_state = _State()


def connect(native):
    """From now on the device follows the policy too."""
    native.set_policy(_policy())
    _state.native = native


def _policy():
    """The environment's until forbid_fallbacks says otherwise."""
    if _state.policy is None:
        name = os.environ.get("BACKPLANE_TORCH_FALLBACK", "warn")
        if name not in _POLICIES:
            raise bp.ArgumentValueError(f"BACKPLANE_TORCH_FALLBACK: found {name!r}, expected allow, warn or forbid")
        _state.policy = _POLICIES[name]
    return _state.policy


def _set_policy(policy):
    """Returns the policy before."""
    before, _state.policy = _policy(), policy
    if _state.native is not None:
        _state.native.set_policy(policy)
    return before


def host_may_compute():
    """May PyTorch's CPU compute operators without a row?"""
    return _policy() != _POLICIES["forbid"]


def check_host(name):
    """Raises NotImplementedError where PyTorch's CPU may not compute an operator."""
    if not host_may_compute():
        raise NotImplementedError(
            f"{name}: Backplane has no row for this operator, and the host may not compute it. "
            "Fix: backplane.torch.forbid_fallbacks(False), or BACKPLANE_TORCH_FALLBACK=allow"
        )


def note_host(name):
    """Counts a step of a compiled graph that PyTorch's CPU computed, and warns of the first one."""
    _state.steps[name] += 1
    if _state.steps[name] == 1 and _policy() == _POLICIES["warn"]:
        warnings.warn(f"{name}: Backplane has no row for this operator; PyTorch's CPU computes it. backplane.torch.fallbacks() counts such calls", RuntimeWarning, stacklevel=2)


def fallbacks() -> dict[str, int]:
    """How often PyTorch's CPU computed an operator for the device or for a compiled graph, by operator.

    Operators of the device that draw random numbers are not counted.

    Example:
        >>> backplane.torch.fallbacks()
        {}
    """
    on_device = _state.native.fallbacks() if _state.native is not None else {}
    return dict(collections.Counter(on_device) + _state.steps)


def reset_fallbacks() -> None:
    """Sets the counts of fallbacks() to zero."""
    _state.steps.clear()
    if _state.native is not None:
        _state.native.reset_fallbacks()


class forbid_fallbacks:
    """Forbids PyTorch's CPU to compute operators for the device and for compiled graphs: they raise NotImplementedError with the operator's name.

    forbidden: False allows it again, without a warning. In a `with` statement it holds for the block.

    Example:
        >>> with backplane.torch.forbid_fallbacks():
        ...     torch.ones(2, device=backplane.torch.device()).sin().sum().item()
        1.682941...
    """

    def __init__(self, forbidden: bool = True):
        self._before = _set_policy(_POLICIES["forbid" if forbidden else "allow"])

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        _set_policy(self._before)
