"""Every relative link in a tracked Markdown page leads to a file of the tree, and every #anchor to a heading of it."""

import importlib.util
import sys

import pytest
import source_tree

PAGES = [name for name in source_tree.tracked_files() if name.endswith(".md")]


def load_assemble():
    sys.path.insert(0, str(source_tree.ROOT / "docs"))  # for the modules beside it
    spec = importlib.util.spec_from_file_location("assemble", source_tree.ROOT / "docs/assemble.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


assemble = load_assemble()


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    in_builds_only = [source_tree.ROOT / "docs" / folder for folder in assemble.GENERATED]  # ./dev docs checks those
    assert assemble.dead_links(source_tree.ROOT / name, lambda target: any(map(target.is_relative_to, in_builds_only))) == []


def test_a_dead_link_is_found(tmp_path):
    (tmp_path / "there.md").write_text("# A heading, here\n")
    page = tmp_path / "page.md"
    page.write_text("[a](there.md) [b](there.md#a-heading-here) [c](gone.md) [d](there.md#gone) [e](https://example.org)\n")
    assert assemble.dead_links(page) == ["gone.md", "there.md#gone"]
