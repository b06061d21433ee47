"""The first steps in Python run as printed, in order, as one program."""

import pathlib
import re

import backplane as bp

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/start/python.md"


def test_the_examples_of_the_page_run(simulator, tmp_path, monkeypatch, capsys):
    text = re.sub(r"^bp.load_plugin\(.*\)$", "", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)  # it is loaded
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 7
    program = tmp_path / "start.py"
    program.write_text("\n".join(blocks))
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "start"}
    exec(compile(program.read_text(), str(program), "exec"), names)
    assert names["accuracy"].item() > 0.9 and set(names["weights"]) == {"w1", "b1", "w2", "b2"}
    assert isinstance(names["weights"]["w1"], bp.Tensor) and "bp::sin" in capsys.readouterr().out
