"""Files in a plugin folder must not hide other plugins: bad bytes, bad names, files that others may write."""

import json
import os
import subprocess
import sys

import pytest

import backplane as bp

GOOD = {"name": "good", "file": "good.so", "contract": {"major": 0, "minor": 1}, "ops": ["good::op"]}


@pytest.fixture(autouse=True)
def only_the_owner_writes():
    before = os.umask(0o022)
    yield
    os.umask(before)


def states(folder):
    """{name: (state, why)} of the plugins that a fresh process finds in a folder."""
    done = subprocess.run(
        [sys.executable, "-c", "import backplane as bp, json; print(json.dumps([[p.name, p.state, p.why] for p in bp.plugins()]))"],
        env={**os.environ, "BACKPLANE_PLUGIN_PATH": os.fsdecode(folder)}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {name: (state, why) for name, state, why in json.loads(done.stdout)}


BAD = {
    b"bytes": b'{"name": "\xff\xfe", "file": "a.so"}',
    b"name\xff": b"[",
    b"depth": b"[" * 400_000,
    b"closed_depth": b"[" * 400_000 + b"]" * 400_000,
    b"deep_name": b'{"name": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b"empty": b"",
    b"nul": b"\0" * 100,
    b"escape": b'{"name": "\\u001b[2J", "file": "a.so", "contract": {"major": 0, "minor": 1}}',
    b"number": b"1e99999",
    b"surrogate": b'{"name": "\\ud800"}',
}


@pytest.mark.parametrize("bad", BAD, ids=lambda name: name.decode("ascii", "backslashreplace"))
def test_one_bad_manifest_hides_no_other(tmp_path, bad):
    folder = os.fsencode(tmp_path)
    with open(os.path.join(folder, bad + b".backplane.json"), "wb") as file:
        file.write(BAD[bad])
    (tmp_path / "good.backplane.json").write_text(json.dumps(GOOD))
    found = states(folder)
    assert found["good"][0] == "found" and "backplane_cpu" in found
    state, why = found[bad.decode("ascii", "backslashreplace")]
    assert state == "refused" and "manifest" in why and len(why) < 1000


@pytest.mark.parametrize("content", [None, b"", b"no shared object", bytes(3000)])
def test_what_has_no_library_takes_no_name(tmp_path, content):
    """A manifest that claims the host's device, with nothing or garbage behind it."""
    claim = {**GOOD, "name": "claims", "file": "claims.so", "backends": ["cpu"], "host_backends": ["cpu"]}
    (tmp_path / "claims.backplane.json").write_text(json.dumps(claim))
    if content is not None:
        (tmp_path / "claims.so").write_bytes(content)
    found = states(os.fsencode(tmp_path))
    assert found["claims"][0] == "refused" and "claims.so" in found["claims"][1]
    assert found["backplane_cpu"][0] != "refused"


def test_paths_need_not_be_text(tmp_path):
    folder = os.fsencode(tmp_path) + b"/\xff\xfe"
    os.mkdir(folder)
    with open(folder + b"/good.backplane.json", "w") as file:
        json.dump({**GOOD, "name": "good_bytes", "ops": []}, file)
    bp.add_plugin_path(os.fsdecode(folder))
    (path,) = [p.path for p in bp.plugins() if p.name == "good_bytes"]
    assert os.fsencode(path) == folder + b"/good.so"
    with pytest.raises(bp.BackplaneError, match=r"\\xff\\xfe/none.so"):
        bp.load_plugin(os.fsdecode(folder + b"/none.so"))


def test_why_is_shown(tmp_path):
    (tmp_path / "good.backplane.json").write_text(json.dumps(GOOD))
    (tmp_path / "good.backplane.json").chmod(0o666)
    state, why = states(tmp_path)["good"]
    assert state == "refused" and "may be written by everybody" in why and "chmod o-w" in why
    (tmp_path / "good.backplane.json").chmod(0o644)
    tmp_path.chmod(0o777)
    assert "good" not in states(tmp_path)
    done = subprocess.run(
        ["backplane", "plugins", "--why"],
        env={**os.environ, "BACKPLANE_PLUGIN_PATH": str(tmp_path)}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert "is not searched" in done.stdout and "may be written by everybody" in done.stdout
