"""The SDK as an outsider has it: outsider.py passes, and what `backplane new` writes keeps the limits that the guide promises.

Needs an installed SDK (BACKPLANE_PREFIX, set by ./dev); BACKPLANE_SDK_WHOLE=1 runs all of it, every sample.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
PLUGINS = HERE.parents[1] / "plugins"
PREFIX = os.environ.get("BACKPLANE_PREFIX", "")
SHORT = [] if os.environ.get("BACKPLANE_SDK_WHOLE") else ["--short"]
CUDA_DRIVER = ["--cuda-driver", os.environ["BACKPLANE_EMULATED_DRIVER"]] if "BACKPLANE_EMULATED_DRIVER" in os.environ else []

needs_prefix = pytest.mark.skipif(not PREFIX, reason="needs an installed SDK (BACKPLANE_PREFIX): ./dev test sdk")


def lines(path):
    return len(path.read_text(encoding="utf-8").splitlines())


@needs_prefix
def test_an_outsider_gets_from_nothing_to_green(tmp_path):
    folder = pathlib.Path(os.environ.get("BACKPLANE_SDK_FOLDER", tmp_path)) / "outsider"
    done = subprocess.run([sys.executable, HERE / "outsider.py", "--prefix", PREFIX, "--folder", folder, *SHORT, *CUDA_DRIVER], capture_output=True, text=True)
    print(done.stdout, file=sys.stderr)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_prefix
def test_the_pages_lie_in_the_prefix():
    pages = pathlib.Path(PREFIX) / "share/doc/backplane"
    guide = pages / "guides/backend.md"
    to_ops = re.findall(r"\]\((\.\./ops/[^)#]*)\)", guide.read_text(encoding="utf-8"))
    assert to_ops and all((guide.parent / page).is_file() for page in to_ops)
    assert len(list((pages / "ops").glob("*.md"))) > 300


@needs_prefix
def test_the_scalar_functions_of_every_dialect_lie_in_the_prefix():
    assert {path.suffix for path in pathlib.Path(PREFIX, "include/backplane").glob("scalar.*")} == {".hpp", ".cuh", ".glsl", ".cl", ".wgsl"}


def new(tmp_path, *words):
    done = subprocess.run([pathlib.Path(PREFIX) / "bin/backplane", "new", *words], capture_output=True, text=True, cwd=tmp_path)
    return done.returncode, done.stdout + done.stderr


@needs_prefix
@pytest.mark.parametrize(("words", "why"), [
    (["backend", "acme", "made", "--language", "fortran"], "Fix: --language with one of c, c++, cuda, opencl, vulkan, webgpu"),
    (["gadget", "acme", "made"], "expected one of backend, op"),
    (["op", "mine::wave", "made", "--language", "c"], "Fix: add --kernel"),
    (["op", "mine::wave", "made", "--kernel", "--language", "fortran"], "Fix: --language with one of c, c++"),
    (["backend", "acme", "made", "--kernel"], "--kernel applies only to an op"),
    (["backend", "Acme", "made"], "lower-case"),
    (["backend", "a-b", "made"], "lower-case"),
    (["backend", "cpu", "made"], "is already used by"),
    (["backend", "std", "made"], "is taken"),
    (["backend", "class", "made"], "is taken"),
    (["backend", "test", "made"], "is taken"),
    (["op", "mine::int", "made"], "is taken"),
    (["op", "namespace::x", "made"], "is taken"),
    (["op", "mine::sin", "made"], "has another meaning"),
    (["backend", "my::acme", "made"], "does not have a namespace"),
    (["op", "same::same", "made"], "are both"),
    (["op", "::x", "made"], "found the namespace"),
])  # fmt: skip
def test_new_refuses_what_would_not_build(tmp_path, words, why):
    status, text = new(tmp_path, *words)
    assert status == 1 and why in text and not (tmp_path / "made").exists()


@needs_prefix
def test_new_renames_no_part_of_another_name(tmp_path):
    status, text = new(tmp_path, "backend", "acme", "made", "--language", "opencl")
    assert status == 0, text
    made = (tmp_path / "made/CMakeLists.txt").read_text(encoding="utf-8")
    assert "CL_TARGET_OPENCL_VERSION" in made and "ACME_WHOLE" in made


@needs_prefix
@pytest.mark.parametrize(("words", "why"), [
    ("SOURCES p.c BACKEND acme", "unknown argument: BACKEND"),
    ("SOURCES p.c NEEDS_MINOR 0", "NEEDS_MINOR: found 0, expected a number from 1"),
    ("SOURCES p.c NEEDS_MINOR x", "NEEDS_MINOR: found x"),
    ("SOURCES p.c)\nbackplane_add_conformance_test(acme DEVICES acme MODES tset", "MODES: found tset"),
])  # fmt: skip
def test_a_word_that_cmake_does_not_know_is_refused(tmp_path, words, why):
    (tmp_path / "p.c").touch()
    (tmp_path / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.25)\nproject(acme LANGUAGES C CXX)\nfind_package(Backplane REQUIRED)\nbackplane_add_plugin(acme {words})\n",
        encoding="utf-8")  # fmt: skip
    done = subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={PREFIX}"], capture_output=True, text=True)
    assert done.returncode != 0 and why in " ".join(done.stderr.split()), done.stderr


@needs_prefix
@pytest.mark.parametrize("name", ["mine::wave", "mine::sketch", "wave"])  # the guide's, and the template's own words
def test_new_takes_the_words_of_the_template(tmp_path, name):
    status, text = new(tmp_path, "op", name, "made")
    assert status == 0, text
    space, _, own = name.rpartition("::")
    entry = (tmp_path / "made/ops.yaml").read_text(encoding="utf-8")
    assert f"namespace: {space or 'my_' + own}\n" in entry and f"- op: {own}(Tensor x" in entry


@pytest.mark.skipif("BACKPLANE_BUILD" not in os.environ, reason="needs a build (BACKPLANE_BUILD)")
def test_new_in_a_build_tree_installs_the_sdk_first(tmp_path):
    """The build tree is not a package, so the printed commands install one first."""
    build = pathlib.Path(os.environ["BACKPLANE_BUILD"]).resolve()
    text = subprocess.run([build / "bin/backplane", "new", "op", "mine::wave", "made"], check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    install, configure = text.splitlines()[1:3]
    assert f"cmake --install {build} --prefix {build}/prefix " in install
    assert configure.endswith(f"-DCMAKE_PREFIX_PATH={build}/prefix")


@needs_prefix
@pytest.mark.parametrize(("tools", "option"), [(["ninja"], " -G Ninja "), (["ninja", "make"], " "), (["make"], " ")])
def test_the_printed_commands_suit_the_tools_at_hand(tmp_path, tools, option):
    for name in tools:
        (tmp_path / name).touch(mode=0o755)
    environment = {key: value for key, value in os.environ.items() if key != "CMAKE_GENERATOR"} | {"PATH": str(tmp_path)}
    command = [pathlib.Path(PREFIX) / "bin/backplane", "new", "op", "mine::wave", tmp_path / "made"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    assert f"-B {tmp_path}/made/build{option}-DCMAKE_PREFIX_PATH=" in text


@pytest.mark.skipif("BACKPLANE_BUILD" not in os.environ, reason="needs a build (BACKPLANE_BUILD)")
def test_codegen_of_a_build_tree_finds_the_entries_that_others_call():
    codegen = pathlib.Path(os.environ["BACKPLANE_BUILD"], "bin/backplane-codegen")
    done = subprocess.run([codegen, "--ops", PLUGINS / "wave/ops.yaml", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@needs_prefix
def test_new_overwrites_nothing(tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "made/mine.txt").write_text("mine")
    status, text = new(tmp_path, "backend", "acme", "made")
    assert status == 1 and "exists already" in text
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["mine.txt"]


@needs_prefix
@pytest.mark.parametrize(("kind", "language", "words"), [
    *(("backend", language, ["minimal"]) for language in ("c", "c++", "cuda", "vulkan", "webgpu")),
    ("backend", "opencl", []),  # the word of its template is that of the interface
    *(("op", language, ["wave", "sketch"]) for language in ("", "c", "c++")),
])  # fmt: skip
def test_no_word_of_the_template_is_left(tmp_path, kind, language, words):
    kernel = ["--kernel"] if kind == "op" and language else []
    status, text = new(tmp_path, kind, "ripple", "made", *(["--language", language] if language else []), *kernel)
    assert status == 0, text
    files = [path for path in (tmp_path / "made").rglob("*") if path.is_file()]
    assert {"CMakeLists.txt", "README.md", "run"} <= {path.name for path in files}
    for path in files:
        assert not path.is_symlink()
        left = [word for word in words if word in path.read_text(encoding="utf-8").lower() or word in path.name]
        assert left == [], path


@needs_prefix
def test_a_plugin_is_built_for_an_older_host(tmp_path):
    """NEEDS_MINOR: manifest and table say it, and the headers hide what came later."""
    status, text = new(tmp_path, "op", "older::ripple", "made", "--kernel", "--language", "c")
    assert status == 0, text
    folder = tmp_path / "made"
    cmake, source, command = folder / "CMakeLists.txt", folder / "plugin.c", pathlib.Path(PREFIX) / "bin/backplane"
    cmake.write_text(cmake.read_text().replace("UNLOADABLE)", "UNLOADABLE NEEDS_MINOR 1)"))

    def run(*words):
        done = subprocess.run(words, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    for words in (["-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={PREFIX}"], ["--build", folder / "build"]):
        status, text = run("cmake", *words)
        assert status == 0, text
    plugin, = (folder / "build").rglob("*.so")
    assert json.loads(plugin.with_suffix(".backplane.json").read_text())["contract"]["minor"] == 1
    status, text = run(command, "lint", plugin)
    assert status == 0 and "minor" not in text, text
    status, text = run(command, "conformance", "--device", "cpu", "--plugin", plugin, "--op", "older::*", "--short")
    assert status == 0, text
    source.write_text(source.read_text() + "const void* later(const bp_host* host) { return host->extension(\"keys\", 1); }\n")
    status, text = run("cmake", "--build", folder / "build")
    assert status != 0 and "extension" in text, text


@needs_prefix
def test_a_typed_package_is_made_without_cmake(tmp_path):
    """codegen writes the plugin, its manifest and the package; one line of the compiler makes the rest. A copy of codegen finds the entries by the PATH."""
    prefix, gen = pathlib.Path(PREFIX), tmp_path / "gen"
    codegen = tmp_path / "copied-codegen"
    shutil.copy(prefix / "bin/backplane-codegen", codegen)
    environment = os.environ | {"PATH": f"{prefix / 'bin'}:{os.environ['PATH']}"}
    environment.pop("BACKPLANE_PREFIX")

    def run(*words, cwd=tmp_path):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, cwd=cwd, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    options = ["--ops", PLUGINS / "wave/ops.yaml", "--out", gen, "--emit", "records,formulas,plugin,manifest,python"]
    listed = run(codegen, *options, "--list-outputs").splitlines()
    run(codegen, *options, "--stamp", gen / "stamp")
    assert sorted(map(str, gen.rglob("*.*"))) == sorted(listed)
    package = gen / "python/sketch"
    shutil.copy(gen / "sketch.backplane.json", package)
    run("cc", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{prefix / 'include'}", f"-I{gen}", *gen.glob("*.c"), "-o", package / "sketch.so")
    run(prefix / "bin/backplane", "lint", package / "sketch.so")
    shown = run(sys.executable, "-c", "from sketch import wave, wave_\nimport backplane as bp\nprint(wave(bp.zeros(2), speed=3).tolist())", cwd=gen / "python")
    assert shown == "[0.0, 0.0]\n"
    assert "def wave(x: Tensor | Number, *, speed: Number = 1" in (package / "__init__.pyi").read_text() and (package / "py.typed").exists()


def test_the_device_tables_are_short():
    assert lines(PLUGINS / "minimal/device.cpp") + lines(PLUGINS / "minimal/device.hpp") <= 150
    assert lines(PLUGINS / "minimal_c/device.c") + lines(PLUGINS / "minimal_c/device.h") <= 250


def test_the_whole_backend_is_short():
    sources = [path for path in (PLUGINS / "minimal").rglob("*.?pp") if "build" not in path.parts]
    assert sum(map(lines, sources)) + lines(PLUGINS / "minimal/CMakeLists.txt") <= 600


def test_all_primitives_are_few_functions():
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((PLUGINS / "minimal/kernels").glob("*.cpp")))
    registered = set(re.findall(r"\bkernel<(\w+)", text))
    assert 10 < len(registered) <= 22
