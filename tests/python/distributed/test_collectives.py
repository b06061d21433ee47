"""Collectives on ranks that are threads, and on processes over MPI. `./dev test collectives` runs all of it."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import collective_checks as checks
import pytest
import rank_program

import backplane as bp

HERE = pathlib.Path(__file__).parent
LAUNCH = [sys.executable, "-m", "backplane.distributed.launch"]
whole = pytest.mark.skipif(not checks.WHOLE, reason="./dev test collectives runs it")


def has_mpi():
    plugin = next(p for p in bp.plugins() if p.name == "backplane_collectives")
    return (pathlib.Path(plugin.path).parents[1] / "collectives" / "mpi.so").exists() and shutil.which("mpirun") is not None


# MPI itself does not run under a sanitizer that is loaded before it.
is_sanitized = "san.so" in os.environ.get("LD_PRELOAD", "")
mpi = pytest.mark.skipif(not has_mpi() or is_sanitized, reason="the MPI provider is not built (libopenmpi-dev and openmpi-bin are missing), or a sanitizer is loaded")


def launch(n, *words, env=None, limit=120):
    """The output of a program on n ranks, and how it ended."""
    started = time.monotonic()
    done = subprocess.run([*LAUNCH, "-n", str(n), *map(str, words)], env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=limit)
    return done.returncode, done.stdout + done.stderr, time.monotonic() - started


@pytest.mark.parametrize("n", [1, 2, 3, 4] if checks.WHOLE else [2])
@pytest.mark.parametrize("name", rank_program.CHECKS)
def test_ranks_as_threads(n, name):
    bp.distributed.run_threads(n, rank_program.CHECKS[name], timeout=30)


@mpi
@pytest.mark.parametrize("n", [2, 4] if checks.WHOLE else [2])
def test_ranks_over_mpi(n):
    code, output, _ = launch(n, HERE / "rank_program.py", env={"BACKPLANE_COLLECTIVES_TIMEOUT": "60"}, limit=500)
    assert code == 0 and f"passed on {n} ranks" in output, output[-4000:]


MANY = """
import sys
import backplane as bp

d = bp.distributed
d.init(timeout=60)
x = bp.ones(1)
for _ in range(int(sys.argv[1])):
    y = d.all_reduce(x)
assert y.item() == d.size()
d.barrier()
print("reached the end")
"""


LINES = """
import backplane as bp

bp.distributed.init()
for i in range(100):
    print("line", i, "of rank", bp.distributed.rank())
