"""The tutorial runs as printed, with the blocks that need this library."""

import pathlib
import re

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/tutorials/jax.md"


def test_the_tutorial_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    assert text.count("<!-- needs jax -->") >= 1
    names = {"__name__": "tutorial"}
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
