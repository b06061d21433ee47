"""backplane bridge torch: the parts of a plugin that PyTorch can use, and the other parts with reasons."""

import os
import pathlib
import subprocess
import sys

import pytest

import backplane as bp

PLUGINS = {info.name: info.path for info in bp.plugins()}


def printed(*words):
    return subprocess.run([sys.executable, "-m", "backplane.torch", *words], capture_output=True, text=True, env=os.environ)


@pytest.mark.skipif("backplane_collectives" not in PLUGINS, reason="the plugin backplane_collectives is not built")
def test_ops_of_a_plugin():
    done = printed("bridge", PLUGINS["backplane_collectives"])
    assert done.returncode == 0, done.stderr
    operators, left_out = done.stdout.split("ops without an operator")
    assert operators.startswith("backplane_collectives ") and "  collective.all_reduce(Tensor x, " in operators
    assert "reverse mode: x " in operators and "kernel: " in operators
    left_out = [line for line in left_out.partition("devices")[0].splitlines() if line.startswith("  ") and line != "  none"]
    assert all(": " in line for line in left_out)
    ops = next(info.ops for info in bp.plugins() if info.name == "backplane_collectives") or [f"collective::{name}" for name in dir(bp.ops.collective)]
    assert all(f"  {op.replace('::', '.')}(" in operators or any(op in line for line in left_out) for op in ops)


def test_devices_of_a_plugin():
    done = printed("bridge", PLUGINS["backplane_cpu"])
    assert done.returncode == 0, done.stderr
    assert "  cpu: host processor\n      ops of the registry: " in done.stdout and "operators, as torch.ops.NAMESPACE.NAME\n  none" in done.stdout


def test_what_is_not_a_plugin_is_refused(tmp_path):
    path = pathlib.Path(tmp_path, "plain.so")
    path.write_text("text")
    done = printed("bridge", str(path))
    assert done.returncode == 1 and "backplane: " in done.stderr and "Traceback" not in done.stderr
    assert printed("bridge").returncode == 2
