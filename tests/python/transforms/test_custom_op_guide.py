"""The Python of the guide to custom ops runs, opcheck finds nothing wrong with its ops, and its C++ is the example's."""

import pathlib
import re

import backplane as bp

ROOT = pathlib.Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs/guides/custom_op.md"


def test_the_kernel_is_that_of_the_example():
    (kernel,) = (block for block in re.findall(r"```cpp\n(.*?)```", GUIDE.read_text(), re.DOTALL) if "struct Kernel" in block)
    assert (ROOT / "plugins/example/axpby/plugin.cpp").read_text().endswith(kernel)


def test_the_snippets_run_in_order(capsys):
    text = GUIDE.read_text()
    text = text[text.index("## In Python: custom_op") :]
    names = {}
    for snippet in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(snippet, str(GUIDE), "exec"), names)
    printed = capsys.readouterr().out
    report = re.findall(r"```\n(opcheck .*?)```", text, re.DOTALL)
    assert len(report) == 1 and report[0] in printed
    assert bp.opcheck(names["axpby"], (bp.ones((3, 2)), bp.ones(2)), {"alpha": -2.0})
