"""One header per source of the dispatcher: whoever looks for a function finds its declaration where its definition is.

A source begins with its header: the one of its own name, in its folder or in a lower one that needs it, or a public
one. What it defines for others, members of classes apart, is declared there or in a public header that it includes. The
second half asks the built objects (BACKPLANE_BUILD, set by ./dev), and is skipped without a build.
"""

import functools
import os
import pathlib
import re
import shutil
import subprocess

import pytest
import source_tree
from test_includes import LAYERS

FOLDERS = (*LAYERS, "cli")
SOURCES = [name for name in source_tree.tracked_files()
           if re.fullmatch(rf"dispatcher/({'|'.join(FOLDERS)})(/\w+)?/\w+\.cpp", name) and not name.endswith("/main.cpp")]
# Functions that a list of backplane/abi/vocabulary.h declares, all in one header, and several sources define.
LISTED = {"builtin": "record/builtins.hpp", "shape_words": "record/shape_words.hpp"}
BUILD = os.environ.get("BACKPLANE_BUILD", "")
OBJECTS = pathlib.Path(BUILD, "dispatcher/CMakeFiles/backplane_objects.dir")


def own_header(source, files):
    """The header of the source's name, as it is included, or None."""
    path = pathlib.PurePosixPath(source)
    folder, part = path.parts[1], path.parent.relative_to("dispatcher")
    lower = FOLDERS[: FOLDERS.index(folder)]
    places = re.compile(rf"({'|'.join(map(str, (part, folder, *lower)))})(/\w+)?/{path.stem}\.hpp")
    names = sorted(name.removeprefix("dispatcher/") for name in files if name.startswith("dispatcher/"))
    found = [name for name in names if places.fullmatch(name)]
    return next((name for name in found if name.startswith(f"{part}/")), found[0] if found else None)


def complaint(source, text, files):
    """The fault of the source's first include, or None."""
    included = source_tree.INCLUDE.search(text)
    first = included[2] if included else None
    if own := own_header(source, files):
        return None if first == own else f"{source}: begins with {first}; its own header is {own}"
    if first and (re.fullmatch(r"backplane/\w+\.hpp", first) or first in LISTED.values()):
        return None
    return f"{source}: has no header; begin with the one that declares what it defines"


def test_each_source_begins_with_its_header():
    files = set(source_tree.tracked_files())
    read = ((source, (source_tree.ROOT / source).read_text(encoding="utf-8")) for source in SOURCES)
    assert [text for source, lines in read if (text := complaint(source, lines, files))] == []


@pytest.mark.parametrize(("source", "text", "wrong"), [
    ("dispatcher/call/a.cpp", '#include "call/a.hpp"\n', False),
    ("dispatcher/call/a.cpp", '#include <vector>\n#include "call/a.hpp"\n', True),
    ("dispatcher/call/b.cpp", '#include "record/b.hpp"\n', False),
    ("dispatcher/record/a.cpp", '#include "call/a.hpp"\n', True),
    ("dispatcher/call/c.cpp", '#include "backplane/op.hpp"\n', False),
    ("dispatcher/call/c.cpp", '#include "call/a.hpp"\n', True),
    ("dispatcher/call/a.cpp", '#include "backplane/op.hpp"\n', True),
    ("dispatcher/call/parts/d.cpp", '#include "call/parts/d.hpp"\n', False),
    ("dispatcher/call/parts/d.cpp", '#include "call/a.hpp"\n', True),
    ("dispatcher/call/c.cpp", "int x;\n", True),
])  # fmt: skip
def test_a_first_include_is_judged(source, text, wrong):
    assert bool(complaint(source, text, {"dispatcher/call/a.hpp", "dispatcher/record/b.hpp", "dispatcher/call/parts/d.hpp"})) == wrong


def name_parts(symbol):
    """["backplane", "core", "call"] of "backplane::core::call(...)"."""
    while symbol != (symbol := re.sub(r"<[^<>]*>", "", symbol)):
        pass
    return symbol.split("(")[0].split("[abi:")[0].split()[-1].split("::")


