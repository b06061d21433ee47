"""The primitives: few enough to write a backend by, and each with a kernel in the backend that has nothing else."""

import re

import source_tree

KERNELS = source_tree.ROOT / "plugins/example/simulator/kernels"
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


def kernels_of_the_simulator():
    return {name for path in KERNELS.glob("*.cpp") for name in re.findall(r'"bp::(\w+)"', path.read_text(encoding="utf-8"))}


def test_a_backend_is_few_functions():
    assert 0 < len(set(primitives().values())) <= FUNCTIONS


def test_the_simulator_has_a_kernel_for_every_primitive_and_for_nothing_else():
    assert kernels_of_the_simulator() == set(primitives())
