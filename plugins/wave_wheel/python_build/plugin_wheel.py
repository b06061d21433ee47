"""Builds the wheel of this project: CMake makes the plugin, backplane-codegen the typed package.

A build backend (PEP 517) of Python's standard library alone, so that `pip wheel .` needs no network. It reads
pyproject.toml, and finds Backplane by BACKPLANE_PREFIX or by backplane-codegen on the PATH. The name of the wheel has the oldest
contract with which the plugin loads: 0.3contract in NAME-0.1.0-0.3contract-py3-none-PLATFORM.whl.
"""

import base64
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sysconfig
import tarfile
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD, EDITABLE = ROOT / "build/wheel", ROOT / "build/editable"
PLUGINS = BUILD / "lib/backplane/plugins"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NAME = re.sub(r"[-_.]+", "_", PROJECT["name"]).lower()
STEM = f"{NAME}-{PROJECT['version']}"


def prefix():
    """The folder where Backplane is installed."""
    stated = os.environ.get("BACKPLANE_PREFIX")
    codegen = shutil.which("backplane-codegen")
    for folder in [pathlib.Path(stated)] if stated else [pathlib.Path(codegen).resolve().parents[1]] if codegen else []:
        if (folder / "include/backplane").is_dir():
            return folder.resolve()
    raise SystemExit(
        f"Backplane's headers were not found (BACKPLANE_PREFIX: {stated}, backplane-codegen: {codegen}). "
        "Fix: set BACKPLANE_PREFIX to the folder where Backplane is installed"
    )


def run(*command):
    subprocess.run([str(word) for word in command], check=True)


def package():
    """{path in the wheel: file} of the typed package and of the plugin, which lies beside it."""
    installed = prefix()
    shutil.rmtree(BUILD, ignore_errors=True)
    ninja = [] if shutil.which("make") or "CMAKE_GENERATOR" in os.environ else ["-G", "Ninja"]
    run("cmake", "-S", ROOT, "-B", BUILD, f"-DCMAKE_PREFIX_PATH={installed}", "-DCMAKE_BUILD_TYPE=Release", *ninja)
    run("cmake", "--build", BUILD, "--parallel")
    run(installed / "bin/backplane-codegen", "--ops", ROOT / "ops.yaml", "--out", BUILD / "package", "--emit", "python")
    (folder,) = (BUILD / "package/python").iterdir()
    files = [*folder.iterdir(), *(path for path in PLUGINS.iterdir() if path.suffix in (".so", ".json"))]
    return {f"{folder.name}/{path.name}": path for path in sorted(files)}


def metadata():
    """{name: text} of the files about the wheel."""
    about = ["Metadata-Version: 2.1", f"Name: {PROJECT['name']}", f"Version: {PROJECT['version']}", f"Summary: {PROJECT['description']}"]
    about += [f"Requires-Python: {PROJECT['requires-python']}", *(f"Requires-Dist: {one}" for one in PROJECT.get("dependencies", ()))]
    points = [f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in rows.items()) for group, rows in PROJECT["entry-points"].items()]
    wheel = ["Wheel-Version: 1.0", "Generator: plugin_wheel", "Root-Is-Purelib: false", f"Build: {contract()}", f"Tag: {tag()}"]
    return {"METADATA": "\n".join(about) + "\n", "WHEEL": "\n".join(wheel) + "\n", "entry_points.txt": "\n".join(points)}


def contract():
    """The build tag: the oldest contract with which the plugins load, as their manifests state it."""
    needed = [json.loads(path.read_text(encoding="utf-8"))["contract"] for path in PLUGINS.glob("*.backplane.json")]
    major, minor = max((one["major"], one["minor"]) for one in needed)
    return f"{major}.{minor}contract"


def tag():
    """The plugin uses the C contract alone, so any Python of the platform loads it."""
    return "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel into the folder. Returns its name."""
    return write_wheel(wheel_directory, {place: path.read_bytes() for place, path in package().items()})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """As build_wheel, for `pip install -e .`: the wheel names build/editable, where the package is a link to the folder of the built plugin.

    After a change of the project, `cmake --build build/wheel` is enough. If a signature changed, install again.
    """
    shutil.rmtree(EDITABLE, ignore_errors=True)
    EDITABLE.mkdir(parents=True)
    for place, path in package().items():
        if path.parent != PLUGINS:
            shutil.copy(path, PLUGINS)
        name = place.split("/")[0]
    (EDITABLE / name).symlink_to(PLUGINS)
    return write_wheel(wheel_directory, {f"{NAME}.pth": f"{EDITABLE}\n".encode()})


def write_wheel(folder, contents):
    """Writes a wheel of {path: bytes} and the files about it into the folder. Returns its name."""
    name = f"{STEM}-{contract()}-{tag()}.whl"
    contents |= {f"{STEM}.dist-info/{place}": text.encode() for place, text in metadata().items()}
    record = ""
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for place, data in contents.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{place},sha256={digest},{len(data)}\n"
            wheel.writestr(place, data)
        wheel.writestr(f"{STEM}.dist-info/RECORD", f"{record}{STEM}.dist-info/RECORD,,\n")
    return name


def build_sdist(sdist_directory, config_settings=None):
    """Writes the sources, without build outputs, into the folder. Returns the name of the archive."""
    name = f"{STEM}.tar.gz"
    with tarfile.open(pathlib.Path(sdist_directory) / name, "w:gz") as archive:
        for path in sorted(ROOT.iterdir()):
            if path.name not in ("build", ".git") and path.suffix != ".whl":
                archive.add(path, f"{STEM}/{path.name}", filter=lambda info: None if "__pycache__" in info.name else info)
        about = ROOT / "build/PKG-INFO"
        about.parent.mkdir(exist_ok=True)
        about.write_text(metadata()["METADATA"], encoding="utf-8")
        archive.add(about, f"{STEM}/PKG-INFO")
    return name
