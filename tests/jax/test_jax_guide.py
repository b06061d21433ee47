"""The examples of the guide run as printed, in order, as one program."""

import pathlib
import re

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/guides/jax.md"


def test_the_examples_of_the_guide_run(tmp_path, monkeypatch):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "guide.py"
    program.write_text("\n".join(blocks))
    exec(compile(program.read_text(), str(program), "exec"), {"__name__": "guide"})
