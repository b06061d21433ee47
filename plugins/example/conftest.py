"""Loads the plugins of this project into the installed backplane: from the build folder beside this file, or from the
folder that BACKPLANE_EXAMPLE_PLUGINS names."""

import os
import pathlib

import pytest

BUILT = pathlib.Path(__file__).parent / "build/lib/backplane/plugins"


@pytest.fixture(scope="session")
def plugin_folder():
    folder = pathlib.Path(os.environ.get("BACKPLANE_EXAMPLE_PLUGINS", BUILT))
    if not folder.is_dir():
        pytest.skip(f"the example plugins are not built: there is no {folder}")
    return folder


@pytest.fixture(scope="session")
def simulator(plugin_folder):
    import backplane as bp

    return bp.load_plugin(str(plugin_folder / "simulator.so"))


@pytest.fixture(scope="session")
def axpby(plugin_folder, simulator):
    import backplane as bp

    bp.load_plugin(str(plugin_folder / "axpby.so"))
    return bp.ops.example.axpby
