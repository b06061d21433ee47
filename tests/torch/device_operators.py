"""PyTorch's own samples of its operators (OpInfo) on the device, beside PyTorch's CPU.

python device_operators.py [--device NAME] [--gradients] [--part K/N] [NAME...] prints one line per operator that fails, and the counts.
"""

import argparse
import sys
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

import backplane.torch

SAMPLES = 6
CALLS = 3  # the second call of one kind makes a program of the row, the third runs it
# Values that PyTorch leaves open, or draws.
OPEN = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "as_strided"}
ARGUMENTS_ON_THE_CPU = {"tensor_split"}  # PyTorch reads where to split there


def moved(value, device):
    """The sample on the device, with what requires a gradient."""

    def move(x):
        if isinstance(x, torch.Tensor):
            return x.detach().to(device).requires_grad_(x.requires_grad)
        return device if isinstance(x, torch.device) or x == "cpu" else x

    return pytree.tree_map(move, value)


def tensors(value):
    return [x for x in pytree.tree_leaves(value) if isinstance(x, torch.Tensor)]


def assert_close(found, expected, tolerance):
    found, expected = tensors(found), tensors(expected)
    assert len(found) == len(expected), f"found {len(found)} tensors, expected {len(expected)}"
    for x, y in zip(found, expected):
        assert x.dtype == y.dtype, f"found {x.dtype}, expected {y.dtype}"
        assert x.shape == y.shape, f"found {tuple(x.shape)}, expected {tuple(y.shape)}"
        assert x.device.type == backplane.torch.device("cpu").type, f"found a result on {x.device}"
        torch.testing.assert_close(x.detach().cpu().to_dense(), y.detach().to_dense(), rtol=tolerance, atol=tolerance, equal_nan=True, check_stride=False)


def gradients(result, arguments):
    outputs = [x for x in tensors(result) if x.requires_grad and (x.is_floating_point() or x.is_complex())]
    inputs = [x for x in tensors(arguments) if x.requires_grad]
    if not outputs or not inputs:
        return []
    found = torch.autograd.grad([x.abs().sum() if x.is_complex() else x.sum() for x in outputs], inputs, allow_unused=True)
    return [x for x in found if x is not None]


def dtype_of(operator, wanted):
    if wanted in operator.dtypes:
        return wanted
    return next((d for d in (torch.float32, torch.float64, torch.int64, torch.complex64, torch.bool) if d in operator.dtypes), None)


def check(operator, device, dtype, differentiate):
    """Raises where a sample differs from PyTorch's CPU. Returns how many were compared."""
    compared, tolerance = 0, 2e-3 if dtype != torch.float64 else 1e-6
    torch.manual_seed(0)
    for sample in list(operator.sample_inputs("cpu", dtype, requires_grad=differentiate))[:SAMPLES]:
        if any(x.layout != torch.strided for x in tensors((sample.input, sample.args, sample.kwargs))):
            continue
        ours = moved((sample.input, list(sample.args), sample.kwargs), device)
        if operator.name in ARGUMENTS_ON_THE_CPU:
            ours = (ours[0], list(sample.args), sample.kwargs)
        torch.manual_seed(1)
        try:
            expected = operator(sample.input, *sample.args, **sample.kwargs)
        except (RuntimeError, NotImplementedError):
            continue
        kwargs = dict(ours[2])
        if "device" in kwargs:
            kwargs["device"] = device
        elif not tensors(ours) and operator.name not in ("block_diag",):
            kwargs["device"] = device
        for call in range(CALLS):
            torch.manual_seed(1)
            found = operator(ours[0], *ours[1], **kwargs)
            if call + 1 < CALLS and differentiate:
                gradients(found, ours)
        compared += 1
        if operator.name in OPEN:
            continue
        assert_close(found, expected, tolerance)
        if differentiate:
            assert_close(gradients(found, ours), gradients(expected, (sample.input, sample.args, sample.kwargs)), tolerance)
    return compared


def names():
    return sorted({operator.name for operator in op_db})


def sweep(chosen, device, dtype, differentiate, report=print):
    """(names of operators that pass, that need the host, that fail)."""
    passed, on_host, failed = [], [], []
    device = backplane.torch.device(device)
    for operator in chosen:
        use = dtype_of(operator, dtype)
        if use is None or (differentiate and not (operator.supports_autograd and use == dtype)):
            continue
        title = operator.name + (f".{operator.variant_test_name}" if operator.variant_test_name else "")
        backplane.torch.reset_fallbacks()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compared = check(operator, device, use, differentiate)
        except Exception as error:  # every failure is reported, and the next operator runs
            failed.append(title)
            report(f"FAIL {title}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
            continue
        if compared == 0:
            report(f"NONE {title}")
            continue
        passed.append(title)
        if backplane.torch.fallbacks():
            on_host.append(title)
            report(f"HOST {title}: {' '.join(backplane.torch.fallbacks())}")
    return passed, on_host, failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    part, parts = (int(word) for word in options.part.split("/"))
    chosen = [operator for operator in op_db if not options.names or operator.name in options.names][part::parts]
    dtype = torch.float64 if options.gradients else torch.float32

    def report(line):
        print(line, flush=True)

    passed, on_host, failed = sweep(chosen, options.device, dtype, options.gradients, report)
    print(f"{options.device}{' gradients' if options.gradients else ''}: {len(passed)} operators pass, {len(on_host)} of them with the host's help; {len(failed)} fail")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
