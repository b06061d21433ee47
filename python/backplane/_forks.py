"""Before a fork all modules are there that the package imports at first use: a child cannot end an import that a thread of its
parent has begun, and waits for it without end.
"""

import os

_AT_FIRST_USE = ("_custom_op", "_dim_forms", "_nested", "_other_forms", "_repr", "_signature", "fft", "linalg", "nn", "types")


def watch():
    def import_all():
        import collections
        import importlib
        import threading

        for name in _AT_FIRST_USE:
            importlib.import_module("." + name, __package__)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=import_all)
