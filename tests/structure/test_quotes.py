"""Code on a page that says where it is from, <!-- FILE --> above the block, stands in that file as it is quoted.

The guide to backends quotes all of its C++ and CMake so: what it shows is built and tried by the tests of that file.
"""

import re

import pytest
import source_tree

PAGES = [name for name in source_tree.tracked_files() if name.endswith(".md")]
ALL_QUOTED = "docs/guides/backend.md"
BLOCK = re.compile(r"^(?:<!-- ([\w./-]+) -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """(the file that a block is from or "", its language, its text) for each block."""
    return BLOCK.findall((source_tree.ROOT / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", [page for page in PAGES if any(source for source, _, _ in blocks(page))])
def test_quotes_are_true(page):
    changed = [source for source, _, text in blocks(page) if source and text not in (source_tree.ROOT / source).read_text(encoding="utf-8")]
    assert changed == []


def test_the_guide_to_backends_quotes_all_of_its_code():
    found = blocks(ALL_QUOTED)
    assert sum(1 for source, _, _ in found if source) > 8
    assert [text for source, language, text in found if language in ("cpp", "c", "cmake", "yaml") and not source] == []


def test_a_block_is_found_with_its_source():
    assert BLOCK.findall("a\n<!-- x/y.cpp -->\n```cpp\nint i;\n```\nb\n```\nplain\n```\n") == [("x/y.cpp", "cpp", "int i;\n"), ("", "", "plain\n")]


def test_commands_on_the_pages_build_without_make():
    """CMake's default generator needs make; a reader may have Ninja alone."""
    needs = "command -v make >/dev/null || export CMAKE_GENERATOR=Ninja"
    found = [(page, text) for page in PAGES for _, language, text in blocks(page) if language == "sh" and "cmake -S" in text]
    assert len(found) > 8
    assert [page for page, text in found if text.find(needs) not in range(text.find("cmake -S"))] == []
