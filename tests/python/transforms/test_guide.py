"""The guide's examples run, in order, as one program."""

import pathlib
import re

GUIDE = pathlib.Path(__file__).resolve().parents[3] / "docs/guides/transforms.md"


def test_the_examples_of_the_guide_run():
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    exec(compile("\n".join(blocks), str(GUIDE), "exec"), {})