"""


@mpi
@whole
def test_lines_of_ranks_stay_whole(tmp_path):
    (tmp_path / "lines.py").write_text(LINES)
    code, output, _ = launch(2, tmp_path / "lines.py", env={"PYTHONUNBUFFERED": "1"})
    assert code == 0 and len(re.findall(r"^\[1,[01]\]<stdout>:line \d+ of rank [01]$", output, re.M)) == 200, output[:2000]


@mpi
@whole
@pytest.mark.parametrize(("n", "calls"), [(2, 10**6), (4, 10**4)])
def test_many_calls(n, calls, tmp_path):
    (tmp_path / "many.py").write_text(MANY)
    code, output, _ = launch(n, tmp_path / "many.py", calls, limit=900)
    assert code == 0 and output.count("reached the end") == n, output[-4000:]


@mpi
@whole
@pytest.mark.parametrize("setting", ["BACKPLANE_MPI_LARGEST_COUNT=3", "BACKPLANE_MPI_SHARED_MEMORY=0"])
def test_parts_and_ranks_without_shared_memory(setting):
    """Calls of more elements than one call of MPI takes, and ranks on several machines."""
    name, value = setting.split("=")
    only = ["check_adjoints", "check_vmap", "check_traces", "check_compiled", "check_groups", "check_pipeline"]
    code, output, _ = launch(3, HERE / "rank_program.py", *only, env={name: value, "BACKPLANE_COLLECTIVES_TIMEOUT": "60"})
    assert code == 0 and "passed on 3 ranks" in output, output[-4000:]


def test_refuses_without_init():
    """In a process of its own: here, another test may have called init."""
    done = subprocess.run([sys.executable, "-c", "import backplane as bp; bp.distributed.all_reduce(bp.ones(3))"], capture_output=True, text=True)
    assert "DeviceError" in done.stderr and "call bp.distributed.init" in done.stderr


# ---- faults ---------------------------------------------------------------------------------------------------------

FAULTS = {
    # what the ranks do after two calls; what the error says on every other rank
    "killed": ("if d.rank() == 1: os.kill(os.getpid(), signal.SIGKILL)", "rank 1"),
    "shape": ("x = bp.ones(4 if d.rank() == 1 else 3)", "rank 1 calls all_reduce of float32 (4,) with op sum at fault.py:13"),
    "dtype": ("x = bp.ones(3, dtype=bp.float64 if d.rank() == 1 else bp.float32)", "rank 1 calls all_reduce of float64 (3,) with op sum at fault.py:13"),
    "reduction": ("op = 'max' if d.rank() == 1 else 'sum'", "rank 1 calls all_reduce of float32 (3,) with op max at fault.py:13"),
    "order": ("if d.rank() == 1: d.all_gather(x)", "rank 1 calls all_gather of float32 (3,) at fault.py:12"),
    "ended": ("if d.rank() == 1: sys.exit(0)", "rank 1 has left"),
    "raised": ("if d.rank() == 1: raise ValueError('of the user')", "rank 1 has left"),
    "killed while data moves": ("work = d.all_reduce(bp.ones(1 << 22), async_op=True)\nif d.rank() == 1: os.kill(os.getpid(), signal.SIGKILL)\nwork.wait()", "rank 1"),
    "late": ("if d.rank() == 1: time.sleep(60)", "rank 1 has not arrived"),
    "another call": ("if d.rank() == 1: d.recv(x, source=0)", "rank 1 calls recv of float32 (3,) at fault.py:12 and waits for rank 0"),
    "another group": (
        "groups = [d.new_group([0, 1]), d.new_group([0, 1, 2])]\n[d.all_reduce(x, group=g) for g in groups if d.rank() in g]\nfor g in groups[:: -1 if d.rank() == 1 else 1]: d.rank() in g and d.all_reduce(x, group=g)",
        "rank 0 calls all_reduce of float32 (3,) with op sum at fault.py:14 in group 0,1 and waits for rank 1",
    ),
}
PROGRAM = """
import atexit, os, signal, sys, time
import backplane as bp

d = bp.distributed
d.init()
x, op = bp.ones(3), "sum"
d.all_reduce(x)
d.broadcast(x)
print("begin", time.time(), flush=True)
atexit.register(lambda: print("raised", time.time(), flush=True))
FAULT
print(d.all_reduce(x, op))
"""


BETWEEN_MACHINES = {"BACKPLANE_MPI_SHARED_MEMORY": "0"}


@mpi
@pytest.mark.parametrize(
    ("fault", "env"),
    [(fault, env) for fault in FAULTS for env in ({}, BETWEEN_MACHINES)] if checks.WHOLE else [("killed", {}), ("shape", {}), ("late", {}), ("another call", BETWEEN_MACHINES)],
    ids=lambda value: value if isinstance(value, str) else "one machine" if not value else "between machines",
)
def test_faults(fault, env, tmp_path):
    """Every other rank raises within 5 s, and all processes end."""
    action, text = FAULTS[fault]
    (tmp_path / "fault.py").write_text(PROGRAM.replace("FAULT", action).lstrip("\n").replace("import atexit", "\nimport atexit", 1))
    logs = tmp_path / "logs"
    settings = {**env, "BACKPLANE_COLLECTIVES_TIMEOUT": "4.5" if checks.WHOLE else "1"} if fault == "late" else env
    code, output, _ = launch(3, "--logs", logs, tmp_path / "fault.py", env=settings, limit=60)
    ended = time.time()
    assert code != 0, output
    for rank in (0, 2):
        log = (logs / f"rank.{rank}.log").read_text()
        begin = float(log.split("begin ")[1].split()[0])
        assert text in log and "DeviceError" in log, f"rank {rank}: {log}\n{output}"
        assert "fault.py:1" in log or fault.startswith("killed"), log
        raised = float(log.split("raised ")[1].split()[0]) if "raised " in log else begin
        assert raised - begin < 6, "the error came late"
        assert ended - begin < 40, "the processes ended late"


@mpi
@whole
@pytest.mark.parametrize("env", [{}, BETWEEN_MACHINES], ids=["one machine", "between machines"])
def test_a_slow_rank_is_waited_for(env, tmp_path):
    """A rank that runs is no lost rank, however late it is; the others say whom they wait for."""
    action = "if d.rank() == 1: time.sleep(8)"
    (tmp_path / "slow.py").write_text(PROGRAM.replace("FAULT", action))
    code, output, _ = launch(3, tmp_path / "slow.py", env=env, limit=60)
    assert code == 0 and output.count("tensor([3., 3., 3.])") == 3, output
    assert len(re.findall(r"rank [02] has waited 5 s for rank 1 in all_reduce of float32 \(3,\) with op sum at slow.py:13; rank 1 is running", output)) == 1, output


KILLED = """
import os, random, signal, threading, time
import backplane as bp

