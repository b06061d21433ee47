"""No list of op names outside kernel rows: what a part of the tree must know of an op is a fact of its entry (`faults`, `region`,
`tags`, `primitive`), which the record and the nodes of graphs have.

A kernel row names its op. Code that calls an op names it in `find_op`, `run_op`, `call_op` or `call_view`.
"""

import re

import pytest
import source_tree

WATCHED = ("dispatcher/", "backends/", "plugins/", "sdk/", "conformance/")
NAME = re.compile(r'"bp::\w+(?:\.\w+)?"')
CALL = re.compile(r'\b(?:find_op|run_op|call_op|call_view|run_one|op_of)\(\s*"bp::\w+(?:\.\w+)?"')
# The op of a call is compared with a name, full or short.
COMPARED = re.compile(r'\b(?:op|op_name\(\)|row\(\)\.name)\s*[!=]=\s*"(?:bp::)?(\w+)"')

# The reductions of collectives are words of their own, which users pass: op="max".
EXEMPT = {"plugins/collectives/call.cpp"}


def is_row_file(name):
    """Kernels, tests, and the benchmarks and laws that call ops by name."""
    return any(part in name for part in ("/kernels/", "/tests/", "/laws/")) or name.endswith(("/kernels.cpp", "/kernels.cu"))


def named_ops(name, text):
    """Lines that name ops where no kernel row and no call does."""
    names = source_tree.op_names()
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("//")[0]
        if not is_row_file(name) and NAME.search(CALL.sub("", code)):
            found.append(f"{name}:{number}: {line.strip()}")
        elif name not in EXEMPT and any(each[1] in names for each in COMPARED.finditer(code)):
            found.append(f"{name}:{number}: {line.strip()}")
    return found


def test_no_list_of_op_names_outside_kernel_rows():
    files = [name for name in source_tree.tracked_files() if name.startswith(WATCHED) and name.endswith((".cpp", ".hpp", ".h", ".c", ".cu", ".cuh"))]
    assert [line for name in files for line in named_ops(name, (source_tree.ROOT / name).read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("backends/cuda/fuse/compiler.cpp", '{"bp::cast", "bp::copy"},'),
        ("backends/cpu/kernels/a.cpp", 'const bool divides = op == "bp::floor_divide" || op == "remainder";'),
        ("plugins/opencl/kernels/a.cpp", 'if (call.op_name() == "bp::pow") refuse();'),
    ],
)
def test_a_list_is_caught(name, text):
    assert len(named_ops(name, text)) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("backends/cpu/kernels/a.cpp", '{"bp::cast", kernel<cast>, BP_MASK_ANY},'),
        ("dispatcher/cli/npy.cpp", 'return call(find_op("bp::cast"), {value(read)});'),
        ("conformance/draw.cpp", 'if (name == "index") return indices();'),
    ],
)
def test_rows_and_calls_are_allowed(name, text):
    assert named_ops(name, text) == []
