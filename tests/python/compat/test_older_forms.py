"""Older spellings of PyTorch that programs still use: torch.cuda.amp, only_inputs of autograd.grad; and save and load of open files."""

import io

import pytest

import backplane as bp
import backplane.compat.torch as torch


def test_amp_of_cuda_has_no_effect_without_a_cuda_device():
    if torch.cuda.is_available():
        pytest.skip("a CUDA device is present")
    from backplane.compat.torch.cuda.amp import GradScaler, autocast, custom_bwd, custom_fwd

    with autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.ones(1).dtype
    scaler = GradScaler()
    assert not scaler.is_enabled() and scaler.scale(torch.ones(1)).item() == 1
    assert custom_fwd(lambda x: x + 1)(1) == custom_fwd(cast_inputs=torch.float32)(lambda x: x + 1)(1) == 2 and custom_bwd(len) is len


def test_amp_is_a_module():
    from backplane.compat.torch.amp import GradScaler, autocast

    assert GradScaler is torch.amp.GradScaler is torch.GradScaler and autocast is torch.autocast
    with torch.amp.autocast("cpu", dtype=torch.bfloat16):
        assert (torch.ones(2, 2, dtype=torch.float32) @ torch.ones(2, 2, dtype=torch.float32)).dtype == torch.bfloat16


def test_only_inputs_of_grad():
    x = torch.ones(3, requires_grad=True)
    (found,) = torch.autograd.grad((x**2).sum(), x, create_graph=True, retain_graph=True, only_inputs=True)
    assert found.tolist() == [2, 2, 2] and found.requires_grad
    with pytest.raises(bp.ArgumentValueError, match="only_inputs"):
        torch.autograd.grad((x**2).sum(), x, only_inputs=False)


def test_open_files_are_written_and_read_at_their_position():
    file = io.BytesIO()
    file.write(b"head")
    bp.save({"a": bp.ones(2), "n": 3}, file, metadata={"of": "me"})
    file.seek(4)
    found = bp.load(file)
    assert found["a"].tolist() == [1, 1] and found["n"] == 3 and file.getvalue()[:4] == b"head"
    with pytest.raises(bp.ArgumentValueError, match="lazy"):
        bp.load(file, lazy=True)
    with pytest.raises(bp.ArgumentValueError, match="max_shard_size"):
        bp.save({"a": bp.ones(2)}, file, max_shard_size=1)
    with pytest.raises(bp.ArgumentTypeError, match="expected a path or a binary file object"):
        bp.save({"a": bp.ones(2)}, 3)
