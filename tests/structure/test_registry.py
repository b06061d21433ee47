"""The registry reads like mathematics, each file in a sitting: what is said once is said once, and operators are written as such.

Entries stand in one form (keys at four spaces), so lines are enough to look at. The second half tries the rules on entries that
break them, so that a rule which stopped catching anything would be noticed.
"""

import os
import pathlib
import re
import shutil
import subprocess

import pytest
import source_tree

COLUMNS = 110
LINES = 500  # of a file, beside its examples
FORMULAS = {"let", "shape", "partial", "vjp", "jvp", "batch", "decompose", "put", "scalar", "rewrites"}
REPEATED = 50  # columns from which a line of a formula is worth a name: `let`, `define`, `like vjp` or an alias
PASSED_ON = re.compile(r"(\w+=\w+(, |,$|$))+")  # arguments of a call, each to one of its name
TEXT = re.compile(r"(?<=[,=] )'[^']*'")  # within a formula; the quotes around one are YAML's
SHAPE_WORD = re.compile(r"[\w.]+\([\w, ]*\)$")  # which may be an op as well


def formula_lines(lines):
    """(path, line number, text) of lines under keys of formulas and in `define`, without keys, names and list marks."""
    key = None
    for path, number, line in lines:
        if found := re.match(r"    (\w+):", line) or re.match(r"(define|\w+):", line):
            key = found[1]
        elif not line.startswith("  ") or line.startswith("  - op"):
            key = None
        text = line.strip()
        if key not in FORMULAS | {"define"} or text.startswith("#") or "none:" in text:
            continue
        text = re.sub(rf"^{key}: ?", "", text)
        text = re.sub(r"^(- )?(\"?\(?\w[\w, ]*(\([\w, ]*\))?\)?\"?: )?(&\w+ ?)?\|?", "", text)
        if text and not (key == "shape" and SHAPE_WORD.match(text)):
            yield path, number, text


def operators(lines):
    """Op -> what formulas write for it."""
    found, name = {}, None
    for _, _, line in lines:
        if op := re.match(r"  - op: ([\w.]+)\(", line):
            name = op[1]
        elif symbol := re.match(r"    operator: '?([^']+)'?$", line):
            found[name] = symbol[1]
    return found


def wide(lines):
    return [f"{path}:{number}: {len(line)} columns" for path, number, line in lines if len(line) > COLUMNS]


def repeated(lines):
    seen, found = {}, []
    for path, number, text in formula_lines(lines):
        if len(text) < REPEATED or PASSED_ON.fullmatch(text):
            continue
        if text in seen:
            found.append(f"{path}:{number}: stands in {seen[text]} too: {text}")
        seen.setdefault(text, f"{path}:{number}")
    return found


def prefixed(lines):
    """Calls of an op with an operator; a keyword needs the call, and a call may go on on the next line."""
    names = operators(lines)
    call = re.compile(rf"\b({'|'.join(names)})\(([^=]*)$") if names else None
    return [f"{path}:{number}: {names[called[1]]} says {called[1]}: {text}"
            for path, number, text in formula_lines(lines) if call and (called := call.search(TEXT.sub("", text)))]


def without_examples(lines):
    kept, inside = [], False
    for line in lines:
        inside = line.startswith("    example: |") or (inside and line.startswith("      "))
        if not inside:
            kept.append(line)
    return kept


REGISTRY = list(source_tree.registry_lines())


def test_every_file_of_the_folder_is_included():
    there = sorted(name for name in source_tree.tracked_files() if re.fullmatch(r"ops/.*\.ya?ml", name))
    assert sorted(source_tree.registry_files()[1:]) == there and there


@pytest.mark.parametrize("path", source_tree.registry_files())
def test_a_file_is_read_in_a_sitting(path):
    assert len(without_examples([line for name, _, line in REGISTRY if name == path])) <= LINES


def test_an_example_is_not_counted():
    assert without_examples(["  - op: f", "    example: |", "      >>> f(1)", "      2", "    samples: []"]) == ["  - op: f", "    samples: []"]


def test_no_line_is_wide():
    assert wide(REGISTRY) == []


def test_no_formula_line_stands_twice():
    assert repeated(REGISTRY) == []


def test_operators_are_written_as_such():
    assert len(operators(REGISTRY)) >= 16 and prefixed(REGISTRY) == []


LONG = "reshape(x, x.shape[0:1] + repeat(1, n + 1 - x.ndim) + x.shape[1:]) * 2"


