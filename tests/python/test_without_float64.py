"""A device that does not compute in float64: what asks for float32 alone still runs there."""

import os
import pathlib
import subprocess
import sys

import pytest

PROGRAM = """
import sys
import backplane as bp, numpy as np
bp.load_plugin(sys.argv[1])
assert "float64" not in bp.device("sim").features
print("ready")
"""

CASES = {
    "linspace": """
for start, stop, num, endpoint in [(0, 1, 5, True), (-3.5, 1e6, 1001, True), (1, 3, 4, False), (2, 2, 3, True), (0, 1, 1, True)]:
    for dtype in ("float32", "float16", "complex64"):
        if dtype == "float16" and stop == 1e6:
            continue
        found = bp.linspace(start, stop, num, dtype=dtype, endpoint=endpoint, device="sim").numpy()
        wanted = np.linspace(start, stop, num, dtype="float64", endpoint=endpoint)
        limit = np.finfo(found.real.dtype).eps * max(abs(start), abs(stop))
        assert found.dtype == dtype and abs(found - wanted).max() <= limit, (start, stop, dtype)
""",
    "linspace of integers between fractions": """
try:
    bp.linspace(-0.5, 3, 4, dtype="int32", device="sim")
except bp.BackplaneError as error:
    assert "does not compute in float64" in str(error), error
else:
    raise AssertionError("rounded in float32")
""",
    "linspace of integers": """
assert bp.linspace(0, 9, 4, dtype="int32", device="sim").tolist() == [0, 3, 6, 9]
""",
    "compiled linspace": """
f = bp.compile(lambda x: x * bp.linspace(0, 1, 5, device="sim"))
assert f(bp.ones(5, device="sim")).tolist() == [0, 0.25, 0.5, 0.75, 1]
""",
}


@pytest.mark.parametrize("case", CASES)
def test_float32_needs_no_float64(case, simulator):
    ended = subprocess.run([sys.executable, "-c", PROGRAM + CASES[case], str(pathlib.Path(simulator))], capture_output=True, text=True,
                           timeout=60, env={**os.environ, "BACKPLANE_SIM_WITHOUT_FLOAT64": "1"})  # fmt: skip
    assert (ended.returncode, ended.stdout) == (0, "ready\n"), ended.stderr