d = bp.distributed
d.init()
x, big = bp.ones(3), bp.ones(1 << 18)
d.barrier()
print("begin", time.time(), flush=True)
if d.rank() == 1:
    threading.Timer(random.Random(SEED).random(), os.kill, (os.getpid(), signal.SIGKILL)).start()
try:
    while True:
        d.all_reduce(x)
        d.all_gather(big)
        d.send(x, dest=(d.rank() + 1) % 3)
        d.recv(like=x, source=(d.rank() - 1) % 3)
finally:
    print("raised", time.time(), flush=True)
"""


@mpi
@whole
@pytest.mark.parametrize("seed", range(int(os.environ.get("BACKPLANE_COLLECTIVES_KILLS", 10))))
def test_killed_at_a_random_point(seed, tmp_path):
    (tmp_path / "killed.py").write_text(KILLED.replace("SEED", str(seed)))
    logs = tmp_path / "logs"
    code, output, _ = launch(3, "--logs", logs, tmp_path / "killed.py", limit=240)
    assert code != 0
    for rank in (0, 2):
        log = (logs / f"rank.{rank}.log").read_text()
        assert "rank 1 was lost" in log and "DeviceError" in log, f"rank {rank}: {log}\n{output}"
        begin, raised = (float(log.split(word)[1].split()[0]) for word in ("begin ", "raised ")) if "raised " in log else (0, 0)
        assert raised - begin < 6, "the error came late"


def test_faults_of_threads():
    def late():
        if bp.distributed.rank() != 1:
            bp.distributed.all_reduce(bp.ones(3))

    with pytest.raises(bp.DeviceError, match="rank 1 has left"):
        bp.distributed.run_threads(3, late, timeout=2)

    def different():
        bp.distributed.all_reduce(bp.ones(2 + bp.distributed.rank()))

    with pytest.raises(bp.DeviceError, match=r"disagree in call 1: rank 0 calls all_reduce of float32 \(2,\) with op sum at test_collectives.py:\d+; rank"):
        bp.distributed.run_threads(2, different)

    def circle():
        r, x = bp.distributed.rank(), bp.ones(3)
        bp.distributed.send(x, dest=1) if r == 2 else bp.distributed.recv(x, source=1 - r)

    with pytest.raises(bp.DeviceError, match=r"rank 0 calls recv of float32 \(3,\) at test_collectives.py:\d+ and waits for rank 1; rank 1 calls recv .* and waits for rank 0"):
        bp.distributed.run_threads(3, circle)


def test_a_stage_that_does_not_differentiate_like():
    """In a pipeline, the first stage waits for a gradient that the second one never computes."""

    def pipeline():
        d = bp.distributed
        for _ in range(2):
            if d.rank() == 0:
                bp.grad(lambda w: d.send(w * 2, dest=1).sum())(bp.ones(2))
            else:
                bp.grad(lambda w: (w * d.recv(bp.zeros(2), source=0)).sum())(bp.ones(2))

    with pytest.raises(bp.DeviceError, match="recv at the line of a send waits for its gradient: the rank that received the tensor has to differentiate `like`, too"):
        bp.distributed.run_threads(2, pipeline)


def test_a_slow_thread_is_waited_for(capfd):
    def slow():
        if bp.distributed.rank() == 1:
            time.sleep(5.3)
        return bp.distributed.all_reduce(bp.ones(())).item()

    assert bp.distributed.run_threads(2, slow) == [2.0, 2.0]
    assert re.search(r"backplane: rank 0 has waited 5 s for rank 1 in all_reduce of float32 \(\) with op sum at test_collectives.py:\d+; rank 1 is running", capfd.readouterr().err)
