"""`./dev fuzz ops`: every op called with arguments that were not made for it, each op in a child process.

A call may return or raise one of Backplane's errors that names the op; see fuzz_case.py.
"""

import fuzz_runner
from fuzz_case import Case

if __name__ == "__main__":
    fuzz_runner.main("ops", __doc__, Case, 10_000)
