"""The pages for newcomers run as printed, each as one program, and print what they say. Blocks below `<!-- needs NAME -->` run where NAME is installed:
`./dev test torch` and `./dev test jax` run them."""

import contextlib
import importlib.util
import io
import pathlib
import re

import pytest

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
PAGES = ["../README.md", "start/five-minutes.md", "cookbook/README.md", "tutorials/numpy.md", "tutorials/pytorch.md", "tutorials/jax.md", "tutorials/mlx.md"]
BLOCK = re.compile(r"^(?:<!-- needs (\w+) -->\n)?```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(text, name, may_import):
    """Runs the blocks in order; returns (how many ran, the outputs that differ from the text below their block)."""
    names, printed, count, different = {"__name__": name}, "", 0, []
    for needs, language, block in BLOCK.findall(text):
        if needs and not may_import(needs):
            continue
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(block, name, "exec"), names)
            printed, count = out.getvalue(), count + 1
        elif printed.split() != block.split():
            different.append((printed, block))
    return count, different


def is_installed(name):
    return importlib.util.find_spec(name) is not None


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_as_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / page).read_text(encoding="utf-8")
    # PyTorch and JAX have runs of their own, so that one process does not hold both.
    count, different = run(text, page, may_import=lambda name: False)
    assert count >= 1 and different == []


def test_a_wrong_output_is_found():
    assert run("```python\nprint(1)\n```\n\n```text\n2\n```\n", "page", is_installed) == (1, [("1\n", "2\n")])
    assert run("<!-- needs nothing_of_this_name -->\n```python\n1 / 0\n```\n", "page", is_installed) == (0, [])
