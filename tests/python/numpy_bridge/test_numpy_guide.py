"""The examples of the guide run as printed, in order, as one program."""

import pathlib
import re

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/guides/numpy.md"


def test_the_examples_of_the_guide_run():
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    exec(compile("\n".join(blocks), "numpy.md", "exec"), {"__name__": "guide"})
