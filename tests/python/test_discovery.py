"""Where plugins are looked for, which are passed over, and that every refusal is reported: `backplane plugins --why`.

Each law runs the command in a process of its own, whose environment names folders made for it; of the plugins there only
the manifests matter, since the report opens nothing.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

COMMAND = pathlib.Path(os.environ["BACKPLANE_BUILD"], "bin/backplane") if "BACKPLANE_BUILD" in os.environ else None
pytestmark = pytest.mark.skipif(COMMAND is None or not COMMAND.exists(), reason="needs a build (BACKPLANE_BUILD)")


def manifest(folder, name, **more):
    """A manifest of a plugin that this build made, under a name of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    built = next(COMMAND.parent.parent.glob("lib/backplane/plugins/*.so"))
    shutil.copy(built, folder / f"{name}.so")
    text = {"name": name, "file": f"{name}.so", "contract": {"major": 0, "minor": 1}, "ops": [f"{name}::op"], **more}
    (folder / f"{name}.backplane.json").write_text(json.dumps(text))
    for path in (folder, *folder.iterdir()):
        path.chmod(path.stat().st_mode & ~0o022)


@pytest.fixture
def report(tmp_path):
    """Runs the command with these variables; its output."""
    def run(**variables):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "BACKPLANE_"))}
        home = {"HOME": str(tmp_path / "home"), "XDG_DATA_DIRS": str(tmp_path / "nobody")}
        return subprocess.run([COMMAND, "plugins", "--why"], env={**clean, **home, **variables}, check=True, capture_output=True, text=True).stdout

    return run


def state_of(text, name):
    return next((line.split()[1] for line in text.splitlines() if line.split()[:1] == [name]), None)


def test_the_user_and_the_system_have_folders(tmp_path, report):
    manifest(tmp_path / "home/.local/share/backplane/plugins", "of_home")
    manifest(tmp_path / "data/backplane/plugins", "of_data")
    manifest(tmp_path / "system/backplane/plugins", "of_system")
    assert state_of(report(), "of_home") == "found"
    found = report(XDG_DATA_HOME=str(tmp_path / "data"), XDG_DATA_DIRS=f"relative:{tmp_path / 'system'}")
    assert (state_of(found, "of_home"), state_of(found, "of_data"), state_of(found, "of_system")) == (None, "found", "found")


def test_the_stated_path_comes_first(tmp_path, report):
    """Of two versions of one plugin the first found counts; the other is refused, with the reason."""
    manifest(tmp_path / "new", "twice")
    manifest(tmp_path / "home/.local/share/backplane/plugins", "twice")
    text = report(BACKPLANE_PLUGIN_PATH=str(tmp_path / "new"))
    lines = [line for line in text.splitlines() if line.startswith("twice")]
    assert [line.split()[1] for line in lines] == ["found", "refused"] and str(tmp_path / "new") in lines[0]
    assert 'its name "twice" is that of' in text


@pytest.mark.parametrize("pattern", ["switched_off", "switched_*", "other:switched_off"])
def test_what_the_environment_disables_is_not_found(tmp_path, report, pattern):
    manifest(tmp_path / "plugins", "switched_off")
    path = str(tmp_path / "plugins")
    assert state_of(report(BACKPLANE_PLUGIN_PATH=path), "switched_off") == "found"
    text = report(BACKPLANE_PLUGIN_PATH=path, BACKPLANE_DISABLE_PLUGINS=pattern)
    assert state_of(text, "switched_off") == "refused" and "BACKPLANE_DISABLE_PLUGINS" in text


def test_a_file_of_the_user_disables_too(tmp_path, report):
    manifest(tmp_path / "plugins", "switched_off")
    listed = tmp_path / "home/.config/backplane/disabled_plugins"
    listed.parent.mkdir(parents=True)
    listed.write_text("# not on this machine\n  switched_off  # it crashes\n")
    text = report(BACKPLANE_PLUGIN_PATH=str(tmp_path / "plugins"))
    assert state_of(text, "switched_off") == "refused" and str(listed) in text


def test_what_is_disabled_takes_no_name_from_others(tmp_path, report):
    manifest(tmp_path / "old", "old_one", ops=["shared::op"])
    manifest(tmp_path / "new", "new_one", ops=["shared::op"])
    path = f"{tmp_path / 'old'}:{tmp_path / 'new'}"
    assert state_of(report(BACKPLANE_PLUGIN_PATH=path), "new_one") == "refused"
    assert state_of(report(BACKPLANE_PLUGIN_PATH=path, BACKPLANE_DISABLE_PLUGINS="old_one"), "new_one") == "found"


