"""What the dynamic linker sees of a built plugin: one defined symbol, and no undefined one of ours.

Over every plugin of this tree's build (BACKPLANE_BUILD, set by ./dev); plugins/example has such a test of its own. Skipped
without a build.
"""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

BUILD = os.environ.get("BACKPLANE_BUILD", "")
PLUGINS = sorted(pathlib.Path(BUILD, "lib/backplane/plugins").glob("*.so")) if BUILD else []
OURS = re.compile(r"^(bp_|_ZT?[A-Z]*N?K?9backplane)")


def symbols(plugin, kind):
    """Names as `nm` prints them, without the version that a library may have tied to them."""
    listed = subprocess.run(["nm", "-D", kind, "--format=posix", str(plugin)], check=True, capture_output=True, text=True)
    return [line.split()[0].split("@")[0] for line in listed.stdout.splitlines()]


needs_nm = pytest.mark.skipif(shutil.which("nm") is None, reason="no nm on this machine")


@needs_nm
@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.stem)
def test_exports_the_query_alone(plugin):
    assert symbols(plugin, "--defined-only") == ["bp_plugin_query"]


@needs_nm
@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.stem)
def test_imports_nothing_of_ours(plugin):
    assert [name for name in symbols(plugin, "--undefined-only") if OURS.match(name)] == []


@pytest.mark.parametrize("name", ["bp_find_op", "_ZN9backplane7find_opE", "_ZNK9backplane5ErrorE", "_ZTIN9backplane5ErrorE"])
def test_a_symbol_of_ours_is_known(name):
    assert OURS.match(name)
