"""A vendor's first kernel can be checked: opcheck asks of a device no op but the one that it checks.

The device is that of a released binary (tests/abi/released), which has a single kernel.
"""

import pathlib
import platform
import shutil

import backplane as bp
import pytest

BINARY = pathlib.Path(__file__).parents[1] / "abi/released/0_2/device_c_gcc.so"


@pytest.fixture
def device(tmp_path):
    if platform.machine() != "x86_64":
        pytest.skip(f"the released files are of x86_64, this machine is {platform.machine()}")
    copy = tmp_path / BINARY.name
    shutil.copy(BINARY, copy)
    copy.chmod(0o755)
    name = bp.load_plugin(copy).name
    yield name
    bp.unload_plugin(name)


def test_the_only_kernel_of_a_device_is_checked(device):
    report = bp.opcheck(f"{device}::scale", (bp.asarray([[1.0, 2.0], [3.0, 4.0]]),), devices=device)
    verdicts = {row.check: row for row in report.rows}
    assert bool(report), str(report)
    assert {"call", "mutation", "aliasing"} <= {name for name, row in verdicts.items() if row.verdict == "passed"}
    assert verdicts["layouts"].verdict == "not stated" and "bp::copy" in verdicts["layouts"].text
