"""What each rank of a test over MPI runs: the checks whose names are given, or all."""

import sys

import background_checks
import collective_checks
import data_parallel_checks
import sharding_checks
import tensor_parallel_checks

import backplane as bp

CHECKS = {**collective_checks.CHECKS, **background_checks.CHECKS, **data_parallel_checks.CHECKS, **sharding_checks.CHECKS, **tensor_parallel_checks.CHECKS}

if __name__ == "__main__":
    bp.distributed.init()
    for name in sys.argv[1:] or CHECKS:
        CHECKS[name]()
    bp.distributed.barrier()
    if bp.distributed.rank() == 0:
        print(f"passed on {bp.distributed.size()} ranks\n", end="", flush=True)
