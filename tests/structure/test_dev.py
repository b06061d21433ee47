"""./dev: what its verbs do beside building and testing."""

import shutil
import subprocess

import pytest
import source_tree

TOOL = '#!/bin/sh\necho "$1 of $BACKPLANE_BUILD"\n'


@pytest.fixture
def tree(tmp_path):
    """A tree with ./dev and the presets, and nothing else."""
    for name in ("dev", "CMakePresets.json"):
        shutil.copy(source_tree.ROOT / name, tmp_path / name)
    return tmp_path


def run(tree, *words):
    return subprocess.run([tree / "dev", *words], capture_output=True, text=True, timeout=60)


def test_exec_without_a_build_runs_in_what_was_built_last(tree):
    tool = tree / "build/release/bin/backplane"
    tool.parent.mkdir(parents=True)
    tool.write_text(TOOL)
    tool.chmod(0o755)
    done = run(tree, "exec", "--no-build", "backplane", "doctor")
    assert (done.returncode, done.stdout) == (0, f"doctor of {tree}/build/release\n"), done.stderr
    assert "cmake" not in done.stderr and not (tree / ".venv").exists()


def test_exec_without_a_build_says_where_there_is_none(tree):
    done = run(tree, "exec", "--no-build", "true")
    assert done.returncode == 1 and "build/release has no build. Fix: ./dev build" in done.stderr


@pytest.fixture
def stubs(tree):
    """The environment in which what ./dev calls to build, install and run only says how it was called."""
    tools = tree / "tools"
    for stub in (tools / "cmake", tree / ".venv/bin/python", tree / "build/release/build.ninja"):
        stub.parent.mkdir(parents=True, exist_ok=True)
        stub.write_text(f'#!/bin/sh\necho "{stub.name} $*"\n')
        stub.chmod(0o755)
    for name in ("bash", "sh", "env", "cat", "cut", "dirname", "readlink", "nproc", "sort", "head", "mkdir"):  # no apt-get: nothing is installed
        (tools / name).symlink_to(shutil.which(name))
    return {"PATH": str(tools), "HOME": str(tree)}


@pytest.mark.parametrize(
    "words, runs",
    [
        ([], "compare_devices.py --out {tree}/build/demo --plugin {simulator}"),
        (["digits", "--device", "sim"], "compare_devices.py --out {tree}/build/demo --plugin {simulator} --device sim"),
        (["devices"], "compare_devices.py --out {tree}/build/demo --plugin {simulator} --plugin {opencl} --device vulkan --device opencl --device sim"),
        (["compiled"], "digits_compiled.py --out {tree}/build/demo --plugin {simulator} --runs-on sim"),
        (["transforms"], "transforms.py --out {tree}/build/demo"),
    ],
)
def test_each_demo_runs_its_program(tree, stubs, words, runs):
    done = subprocess.run([tree / "dev", "demo", *words], capture_output=True, text=True, timeout=60, env=stubs)
    assert done.returncode == 0, done.stderr
    plugins = {"simulator": f"{tree}/build/release/example/lib/backplane/plugins/simulator.so", "opencl": f"{tree}/build/release/opencl/lib/backplane/plugins/opencl.so"}
    assert done.stdout.splitlines()[-1] == f"python {tree}/examples/" + runs.format(tree=tree, **plugins)
