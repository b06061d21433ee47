"""Dtypes, types of arguments, shape words and builtins stand once, in the lists of dispatcher/abi; whoever needs them reads those.

A second list of names would run into one of these traces: words of one vocabulary beside each other, or a builtin's name as a
string. Tests and documents may say what they like.
"""

import pathlib
import re

import pytest
import source_tree

CODE = [name for name in source_tree.tracked_files()
        if pathlib.PurePosixPath(name).suffix in source_tree.SOURCE_SUFFIXES | {".py", ".pyi"}
        and name.startswith(("dispatcher/", "codegen/", "python/"))]
HOMES = {"dispatcher/abi/backplane/abi/base.h", "dispatcher/abi/backplane/abi/op.h", "dispatcher/abi/backplane/abi/vocabulary.h"}
TRACES = {
    "dtypes": r'"u?int16"[^"\w]{1,6}"u?int32"|"float32"[^"\w]{1,6}"float64"|int16: DType\s+int32: DType',
    "item sizes": r"\b1, 1, 2, 4, 8, 1, 2, 4, 8\b",
    "types of arguments": r'"Axis"[^"]{1,24}"Axes"[^"]{1,24}"Shape"',
    "shape words": r'"take"[^}]{0,60}\}[^"]{0,80}"take_along"',
    "builtins": r'"(expanded_axes|inverse_permutation|normalize_axes)"',
}
# Python's annotations of the types, and the errors that name them: another vocabulary, as long as the first.
EXEMPT = {("types of arguments", "python/bindings/ops/convert.cpp")}


def second_homes(what, name, text):
    if name in HOMES or (what, name) in EXEMPT:
        return []
    return [f"{name}:{text.count(chr(10), 0, found.start()) + 1}: {found[0]}" for found in re.finditer(TRACES[what], text)]


@pytest.mark.parametrize("what", TRACES)
def test_a_vocabulary_stands_once(what):
    found = [line for name in CODE for line in second_homes(what, name, (source_tree.ROOT / name).read_text(encoding="utf-8"))]
    assert found == []


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("dtypes", 'names[] = {"int8", "int16",   "int32"};'),
        ("item sizes", "kSize[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2};"),
        ("types of arguments", '{"Axis", BP_TYPE_AXIS}, {"Axes", BP_TYPE_AXES}, {"Shape", BP_TYPE_SHAPE}'),
        ("shape words", '{"take", "ttA"},\n {"take_along", "ttA"}'),
        ("builtins", '{"expanded_axes", 2, 2}'),
    ],
)
def test_a_second_list_is_caught(what, text):
    assert len(second_homes(what, "codegen/a.cpp", text)) == 1
