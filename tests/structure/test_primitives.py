"""The primitives: few enough to write a backend by, and each with a kernel in the backend that has nothing else."""

import re

import pytest
import source_tree

PLUGINS = source_tree.ROOT / "plugins"
FUNCTIONS = 25  # at most


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
    """The ops that a folder's sources name: as "bp::OP", or in a list, X(OP)."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.cpp")))
    return set(re.findall(r'"bp::(\w+)"', text)) | set(re.findall(r"\bX\((\w+)\)", text))


def test_a_backend_is_few_functions():
    assert 0 < len(set(primitives().values())) <= FUNCTIONS


@pytest.mark.parametrize("project", ["example/simulator", "minimal"])
def test_a_backend_has_a_kernel_for_every_primitive_and_for_nothing_else(project):
    assert kernels_of(PLUGINS / project / "kernels") == set(primitives())
