"""Importing is cheap: what it loads, and what it leaves closed."""

import json
import subprocess
import sys

PROBE = """
import json, sys
before = set(sys.modules)
import backplane
mapped = open('/proc/self/maps').read() if sys.platform == 'linux' else ''
print(json.dumps({
    'modules': sorted(set(sys.modules) - before),
    'plugins': [p.state for p in backplane.plugins()],
    'openblas': 'openblas' in mapped,
}))
"""


def after_import():
    return json.loads(subprocess.run([sys.executable, "-c", PROBE], check=True, capture_output=True, text=True).stdout)


def test_imports_nothing_slow():
    slow = {"numpy", "inspect", "typing", "dataclasses", "logging", "re", "ast", "asyncio", "torch"}
    assert slow.isdisjoint(after_import()["modules"])


def test_opens_no_plugin():
    seen = after_import()
    assert set(seen["plugins"]) <= {"found", "refused"}
    assert not seen["openblas"]


def test_every_name_of_the_package_resolves():
    import backplane as bp

    assert all(getattr(bp, name) is not None or name == "newaxis" for name in dir(bp))
    assert {"add", "asarray", "float32", "Tensor", "no_grad"} <= set(dir(bp))


def test_star_import_hides_no_private_name():
    names = {}
    exec("from backplane import *", names)
    assert not any(name.startswith("_") for name in names if name != "__builtins__")
