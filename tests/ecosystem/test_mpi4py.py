"""mpi4py's own tests of buffers, with our tensors in the place of NumPy's arrays: equal counts.

They come with mpi4py's sources: MPI4PY_TESTS names the folder `test` of an unpacked `pip download --no-binary mpi4py --no-deps mpi4py`.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("mpi4py")
FOLDER = os.environ.get("MPI4PY_TESTS", "")
PROGRAM = pathlib.Path(__file__).parent / "mpi4py_arrays" / "run.py"
MODULES = ["test_cco_buf", "test_cco_vec", "test_p2p_buf", "test_p2p_buf_matched", "test_rma"]


def counts(kind, ranks):
    words = ["mpirun", "-n", str(ranks), "--oversubscribe", "--allow-run-as-root", sys.executable, PROGRAM, FOLDER, kind, *MODULES]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=600, env={**os.environ, "OMPI_MCA_mpi_yield_when_idle": "1"})
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stdout[-2000:] + done.stderr[-4000:]
    return json.loads(lines[-1])


@pytest.mark.skipif(not FOLDER or shutil.which("mpirun") is None, reason="MPI4PY_TESTS does not name mpi4py's tests, or there is no mpirun")
@pytest.mark.parametrize("ranks", [1, 2])
def test_counts_equal_numpys(ranks):
    ours = counts("backplane", ranks)
    assert ours == counts("numpy", ranks) and ours["failed"] == 0 and ours["passed subtests"] > 1000
