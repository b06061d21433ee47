"""Ranks that Slurm starts. Where no Slurm runs, the tests say so and are left out."""

import functools
import os
import shutil
import subprocess
import sys

import pytest


@functools.cache
def missing():
    """Why no job can be run here, or ""."""
    if shutil.which("srun") is None:
        return "srun is not installed"
    try:
        done = subprocess.run(["srun", "--mpi=pmix", "--overcommit", "-n", "2", "--immediate=10", "true"], capture_output=True, text=True, timeout=30)
    except subprocess.TimeoutExpired:
        return "srun does not answer within 30 s"
    return "" if done.returncode == 0 else f"srun --mpi=pmix does not run here: {done.stderr[-200:]}"


@pytest.fixture
def slurm():
    if missing():
        pytest.skip(missing())


PROGRAM = """
import os, signal, sys
import backplane as bp

d = bp.distributed
d.init()
x = bp.ones(3)
total = d.all_reduce(x * d.rank())
assert total.tolist() == [d.size() * (d.size() - 1) / 2] * 3
print(f"rank {d.rank()} of {d.size()}", flush=True)
if sys.argv[1:] == ["kill"] and d.rank() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
d.all_reduce(x)
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


def output_of(*words, env=None):
    done = subprocess.run([*words], capture_output=True, text=True, timeout=120, env={**os.environ, **(env or {})})
    return done.returncode, done.stdout + done.stderr


def test_srun(slurm, program):
    code, output = output_of("srun", "--mpi=pmix", "--overcommit", "-n", "4", sys.executable, program)
    assert code == 0 and sorted(line for line in output.splitlines() if line.startswith("rank")) == [f"rank {i} of 4" for i in range(4)], output


def test_a_killed_rank_of_srun(slurm, program):
    code, output = output_of("srun", "--mpi=pmix", "--overcommit", "-n", "3", sys.executable, program, "kill")
    assert code != 0 and "DeviceError" in output and "rank 1 was lost: its process has ended" in output, output


def test_sbatch(slurm, program, tmp_path):
    job = tmp_path / "job.sh"
    job.write_text(f"#!/bin/bash\n#SBATCH --nodes=1 --ntasks-per-node=2\nsrun --mpi=pmix {sys.executable} {program}\n")
    code, output = output_of("sbatch", "--wait", "--overcommit", "-o", str(tmp_path / "out"), str(job))
    assert code == 0, output
    assert "rank 0 of 2" in (tmp_path / "out").read_text() and "rank 1 of 2" in (tmp_path / "out").read_text()


def test_tasks_without_mpi_are_refused(program):
    """Each would compute alone, and with the whole data."""
    launched = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMI"))}
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60, env={**launched, "SLURM_STEP_NUM_TASKS": "4"})
    assert done.returncode != 0 and "srun has started 4 tasks, but not as ranks of MPI. Fix: srun --mpi=pmix" in done.stderr, done.stderr
    alone = {**launched, "SLURM_STEP_NUM_TASKS": "4", "BACKPLANE_COLLECTIVES": "none"}
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60, env=alone)
    assert done.returncode == 0 and "rank 0 of 1" in done.stdout, done.stderr
