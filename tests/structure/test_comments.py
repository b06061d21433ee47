"""A comment or a page that names a file names one that exists, so that a reader who follows it arrives."""

import pathlib
import re

import source_tree

FILES = source_tree.tracked_files()
CODE = [name for name in FILES if pathlib.PurePosixPath(name).suffix in source_tree.SOURCE_SUFFIXES | {".py", ".comp", ".cmake"}
        and not name.startswith("third_party/")]
# Every ending of a tracked path: "level.hpp", "levels/level.hpp", ...
KNOWN = {"/".join(parts[first:]) for parts in (name.split("/") for name in FILES) for first in range(len(parts))}
# Files that codegen writes, that a build installs, or that belong to another project.
ELSEWHERE = {"include/backplane/ops.hpp", "include/backplane/bp/methods.hpp", "bp/methods.hpp", "bp/ops.hpp", "share/backplane/ops.yaml", "dlpack/dlpack.h", "BackplaneConfig.cmake", "t.yaml"}
PAGES = [name for name in FILES if name.endswith(".md") and not name.startswith(("third_party/", "tests/codegen/golden"))]
# What pages tell a reader to write, or show as the output of it.
EXAMPLES = {"wave.yaml", "model.py", "first.cpp", "backplane/scalar.hpp", "include/backplane/scalar.hpp", "array_api_tests/test_sorting_functions.py", "cuda.h", "-inl.hpp"}
A_FILE = re.compile(r'(?<![\w./<"-])((?:[\w-]+/)*[\w-]+\.(?:hpp|cpp|c|h|py|cu|comp|yaml|cmake))\b(?![>"])')
COMMENT = {".py": re.compile(r"#(.*)"), ".cmake": re.compile(r"#(.*)")}
C_COMMENT = re.compile(r"(?://|/\*|^\s*\*)(.*)")


def files_named(name, text):
    """(line, file) for each file that a comment of the source names."""
    comment = COMMENT.get(pathlib.PurePosixPath(name).suffix, C_COMMENT)
    for number, line in enumerate(text.splitlines(), 1):
        if match := comment.search(line):
            yield from ((number, named) for named in A_FILE.findall(match[1]))


def files_of_page(text):
    """(line, file) of each file that stands as code in a page."""
    for number, line in enumerate(text.splitlines(), 1):
        yield from ((number, named) for code in re.findall(r"`([^`]+)`", line) for named in A_FILE.findall(code))


def unknown(name, text):
    """Names in capitals stand for a generated file's own: SYMBOL_records.c."""
    page = name.endswith(".md")
    found, known = (files_of_page(text), KNOWN | ELSEWHERE | EXAMPLES) if page else (files_named(name, text), KNOWN | ELSEWHERE)
    return [f"{name}:{number}: {named}" for number, named in found
            if named not in known and not re.search(r"\b(SYMBOL|NAMESPACE|NAME)", named)]


def test_files_that_comments_name_exist():
    assert [line for name in CODE for line in unknown(name, (source_tree.ROOT / name).read_text(encoding="utf-8"))] == []


def test_files_that_pages_name_exist():
    assert [line for name in PAGES for line in unknown(name, (source_tree.ROOT / name).read_text(encoding="utf-8"))] == []


def test_a_file_that_does_not_exist_is_caught():
    assert unknown("a.md", "as `tests/none.cpp` and `source_tree.py` say\n") == ["a.md:1: tests/none.cpp"]
    assert unknown("a.cpp", "int x;  // as in no_such_file.cpp\n") == ["a.cpp:1: no_such_file.cpp"]
    assert unknown("a.hpp", "/* see\n * core/nowhere.hpp, and source_tree.py */\n") == ["a.hpp:2: core/nowhere.hpp"]
    assert unknown("a.py", "x = 1  " "# tests/" "none.py\n") == ["a.py:1: tests/none.py"]
    assert unknown("a.cpp", '#include "anything.hpp"\n// SYMBOL_records.c\n') == []
