"""./dev: what its verbs do beside building and testing."""

import shutil
import subprocess

import pytest
import source_tree

TOOL = '#!/bin/sh\necho "$1 of $BACKPLANE_BUILD"\n'


@pytest.fixture
def tree(tmp_path):
    """A tree with ./dev and nothing else."""
    shutil.copy(source_tree.ROOT / "dev", tmp_path / "dev")
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
