"""Sources of codegen, the core, the command and the Python module are compiled several at a time (BACKPLANE_UNITY)."""

import re

import pytest
import source_tree

TARGETS = {"codegen": ["codegen"], "core": ["dispatcher"], "command": ["dispatcher/cli", "conformance"], "python": ["python/bindings"]}
CONSTANT = re.compile(r"^(?:inline |static )*constexpr [\w:<>, *]+?\b(k[A-Z]\w*)\b(?:\[\w*\])?\s*[={]", re.M)


def constants(target, suffix):
    found = {}
    for folder in TARGETS[target]:
        for path in sorted((source_tree.ROOT / folder).rglob(f"*{suffix}")):
            name = path.relative_to(source_tree.ROOT).as_posix()
            if "include/backplane" in name or (target == "core" and "/cli/" in name):  # for plugins; the command's
                continue
            for constant in CONSTANT.findall(path.read_text(encoding="utf-8")):
                found.setdefault(constant, []).append(name)
    return found


@pytest.mark.parametrize("target", TARGETS)
def test_no_file_has_a_constant_of_the_name_of_a_headers(target):
    """In a batch it would stand for the header's in all files behind it, and the compiler says nothing."""
    own, shared = constants(target, ".cpp"), constants(target, ".hpp")
    assert own
    assert {name: own[name] + shared[name] for name in own if name in shared} == {}
