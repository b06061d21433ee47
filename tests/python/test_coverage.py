"""Every op has, under every transform, a rule or a refusal in writing: `backplane ops --coverage` ends well, and says so per op."""

import re
import subprocess

import backplane as bp


def test_no_op_has_a_hole():
    done = subprocess.run(["backplane", "ops", "--coverage"], capture_output=True, text=True)
    table, _, counts = done.stdout.partition("\n\n")
    rows = [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()]
    assert done.returncode == 0, [row[0] for row in rows if "missing" in row]
    assert {"vjp", "jvp", "2nd", "batch", "meta"} <= set(rows[0])
    names = {row[0] for row in rows[1:]}
    assert {"bp::add", "bp::matmul"} <= names and f"{len(names)} ops" in counts
    assert len(names) >= len({getattr(bp.ops.bp, name).full_name for name in dir(bp.ops.bp)})
