"""What the plugins show to the dynamic linker: one symbol out, none of Backplane's in."""

import subprocess

import pytest


def symbols(file, which):
    listed = subprocess.run(["nm", "-D", which, str(file)], check=True, capture_output=True, text=True).stdout
    return [line.split()[-1] for line in listed.splitlines()]


@pytest.fixture(params=["axpby", "simulator"])
def plugin(request, plugin_folder):
    return plugin_folder / f"{request.param}.so"


def test_only_the_query_is_exported(plugin):
    assert symbols(plugin, "--defined-only") == ["bp_plugin_query"]


def test_nothing_of_backplane_is_imported(plugin):
    assert [name for name in symbols(plugin, "--undefined-only") if "bp_" in name or "backplane" in name] == []
