"""The guide's examples run, in order, as one program."""

import pathlib
import re

GUIDE = pathlib.Path(__file__).resolve().parents[3] / "docs/guides/compile.md"


def test_the_examples_of_the_guide_run(tmp_path, capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    program = tmp_path / "guide.py"
    program.write_text("\n".join(blocks))
    exec(compile(program.read_text(), str(program), "exec"), {"__name__": "guide"})
    printed = capsys.readouterr().out.splitlines()
    stated = re.findall(r"^print\(.*\n# (.*)$", "\n".join(blocks), re.MULTILINE)
    assert stated and set(stated) <= set(printed)
