"""A build backend (PEP 517) for the projects of plugins: scikit-build-core's, with the plugin's contract in the name of the wheel.

    [build-system]
    requires = ["scikit-build-core>=0.10", "wheel", "backplane>=0.1"]
    build-backend = "backplane.plugin_wheel"

`pip wheel .` then writes acme-0.1.0-0.3contract-py3-none-PLATFORM.whl. The build tag is the oldest contract of a Backplane that loads all plugins
in the wheel, as their manifests state it.
"""

import json
import pathlib
import subprocess
import sys
import zipfile

from scikit_build_core import build as _cmake
from scikit_build_core.build import *  # noqa: F403  the other hooks


def contract_of(wheel: pathlib.Path) -> str:
    """The build tag of a wheel, such as `0.3contract`. ValueError if no plugin with a manifest is in it."""
    with zipfile.ZipFile(wheel) as files:
        needed = [json.loads(files.read(name))["contract"] for name in files.namelist() if name.endswith(".backplane.json")]
    if not needed:
        raise ValueError(
            f"{wheel.name}: found no *.backplane.json, expected the manifest of a plugin. "
            "Fix: build the plugin with backplane_add_plugin, and install the component `plugins`"
        )
    major, minor = max((one["major"], one["minor"]) for one in needed)
    return f"{major}.{minor}contract"


def build_wheel(wheel_directory: str, config_settings: dict | None = None, metadata_directory: str | None = None) -> str:
    """Writes the wheel into the folder. Returns its name."""
    wheel = pathlib.Path(wheel_directory, _cmake.build_wheel(wheel_directory, config_settings, metadata_directory))
    command = [sys.executable, "-m", "wheel", "tags", "--remove", "--build", contract_of(wheel), str(wheel)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1]
