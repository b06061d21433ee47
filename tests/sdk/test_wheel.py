"""`backplane new op --wheel`: pip makes a wheel of the project without a network, and mypy and pyright read the types of its package.

Needs an installed SDK (BACKPLANE_PREFIX, set by ./dev). The type checkers are tried where they are there.
"""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import backplane as bp
import pytest

PREFIX = os.environ.get("BACKPLANE_PREFIX", "")
BASE = pathlib.Path(PREFIX, "include/backplane/abi/base.h")

pytestmark = pytest.mark.skipif(not PREFIX, reason="needs an installed SDK (BACKPLANE_PREFIX): ./dev test sdk")


def run(*command, cwd=None, **environment):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=cwd, env=os.environ | environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    printed = run(pathlib.Path(PREFIX) / "bin/backplane", "new", "op", "mine::ripple", folder / "made", "--wheel")
    assert "pip wheel --no-deps" in printed
    run(sys.executable, "-m", "pip", "wheel", "--no-index", "--no-deps", "-w", folder, folder / "made", BACKPLANE_PREFIX=PREFIX)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def site(wheel, tmp_path_factory):
    target = tmp_path_factory.mktemp("site")
    run(sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--target", target, wheel)
    return target


def test_the_wheel_has_the_plugin_beside_the_package(wheel):
    major, minor = (re.search(rf"#define BP_ABI_{part} (\d+)", BASE.read_text(encoding="utf-8")).group(1) for part in ("MAJOR", "MINOR"))
    assert wheel.name.startswith(f"mine_ripple-0.1.0-{major}.{minor}contract-py3-none-")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"mine/__init__.py", "mine/__init__.pyi", "mine/py.typed", "mine/ripple.so", "mine/ripple.backplane.json", "mine/ripple.samples.json"} <= names


def test_the_package_and_the_entry_point_both_bring_the_op(site):
    path = os.pathsep.join([str(site), str(pathlib.Path(bp.__file__).parents[1])])
    program = "from mine import ripple\nimport backplane as bp\nprint(ripple(bp.ones(2), speed=0).tolist())"
    assert run(sys.executable, "-c", program, PYTHONPATH=path) == "[0.0, 0.0]\n"
    program = "import backplane as bp\nprint(bp.ops.mine.ripple(bp.ones(2), speed=0).tolist())"
    assert run(sys.executable, "-c", program, PYTHONPATH=path) == "[0.0, 0.0]\n"


def test_an_editable_install_follows_what_is_built(wheel, tmp_path):
    project = shutil.copytree(wheel.parent / "made", tmp_path / "made", ignore=shutil.ignore_patterns("build"))
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps", "-e", project, BACKPLANE_PREFIX=PREFIX)
    path = str(pathlib.Path(bp.__file__).parents[1])
    program = "from mine import ripple\nimport backplane as bp\nprint(ripple(bp.ones(2), speed=0).tolist())"
    assert run(python, "-c", program, PYTHONPATH=path, cwd=tmp_path) == "[0.0, 0.0]\n"
    entries = project / "ops.yaml"
    text = entries.read_text(encoding="utf-8")
    assert "decompose: sin(speed * x)" in text
    entries.write_text(text.replace("decompose: sin(speed * x)", "decompose: sin(speed * x) + 2"), encoding="utf-8")
    run("cmake", "--build", project / "build/wheel")
    assert run(python, "-c", program, PYTHONPATH=path, cwd=tmp_path) == "[2.0, 2.0]\n"


def test_sources_are_packed(wheel):
    folder = wheel.parent
    program = f"import sys\nsys.path.insert(0, {str(folder / 'made/python_build')!r})\nimport plugin_wheel\nprint(plugin_wheel.build_sdist({str(folder)!r}))"
    name = run(sys.executable, "-c", program).strip()
    shutil.unpack_archive(folder / name, folder / "unpacked")
    assert {"ops.yaml", "pyproject.toml", "PKG-INFO", "CMakeLists.txt"} <= {path.name for path in (folder / "unpacked/mine_ripple-0.1.0").iterdir()}


RIGHT = "import backplane as bp\nfrom mine import ripple, ripple_\nx: bp.Tensor = ripple(bp.ones(2), speed=2.5)\nripple_(x, speed=3)\n"
WRONG = "import backplane as bp\nfrom mine import ripple\nripple(bp.ones(2), sped=1)\n"


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_type_checkers_read_the_stub(site, tmp_path, checker):
    if not importlib.util.find_spec(checker):
        pytest.skip(f"no {checker} in this Python")
    for text, code in ((RIGHT, 0), (WRONG, 1)):
        file = tmp_path / "program.py"
        file.write_text(text, encoding="utf-8")
        path = os.pathsep.join([str(site), str(pathlib.Path(bp.__file__).parents[1])])
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([path, os.environ.get("PYTHONPATH", "")]), "MYPYPATH": path}
        options = ["--strict", "--cache-dir", str(tmp_path / "cache")] if checker == "mypy" else ["--pythonpath", sys.executable]
        done = subprocess.run([sys.executable, "-m", checker, *options, str(file)], capture_output=True, text=True, env=environment)
        assert done.returncode == code, done.stdout + done.stderr
        assert not code or "sped" in done.stdout
