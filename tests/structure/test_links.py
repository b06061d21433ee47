"""Every relative link in a tracked Markdown page leads to a file of the tree, and every #anchor to a heading of it."""

import pathlib
import re

import pytest
import source_tree

PAGES = [name for name in source_tree.tracked_files() if name.endswith(".md")]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(page):
    """Headings as the common Markdown viewers name them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+\s+(.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    page = source_tree.ROOT / name
    dead = []
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        # Pages that codegen writes exist only in a build; ./dev docs checks those.
        if "docs/ops/" in pathlib.Path(target).as_posix():
            continue
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            dead.append(link)
    assert dead == []
