"""An elementwise op is one line in one file of the CPU backend, a row of a list, and none at all in CUDA and Vulkan, whose
lists come from codegen with the registry's scalar functions.

The lists are read as text: CUDA's code does not run here, and a backend that was left out has its list all the same.
"""

import collections
import pathlib
import re

import pytest
import source_tree

FILES = [name for name in source_tree.tracked_files() if name.startswith("backends/")
         and pathlib.PurePosixPath(name).suffix in source_tree.SOURCE_SUFFIXES | {".comp"}]
CPU_ROW = re.compile(r'\{\s*"bp::(\w+)",\s*elementwise_(unary|binary|ternary|with_scalars<(\d), (\d)>)')
ENTRY = re.compile(r"^\s*- op: (\w+)\((.*)\) ->")
OPERANDS = {"unary": (1, 0), "binary": (2, 0), "ternary": (3, 0)}


def text_of(name):
    return (source_tree.ROOT / name).read_text(encoding="utf-8")


def entries():
    """op -> how many tensors its signature has, and how many numbers behind them."""
    found = {}
    for _, _, line in source_tree.registry_lines():
        if match := ENTRY.match(line):
            kinds = [argument.split()[0] for argument in match[2].split(", ") if " " in argument]
            found[match[1]] = (kinds.count("Tensor"), kinds.count("Scalar"))
    return found


def lists():
    """(backend, file, op, (tensors, numbers)) of each row of each list."""
    for name in FILES:
        text = text_of(name)
        if name.startswith("backends/cpu/"):
            for op, form, tensors, numbers in CPU_ROW.findall(text):
                yield "cpu", name, op, OPERANDS.get(form) or (int(tensors), int(numbers))


ROWS = list(lists())


def test_the_cpu_has_its_list():
    assert len(ROWS) >= 90


@pytest.mark.parametrize("backend", ["cuda", "vulkan"])
def test_a_gpu_takes_its_list_from_the_scalar_functions(backend):
    texts = [text_of(name) for name in FILES if name.startswith(f"backends/{backend}/")]
    for arity in ("UNARY", "BINARY"):  # by name, or by a macro that makes the names of all dtypes' lists
        assert any(re.search(rf"BP_SCALAR_{arity}_(float32_float32\(|##\w+##)", text) for text in texts)
    ops = {row[2] for row in ROWS}
    assert [op for text in texts for op in re.findall(r'"bp::(\w+)"', text) if op in ops] == []


def test_an_op_has_one_row_in_a_backend():
    counts = collections.Counter((backend, op) for backend, _, op, _ in ROWS)
    assert [row for row, count in counts.items() if count > 1] == []


def test_a_row_reads_what_its_entry_has():
    known = entries()
    assert [(name, op, operands, known.get(op)) for _, name, op, operands in ROWS if known.get(op) != operands] == []


def test_no_other_file_of_the_backend_names_the_op():
    code = {name: re.sub(r"//.*", "", text_of(name)) for name in FILES if name.startswith("backends/cpu/")}
    assert [(op, name) for _, home, op, _ in ROWS for name, text in code.items() if name != home and f'"bp::{op}"' in text] == []


def test_a_family_of_the_cpu_registers_itself():
    """No list names the families: what registers a file's rows is named in that file alone."""
    cpu = {name: text_of(name) for name in FILES if name.startswith("backends/cpu/")}
    families = [name for name, text in cpu.items() if re.search(r"^const Family k\w+\(", text, re.MULTILINE)]
    assert len(families) >= 40
    registering = [name for name, text in cpu.items() if re.search(r"registrar\.kernel\(|register_elementwise\(registrar", text)]
    assert sorted(set(registering) - set(families) - {"backends/cpu/loops/elementwise.cpp"}) == []
