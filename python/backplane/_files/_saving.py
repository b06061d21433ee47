"""save and load: nested containers of tensors in files, atomically; and the formats that load tells apart."""

from __future__ import annotations

import os

from .. import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, BinaryIO

    from .._core import Device

__all__ = ["load", "save"]

TREE_KEY = "backplane.tree"
GRAPH_KEY = "backplane.graph"
_PLAIN = (bool, int, float, str, type(None))


def save(obj: Any, path: str | os.PathLike[str] | BinaryIO, *, metadata: Mapping[str, str] | None = None, max_shard_size: int | None = None) -> None:
    """Writes tensors in nested containers to a file, whole or not at all.

    obj: tensors, arrays, numbers, strings and None in dicts, lists and tuples; or an object with a state_dict (a module, an
        optimiser, a scheduler), of which that is written, also within a container.
    path: a name that ends with .npy (one tensor) or .npz chooses NumPy's formats. In .npz, tensors of inner containers have the
        keys on the way as a name, "layers.0.weight", and load gives one dict. Every other name chooses safetensors, with what is not
        a tensor in its metadata: every reader of safetensors opens the file. A binary file object that is open for writing is
        written at its position, in the format of its name if it has one; such a write is not atomic.
    metadata: strings by name for the file. max_shard_size: bytes above which the tensors go into several files, with an index
        of Hugging Face's form beside them.
    The arguments may come in the other order, as in NumPy.
    What is saved is a tree: a tensor in two places comes back as two tensors, an OrderedDict as a dict, a named tuple as a tuple.
    A save replaces what an earlier save to the same path wrote, in one file or in several.
    Errors: ArgumentTypeError for a value that none of these is, with its place; ArgumentValueError for a container that contains
        itself; OSError.

    Example:
        >>> bp.save({"w": bp.ones(2), "step": 3}, "state.safetensors")
        >>> bp.load("state.safetensors")
        {'w': tensor([1., 1.]), 'step': 3}
    """
    if isinstance(obj, (str, os.PathLike)) and not isinstance(path, (str, os.PathLike)):
        obj, path = path, obj
    if _is_file(obj, "write") and not _is_file(path, "write"):
        obj, path = path, obj
    in_file = _is_file(path, "write")
    if not in_file and not isinstance(path, (str, os.PathLike)):
        raise _core.ArgumentTypeError(f"save: argument path: found {type(path).__name__}, expected a path or a binary file object")
    if in_file and max_shard_size is not None:
        raise _core.ArgumentValueError("save: argument max_shard_size: several files need a path, but path is a file object. Fix: leave one out")
    obj = _state_of(obj)
    name = getattr(path, "name", "") if in_file else path
    ending = os.path.splitext(os.fsdecode(name))[1].lower() if isinstance(name, (str, bytes, os.PathLike)) else ""
    if ending in (".npy", ".npz"):
        _save_numpy(obj, path, ending)
        return
    import json

    tensors, tree = {}, None
    if not (isinstance(obj, dict) and obj and all(isinstance(k, str) and isinstance(v, _core.Tensor) for k, v in obj.items())):
        try:
            tree = _described(obj, (), tensors)
        except RecursionError:
            raise _core.ArgumentValueError("save: argument obj: found a container that contains itself or is nested too deeply, expected a tree") from None
    else:
        tensors = {name: _plain(x, name) for name, x in obj.items()}
    if "__metadata__" in tensors:
        raise _core.ArgumentValueError("save: found a tensor with the name '__metadata__', which is reserved in safetensors files. Fix: rename it")
    notes = {str(name): str(value) for name, value in (metadata or {}).items()}
    notes |= {} if tree is None else {TREE_KEY: json.dumps(tree, separators=(",", ":"))}
    from . import _safetensors, _shards

    if max_shard_size is not None and sum(x.nbytes for x in tensors.values()) > max_shard_size:
        _shards.write(os.fsdecode(path), tensors, notes, max_shard_size)
    elif in_file:
        _safetensors.write_to(path, tensors, notes)
    else:
        _safetensors.write(path, tensors, notes)
        _shards.remove(os.fsdecode(path))


def _is_file(x, method):
    """Whether x is a file object with the method; a module may have methods of any name."""
    return hasattr(x, method) and not isinstance(x, (str, os.PathLike, _core.Tensor)) and not hasattr(x, "state_dict")


def _state_of(x):
    return x.state_dict() if hasattr(x, "state_dict") and not isinstance(x, (_core.Tensor, dict)) else x


def _plain(x, place):
    if not _core.has_values(x) or _core.transforms_of(x):
        raise _core.ArgumentValueError(f"save: {place or 'argument obj'}: found a tensor of a trace or a transform, expected one with values")
    return x.detach()


