"""mypy --strict over the examples, and over the idioms of tests/python/idioms but for those that it is known not to see."""

import os
import pathlib
import subprocess
import sys

import backplane as bp
import pytest

ROOT = pathlib.Path(__file__).parents[2]
IDIOMS = ROOT / "tests" / "python" / "idioms"
PACKAGE = pathlib.Path(bp.__file__).parents[1]

# Python's types as dtypes, arguments that a form in Python takes, results whose type depends on an argument, and x.grad, which may be None.
NOT_SEEN = {
    "xp.array([1, 2, 3], dtype=float)", "a.astype(int)", "i.astype(float)", "xp.dot([1, 2], [3, 4])", "torch.bernoulli(torch.ones(3))",
    "b.tile(2, 1)", "torch.cummax(v, 0).values", "torch.sort(v).values",
    "torch.roll(a, shifts=1, dims=0)", "x = torch.ones(3, requires_grad=True); (2 * x).sum().backward(); x.grad.zero_(); x.grad", "xp.where(t)[0]",
}  # fmt: skip


def errors(*paths):
    environment = {**os.environ, "MYPYPATH": str(PACKAGE)}
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--ignore-missing-imports", "--no-incremental", *map(str, paths)]
    return [line for line in subprocess.run(command, env=environment, capture_output=True, text=True).stdout.splitlines() if ": error:" in line]


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples(example):
    assert errors(example) == []


def test_idioms(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(IDIOMS))
    from typed_idioms import codes, typed

    assert set(codes()) >= NOT_SEEN and len(set(codes()) - NOT_SEEN) >= 600
    path = tmp_path / "idioms.py"
    path.write_text(typed(NOT_SEEN))
    assert errors(path) == []
