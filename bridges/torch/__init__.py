"""PyTorch and Backplane: exported programs as functions of Backplane, the backend "backplane" of torch.compile, torch.ops.bp, and a device.

    import backplane as bp, backplane.torch, torch

    program = torch.export.export(model, (x,))
    f = backplane.torch.from_exported(program)
    bp.export(f, [bp.asarray(x)], "model.safetensors")
    program = backplane.torch.to_torch(f, [bp.asarray(x)])

    fast = torch.compile(model, backend="backplane", options={"device": "vulkan"})
    torch.ops.bp.softmax(x)

    model.to(backplane.torch.device("vulkan"))

The bridge is tested with PyTorch 2.13. An older PyTorch raises VersionError; a newer one warns.
"""

from ._version import check as _check

_check()

from ._device import device as device, is_registered as is_registered, register as register  # noqa: E402
from ._exported import ExportedFunction as ExportedFunction, from_exported as from_exported  # noqa: E402
from ._fallbacks import fallbacks as fallbacks, forbid_fallbacks as forbid_fallbacks, reset_fallbacks as reset_fallbacks  # noqa: E402
from ._registered_ops import register_ops as register_ops  # noqa: E402
from ._tensors import from_torch as from_torch, to_torch_tensor as to_torch_tensor  # noqa: E402
from ._to_torch import to_torch as to_torch  # noqa: E402

register_ops()