def entry(*rules):
    text = "ops:\n  - op: multiply(Tensor x, Tensor y) -> Tensor\n    operator: '*'\n" + "\n".join(f"    {rule}" for rule in rules)
    return [("a.yaml", number, line) for number, line in enumerate(text.splitlines(), 1)]


@pytest.mark.parametrize("rules", [
    (f"decompose: {LONG}", f"batch: {LONG}"),
    (f"vjp: {{x: '{LONG}'}}", f"jvp: {{x: '{LONG}'}}"),
    (f"let:\n      a: {LONG}", f"vjp:\n      x: |\n        {LONG}"),
    (f"vjp:\n      x: |\n        {LONG}", f"shape: |\n      {LONG}"),
])  # fmt: skip
def test_a_repeated_line_is_found(rules):
    assert len(repeated(entry(*rules))) == 1


def test_what_may_stand_twice_does():
    word = "conv(x, the_weights_of_this_one, stride, padding, dilation, groups)"
    reason = "{none: " + "the vectors are not determined by what is given, " * 2 + "}"
    passed = "vjp:\n      x: |\n        " + ", ".join(f"argument{i}=argument{i}" for i in range(4)) + ","
    for rule in (passed, f"shape: {word}", f"vjp: {reason}", "jvp: linear", f"doc: {LONG}", f"# {LONG}"):
        assert repeated(entry(rule, rule)) == []


@pytest.mark.parametrize("formula", ["multiply(x, y)", "x + multiply(x,", "let a = multiply(x, 2); a", "'multiply(x, y)'", "{x: 'multiply(x, g)'}"])
def test_a_prefix_call_is_found(formula):
    assert len(prefixed(entry(f"decompose: {formula}"))) == 1


def test_a_prefix_call_of_a_rewrite_is_found():
    rules = "rewrites:\n  - {from: 'multiply(x, 1)', to: x}\n  - {from: x * 1, to: x}"
    assert len(prefixed(entry() + [("b.yaml", number, line) for number, line in enumerate(rules.splitlines(), 1)])) == 1


def test_a_name_that_holds_one_is_none():
    assert prefixed(entry("decompose: require(x, y, 'multiply(x, y)')", "batch: sparse_multiply(x, y)", "doc: multiply(x, y)")) == []


def test_a_wide_line_is_found():
    assert wide(entry("doc: " + "x" * 110)) == ["a.yaml:4: 119 columns"]


def test_cmake_follows_every_include_that_codegen_follows(tmp_path):
    codegen = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "")) / "bin/backplane-codegen"
    if not os.environ.get("BACKPLANE_BUILD") or not codegen.exists() or shutil.which("cmake") is None:
        pytest.skip("no build of backplane-codegen (BACKPLANE_BUILD), or no cmake")
    files = {
        "root.yaml": "namespace: t\ninclude:  # ours\n"
        "  - sub/a.yaml # the first\n\n  # more\n"
        "  - 'sub/b-2.yml'\nops: []\n",
        "sub/a.yaml": 'include: [deep/c.yaml,\n  "deep/d.yaml"]\nops: []\n# include: [unary.yaml]\n',
        "sub/b-2.yml": "ops:\n- op: f(Tensor x) -> Tensor\n  doc: 'include: x.yaml'\n  kind: composite\n  dtypes: bool\n"
        "  shape: same(x)\n  decompose: x\n  samples: [{x: [2]}]\n",
        "sub/deep/c.yaml": "ops: []\ninclude: [e.yaml]\n",
        "sub/deep/d.yaml": "ops: []\n",
        "sub/deep/e.yaml": "ops: []\n",
        "sub/unary.yaml": "ops: []\n",
        "sub/deep/unary.yaml": "ops: []\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run([codegen, "--ops", tmp_path / "root.yaml", "--out", tmp_path / "out", "--depfile", tmp_path / "out/t.d",
                    "--import", source_tree.ROOT / "tests/codegen/data/base.yaml"], check=True)  # fmt: skip
    read = re.findall(r"^  (\S+?\.ya?ml)", (tmp_path / "out/t.d").read_text(), re.MULTILINE)
    script = tmp_path / "list.cmake"
    script.write_text(f'include({source_tree.ROOT / "cmake/BackplaneCodegen.cmake"})\n'
                      f'_backplane_registry_files(files {tmp_path / "root.yaml"})\nmessage("${{files}}")\n')
    listed = subprocess.run(["cmake", "-P", script], check=True, capture_output=True, text=True).stderr.strip().split(";")
    assert sorted(listed) == sorted(path for path in read if str(tmp_path) in path)
    assert len(listed) == len(files) - 2
