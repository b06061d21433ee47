"""The C++ program of docs/start/cpp.md builds as printed against an installed Backplane, and prints the output shown there."""

import pathlib
import re
import shutil
import subprocess

import backplane as bp
import pytest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/start/cpp.md"
BUILD = pathlib.Path(bp.__file__).resolve().parents[2]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.skipif(not (BUILD / "cmake_install.cmake").exists(), reason="the package comes from no build folder, so there is no SDK to install")
@pytest.mark.skipif(BUILD.name in ("asan", "tsan"), reason="a program without the sanitizer cannot load a library with it")
def test_the_program_of_the_page(tmp_path):
    text = PAGE.read_text()
    blocks = {language: re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)[1] for language in ("cmake", "cpp")}
    (tmp_path / "CMakeLists.txt").write_text(blocks["cmake"])
    (tmp_path / "first.cpp").write_text(blocks["cpp"])
    cmake = shutil.which("cmake")
    for component in ("sdk", "runtime", "plugins"):
        run(cmake, "--install", str(BUILD), "--prefix", str(tmp_path / "prefix"), "--component", component)
    run(cmake, "-S", str(tmp_path), "-B", str(tmp_path / "build"), f"-DCMAKE_PREFIX_PATH={tmp_path / 'prefix'}")
    run(cmake, "--build", str(tmp_path / "build"))
    (printed,) = re.findall(r"It prints `(.*?)`", text)
    assert run(str(tmp_path / "build/first")).strip() == printed
