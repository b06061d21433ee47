"""backplane launch -n 4 program.py: starts a Python program on several ranks of this machine, by mpirun."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="backplane launch", description="Starts a Python program on several ranks, by mpirun. What follows the program's name is given to it."
    )
    parser.add_argument("-n", "--ranks", type=int, required=True, help="how many ranks")
    parser.add_argument("--hosts", help="host:slots,host:slots, or left out for this machine alone")
    parser.add_argument("--logs", metavar="FOLDER", help="write what each rank prints to FOLDER/rank.N.log instead of the terminal")
    parser.add_argument("--mpirun", default=os.environ.get("BACKPLANE_MPIRUN", "mpirun"), help="the command (default: mpirun)")
    parser.add_argument("-m", "--module", action="store_true", help="the program is a module, as in python -m")
    parser.add_argument("program")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="the program's arguments")
    return parser.parse_args()


def command(given: argparse.Namespace) -> list[str]:
    """The command that the launcher runs."""
    words = [given.mpirun, "-n", str(given.ranks), "--oversubscribe", "--bind-to", "none"]
    words += ["--mca", "odls_base_sigkill_timeout", "4"]  # seconds in which the ranks report the loss of one
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        words.append("--allow-run-as-root")
    if given.hosts:
        words += ["--host", given.hosts]
    if given.logs is None:
        words.append("--tag-output")
    program = [sys.executable, *(["-m"] if given.module else []), given.program, *given.words]
    if given.logs is not None:
        program = [sys.executable, "-m", "backplane.distributed._logged", given.logs, *program]
    return [*words, *program]


def main() -> int:
    given = _arguments()
    if given.ranks < 1:
        print(f"backplane launch: found -n {given.ranks}, expected at least 1", file=sys.stderr)
        return 2
    if shutil.which(given.mpirun) is None:
        print(f"backplane launch: {given.mpirun} was not found. Fix: install MPI (Debian: openmpi-bin)", file=sys.stderr)
        return 1
    if given.logs is not None:
        os.makedirs(given.logs, exist_ok=True)
    # A busy wait of MPI takes a processor that another rank needs where there are more ranks than processors.
    busy = {} if given.ranks <= (os.cpu_count() or 1) else {"OMPI_MCA_mpi_yield_when_idle": "1"}
    process = subprocess.Popen(command(given), env={"OMP_NUM_THREADS": "1", "BACKPLANE_LAUNCH": "1", **busy, **os.environ})
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: process.send_signal(number))
    code = process.wait()
    if code:
        print(f"backplane launch: the ranks ended with exit status {code}", file=sys.stderr)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
