"""Tensors in several files with an index of Hugging Face's form. A save has files of its own; its index takes effect at once."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping

from .. import _core
from . import _safetensors

__all__ = []

_ENDING = ".safetensors"


def index_of(path):
    """The name of the index of a path, which may lack the ending."""
    return f"{path.removesuffix(_ENDING)}{_ENDING}.index.json"


def _groups(tensors, most):
    """The tensors in dicts of at most so many bytes."""
    groups, size = [{}], 0
    for name, x in tensors.items():
        if groups[-1] and size + x.nbytes > most:
            groups.append({})
            size = 0
        groups[-1][name] = x
        size += x.nbytes
    return groups


def _free_names(base, count):
    """NAME-00001-of-00003.safetensors and so on, or names with a number of this save where another save has those."""

    def names(start):
        return [f"{start}-{i + 1:05d}-of-{count:05d}{_ENDING}" for i in range(count)]

    plain = names(base)
    if not any(map(os.path.exists, plain)):
        try:
            os.close(os.open(plain[0], os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))  # no other process takes them now
            return plain
        except FileExistsError:
            pass
    return names(f"{base}-{uuid.uuid4().hex[:12]}")


def write(path, tensors, notes, most):
    """New files, then the index that names them, then without what an earlier save to the path wrote."""
    if os.path.isdir(path):
        raise IsADirectoryError(f"save: argument path: found the folder {path}, expected the name of a file")
    base, index = path.removesuffix(_ENDING), index_of(path)
    groups = _groups(tensors, most)
    files = _free_names(base, len(groups))
    try:
        for i, (file, group) in enumerate(zip(files, groups)):
            _safetensors.write(file, group, notes if i == 0 else {})
        places = {name: os.path.basename(file) for file, group in zip(files, groups) for name in group}
        about = {"total_size": sum(x.nbytes for x in tensors.values()), "saved_as": os.path.basename(path)}
        old = _files(index)
        with _safetensors.replaced(index) as file:
            file.write(json.dumps({"metadata": about, "weight_map": places}, indent=1).encode())
    except BaseException:
        if not set(files) <= set(_files(index)):
            _unlink(files)
        raise
    _unlink([path, *(name for name in old if name not in files)])


def remove(path):
    """Removes the index and the files of an earlier save to the path, which now is one file."""
    index = index_of(path)
    about = _content(index).get("metadata")
    owner = about.get("saved_as") if isinstance(about, dict) else None
    if os.path.exists(index) and (owner == os.path.basename(path) or (owner is None and path.endswith(_ENDING))):
        files = _files(index)
        _unlink([index, *files])


def _unlink(files):
    for file in files:
        if os.path.isfile(file):
            os.unlink(file)


def _content(index):
    try:
        with open(index, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _files(index):
    """The files of an index that bear its name."""
    folder, name = os.path.split(index)
    start = name.removesuffix(f"{_ENDING}.index.json") + "-"
    places = _content(index).get("weight_map")
    found = {place for place in places.values() if isinstance(place, str)} if isinstance(places, dict) else set()
    own = [place for place in found if place.startswith(start) and place.endswith(_ENDING) and os.path.basename(place) == place]
    return [os.path.join(folder, place) for place in own]


def read(index, device):
    """(a mapping of all tensors of an index, the metadata of save), each tensor read when it is asked for."""
    try:
        with open(index, encoding="utf-8") as file:
            places = json.load(file)["weight_map"]
        if any(os.path.basename(place) != place for place in places.values()):
            raise ValueError("a shard in another folder")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _core.ArgumentValueError(f"load: {index}: found {error}, expected an index of safetensors files with a weight_map") from None
    folder = os.path.dirname(index)
    shards = {place: _safetensors.Tensors(os.path.join(folder, place), device) for place in dict.fromkeys(places.values())}
    missing = [key for key, place in places.items() if key not in shards[place]]
    if missing:
        raise _core.ArgumentValueError(f"load: {index}: {missing[0]} is not in {places[missing[0]]}, as the index says")
    notes = next((shard.metadata for shard in shards.values() if "backplane.tree" in shard.metadata), {})
    return _Placed(places, shards), notes


class _Placed(Mapping):
    """The tensors of several files by name."""

    def __init__(self, places, shards):
        self.places, self.shards = places, shards

    def __getitem__(self, name):
        return self.shards[self.places[name]][name]

    def __iter__(self):
        return iter(self.places)

    def __len__(self):
        return len(self.places)

    def __repr__(self):
        return f"<{len(self)} tensors in {len(self.shards)} files>"