def test_every_refusal_is_reported(tmp_path, report):
    folder = tmp_path / "plugins"
    manifest(folder, "without_manifest")
    (folder / "without_manifest.backplane.json").unlink()
    manifest(folder, "of_another_major", contract={"major": 9, "minor": 0})
    (folder / "broken.backplane.json").write_text("{")
    text = report(BACKPLANE_PLUGIN_PATH=f"{folder}:{tmp_path / 'missing'}")
    for name, why in (("without_manifest", "has no manifest"), ("of_another_major", "contract major 9"), ("broken", "is not JSON")):
        assert state_of(text, name) == "refused" and why in text, name
    assert f"plugin folder {tmp_path / 'missing'}: cannot be read" in text


OF_MANIFEST = """
import backplane as bp
print("entries" in dir(bp.ops), dir(bp.ops.entries), [p.state for p in bp.plugins() if p.name == "test_entries"])
try:
    print(bp.ops.entries.turned(bp.ones((2, 3))).shape, bp.ops.entries)
except AttributeError as error:
    print(error)
"""


ENTRIES = "composed doubled halve handed_on keep largest mixed other_dtype other_shape portion positives positives_padded products put_wrong sided step swap turned wave".split()


@pytest.mark.parametrize("file", ["test_entries.so", "gone.so"])
def test_an_op_that_a_manifest_names_opens_its_plugin(tmp_path, file):
    """Or says why it cannot be opened."""
    folder = tmp_path / "plugins"
    manifest(folder, "test_entries", file=file, ops=[f"entries::{op}" for op in ENTRIES])
    shutil.copy(COMMAND.parent.parent / "tests/python/entries/test_entries.so", folder)
    (folder / "test_entries.so").chmod(0o755)
    done = subprocess.run([sys.executable, "-c", OF_MANIFEST], check=True, capture_output=True, text=True,
                          env={**os.environ, "BACKPLANE_PLUGIN_PATH": str(folder)})  # fmt: skip
    named, opened = done.stdout.splitlines()
    assert named == f"True {ENTRIES} ['found']"
    if file == "gone.so":
        assert "no op 'entries::turned' is registered: plugin 'test_entries' is refused" in opened and "gone.so" in opened
    else:
        assert opened == "(3, 2) <ops of entries>"


PROBE = """
import json, backplane as bp
from backplane import _core
print(json.dumps({"plugins": [[p.name, p.state] for p in bp.plugins()], "folders": _core.plugin_folders()}))
"""


def installed(site, name, value):
    """A package's metadata, as an installer writes it."""
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[console_scripts]\nx = x:x\n\n[backplane.plugins]\n{name} = {value}\n[other]\ny = y\n")


def test_packages_bring_plugins_by_entry_points(tmp_path):
    """Nothing of the package is imported, and one that is missing stops nobody."""
    site = tmp_path / "site"
    manifest(site / "acme_device/lib", "acme_of_entry_point")
    (site / "acme_device/__init__.py").write_text("raise RuntimeError('imported')\n")
    installed(site, "acme", "acme_device.lib")
    installed(site, "gone", "gone_device")
    site.chmod(0o755)
    run = subprocess.run([sys.executable, "-c", PROBE], check=True, capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{site}"})  # fmt: skip
    found = json.loads(run.stdout)
    assert ["acme_of_entry_point", "found"] in found["plugins"]
    assert any("gone_device" in folder and why for folder, why in found["folders"])


def test_two_packages_whose_files_lie_in_one_place_are_named(tmp_path):
    manifest(tmp_path / "acme_device", "acme_of_two")
    for name in ("acme_wave", "acme_curl"):
        installed(tmp_path, name, "acme_device")
    tmp_path.chmod(0o755)
    run = subprocess.run([sys.executable, "-c", PROBE], check=True, capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{tmp_path}"})  # fmt: skip
    assert "RuntimeWarning: the installed packages" in run.stderr and "pip uninstall" in run.stderr
    assert "acme_wave" in run.stderr and "acme_curl" in run.stderr
    assert ["acme_of_two", "found"] in json.loads(run.stdout)["plugins"]


def test_entry_points_are_read_as_the_packaging_guide_has_them():
    from backplane._runtime._entry_points import entries_of

    text = "[a]\nx=y\n[backplane.plugins]\n# a comment\none = first.lib\ntwo=second [extra]\n\n[b]\nz = w\n"
    assert list(entries_of(text)) == [("one", "first.lib"), ("two", "second")]


def test_devices_are_listed_with_the_reasons_of_those_that_are_not():
    listed = subprocess.run([COMMAND, "devices"], check=True, capture_output=True, text=True)
    names = [line.split()[0] for line in listed.stdout.splitlines()]
    assert "cpu" in names and all("MiB" in line for line in listed.stdout.splitlines())
    doctor = subprocess.run([COMMAND, "doctor"], check=True, capture_output=True, text=True).stdout.splitlines()
    assert names == [line.split()[2].rstrip(":") for line in doctor if line.startswith("ok    device ")]
    assert listed.stderr.splitlines() == [line.removeprefix("warn").strip() for line in doctor if line.startswith("warn  device ")]
