"""The ops of tests/python/entries, which come as a plugin's."""

import os
import pathlib

import backplane as bp
import pytest

FILE = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "")) / "tests/python/entries/test_entries.so"


@pytest.fixture(scope="session")
def entries():
    if not FILE.exists():
        pytest.skip(f"{FILE.name} is not there; build the target test_entries, and set BACKPLANE_BUILD")
    bp.load_plugin(str(FILE))
    return bp.ops.entries
