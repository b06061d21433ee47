"""Plugins of registry files in five build systems: the recipes of tests/sdk/builds, which the guide docs/guides/build_systems.md shows.

Each builds the plugin from an installed SDK (BACKPLANE_PREFIX, set by ./dev), does nothing the second time, and follows a change of an entry and of an
included file. The rule for Bazel is tried by Bazel itself where it is installed (Debian: bazel-bootstrap). Everywhere, its two actions run in folders that hold
nothing but their declared inputs, with an empty environment.
"""

import ast
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import backplane as bp
import pytest

HERE = pathlib.Path(__file__).resolve().parent
BUILDS = HERE / "builds"
GUIDE = HERE.parents[1] / "docs/guides/build_systems.md"
PREFIX = os.environ.get("BACKPLANE_PREFIX", "")
TOOLS = {"make": "make", "meson": "meson", "cmake": "cmake", "bazel": "bazel"}

needs_prefix = pytest.mark.skipif(not PREFIX, reason="needs an installed SDK (BACKPLANE_PREFIX): ./dev test sdk")


def run(*command, cwd, environment=None):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=cwd, env=environment)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


def lay_out(folder, system):
    """The recipe and its registry files in `folder`, as the guide says to put them there."""
    for file in [*BUILDS.glob("*.yaml"), *(BUILDS / system).iterdir()]:
        text = file.read_text(encoding="utf-8")
        (folder / file.name).write_text(text.replace('"PREFIX"', json.dumps(str(pathlib.Path(PREFIX).resolve()))), encoding="utf-8")


class Project:
    """A copy of a recipe, and how to build it."""

    def __init__(self, folder, system):
        lay_out(folder, system)
        self.folder, self.system = folder, system
        self.environment = {name: value for name, value in os.environ.items() if name not in ("BACKPLANE_PREFIX", "CMAKE_GENERATOR")}
        self.environment |= {"PATH": f"{PREFIX}/bin:{os.environ['PATH']}", "PKG_CONFIG_PATH": f"{PREFIX}/lib/pkgconfig"}
        if system == "meson":
            self._run("meson", "setup", "build")
        elif system == "cmake":
            self._run("cmake", "-S", ".", "-B", "build", "-G", "Ninja")
        self.plugin = folder / {"make": "gen", "meson": "build", "cmake": "build/gen", "bazel": "bazel-bin"}[system] / "sketch.so"

    def _run(self, *command):
        return run(*command, cwd=self.folder, environment=self.environment)

    def build(self):
        if self.system == "make":
            return self._run("make")
        if self.system == "bazel":
            return self._run("bazel", f"--output_user_root={self.folder.parent / 'bazel'}", "--batch", "build", "//:sketch")
        return self._run("ninja", "-C", "build")

    def values(self):
        """Of wave(1, speed=2) and shifted(1), from a process of its own."""
        program = (
            "import sys, backplane as bp\nbp.load_plugin(sys.argv[1])\nops = bp.ops.sketch\n"
            "x = bp.ones((), dtype=bp.float64)\nprint([float(ops.wave(x, speed=2)), float(ops.shifted(x))])"
        )
        environment = os.environ | {"PYTHONPATH": str(pathlib.Path(bp.__file__).parents[1])}
        return ast.literal_eval(run(sys.executable, "-c", program, self.plugin, cwd=self.folder, environment=environment))


