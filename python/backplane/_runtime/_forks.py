"""Before a fork all modules are there that the package imports at first use: a child cannot end an import that a thread of its
parent has begun, and waits for it without end.
"""

import os

_AT_FIRST_USE = (
    "_api._lower_median", "_calls._other_forms", "_calls._signature", "_custom_ops._custom_op", "_tensors._nested", "_tensors._repr", "fft", "linalg", "nn", "types",
)  # fmt: skip


def watch():
    def import_all():
        import collections
        import importlib
        import threading

        for name in _AT_FIRST_USE:
            importlib.import_module("backplane." + name)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=import_all)
