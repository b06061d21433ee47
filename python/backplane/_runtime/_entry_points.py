"""Plugins that other packages bring: entry points of the group `backplane.plugins`.

    [project.entry-points."backplane.plugins"]
    acme = "acme_backplane"

The value is a package, in whose folder manifests and shared objects lie. Nothing of it is imported. The metadata of
installed packages is read as text, since `importlib.metadata` takes longer to import than this package does.
"""

from __future__ import annotations

import os
import sys

GROUP = "backplane.plugins"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def entries_of(text: str) -> Iterator[tuple[str, str]]:
    """(name, value) of the group's lines in an entry_points.txt."""
    inside = False
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("["):
            inside = line == f"[{GROUP}]"
        elif inside and "=" in line and not line.startswith(("#", ";")):
            name, value = line.split("=", 1)
            yield name.strip(), value.split("[")[0].strip()


def _texts() -> Iterator[tuple[str, str, str]]:
    """(folder of sys.path, name, entry_points.txt) of the installed packages whose entry points name the group."""
    for folder in dict.fromkeys(sys.path):
        try:
            with os.scandir(folder or ".") as entries:
                places = [(entry.path, entry.name.split("-")[0]) for entry in entries if entry.name.endswith((".dist-info", ".egg-info"))]
        except OSError:
            continue
        for place, name in places:
            try:
                with open(os.path.join(place, "entry_points.txt"), encoding="utf-8") as file:
                    text = file.read()
            except (OSError, UnicodeDecodeError):
                continue
            if f"[{GROUP}]" in text:
                yield folder or ".", name, text


def folder_of(package: str) -> str | None:
    """Where a package lies, without importing it; None: there is none."""
    import importlib.util

    top, *rest = package.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        spec = None
    places = spec.submodule_search_locations if spec else None
    return os.path.join(next(iter(places)), *rest) if places else None


def plugin_folders() -> list[str]:
    """The folders of all entry points, in the order of sys.path. In the place of one whose package is missing stands what names it,
    which is no folder, so that the report of folders says so."""
    owners: dict[str, str] = {}
    for site, owner, text in _texts():
        for entry in entries_of(text):
            folder = _folder_of_entry(site, *entry)
            if owners.setdefault(folder, owner) != owner:
                _warn_of_two(folder, owners[folder], owner)
    return list(owners)


def _warn_of_two(folder, first, second):
    import warnings

    warnings.warn(
        f"the installed packages {first} and {second} both have their plugin in {folder}: the files of one were written over those of the other. "
        f"Fix: pip uninstall {first} {second}, then install one of them; a plugin needs a namespace of its own",
        RuntimeWarning,
        stacklevel=2,
    )


def _folder_of_entry(site: str, name: str, value: str) -> str:
    """A wheel's package is beside the wheel's metadata, where it is found without `importlib.util`. Elsewhere it is that of an editable
    installation."""
    beside = os.path.join(site, *value.split("."))
    return beside if os.path.isdir(beside) else folder_of(value) or f"package {value} of entry point {name}"


def offer():
    """Lets the manifests there be found; a folder that cannot be searched stands in the report with the reason."""
    from .. import _core

    for folder in plugin_folders():
        _core.offer_plugin_path(os.fsencode(folder))
