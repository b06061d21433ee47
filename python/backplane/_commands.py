"""The commands of an installed wheel: `backplane` and `backplane-codegen`, whose programs lie inside the package."""

import os
import sys


def _run(program):
    path = os.path.join(os.path.dirname(__file__), "bin", program)
    if not os.path.exists(path):
        sys.exit(f"{program}: this installation of backplane was built without it")
    os.execv(path, [program, *sys.argv[1:]])


def backplane():
    _run("backplane")


def codegen():
    _run("backplane-codegen")
