"""What the checks of opcheck share: values of tensors as arrays, and their comparison."""

import re

import numpy as np

from .. import _core
from .._calls import _ops
from ._opcheck_report import Failure

_MISSING = re.compile(r"([\w:.]+): no kernel on device ([\w:]+)")


def array(tensor):
    tensor = tensor.detach()
    host = tensor if tensor.device.backend == "cpu" else _core.to_device(tensor, _core.Device("cpu"))
    if host.dtype.name == "bfloat16":
        host = bp("cast")(host, _core.float32)
    return np.array(host.numpy())


def bp(name):
    return getattr(getattr(_ops.ops, _ops.NAMESPACE), name)


def tensor(values, like):
    """The values in the dtype and on the device of a tensor."""
    made = _core.asarray(np.array(values, order="C"), dtype=like.dtype, device="cpu", copy=True)
    return _core.to_device(made, like.device)


def show(values):
    text = np.array2string(np.asarray(values), threshold=6, precision=5).replace("\n", "")
    return text if len(text) < 60 else text[:57] + "..."


def difference(found, expected, dtype, loose=64):
    """None where two arrays agree up to rounding in dtype, else words."""
    if found.shape != expected.shape:
        return f"found shape {found.shape}, expected {expected.shape}"
    if expected.size == 0:
        return None
    if expected.dtype.kind not in "fc" or found.dtype.kind not in "fc":
        return None if (found == expected).all() else f"found {show(found)}, expected {show(expected)}"
    wide = np.complex128 if "c" in found.dtype.kind + expected.dtype.kind else np.float64
    found, expected = found.astype(wide), expected.astype(wide)
    finite = np.abs(expected[np.isfinite(expected)])
    scale = max(1.0, float(finite.max()) if finite.size else 1.0)
    eps = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1.2e-7, "complex64": 1.2e-7}.get(dtype.name, 2.3e-16)
    bound = loose * eps * scale * max(1.0, expected.size**0.5)
    same = np.isclose(found, expected, rtol=0, atol=bound, equal_nan=True)
    if same.all():
        return None
    at = tuple(int(i) for i in np.argwhere(~same)[0])
    return f"found {found[at]:.6g}, expected {expected[at]:.6g}" + (f", at {list(at)}" if at else "")


def flat(results):
    """All tensors, those of lists in their place."""
    return [item for result in results for item in (result if isinstance(result, list) else [result])]


def compare(results, expected, what):
    results, expected = flat(results), flat(expected)
    if len(results) != len(expected):
        raise Failure(f"{what}: found {len(results)} results, expected {len(expected)}")
    for j, (found, wanted) in enumerate(zip(results, expected)):
        words = difference(array(found), array(wanted), wanted.dtype)
        if words:
            raise Failure(f"{what}, result {j}: {words}")


def missing_kernel(subject, failure):
    """Where a device lacks a kernel for another op, which a check calls and a device's author need not have written yet: the words."""
    found = _MISSING.search(str(failure)) if isinstance(failure, _core.MissingRuleError) else None
    return found and found[1] != subject.name and f"it takes a kernel for {found[1]} too, which device {found[2]} lacks"
