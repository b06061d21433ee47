"""What a wheel promises, run by the interpreter of an environment that has the wheels and pytest installed, and no build tree."""

import importlib.metadata
import json
import os
import pathlib
import re
import subprocess
import sys

import backplane as bp
import numpy as np
import pytest

PACKAGE = pathlib.Path(bp.__file__).parent
COMMANDS = pathlib.Path(sys.executable).parent  # not resolved: the environment's, not that of its interpreter


def run(*words, **options):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_package_is_the_wheels():
    assert pathlib.Path(sys.prefix) in PACKAGE.parents, "tests of the wheel ran on another package"
    tags = importlib.metadata.distribution("backplane").read_text("WHEEL")
    assert f"Tag: cp3{sys.version_info.minor}-cp3{sys.version_info.minor}-manylinux_" in tags


def test_a_gradient():
    gradient = bp.grad(lambda x: (bp.sin(x) ** 2).sum())(bp.asarray([0.5, 1.0]))
    np.testing.assert_allclose(np.asarray(gradient), np.sin([1.0, 2.0]), rtol=1e-6)


def test_products_and_factorisations_of_the_bundled_libraries():
    a = np.random.default_rng(1).standard_normal((70, 70)).astype(np.float32)
    np.testing.assert_allclose(np.asarray(bp.asarray(a) @ bp.asarray(a)), a @ a, rtol=1e-3, atol=1e-4)
    q, r = bp.linalg.qr(bp.asarray(a))
    np.testing.assert_allclose(np.asarray(q @ r), a, atol=1e-4)
    image = np.random.default_rng(2).standard_normal((1, 3, 9, 9)).astype(np.float32)
    filters = np.random.default_rng(3).standard_normal((4, 3, 3, 3)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(2, 3))
    expected = np.einsum("nchwij,ocij->nohw", windows, filters)
    np.testing.assert_allclose(np.asarray(bp.conv2d(bp.asarray(image), bp.asarray(filters))), expected, atol=1e-4)


def test_an_exported_model_runs_without_python(tmp_path):
    model = tmp_path / "model.safetensors"
    bp.export(lambda x: bp.softmax(x @ bp.ones((2, 3))), [bp.ones((4, 2))], str(model))
    np.save(tmp_path / "x.npy", np.ones((4, 2), np.float32))
    run(COMMANDS / "backplane", "run", model, "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy")
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), np.full((4, 3), 1 / 3), rtol=1e-6)


def test_the_conformance_kit():
    report = run(COMMANDS / "backplane", "conformance", "--device", "cpu", "--short", "--op", "bp::matmul")
    assert "bp::matmul" in report and "PASS" in report


def test_licences_and_the_list_of_contents():
    files = {str(file): file for file in importlib.metadata.distribution("backplane").files}
    licences = {name.rsplit("/", 1)[1] for name in files if "/licenses/" in name}
    assert {"LICENSE", "pocketfft", "pybind11"} <= licences
    (sbom,) = (file for name, file in files.items() if name.endswith(".cdx.json"))
    parts = {part["name"] for part in json.loads(sbom.read_text())["components"]}
    grafted = {name.split("/")[1].split("-")[0] for name in files if name.startswith("backplane.libs/")}
    assert parts - {"backplane"} <= licences, "a library without its licence"
    for library in grafted:
        assert any(library.lower().rstrip("p0123456789") in part.lower() or part.lower().rstrip("0123456789.") in library.lower() for part in parts), library


def test_a_cpp_program_is_built_with_the_sdk(tmp_path):
    (tmp_path / "main.cpp").write_text(
        '#include <backplane/bp.hpp>\n#include <cstdio>\nint main() { std::puts(bp::add(bp::ones({2}), bp::ones({2})).defined() ? "built" : ""); }\n'
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(program LANGUAGES CXX)\nfind_package(Backplane 0.1 REQUIRED)\n"
        "add_executable(program main.cpp)\ntarget_link_libraries(program PRIVATE Backplane::backplane)\n"
    )
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={PACKAGE}")
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build" / "program") == "built\n"


@pytest.mark.parametrize("name", ["vulkan", "cuda"])
def test_a_plugins_wheel_is_found_by_its_entry_point(name):
    try:
        importlib.metadata.distribution(f"backplane-{name}")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"no wheel backplane-{name} was built on this machine")
    report = run(COMMANDS / "backplane", "plugins")
    assert f"backplane_{name}" in report
    assert any(plugin.name == f"backplane_{name}" for plugin in bp.plugins())


def test_the_mpi_wheel_is_found():
    try:
        importlib.metadata.distribution("backplane-mpi")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("no wheel backplane-mpi was built on this machine")
    from backplane.distributed._connection import _provider_file

    assert os.path.basename(os.path.dirname(os.path.dirname(_provider_file("mpi")))) == "backplane_mpi"


def test_every_template_is_whole(tmp_path):
    """Wheels lose links to folders, which the templates of the tree share."""
    made = 0
    for description in PACKAGE.glob("share/backplane/templates/*/template.json"):
        template = json.loads(description.read_text())
        if template["kind"] == "wheel":
            continue
        project, name = tmp_path / description.parent.name, "acme" if template["kind"] == "backend" else "mine::acme"
        options = ["--language", template["language"]] if template["language"] else []
        run(COMMANDS / "backplane", "new", template["kind"], name, project, *options, *(["--kernel"] if template.get("kernel") else []))
        assert os.access(project / "ci/run", os.X_OK) and (project / ".github/workflows/ci.yml").is_file(), project.name
        sources = re.findall(r"[\w/]+\.(?:cpp|c|cu|cl|comp|wgsl|yaml)\b", re.sub(r"#.*|\$\{\w+\}[\w/.]*", "", (project / "CMakeLists.txt").read_text()))
        assert sources and [source for source in sources if not (project / source).is_file()] == [], project.name
        made += 1
    assert made >= 12


@pytest.mark.parametrize("needs_minor", ["", "NEEDS_MINOR 2"])
def test_a_backends_scaffold_builds_a_wheel(tmp_path, needs_minor):
    """`backplane new backend`, `pip wheel .` without a network, `pip install`, and the device is there. The wheel's name has the contract."""
    project = tmp_path / "project"
    run(COMMANDS / "backplane", "new", "backend", "acme", project)
    lists = project / "CMakeLists.txt"
    text = lists.read_text()
    assert "  UNLOADABLE)" in text
    lists.write_text(text.replace("  UNLOADABLE)", f"  UNLOADABLE {needs_minor})"))
    header = (PACKAGE / "include/backplane/abi/base.h").read_text()
    minor = needs_minor.removeprefix("NEEDS_MINOR ") or re.search(r"#define BP_ABI_MINOR (\d+)", header).group(1)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    run(*pip, "wheel", "--no-build-isolation", "--no-deps", "--no-index", "-w", tmp_path / "wheels", project)
    (wheel,) = (tmp_path / "wheels").glob("*.whl")
    assert wheel.name.startswith(f"acme-0.1.0-0.{minor}contract-py3-none-")
    run(*pip, "install", "--no-index", "--no-deps", "--target", tmp_path / "site", wheel)
    program = "import backplane as bp; print(float((bp.arange(3.0, device='acme') * 2).sum()))"
    assert run(sys.executable, "-c", program, env=os.environ | {"PYTHONPATH": str(tmp_path / "site")}) == "6.0\n"
