"""The primitives: few enough to write a backend by, and each with a kernel in the backend that has nothing else."""

import os
import pathlib
import re

import pytest
import source_tree

PLUGINS = source_tree.ROOT / "plugins"
FUNCTIONS = 25  # at most
PAGE = pathlib.Path(os.environ.get("BACKPLANE_BUILD", ""), "dispatcher/generated/docs/ops/list-of-primitives.md")


def primitives():
    """Op -> family, as the registry states them."""
    found, name = {}, None
    for _, _, line in source_tree.registry_lines():
        if op := re.match(r"  - op: ([\w.]+)\(", line):
            name = op[1]
        elif family := re.match(r"    primitive: (\w+)", line):
            found[name] = family[1]
    return found


def kernels_of(folder):
    """The ops that a folder's sources name: as "bp::OP", or as UNARY(OP) or BINARY(OP)."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.cpp")))
    return set(re.findall(r'"bp::(\w+)"', text)) | set(re.findall(r"(?<!define )\b(?:UNARY|BINARY)\((\w+)\)", text))


def test_a_backend_is_few_functions():
    assert 0 < len(set(primitives().values())) <= FUNCTIONS


@pytest.mark.parametrize("project", ["example/simulator", "minimal", "minimal_cuda", "minimal_vulkan", "minimal_webgpu", "opencl"])
def test_a_backend_has_a_kernel_for_every_primitive_and_for_nothing_else(project):
    assert kernels_of(PLUGINS / project / "kernels") == set(primitives())


@pytest.mark.skipif(not PAGE.is_file(), reason="needs a build (BACKPLANE_BUILD, set by ./dev)")
def test_the_page_has_them_all_and_says_what_they_do_to_an_element():
    families = re.split(r"^## (\w+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = {name: family for family, text in zip(families[1::2], families[2::2]) for name in re.findall(r"^### \[(\w+)\]", text, re.MULTILINE)}
    assert found == primitives()
    elementwise = "".join(text for family, text in zip(families[1::2], families[2::2]) if family in ("unary", "binary", "compare", "ternary"))
    assert elementwise.count("| one element |") == sum(family in ("unary", "binary", "compare", "ternary") for family in found.values())
