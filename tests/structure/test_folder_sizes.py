"""A folder of sources has at most 45 files, so that a reader finds the file of a theme in one look.

The folders in EXCEPTIONS are larger. The number is their limit, which only falls: a folder that shrinks lowers its number here, and leaves the
table at 45.
"""

import collections
import pathlib

import source_tree

LIMIT = 45
EXCEPTIONS = {  # folder: (limit, reason)
    "conformance": (49, "one file per trial; they share one registration"),
    "dispatcher/call": (54, "one path from a call to its kernel, with no part that the others do not include"),
    "dispatcher/graph": (114, "to be divided into container, text, passes, plans and regions"),
    "dispatcher/memory": (74, "to be divided into tensors, storages, streams and processes"),
    "python/bindings/guards": (48, "one file per kind of state that a traced function reads"),
}
# Not folders of sources: lists of notes, in which each file is an entry, and tests, which pytest selects by name.
OTHERS = ("changes/", "docs/", "tests/", "third_party/")


def sizes(files):
    return collections.Counter(str(pathlib.PurePosixPath(name).parent) for name in files)


def too_large(found, exceptions):
    """A line for each folder over its limit, and for each exception that is too generous."""
    for folder, count in sorted(found.items()):
        limit, _ = exceptions.get(folder, (LIMIT, ""))
        if count > limit:
            yield f"{folder}: {count} files, expected at most {limit}; divide it by theme"
    for folder, (limit, _) in exceptions.items():
        if found[folder] < limit:
            yield f"{folder}: {found[folder]} files, but EXCEPTIONS allows {limit}; lower the number"


def test_a_folder_has_at_most_45_files():
    found = sizes(name for name in source_tree.tracked_files() if not name.startswith(OTHERS))
    assert list(too_large(found, EXCEPTIONS)) == []


def test_the_law_sees_what_it_forbids():
    found = sizes([f"a/{n}.cpp" for n in range(46)] + [f"b/{n}.cpp" for n in range(50)] + [f"c/{n}.cpp" for n in range(45)])
    assert [line.split(":")[0] for line in too_large(found, {"b": (50, "")})] == ["a"]
    assert [line.split(":")[0] for line in too_large(found, {"a": (46, ""), "b": (51, "")})] == ["b"]