def defined(object_file):
    """What an object defines for others, by the parts of its name; members of classes, whose names are capital, apart."""
    listed = subprocess.run(["nm", "--demangle", "--defined-only", "--extern-only", str(object_file)], check=True,
                            capture_output=True, text=True)  # fmt: skip
    symbols = re.findall(r"^[0-9a-f]+ [TDBR] (.+)$", listed.stdout, re.MULTILINE)
    names = {tuple(name_parts(symbol)) for symbol in symbols if not symbol.startswith("_")}
    return sorted(parts for parts in names if not any(part[0].isupper() for part in parts[:-1]))


@functools.cache
def declarations(source):
    """The code of the source's own header, and of the public ones that the two include."""
    own = own_header(source, set(source_tree.tracked_files()))
    headers = [f"dispatcher/{own}"] if own else []
    included = {include.target for include in source_tree.includes([source, *headers])}
    headers += [name for name in included if name and name.startswith("dispatcher/include/")]
    texts = ((source_tree.ROOT / name).read_text(encoding="utf-8") for name in headers)
    return re.sub(r"//.*|#include.*", "", "\n".join(texts))


@functools.cache
def batches():
    """The sources of every object that is compiled from a batch (BACKPLANE_UNITY); `#include` lines say them."""
    files = sorted(pathlib.Path(OBJECTS, "Unity").glob("unity_*_cxx.cxx"))
    return {pathlib.Path(f"{file}.o"): re.findall(r'^#include ".*/(dispatcher/[\w/]+\.cpp)"$', file.read_text(encoding="utf-8"),
                                                 re.MULTILINE) for file in files}  # fmt: skip


def object_and_sources(source):
    """The object that holds what the source defines, and the sources that it was compiled from."""
    own = pathlib.Path(OBJECTS, source.removeprefix("dispatcher/") + ".o"), [source]
    return next((batch for batch in batches().items() if source in batch[1]), own)


def says(source, name):
    return re.search(rf"\b{name}\b", (source_tree.ROOT / source).read_text(encoding="utf-8")) is not None


@pytest.mark.skipif(not BUILD or shutil.which("nm") is None, reason="needs a build (BACKPLANE_BUILD), and nm")
@pytest.mark.parametrize("source", [name for name in SOURCES if "/cli/" not in name])
def test_what_a_source_defines_is_declared_in_its_header(source):
    built, sources = object_and_sources(source)
    # Of a batch's functions, each is asked at every source that says its name: one of them defines it.
    found = [parts for parts in defined(built) if len(sources) == 1 or says(source, parts[-1])]
    vocabulary = (source_tree.ROOT / "dispatcher/abi/backplane/abi/vocabulary.h").read_text(encoding="utf-8")
    listed = [parts for parts in found if parts[-2:-1] and parts[-2] in LISTED and re.search(rf"\b{parts[-1]}\b", vocabulary)]
    hidden = [parts for parts in found if parts not in listed
              and not any(says(each, parts[-1]) and re.search(rf"\b{parts[-1]}\b", declarations(each)) for each in sources)]
    assert ["::".join(parts) for parts in hidden] == []


@pytest.mark.parametrize(("symbol", "parts"), [
    ("backplane::core::call(int, std::vector<int>)", ["backplane", "core", "call"]),
    ("backplane::core::Level::end()", ["backplane", "core", "Level", "end"]),
    ("backplane::explain[abi:cxx11](unsigned int)", ["backplane", "explain"]),
    ("backplane::core::counters", ["backplane", "core", "counters"]),
    ("bool backplane::core::call_fast<(backplane::core::FastPath)1>(int)", ["backplane", "core", "call_fast"]),
])  # fmt: skip
def test_a_symbol_is_taken_apart(symbol, parts):
    assert name_parts(symbol) == parts
