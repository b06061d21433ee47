"""The performance page says what the files in bench/figures/ hold."""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

import figures  # noqa: E402
import report  # noqa: E402


def test_the_page_is_made_from_the_files():
    text = figures.PAGE.read_text(encoding="utf-8")
    assert text == figures.page(figures.read()), "run: python bench/figures.py"
    assert len(text.splitlines()) <= 120


def test_a_section_comes_back_as_it_was_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "FOLDER", tmp_path)
    monkeypatch.setattr(figures, "PAGE", tmp_path / "page.md")
    (tmp_path / "notes.md").write_text("## Notes\n\n- One.\n")
    rows = [report.Row("M[0]", 40.0, "ns", 0.1, 500.0, "torch"), report.Row("x + y", 40.0, "ns", 1, 20.0, "numpy"), report.Row("size", 3.0, "MB")]
    kernels = "| case | size | 1 thread |\n| --- | --- | --- |\n| add | 1 | 8 µs, 0.5 numpy, 0.2 floor |"
    for title, text in ((figures.CALLS, report.markdown_table(rows)), ("Kernels", f"Text of\ntwo lines.\n\n{kernels}")):
        figures.keep("A (one)", title, "Measured on 2026-01-02: A.", text)
        figures.keep("B", title, "Measured on 2026-01-01: B.", text)
    found = figures.read()
    assert list(found) == ["A (one)", "B"]
    assert json.loads((tmp_path / "a-one.json").read_text())["sections"]["Kernels"]["parts"][1]["rows"] == [["add", "1", "8 µs, 0.5 numpy, 0.2 floor"]]
    assert f"Text of\ntwo lines.\n\n{kernels}\n" in figures.details("A (one)", found["A (one)"])
    page = (tmp_path / "page.md").read_text()
    assert "| Overhead of a call | [A (one)](../../bench/figures/a-one.json) | 2026-01-02 | 2 | 0.08 |  |  | 1 of 2 |" in page
    assert "| Kernels | [B](../../bench/figures/b.json) | 2026-01-01 | 0.5 |  |  |  |  |" in page
    assert "| x + y | B | 2 | ≤ 1 |" in page and "## Calls: A (one)" in page and page.endswith("- One.\n")


def test_compiled_functions_are_compared_case_by_case():
    section = {"measured": "", "parts": [{"columns": ["case", "ours", "torch.compile", "jax.jit"], "rows": [["a", "1", "2", "4"], ["b", "2", "1", "4"]]}]}
    assert figures.ratios(section) == {"torch": [0.5, 2.0], "jax": [0.25, 0.5]}
