"""python -m backplane.distributed._logged FOLDER COMMAND…: runs the command, whose output goes to FOLDER/rank.N.log."""

import os
import sys

if __name__ == "__main__":
    rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMIX_RANK") or os.environ.get("PMI_RANK") or "0"
    log = os.open(os.path.join(sys.argv[1], f"rank.{rank}.log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.execv(sys.argv[2], sys.argv[2:])
