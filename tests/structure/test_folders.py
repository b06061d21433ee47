"""Folders do not include each other: whoever reads one knows which he has to know before.

A folder and what lies below it count as one here: a project's top file names its parts, which include its headers.
"""

import pathlib

import pytest
import source_tree


def folder(path):
    return pathlib.PurePosixPath(path).parent


def nested(a, b):
    return a in b.parents or b in a.parents


def steps(includes):
    """Folder -> {folder that it includes: one #include that does}."""
    found = {}
    for include in includes:
        if include.target is None:
            continue
        source, target = folder(include.source), folder(include.target)
        if source != target and not nested(source, target):
            found.setdefault(source, {}).setdefault(target, f"{include.source}:{include.line}")
    return found


def reached(graph, start):
    seen, open_ = set(), [start]
    while open_:
        for target in graph.get(open_.pop(), {}):
            if target not in seen:
                seen.add(target)
                open_.append(target)
    return seen


def cycles(includes):
    """(folder, folder, #include) of each step that a way leads back from."""
    graph = steps(includes)
    far = {start: reached(graph, start) for start in graph}
    return [(source, target, where) for source in graph for target, where in graph[source].items() if source in far.get(target, ())]


def test_no_two_folders_include_each_other():
    found = cycles(source_tree.includes(source_tree.tracked_files()))
    assert [f"{where}: {source} includes {target}, which leads back" for source, target, where in found] == []


@pytest.mark.parametrize(("sources", "caught"), [
    ({"a/x.hpp": "b/y.hpp", "b/y.hpp": "a/x.hpp"}, 2),
    ({"a/x.hpp": "b/y.hpp", "b/y.hpp": "c/z.hpp", "c/z.hpp": "a/w.hpp", "a/w.hpp": None}, 3),
    ({"a/x.hpp": "b/y.hpp", "b/y.hpp": "c/z.hpp", "c/z.hpp": None, "a/w.hpp": "c/z.hpp"}, 0),
    ({"a/x.hpp": "a/b/y.hpp", "a/b/y.hpp": "a/z.hpp", "a/z.hpp": None}, 0),
    ({"a/b/x.hpp": "a/c/y.hpp", "a/c/y.hpp": "a/b/z.hpp", "a/b/z.hpp": None}, 2),
])  # fmt: skip
def test_a_cycle_is_caught(tmp_path, sources, caught):
    for path, included in sources.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f'#include "{included}"\n' if included else "")
    assert len(cycles(source_tree.includes(sources, tmp_path))) == caught
