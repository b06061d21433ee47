"""./dev: what its verbs do beside building and testing."""

import shutil
import subprocess

import pytest
import source_tree

TOOL = '#!/bin/sh\necho "$1 of $BACKPLANE_BUILD"\n'


@pytest.fixture
def tree(tmp_path):
    """A tree with ./dev and the presets, and nothing else."""
    for name in ("dev", "dev-packages.sh", "CMakePresets.json"):
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


@pytest.fixture
def user(stubs, tree):
    """The environment of a user on Debian who is not root and has no sudo; `held` names the packages that are installed."""
    tools = tree / "tools"
    for name, text in (("id", "echo 1000"), ("apt-get", "exit 100"), ("dpkg-query", 'grep -qx "${4}" "$HOME/held" && echo ii')):
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    for name in ("grep", "awk", "cat"):
        if not (tools / name).exists():
            (tools / name).symlink_to(shutil.which(name))
    (tree / "held").write_text("")
    return stubs


def set_up(tree, user):
    return subprocess.run([tree / "dev", "setup"], capture_output=True, text=True, timeout=60, env=user)


def test_a_user_without_root_sees_all_missing_packages_at_once(tree, user):
    done = set_up(tree, user)
    assert done.returncode == 1 and "Fix: as root, apt-get install " in done.stderr
    listed = done.stderr.partition("apt-get install ")[2].split()
    assert {"g++", "ninja-build", "libyaml-cpp-dev", "clang-format", "valgrind"} <= set(listed)
    (tree / "held").write_text("\n".join(name for name in listed if name != "libfmt-dev"))
    done = set_up(tree, user)
    assert done.returncode == 1 and done.stderr.split("missing Debian packages: ")[1].startswith("libfmt-dev. Fix")


def test_a_user_without_root_needs_the_packages_of_the_build_alone(tree, user):
    listed = set_up(tree, user).stderr.partition("apt-get install ")[2].split()
    (tree / "held").write_text("\n".join(name for name in listed if name not in ("clang-format", "valgrind")))
    done = set_up(tree, user)
    assert done.returncode == 0 and "lack Debian packages: clang-format valgrind. Fix" in done.stderr, done.stderr
