"""Laws of codegen's outputs for names that an author may choose: what codegen takes compiles; and of files that are no single document."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BACKPLANE_BUILD", ""))
pytestmark = [
    pytest.mark.skipif("BACKPLANE_BUILD" not in os.environ, reason="needs a build (BACKPLANE_BUILD)"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="no g++"),
]

ENTRY = """\
  - op: {op}(Tensor {x}, *, Scalar speed=1) -> Tensor
    doc: The sine of x, speeded up.
    dtypes: floating
    shape: broadcast({x})
    partial: {{{x}: speed * cos(speed * {x})}}
    decompose: sin(speed * {x})
    samples: [{{{x}: [2, 3]}}]
"""
LINES = ENTRY.count("\n")


def codegen(folder, text, *words):
    (folder / "ops.yaml").write_text(text)
    command = [BUILD / "bin/backplane-codegen", "--ops", folder / "ops.yaml", "--import", ROOT / "ops.yaml", "--out", folder / "out", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def entries(names, of):
    return "namespace: mine\nops:\n" + "".join(ENTRY.format(op=name, x="x") if of == "op" else ENTRY.format(op=f"f_{name}", x=name) for name in names)


def taken(folder, names, of):
    """Those names that codegen takes; it refuses the others by their lines."""
    while (done := codegen(folder, entries(names, of))).returncode:
        refused = {(int(line) - 3) // LINES for line in re.findall(r"ops\.yaml:(\d+):\d+: error", done.stderr)}
        assert refused, done.stderr
        names = [name for i, name in enumerate(names) if i not in refused]
    return names


@pytest.mark.parametrize("of", ["op", "argument"])
def test_what_codegen_takes_for_a_name_compiles(of, tmp_path):
    """Tried are the words of C++ and Python, and every word of the outputs themselves."""
    assert codegen(tmp_path, entries(["plain"], "op")).returncode == 0
    headers = [path for path in (tmp_path / "out").rglob("*") if path.suffix in (".h", ".hpp")]
    words = set(re.findall(r'"(\w+)"', (ROOT / "codegen/schema/identifiers.cpp").read_text()))
    words |= {word for path in headers for word in re.findall(r"[A-Za-z]\w*", path.read_text())}
    words = sorted(word for word in words if re.fullmatch(r"[a-z]\w*" if of == "op" else r"[A-Za-z]\w*", word))
    names = taken(tmp_path, words, of)
    assert {"of", "from", "template", "bp_tensor"} <= set(names)
    folders = [ROOT / "dispatcher/abi", ROOT / "dispatcher/include", BUILD / "dispatcher/generated/include", tmp_path / "out", tmp_path / "out/include"]
    for header in headers:
        language = ["-xc++", "-std=c++20"] if header.suffix == ".hpp" else ["-xc", "-std=c11"]
        done = subprocess.run(["g++", "-fsyntax-only", "-w", *language, *(f"-I{folder}" for folder in folders), header], capture_output=True, text=True)
        assert done.returncode == 0, "\n".join(line for line in done.stderr.splitlines() if "error" in line)[:3000]


@pytest.mark.parametrize("second", ["---\nnamespace: other\nops: []\n", "---\n{}\n", "--- 7\n", "...\n---\nnamespace: other\n"])
def test_a_second_document_is_refused(second, tmp_path):
    done = codegen(tmp_path, entries(["plain"], "op") + second)
    assert done.returncode == 1 and "a second document begins here" in done.stderr
    assert f"ops.yaml:{2 + LINES + 1}" in done.stderr or f"ops.yaml:{2 + LINES + 2}" in done.stderr or f"ops.yaml:{2 + LINES + 3}" in done.stderr


def test_the_end_of_the_only_document_may_be_marked(tmp_path):
    assert codegen(tmp_path, "---\n" + entries(["plain"], "op") + "...\n").returncode == 0


@pytest.mark.parametrize("signature", [
    f"wide({', '.join(f'Tensor x{i}' for i in range(100_000))}) -> Tensor",
    f"wide(Tensor x) -> ({', '.join(f'Tensor y{i}' for i in range(100_000))})",
], ids=["arguments", "results"])  # fmt: skip
def test_a_signature_of_many_parts_is_refused_at_once(signature, tmp_path):
    done = codegen(tmp_path, f"namespace: mine\nops:\n  - op: {signature}\n    doc: Wide.\n    dtypes: floating\n    shape: broadcast(x)\n")
    assert done.returncode == 1 and "an op has at most 63" in done.stderr
