"""The version of PyTorch that the bridge is written for."""

from __future__ import annotations

import warnings

import backplane as bp

__all__ = ["check"]

TESTED = (2, 13)


def check(version=None):
    """Errors: VersionError for a PyTorch older than the tested one. A newer one warns."""
    if version is None:
        try:
            import torch
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("backplane.torch: PyTorch is not installed. Fix: pip install torch==2.13.0", name=error.name) from None
        version = torch.__version__
    found = tuple(int("".join(c for c in part if c.isdigit()) or 0) for part in version.split(".")[:2])
    tested = ".".join(str(part) for part in TESTED)
    if found < TESTED:
        raise bp.VersionError(f"backplane.torch: found PyTorch {version}, expected {tested} or newer. Fix: pip install torch=={tested}.0")
    if found > TESTED:
        warnings.warn(f"backplane.torch is tested with PyTorch {tested}, found {version}: it may fail in places", stacklevel=3)
