"""The CUDA backend's compiler: the laws of regions, its files, and what it says where there is no NVRTC. `./dev test cuda` runs this
on the emulated driver with NVIDIA's own NVRTC, and without one."""

import os
import subprocess
import sys

import backplane as bp
import numpy as np
import pytest
from device_regions import RegionLaws, fused, tensor


def _why_not(cuda):
    """Why there is no NVRTC; None where there is."""
    text = cuda.properties["nvrtc"]
    return None if text[0].isdigit() else text


@pytest.fixture
def device(cuda):
    if why := _why_not(cuda):
        pytest.skip(f"NVRTC: {why}")
    return cuda


class TestRegions(RegionLaws):
    @pytest.fixture
    def device(self, device):
        return device


@pytest.mark.parametrize("count", [1, 3, 4, 6, 255, 1024, 1025, 4100])
@pytest.mark.parametrize("dtype", [bp.int8, bp.float16, bp.float32, bp.float64, bp.complex128], ids=str)
def test_any_count_of_elements(device, dtype, count):
    """Threads move up to four elements at a time, as many as divide the count."""
    fused(2, lambda x: x * 2 + x, tensor(device, dtype, (count,)))


def test_rows_that_broadcast_are_read_side_by_side(device):
    x, row, column = (tensor(device, bp.float32, shape) for shape in ((6, 8), (8,), (6, 1)))
    fused(3, lambda x, row, column: (x + row) * column - row, x, row, column)


def test_more_arguments_than_a_launch_takes(device):
    tensors = [tensor(device, bp.float32, (3, 2, 2, 3))[:, :, ::-1] for _ in range(90)]

    def function(*tensors):
        total = tensors[0]
        for one in tensors[1:]:
            total = total * 0.5 + one
        return total

    fused(178, function, *tensors)


def test_a_replay_runs_the_region(device):
    function = bp.compile(lambda x: bp.tanh(x * 2) + x)
    x = tensor(device, bp.float32, (40,))
    with bp.capture(device) as recording:
        result = function(x)
    new = tensor(device, bp.float32, (40,))
    x.copy_(new)
    recording.replay()
    np.testing.assert_array_equal(result.numpy(), function(new).numpy())


SCRIPT = """
import backplane as bp
x = bp.asarray([1.0, 2.0, 3.0], dtype=bp.float32, device="cuda")
function = lambda x: bp.tanh(x * 2) + x
print(bp.compile(function)(x).tolist() == function(x).tolist())
print(bp.explain_plan(function)(x))
"""


def _run(**environment):
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    same, plan = done.stdout.split("\n", 1)
    assert same == "True"
    return plan


def test_what_was_compiled_is_kept_in_files(device, tmp_path):
    _run(BACKPLANE_CUDA_CACHE=str(tmp_path))
    (file,) = tmp_path.iterdir()
    first = file.stat().st_mtime_ns
    _run(BACKPLANE_CUDA_CACHE=str(tmp_path))
    assert file.stat().st_mtime_ns == first, "it was compiled again"
    text = file.read_text()
    for damaged in ("", text[:-10], text.replace("bp_tanh_float32", "bp_sinh_float32"), text[:-40] + "x" * 40):
        file.write_text(damaged)
        _run(BACKPLANE_CUDA_CACHE=str(tmp_path))
        assert file.read_text() == text, "a damaged file is compiled anew"
    _run(BACKPLANE_CUDA_CACHE="")
    assert [file] == list(tmp_path.iterdir())


def test_without_nvrtc_each_node_runs_alone_and_the_plan_says_why(cuda):
    if _why_not(cuda) is None:
        folders = os.environ["LD_LIBRARY_PATH"].split(":")
        without = ":".join(folder for folder in folders if not os.path.exists(os.path.join(folder, "libnvrtc.so.13")))
        plan = _run(LD_LIBRARY_PATH=without)
        if "region of" in plan:
            pytest.skip("this machine has an NVRTC that no LD_LIBRARY_PATH names")
    else:
        plan = _run()
    assert "NVRTC: not found, so regions of compiled graphs run op by op" in plan, plan
    assert "nvidia-cuda-nvrtc" in plan
