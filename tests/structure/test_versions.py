"""One rule relates the contract's version to the release's (docs/reference/abi.md): the majors are the same, a minor release may add a minor of the
contract, and a patch release does not change the contract. The changelog names the contract of each release.
"""

import re
import tomllib

import pytest
import source_tree

HEADING = re.compile(r"^## (\d+)\.(\d+)\.(\d+) \((?:[^)]*, )?contract (\d+)\.(\d+)\)$", re.MULTILINE)


def text(path):
    return (source_tree.ROOT / path).read_text(encoding="utf-8")


def found(pattern, path):
    return re.search(pattern, text(path), re.MULTILINE).groups()


def release():
    return found(r"^project\(Backplane VERSION (\d+)\.(\d+)\.(\d+) ", "CMakeLists.txt")


def contract():
    base = "dispatcher/abi/backplane/abi/base.h"
    return (*found(r"^#define BP_ABI_MAJOR (\d+)$", base), *found(r"^#define BP_ABI_MINOR (\d+)$", base))


def complaints(changelog):
    """Breaches of the rule in the headings of releases, the newest first."""
    rows = [tuple(map(int, row)) for row in HEADING.findall(changelog)]
    if len(rows) != len(re.findall(r"^## \d", changelog, re.MULTILINE)):
        yield 'a heading of a release does not have the form "## X.Y.Z (DATE, contract M.N)"'
    for major, minor, patch, abi_major, abi_minor in rows:
        if abi_major != major:
            yield f"{major}.{minor}.{patch}: the contract {abi_major}.{abi_minor} has another major version"
    for newer, older in zip(rows, rows[1:]):
        if newer[0] == older[0] and newer[4] < older[4]:
            yield f"{newer[:3]}: the contract's minor version became smaller"
        if newer[:2] == older[:2] and newer[3:] != older[3:]:
            yield f"{newer[:3]}: a patch release changes the contract"


def test_the_majors_are_the_same():
    assert release()[0] == contract()[0]


def test_each_place_states_the_same_versions():
    newest = HEADING.search(text("CHANGELOG.md")).groups()
    assert (newest[:3], newest[3:]) == (release(), contract())
    assert found(r"The contract of this tree is (\d+)\.(\d+)\.$", "docs/reference/abi.md") == contract()


@pytest.mark.parametrize("project", [source_tree.ROOT, *(source_tree.ROOT / "packages" / name for name in ("vulkan", "mpi", "cuda"))], ids=lambda path: path.name)
def test_wheels_read_the_version_of_the_build(project):
    table = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    assert table["project"]["dynamic"] == ["version"] and "version" not in table["project"]
    rule = table["tool"]["scikit-build"]["metadata"]["version"]
    value = re.search(rule["regex"], (project / rule["input"]).read_text(encoding="utf-8"))["value"]
    assert tuple(value.split(".")) == release()


def test_the_changelog_follows_the_rule():
    assert list(complaints(text("CHANGELOG.md"))) == []


@pytest.mark.parametrize(("headings", "caught"), [
    (["1.1.0 (2027-03-01, contract 1.2)", "1.0.1 (2027-02-01, contract 1.1)", "1.0.0 (2027-01-01, contract 1.1)"], 0),
    (["1.0.1 (2027-02-01, contract 1.2)", "1.0.0 (2027-01-01, contract 1.1)"], 1),
    (["1.1.0 (2027-02-01, contract 1.0)", "1.0.0 (2027-01-01, contract 1.1)"], 1),
    (["2.0.0 (2027-01-01, contract 1.3)"], 1),
    (["1.0.0 (2027-01-01)"], 1),
])  # fmt: skip
def test_a_breach_is_caught(headings, caught):
    assert len(list(complaints("\n".join(f"## {heading}" for heading in headings)))) == caught
