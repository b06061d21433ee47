"""Each file is one that a reader takes in at a sitting: at most 400 lines.

What a program wrote (the goldens of codegen) and what is another's (third_party/) is left out; the registry's files have
limits of their own (test_registry.py).
"""

import pathlib
import re

import pytest
import source_tree

SUFFIXES = source_tree.SOURCE_SUFFIXES | {".py", ".pyi", ".yaml", ".cmake", ".comp", ".sh", ".in"}
OTHERS = re.compile(r"third_party/|tests/codegen/golden|ops/")
LINES = 400


def judged(path):
    by_name = pathlib.PurePosixPath(path).suffix in SUFFIXES or path in ("dev", ".ci/run") or path.endswith("CMakeLists.txt")
    return by_name and not OTHERS.match(path)


def too_long(files, root=source_tree.ROOT):
    found = ((path, len((root / path).read_bytes().splitlines())) for path in files if judged(path))
    return [f"{path}: {lines} lines; split it by theme, {LINES} are the most" for path, lines in found if lines > LINES]


def test_no_file_is_too_long():
    assert too_long(source_tree.tracked_files()) == []


@pytest.mark.parametrize(("path", "lines", "caught"), [
    ("a.cpp", 400, False), ("a.cpp", 401, True), ("dev", 401, True), ("tests/t.py", 401, True), ("ops/a.yaml", 401, False),
    ("third_party/a.h", 999, False), ("tests/codegen/golden/a.c", 999, False), ("a.md", 999, False),
])  # fmt: skip
def test_a_long_file_is_caught(tmp_path, path, lines, caught):
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n" * lines)
    assert bool(too_long([path], tmp_path)) == caught
