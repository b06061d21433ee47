"""What the programs of docs/ make of headers, tables and versions: no declaration is lost, and a plot says what its table says."""

import json
import re
import sys

import pytest
import source_tree

sys.path.insert(0, str(source_tree.ROOT / "docs"))
import headers  # noqa: E402
import plots  # noqa: E402
import versions  # noqa: E402

DECLARED = re.compile(r"^(?:BACKPLANE_API|BP_API) [^;(]*?\b(\w+)\(", re.MULTILINE)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    assert headers.write_pages(out, escaped=str) >= 70
    return out / "headers"


def test_every_declaration_of_a_header_is_on_its_page(pages):
    count = 0
    for path in (source_tree.ROOT / "dispatcher/include/backplane").glob("*.hpp"):
        page = (pages / f"{path.name}.md").read_text(encoding="utf-8")
        names = DECLARED.findall(path.read_text(encoding="utf-8"))
        count += len(names)
        assert [name for name in names if f"{name}(" not in page] == [], path.name
    assert count > 100


def test_a_page_has_the_comment_and_headings_of_its_header(pages):
    page = (pages / "abi-backend.h.md").read_text(encoding="utf-8")
    assert page.startswith('# backplane/abi/backend.h\n\n`#include "backplane/abi/backend.h"`\n\nBackplane binary contract: the device table of a backend.')
    assert "\n## bp_backend_def\n\n```c\n" in page and "\nstruct bp_backend_def {\n" in page
    assert "BACKPLANE_ABI_BACKEND_H" not in page and 'extern "C"' not in page
    index = (pages / "index.md").read_text(encoding="utf-8")
    assert "| [backplane/device.hpp](device.hpp.md) | Devices, moving data, and exchange with other libraries (DLPack). |" in index


def test_parts_are_cut_outside_of_braces():
    body = "namespace a {\n\n// One.\nstruct S {\n  int x;\n\n  int y;\n};\n\nvoid f(int);\n\n}  // namespace a\n"
    assert headers.parts(body) == ["// One.\nstruct S {\n  int x;\n\n  int y;\n};", "void f(int);"]
    assert [headers.heading(part) for part in headers.parts(body)] == ["S", "f"]


TABLE = """# Performance

## Calls

| what | ours | peer | ratio | limit |  |
| --- | --- | --- | --- | --- | --- |
| add | 40 ns | 574.4 (torch) | 0.07 | ≤ 0.14 | pass |
| slow one | 40 ns | 20 (numpy) | 2 |  |  |
| not compared | 40 ns |  |  |  |  |
| eager | 1 ns | 2 (ours, eager) | 0.5 |  |  |

## Nothing here
"""


def test_a_plot_shows_the_rows_of_its_table(tmp_path):
    (tmp_path / "performance.md").write_text(TABLE, encoding="utf-8")
    assert plots.write_plots(tmp_path / "performance.md", tmp_path) == 1
    picture = (tmp_path / "plot-1.svg").read_text(encoding="utf-8")
    assert "0.07 torch" in picture and "2 numpy" in picture and "not compared" not in picture and "eager" not in picture
    assert picture.count('class="fast"') == 1 and picture.count('class="slow"') == 1
    assert "](plot-1.svg)" in (tmp_path / "performance.md").read_text(encoding="utf-8")


def test_many_rows_become_a_distribution(tmp_path):
    rows = [("add", "torch", 0.5)] * 30 + [("sin", "torch", 4.0)] * 10
    assert "torch: 30 of 40 faster, median 0.5" in plots.distribution("Kernels", rows)


def test_versions_are_listed_with_the_newest_first(tmp_path):
    site = tmp_path / "site"

    def add(version, text):
        (tmp_path / "pages").mkdir()
        (tmp_path / "pages/index.html").write_text(text)
        return versions.add_version(tmp_path / "pages", site, version)

    assert add("0.9", "a") == ["0.9"]
    assert add("0.10", "b") == ["0.10", "0.9"]
    assert add("0.9", "a, fixed") == ["0.10", "0.9"]  # a later patch of an old version is not the latest
    assert (site / "0.9/index.html").read_text() == "a, fixed"
    assert "url=0.10/index.html" in (site / "index.html").read_text()
    assert [(row["version"], row["aliases"]) for row in json.loads((site / "versions.json").read_text())] == [("0.10", ["latest"]), ("0.9", [])]
    (tmp_path / "pages").mkdir()
    with pytest.raises(ValueError, match=r"found '0.1.0', expected MAJOR.MINOR"):
        versions.add_version(tmp_path / "pages", site, "0.1.0")


def test_a_site_has_the_version_of_the_tree():
    project = re.search(r"project\(Backplane VERSION (\S+)", (source_tree.ROOT / "CMakeLists.txt").read_text()).group(1)
    assert project.startswith(versions.version_of_tree() + ".")
