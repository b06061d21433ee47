"""The examples of the guide run as printed, in order, as one program."""

import pathlib
import re

import pytest

import backplane as bp
from backplane.torch import _version

GUIDES = pathlib.Path(__file__).resolve().parents[2] / "docs/guides"


@pytest.mark.parametrize("guide", ["pytorch.md", "pytorch_device.md"])
def test_the_examples_of_the_guide_run(tmp_path, guide):
    blocks = re.findall(r"^```python\n(.*?)^```", (GUIDES / guide).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 6
    program = tmp_path / "guide.py"
    program.write_text("\n".join(blocks))
    exec(compile(program.read_text(), str(program), "exec"), {"__name__": "guide"})


def test_other_versions_of_pytorch():
    _version.check("2.13.1+cpu")
    with pytest.raises(bp.VersionError, match=r"found PyTorch 2.9.1, expected 2.13 or newer. Fix: pip install torch==2.13.0"):
        _version.check("2.9.1")
    with pytest.warns(UserWarning, match="tested with PyTorch 2.13, found 2.14.0"):
        _version.check("2.14.0")
