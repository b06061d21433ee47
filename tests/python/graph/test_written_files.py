"""Laws of files that are written: whole or not at all, by several processes at once, and nothing but their content changes."""

import json
import os
import pathlib
import stat
import struct
import subprocess
import sys
import time

import backplane as bp
import pytest


def model(x):
    return x * 2 + 1


def write_model(path):
    bp.export(model, [bp.ones(2)], path)


def generate(path):
    """A file of codegen's in a folder of its own, named by --depfile."""
    codegen = pathlib.Path(os.environ["BACKPLANE_BUILD"], "bin/backplane-codegen")
    ops = pathlib.Path(__file__).resolve().parents[3] / "plugins/wave/ops.yaml"
    done = subprocess.run([codegen, "--ops", ops, "--out", path.parent / "out", "--emit", "records", "--depfile", path], capture_output=True, text=True)
    if done.returncode:
        raise bp.ArgumentValueError(done.stderr)


WRITERS = [
    pytest.param(write_model, id="export"),
    pytest.param(generate, id="codegen", marks=pytest.mark.skipif("BACKPLANE_BUILD" not in os.environ, reason="needs a build (BACKPLANE_BUILD)")),
]


def left_over(folder):
    return [path.name for path in folder.iterdir() if path.name not in ("m", "out")]


@pytest.mark.parametrize("write", WRITERS)
def test_a_replaced_file_keeps_its_mode(write, tmp_path):
    path = tmp_path / "m"
    path.write_text("old")
    path.chmod(0o600)
    write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and path.read_bytes() != b"old" and left_over(tmp_path) == []


@pytest.mark.parametrize("write", WRITERS)
def test_a_new_file_has_the_mode_of_the_umask(write, tmp_path):
    before = os.umask(0o027)
    try:
        write(tmp_path / "m")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("write", WRITERS)
def test_a_replaced_file_keeps_its_owner(write, tmp_path):
    path = tmp_path / "m"
    path.write_text("old")
    os.chown(path, 1234, 2345)
    write(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("write", WRITERS)
def test_a_link_stays_and_its_target_is_written(write, there, tmp_path):
    (tmp_path / "other").mkdir()
    target = tmp_path / "other/target"
    if there:
        target.write_text("old")
    (tmp_path / "m").symlink_to("second")
    (tmp_path / "second").symlink_to("other/target")
    write(tmp_path / "m")
    assert (tmp_path / "m").is_symlink() and (tmp_path / "second").is_symlink() and not target.is_symlink()
    assert target.stat().st_size > 10 and list((tmp_path / "other").iterdir()) == [target]


@pytest.mark.parametrize("write", WRITERS)
def test_what_is_not_a_regular_file_stays_as_it_is(write, tmp_path):
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe/m")
    (tmp_path / "folder/m").mkdir(parents=True)
    (tmp_path / "device").mkdir()
    (tmp_path / "device/m").symlink_to("/dev/null")
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop/m").symlink_to("m")
    for name in ("pipe", "folder", "device", "loop"):
        with pytest.raises(bp.ArgumentValueError, match="m: cannot be written: (it is not a regular file|Too many levels of symbolic links)"):
            write(tmp_path / name / "m")
        assert left_over(tmp_path / name) == [], name
    assert stat.S_ISFIFO((tmp_path / "pipe/m").stat().st_mode) and stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("write", WRITERS)
def test_planted_links_are_not_followed(write, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    for ending in (".part", ".tmp", f".{os.getpid()}"):
        (tmp_path / f"m{ending}").symlink_to(victim)
    write(tmp_path / "m")
    assert victim.read_text() == "untouched" and not (tmp_path / "m").is_symlink()


MANY = """
import sys
import backplane as bp
w = bp.full((50_000,), float(sys.argv[2]))
while True:
    bp.export(lambda x: x * w, [bp.ones(50_000)], sys.argv[1])
"""


def test_models_of_two_processes_do_not_mix(tmp_path):
    path = tmp_path / "m"
    writers = [subprocess.Popen([sys.executable, "-c", MANY, path, str(value)]) for value in (1.0, 2.0)]
    seen = set()
    end = time.monotonic() + 30
    try:
        while time.monotonic() < end and len(seen) < 2:
            if path.exists():
                seen.add(frozenset(bp.load(path)(bp.ones(50_000))[0].tolist()))
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    assert seen and all(len(values) == 1 for values in seen)


@pytest.mark.parametrize("call", [lambda path: bp.load(path), write_model, lambda path: bp.load_plugin(path), lambda path: bp.add_plugin_path(path)],
                         ids=["load", "export", "load_plugin", "add_plugin_path"])  # fmt: skip
def test_a_path_with_a_zero_byte_is_refused_whole(call, tmp_path):
    with pytest.raises(bp.ArgumentValueError, match=r"argument (path|folder): found '.*m\\x00.st', expected a path without zero bytes"):
        call(f"{tmp_path}/m\0.st")
    assert list(tmp_path.iterdir()) == []


def test_names_that_are_no_text_are_names(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff.safetensors"
    write_model(path)
    for name in (path, os.fsdecode(path)):
        assert bp.load(name)(bp.ones(2))[0].tolist() == [3, 3]


def with_names(path, names):
    """A model's file with tensors without elements beside its own."""
    write_model(path)
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    end = max([row["data_offsets"][1] for name, row in header.items() if name != "__metadata__"], default=0)
    header.update({name: {"dtype": "U8", "shape": [0], "data_offsets": [end, end]} for name in names})
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])
    return path


def test_a_file_of_many_names_loads(tmp_path):
    """In a second; time that grows with the square of their number would be ten minutes."""
    path = with_names(tmp_path / "m", [f"layer.{i * 7919 % 300_000}.weight" for i in range(300_000)])
    assert bp.load(path)(bp.ones(2))[0].tolist() == [3, 3]
