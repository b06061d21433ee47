"""The examples of the guides, run from top to bottom."""

import pathlib
import re

import pytest

GUIDES = pathlib.Path(__file__).parents[2] / "docs" / "guides"


@pytest.mark.parametrize("name", ["dimensions", "distributed", "distributions", "models", "seeing", "solvers", "training"])
def test_the_examples_of_a_guide_run(name, tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", (GUIDES / f"{name}.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    program = tmp_path / "guide.py"
    program.write_text("\n".join(blocks))
    exec(compile(program.read_text(), str(program), "exec"), {"__name__": "guide"})
    assert len(blocks) > 4