@needs_prefix
@pytest.mark.parametrize("system", TOOLS)
def test_a_recipe_builds_a_plugin_and_follows_changes(tmp_path, system):
    if system == "bazel" and not os.environ.get("BACKPLANE_SDK_WHOLE"):
        pytest.skip("./dev test sdk runs it")
    if not shutil.which(TOOLS[system]):
        pytest.skip(f"no {TOOLS[system]} here (Debian: {'bazel-bootstrap' if system == 'bazel' else system})")
    (tmp_path / "project").mkdir()
    project = Project(tmp_path / "project", system)
    project.build()
    command = pathlib.Path(PREFIX) / "bin/backplane"
    assert json.loads(project.plugin.with_name("sketch.backplane.json").read_text())["ops"] == ["sketch::shifted", "sketch::wave"]
    run(command, "lint", project.plugin, cwd=tmp_path)
    run(command, "conformance", "--device", "cpu", "--plugin", project.plugin, "--op", "sketch::*", cwd=tmp_path)
    assert project.values() == [pytest.approx(0.9092974268256817), 2]

    written = project.plugin.stat().st_mtime_ns
    project.build()
    assert project.plugin.stat().st_mtime_ns == written

    for name, old, new, values in (
        ("ops.yaml", "decompose: sin(speed * x)", "decompose: sin(speed * x) + 1", [1.9092974268256817, 2]),
        ("more.yaml", "decompose: x + by", "decompose: x + by + 4", [1.9092974268256817, 6]),
    ):
        file = project.folder / name
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")
        project.build()
        assert project.values() == [pytest.approx(value) for value in values]


def sandboxed(folder, command, inputs, outputs):
    """Runs an action as a hermetic build does: only the declared inputs are there, as links, and exactly the declared outputs come to be."""
    for name, file in inputs.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(pathlib.Path(file).resolve())
    for name in outputs:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    run(*command, cwd=folder, environment={"PATH": "/usr/bin:/bin"})
    made = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}
    assert made == set(outputs)


@needs_prefix
def test_both_actions_of_the_bazel_rule_need_no_more_than_they_declare(tmp_path):
    rule = (BUILDS / "bazel/backplane.bzl").read_text(encoding="utf-8")
    generated = ["out/sketch" + end for end in ast.literal_eval(re.search(r"^SOURCES = (\[.*\])$", rule, re.M)[1])]
    generated += ["out/sketch.backplane.json", "out/samples.json"]
    sdk = pathlib.Path(PREFIX).resolve()
    registry = {f"sdk/{file.relative_to(sdk)}": file for file in (sdk / "share/backplane").rglob("*.yaml") if "templates" not in file.parts}
    inputs = {f"{name}.yaml": BUILDS / f"{name}.yaml" for name in ("ops", "more")} | registry
    codegen = ["--ops", "ops.yaml", "--import", "sdk/share/backplane/ops.yaml", "--out", "out", "--symbol", "sketch"]
    codegen += ["--emit", "records,formulas,plugin,manifest,samples"]
    first, second = tmp_path / "codegen", tmp_path / "compile"
    sandboxed(first, [sdk / "bin/backplane-codegen", *codegen], inputs, generated)
    headers = {f"sdk/{file.relative_to(sdk)}": file for file in (sdk / "include").rglob("*.h")}
    version_script = {"sdk/plugin.map": sdk / "lib/cmake/Backplane/plugin.map"}
    sources = {f"out/{pathlib.Path(name).name}": first / name for name in generated if not name.endswith(".json")}
    words = ["-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-z,now", "-Wl,--version-script=sdk/plugin.map", "-Isdk/include", "-Iout", "-o", "sketch.so"]
    sandboxed(second, ["cc", *words, *[name for name in sources if name.endswith(".c")]], sources | headers | version_script, ["sketch.so"])
    shutil.copy(first / "out/sketch.backplane.json", second)
    run(sdk / "bin/backplane", "lint", second / "sketch.so", cwd=tmp_path)
    for options in (codegen[:3] + ["x"] + codegen[4:], ["--ops", "more.yaml", *codegen[2:]]):  # an import or an include that is not declared is an error
        done = subprocess.run([sdk / "bin/backplane-codegen", *options], cwd=first, capture_output=True, text=True)
        assert done.returncode == 1 and "error" in done.stderr


def test_the_guide_shows_the_tested_recipes():
    guide = GUIDE.read_text(encoding="utf-8")
    shown = re.findall(r"^```\w*\n(.*?)^```$", guide, re.M | re.S)
    for file in [path for system in TOOLS for path in sorted((BUILDS / system).iterdir())]:
        assert file.read_text(encoding="utf-8") in shown, f"{GUIDE.name} does not show {file.relative_to(HERE)} as it is tested"
