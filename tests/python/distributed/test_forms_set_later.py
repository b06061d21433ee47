"""Sharded tensors in a program that has called ops before it first used bp.distributed."""

import subprocess
import sys

PROGRAM = """
import backplane as bp

for refused in (lambda: bp.stack([object()]), lambda: bp.sum("word"), lambda: bp.reshape("word", (2,))):
    try:
        refused()
    except bp.ArgumentTypeError:
        pass
d = bp.distributed
d.init()
x = bp.shard(bp.ones((2, 2)), d.mesh((1,), ("data",)), ("data", None))
assert bp.sum(x).item() == 4 and bp.stack([x, x]).shape == (2, 2, 2) and bp.reshape(x, (4,)).shape == (4,)
"""


def test_ops_that_were_called_before():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