def _described(x, path, tensors):
    """What stands for a value in the metadata, as JSON: {kind: …}; its tensors go into the dict by their paths."""
    x = _state_of(x)
    place = ".".join(map(str, path))
    if not isinstance(x, (*_PLAIN, list, tuple, dict, _core.Tensor)) and hasattr(x, "__array__"):
        x = x.item() if getattr(x, "ndim", 1) == 0 and hasattr(x, "item") and not hasattr(x, "__dlpack__") else _core.asarray(x)
    if isinstance(x, _core.Tensor):
        name = place or "tensor"
        while name in tensors:
            name += "_"
        tensors[name] = _plain(x, place)
        return {"tensor": name}
    if isinstance(x, bool) or x is None or type(x) in (int, str):
        return {"value": x}
    if type(x) is float:
        return {"float": x.hex()}
    if isinstance(x, _core.DType):
        return {"dtype": x.name}
    if isinstance(x, dict):
        pairs = [[_described_key(key, place), _described(value, (*path, key), tensors)] for key, value in x.items()]
        return {"dict": pairs}
    if isinstance(x, (list, tuple)):
        kind = "list" if isinstance(x, list) else "tuple"
        return {kind: [_described(value, (*path, i), tensors) for i, value in enumerate(x)]}
    raise _core.ArgumentTypeError(
        f"save: {place or 'argument obj'}: found {type(x).__name__}, expected tensors, numbers, strings, None, dicts, lists, tuples, or an object with a state_dict"
    )


def _described_key(key, place):
    if type(key) in (bool, int, float, str) or key is None:
        return key
    raise _core.ArgumentTypeError(f"save: {place or 'argument obj'}: found the key {key!r}, expected strings and numbers as keys")


def _built(x, tensors):
    """The value that a description stands for."""
    ((kind, content),) = x.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "value":
        return content
    if kind == "float":
        return float.fromhex(content)
    if kind == "dtype":
        return _core.as_dtype(content, "load")
    if kind == "dict":
        return {key: _built(value, tensors) for key, value in content}
    if kind in ("list", "tuple"):
        made = [_built(value, tensors) for value in content]
        return made if kind == "list" else tuple(made)
    raise ValueError(f"the kind {kind!r}")


def _save_numpy(obj, path, ending):
    import contextlib

    import numpy

    from ._safetensors import replaced

    target = contextlib.nullcontext(path) if _is_file(path, "write") else replaced(path)
    if ending == ".npy":
        array = _array(obj, "argument obj")
        with target as file:
            numpy.save(file, array, allow_pickle=False)
        return
    arrays = {}
    _flatten_for_archive(obj, (), arrays)
    with target as file:
        numpy.savez(file, **arrays)


def _flatten_for_archive(x, path, arrays):
    """Arrays by name; those of inner containers by the keys on the way, with dots between them."""
    x = _state_of(x)
    if len(path) > 100:
        raise _core.ArgumentValueError("save: argument obj: found a container that contains itself or is nested too deeply, expected a tree")
    if isinstance(x, dict) or (isinstance(x, (list, tuple)) and any(isinstance(part, (_core.Tensor, dict, list, tuple)) for part in x)):
        for key, part in x.items() if isinstance(x, dict) else enumerate(x):
            _flatten_for_archive(part, (*path, str(key)), arrays)
        return
    name = ".".join(path) or "arr_0"
    if name in arrays:
        raise _core.ArgumentValueError(f"save: found two arrays with the name {name!r}. Fix: rename a key")
    arrays[name] = _array(x, name)


def _array(x, place):
    if isinstance(x, _core.Tensor):
        x = _plain(x, place)
        if x.dtype.name == "bfloat16":
            raise _core.DtypeError(f"save: {place}: found bfloat16, which NumPy's files cannot hold. Fix: write safetensors")
        return x.to("cpu").numpy()
    import numpy

    found = numpy.asarray(x)
    if found.dtype.hasobject:
        raise _core.ArgumentTypeError(f"save: {place}: found {type(x).__name__}, expected a tensor or an array")
    return found


