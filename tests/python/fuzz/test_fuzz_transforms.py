"""The short form of `./dev fuzz transforms`: one case of every op, in processes of their own."""

import pathlib
import subprocess
import sys

import pytest

RUNNER = pathlib.Path(__file__).with_name("fuzz_transforms.py")
PARTS = 4  # so that several processes share the work


@pytest.mark.parametrize("part", range(PARTS))
def test_wrappers_keep_what_transforms_give(part):
    command = [sys.executable, RUNNER, "--cases", "1", "--part", f"{part}/{PARTS}", "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrapper_that_loses_a_derivative_is_found(tmp_path):
    script = tmp_path / "losing.py"
    script.write_text(
        f"import sys\nsys.path.insert(0, {str(RUNNER.parent)!r})\n"
        "import fuzz_runner, fuzz_transforms\n"
        "import backplane as bp\n"
        "losing = lambda f, inputs, like: lambda *xs: f(*(bp.stop_gradient(x) for x in xs))\n"
        "fuzz_transforms.WRAPPERS = {'losing': losing}\n"
        "sys.argv = ['fuzz', '--op', 'sin', '--cases', '20', '--seed', '5', '--jobs', '1']\n"
        "fuzz_runner.main('transforms', '', fuzz_transforms.TransformCase, 20)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "bp::sin, case" in done.stdout and "of losing of sin-" in done.stdout and "expected [" in done.stdout
