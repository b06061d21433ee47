"""The commands of an installed wheel: `backplane` and `backplane-codegen`, whose programs lie inside the package."""

import os
import sys


def _run(program, *options):
    path = os.path.join(os.path.dirname(os.path.dirname(__file__)), "bin", program)
    if not os.path.exists(path):
        sys.exit(f"{program}: this installation of backplane was built without it")
    os.execv(path, [program, *options, *sys.argv[1:]])


def backplane():
    if sys.argv[1:2] == ["convert"]:  # in this interpreter, which has the package
        os.execv(sys.executable, [sys.executable, "-m", "backplane.onnx", *sys.argv[2:]])
    if sys.argv[1:2] == ["launch"]:
        os.execv(sys.executable, [sys.executable, "-m", "backplane.distributed.launch", *sys.argv[2:]])
    if sys.argv[1:2] == ["bridge"] and len(sys.argv) > 2 and sys.argv[2].isidentifier():
        os.execv(sys.executable, [sys.executable, "-m", f"backplane.{sys.argv[2]}", "bridge", *sys.argv[3:]])
    from ._entry_points import plugin_folders

    _run("backplane", *(word for folder in plugin_folders() for word in ("--plugin-path", folder)))


def codegen():
    _run("backplane-codegen")