def load(path: str | os.PathLike[str] | BinaryIO, device: Device | str | None = None, *, lazy: bool = False) -> Any:
    """What is in a file: a model that export wrote, or tensors in containers that save, safetensors, NumPy or PyTorch wrote.

    The content decides about the format, not the name. A model is a callable that takes a tensor per input, by position or name, and
    gives a tuple of tensors. A safetensors file gives what save was given, or a dict of tensors; likewise a Hugging Face index
    (NAME.safetensors.index.json) with its shards, the name that save was given with max_shard_size, or the folder that contains
    one. .npy gives a tensor, .npz a dict. A GGUF file gives a dict of tensors, quantised ones as float32. A .pt file of torch.save gives its containers and tensors; nothing in it is executed.
    path: a path, or a binary file object, of which load reads the rest.
    device: where tensors go, and a model runs, in place of the devices on which it was traced.
    lazy: a mapping that reads each tensor of a safetensors file, an index or a GGUF file when it is asked for. Its `metadata` is a dict.
    Errors: FileNotFoundError; ArgumentValueError for a file that is damaged or of another format; VersionError for a model that a
        newer backplane wrote.
    """
    from ._file_names import file_name

    if _is_file(path, "read"):
        return _load_file(path, device, lazy)
    name = file_name("load", path)
    device = _core.Device(device) if isinstance(device, str) else device
    if os.path.isdir(name):
        return _load_folder(os.fsdecode(name), device, lazy)
    if not os.path.exists(name):
        from ._shards import index_of

        index = index_of(os.fsdecode(name))
        if not os.path.exists(index):
            raise FileNotFoundError(f"load: {os.fsdecode(name)}: no such file, and no index {os.path.basename(index)} beside it")
        name = index
    with open(name, "rb") as file:
        begin = file.read(16)
        size = os.fstat(file.fileno()).st_size
    # The length of the header comes first in a safetensors file, and may look like any other format's first bytes.
    if begin[8:9] == b"{" and int.from_bytes(begin[:8], "little") <= size - 8:
        return _load_safetensors(name, device, lazy)
    if begin.startswith(b"\x93NUMPY"):
        return _load_numpy(name, device)
    if begin.startswith(b"GGUF"):
        from ._gguf import GgufTensors

        tensors = GgufTensors(os.fsdecode(name), device)
        return tensors if lazy else tensors.read_all()
    if begin.startswith(b"PK\x03\x04"):
        return _load_archive(os.fsdecode(name), device)
    if begin.lstrip().startswith(b"{"):
        from . import _shards

        tensors, metadata = _shards.read(os.fsdecode(name), device)
        return tensors if lazy else _contents(tensors, metadata)
    if begin.startswith((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")):
        raise _core.ArgumentValueError(
            f"load: {os.fspath(path)} is a pickle, which can run code when it is read. Fix: write it again with backplane.save, or from PyTorch with torch.save"
        )
    return _load_safetensors(name, device, lazy)


def _load_file(file, device, lazy):
    """What the rest of a file object contains. The readers take a path, so the bytes go through a temporary file."""
    import shutil
    import tempfile

    if lazy:
        raise _core.ArgumentValueError("load: argument lazy: tensors can be read later from a path only, but path is a file object. Fix: leave lazy out")
    with tempfile.NamedTemporaryFile(prefix="backplane-load-") as copy:
        begin = file.read(1 << 20)
        if not isinstance(begin, bytes):
            raise _core.ArgumentTypeError(f"load: argument path: found a file object that reads {type(begin).__name__}, expected a binary one. Fix: open it with mode 'rb'")
        copy.write(begin)
        shutil.copyfileobj(file, copy)
        copy.flush()
        try:
            return load(copy.name, device)
        except _core.BackplaneError as error:
            raise type(error)(str(error).replace(copy.name, repr(file))) from None


def _load_safetensors(name, device, lazy):
    from . import _safetensors

    tensors = _safetensors.Tensors(os.fsdecode(name), device)
    if GRAPH_KEY in tensors.metadata:
        return _core.load_model(name, device)
    return tensors if lazy else _contents(tensors, tensors.metadata)


def _contents(tensors, metadata):
    import json

    if TREE_KEY not in metadata:
        return tensors.read_all() if hasattr(tensors, "read_all") else dict(tensors)
    try:
        return _built(json.loads(metadata[TREE_KEY]), tensors)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, _core.BackplaneError):
            raise
        raise _core.ArgumentValueError(f"load: {tensors!r}: its description of containers cannot be read: {error}") from None


def _load_numpy(name, device):
    return _numpy_arrays(name, lambda loaded: _from_numpy(loaded, device))


def _numpy_arrays(name, read):
    """What `read` makes of numpy.load's result. NumPy's errors do not name the file."""
    import numpy

    path = os.fsdecode(name)
    try:
        return read(numpy.load(path, allow_pickle=False))
    except (ValueError, EOFError, SyntaxError, OverflowError, RecursionError) as error:
        if isinstance(error, _core.BackplaneError):
            raise
        raise _core.ArgumentValueError(f"load: {path}: NumPy cannot read it ({error}); expected arrays of numbers, as numpy.save writes them") from None


def _from_numpy(array, device):
    """The array's elements as a tensor, whatever their byte order in the file."""
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return _core.asarray(array, device=device)


def _load_archive(name, device):
    import zipfile
    import zlib

    def tensors(arrays):
        with arrays:
            return {entry: _from_numpy(arrays[entry], device) for entry in arrays.files}

    try:
        with zipfile.ZipFile(name) as archive:
            names = archive.namelist()
        if any(entry.endswith("data.pkl") for entry in names):
            from ._torch_files import load_torch

            return load_torch(name, device)
        if not names or not all(entry.endswith(".npy") for entry in names):
            raise _core.ArgumentValueError(f"load: {name}: found an archive of other files, expected an archive written by numpy.savez or torch.save")
        return _numpy_arrays(name, tensors)
    except (zipfile.BadZipFile, zlib.error) as error:
        raise _core.ArgumentValueError(f"load: {name}: the archive is damaged or was cut off ({error})") from None


def _load_folder(folder, device, lazy):
    names = sorted(os.listdir(folder))
    for found in [n for n in names if n.endswith(".safetensors.index.json")] + [n for n in names if n.endswith(".safetensors")]:
        return load(os.path.join(folder, found), device, lazy=lazy)
    raise FileNotFoundError(f"load: {folder} contains no safetensors file and no index of such files")
