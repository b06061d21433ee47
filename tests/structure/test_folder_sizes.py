"""A folder of sources has at most 45 files, so that a reader finds the file of a theme in one look."""

import collections
import pathlib

import source_tree

LIMIT = 45
# Not folders of sources: lists of notes, in which each file is an entry, and tests, which pytest selects by name.
OTHERS = ("changes/", "docs/", "tests/", "third_party/")


def sizes(files):
    return collections.Counter(str(pathlib.PurePosixPath(name).parent) for name in files)


def too_large(found):
    """A line for each folder over the limit."""
    for folder, count in sorted(found.items()):
        if count > LIMIT:
            yield f"{folder}: {count} files, expected at most {LIMIT}; divide it by theme"


def test_a_folder_has_at_most_45_files():
    found = sizes(name for name in source_tree.tracked_files() if not name.startswith(OTHERS))
    assert list(too_large(found)) == []


def test_the_law_sees_what_it_forbids():
    found = sizes([f"a/{n}.cpp" for n in range(46)] + [f"b/{n}.cpp" for n in range(45)])
    assert [line.split(":")[0] for line in too_large(found)] == ["a"]
