"""mypy --strict and pyright over the examples, and over the idioms of tests/python/idioms but for those that they are known not to see.

pyright is basedpyright, which brings it as a wheel, in pyright's own mode.
"""

import json
import os
import pathlib
import re
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
# A decorator without annotations gives it dim=: pyright looks past that.
NOT_SEEN_BY_PYRIGHT = {"v[:5].median(dim=0).values"}


def errors(*paths):
    environment = {**os.environ, "MYPYPATH": str(PACKAGE)}
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--ignore-missing-imports", "--no-incremental", *map(str, paths)]
    return [line for line in subprocess.run(command, env=environment, capture_output=True, text=True).stdout.splitlines() if ": error:" in line]


def errors_of_pyright(folder, *paths):
    settings = {
        "include": [str(path) for path in paths], "extraPaths": [str(PACKAGE)], "typeCheckingMode": "standard", "reportUnusedExpression": "none",
        "reportMissingImports": "none", "reportMissingModuleSource": "none",
    }  # fmt: skip
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "-p", str(folder / "pyrightconfig.json"), "--pythonpath", sys.executable, "--outputjson"]
    answer = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    assert answer["summary"]["filesAnalyzed"] == len(paths)
    return [f"{one['file']}:{one['range']['start']['line'] + 1}: {one['message']}" for one in answer["generalDiagnostics"]]


EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples(example):
    assert errors(example) == []


def test_examples_under_pyright(tmp_path):
    assert errors_of_pyright(tmp_path, *EXAMPLES) == []


def test_the_guide_to_moving(tmp_path):
    """backplane.compat.numpy and backplane.compat.torch under the names of the guide."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/guides/moving.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    program = tmp_path / "moving.py"
    program.write_text("\n".join(blocks[:2]))
    assert errors(program) == []


@pytest.fixture
def idioms(tmp_path, monkeypatch):
    """Writes the idioms into a file, but for those named."""
    monkeypatch.syspath_prepend(str(IDIOMS))
    from typed_idioms import codes, typed

    def write(but):
        assert set(codes()) >= but and len(set(codes()) - but) >= 600
        path = tmp_path / "idioms.py"
        path.write_text(typed(but))
        return path

    return write


def test_idioms(idioms):
    assert errors(idioms(NOT_SEEN)) == []


def test_idioms_under_pyright(idioms, tmp_path):
    assert errors_of_pyright(tmp_path, idioms(NOT_SEEN | NOT_SEEN_BY_PYRIGHT)) == []


def test_a_wrong_type_is_seen(tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text("import backplane as bp\n\n\ndef wrong(x: bp.Tensor) -> bp.Tensor:\n    return bp.reshape(x, 'rows')\n")
    assert len(errors(path)) == 1 and len(errors_of_pyright(tmp_path, path)) == 1
