"""An elementwise op is one line in one file of each backend: a row of a list, from which everything else of it follows.

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
GPU_ROW = re.compile(r"^  ROW\((\w+), ([12]), .+\)(?: *\\)?$", re.MULTILINE)
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
        elif name.endswith("/elementwise_ops.h"):
            for op, operands in GPU_ROW.findall(text):
                yield name.split("/")[1], name, op, (int(operands), 0)


ROWS = list(lists())


@pytest.mark.parametrize("backend, least", [("cpu", 90), ("cuda", 3), ("vulkan", 3)])
def test_every_backend_has_its_list(backend, least):
    assert sum(row[0] == backend for row in ROWS) >= least


def test_an_op_has_one_row_in_a_backend():
    counts = collections.Counter((backend, op) for backend, _, op, _ in ROWS)
    assert [row for row, count in counts.items() if count > 1] == []


def test_a_row_reads_what_its_entry_has():
    known = entries()
    assert [(name, op, operands, known.get(op)) for _, name, op, operands in ROWS if known.get(op) != operands] == []


def test_no_other_file_of_the_backend_names_the_op():
    """Enumerators, branches and tables that follow from the list are written by the list."""
    code = {name: re.sub(r"//.*", "", text_of(name)) for name in FILES}
    again = []
    for backend, home, op, _ in ROWS:
        camel = "".join(word.capitalize() for word in op.split("_"))
        named = re.compile(rf'"bp::{op}"|\bk_?{op}\b|\bk{camel}\b|\w::{op}\b(?!\()')
        again += [(op, name) for name, text in code.items()
                  if name.startswith(f"backends/{backend}/") and name != home and backend != "cpu" and named.search(text)]
        again += [(op, name) for name, text in code.items()
                  if backend == "cpu" and name.startswith("backends/cpu/") and name != home and f'"bp::{op}"' in text]
    assert again == []


def test_a_family_of_the_cpu_registers_itself():
    """No list names the families: what registers a file's rows is named in that file alone."""
    cpu = {name: text_of(name) for name in FILES if name.startswith("backends/cpu/")}
    families = [name for name, text in cpu.items() if re.search(r"^const Family k\w+\(", text, re.MULTILINE)]
    assert len(families) >= 40
    registering = [name for name, text in cpu.items() if re.search(r"registrar\.kernel\(|register_elementwise\(registrar", text)]
    assert sorted(set(registering) - set(families) - {"backends/cpu/loops/elementwise.cpp"}) == []
