"""backplane lint outlives the code of the plugin that it opens, and says how that ended."""

import os
import pathlib
import shutil
import subprocess

import pytest
from sanitized import SANITIZED

TOOL = pathlib.Path(os.environ.get("BACKPLANE_BUILD", "/nonexistent")) / "bin" / "backplane"
ABI = pathlib.Path(__file__).parents[3] / "dispatcher" / "abi"


@pytest.mark.skipif(SANITIZED, reason="the sanitizer handles the signals")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc)")
@pytest.mark.parametrize("code, says", [("abort();", "the signal 6"), ("*(volatile int*)0 = 1;", "the signal 11"), ("_exit(0);", "exit(0)")])
def test_a_plugin_that_ends_its_process_is_a_finding(tmp_path, code, says):
    source, plugin = tmp_path / "rude.c", tmp_path / "rude.so"
    source.write_text(f"""#include <stdlib.h>
#include <unistd.h>
#include "backplane/abi/plugin.h"
BP_EXPORT bp_status BP_CALL bp_plugin_query(uint32_t major, uint32_t minor, bp_plugin* out) {{ {code} return BP_ERROR_VERSION; }}
""")
    subprocess.run(["cc", "-shared", "-fPIC", "-I", ABI, "-o", plugin, source], check=True)
    done = subprocess.run([TOOL, "lint", plugin], capture_output=True, text=True, timeout=90)
    assert done.returncode == 1 and f"its code ended the process of lint by {says}" in done.stdout, done.stdout + done.stderr
