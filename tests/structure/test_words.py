"""Words that must not stand where they would mean a broken rule of the house.

The core names no op, backend or device API: everything that it runs was plugged in. Nothing tracked is left unfinished, and
no name says only that things were put together.
"""

import pathlib
import re

import source_tree

FILES = source_tree.tracked_files()
CODE = [name for name in FILES if pathlib.PurePosixPath(name).suffix in source_tree.SOURCE_SUFFIXES | {".py", ".cmake"}]
NO_TEXT = {".png", ".svg", ".npy", ".npz", ".safetensors", ".so"}
TEXTS = [name for name in FILES if not name.startswith("third_party/") and pathlib.PurePosixPath(name).suffix not in NO_TEXT]
CORE = [name for name in CODE if name.startswith("dispatcher/") and not name.startswith("dispatcher/cli/")]
DEVICE_API = re.compile(r"\b(cuda|vulkan|openblas|cublas|rocm|metal)\w*", re.IGNORECASE)
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
LOCKS = {"dispatcher/memory/process/lock.hpp", "dispatcher/memory/process/lock.cpp"}
PLAIN_LOCK = re.compile(r"\bstd::(\w*mutex|\w*lock|once_flag|call_once|condition_variable\w*|\w*semaphore|latch|barrier)\b")
# Words of our own where the field has one that every reader knows. What the right column says is what to write.
OWN_WORDS = {
    r"\b(short|long) way\b": "fast path, slow path",
    r"\b(spend(s|ing)?|spent)\b|call_op_spending": "donate",
    r"\btold\b|\btelling\b|stop_telling": "reported, asked, given",
    r"\bone_form\b": "same_meta: shape and dtype",
    r"\balone\(": "uniquely_owned",
    r"\bgive_history\b": "attach_history",
    r"\bdefin\w+ anew\b": "redefined",
    r"\bwork(s|ed|ing)? out\b": "computed",
    r"\bshapely\b": "what it is",
    r"\bmend(s|ed|ing)?\b": "fix; in an error, Fix: ...",
    r"\bis no (matrix|vector)\b": "is not a matrix",
    r"\bhas not full rank\b": "is rank-deficient",
}
EMPTY_NAMES = {"utils", "util", "common", "misc", "helper", "helpers", "manager"}
# The one device that the core knows by name is the host, where numbers and tensors without a device live. Of the ops, it
# knows those into which codegen wraps cotangents (docs/reference/ops-yaml.md).
KNOWN_TO_THE_CORE = {"sum_to", "cast", "real"}


def lines_with(pattern, files):
    for name in files:
        for number, line in enumerate((source_tree.ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
            if match := pattern.search(line):
                yield f"{name}:{number}: {match[0]}"


def test_the_core_names_no_device_api():
    core = [name for name in CODE if name.startswith("dispatcher/")]
    assert list(lines_with(DEVICE_API, core)) == []


def test_the_core_names_no_op():
    """As a string: an identifier `add` may be a function of the core's own."""
    names = source_tree.op_names() - KNOWN_TO_THE_CORE
    named = re.compile(r'"bp::(\w+)"')
    assert [text for text in lines_with(named, CORE) if named.search(text)[1] in names] == []


def test_a_fork_knows_every_lock_of_the_host():
    """memory/process/lock.hpp tells why; a guard is for a lock of that kind."""
    host = [name for name in CODE if name.startswith("dispatcher/") and name not in LOCKS]
    assert list(lines_with(PLAIN_LOCK, host)) == []


def test_nothing_is_left_unfinished():
    assert list(lines_with(UNFINISHED, CODE + ["dev"])) == []


def test_no_merge_is_left_half_way():
    assert list(lines_with(re.compile(r"^(<{7}|>{7}) "), TEXTS)) == []


def own_words(text):
    """Whatever their case, and as words of a name too: HowToSpend."""
    apart = text + " " + re.sub(r"(?<=[a-z])(?=[A-Z])|[_(]", " ", text)
    return [f"{match[0]} (write {better})" for own, better in OWN_WORDS.items() if (match := re.search(own, apart, re.IGNORECASE))]


def test_words_are_those_of_the_field():
    found = [f"{name}:{number}: {word}" for name in TEXTS if name != "tests/structure/test_words.py"
             for number, line in enumerate((source_tree.ROOT / name).read_text(encoding="utf-8").splitlines(), 1) for word in own_words(line)]
    assert found == []


def test_a_word_of_our_own_is_caught():
    for text in ("// Told of it.", "void spend_it();", "TEST(A, SaysHowToMendIt)", "x is no matrix", "  MEND=1", "the Long Way"):
        assert len(own_words(text)) == 1, text
    assert own_words("cannot tell, amends, a wayward vector") == []


def test_file_names_say_what_is_in_them():
    assert [name for name in FILES if pathlib.PurePosixPath(name).stem in EMPTY_NAMES] == []


def test_every_source_opens_with_what_it_owns():
    openings = ("//", "/*", "#", '"""', "--")
    bare = []
    for name in CODE:
        text = (source_tree.ROOT / name).read_text(encoding="utf-8").lstrip()
        if text and not text.startswith(openings):
            bare.append(name)
    assert bare == []
