"""A model behind the interface of onnxruntime.InferenceSession, for programs that are written against it."""

import inspect

import numpy as np

import backplane as bp

from ._model import ModelValue, load

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from typing import Any


class _Metadata:
    """What onnxruntime's get_modelmeta() returns, as far as the file has it."""

    def __init__(self, function: "Any") -> None:
        self.custom_metadata_map = dict(function.metadata)
        self.graph_name = function.__name__


class _Argument:
    """What onnxruntime's get_inputs() and get_outputs() return: name, shape and type."""

    def __init__(self, value: ModelValue) -> None:
        self.name = value.name
        self.shape = value.dims
        self.type = f"tensor({_ORT_NAMES.get(value.type_name, value.type_name)})"

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


_ORT_NAMES = {"float32": "float", "float64": "double"}


class InferenceSession:
    """A model with the methods of onnxruntime.InferenceSession that programs call; NumPy arrays in and out.

    path_or_bytes: as load takes it. device: where it runs. compiled: whether the model is compiled, once for each kind of call; a model whose
        shapes depend on values runs uncompiled. Other arguments of onnxruntime (sess_options, providers) are accepted and ignored.

    Errors: those of load; of run: ArgumentValueError for names that the model does not have.
    """

    def __init__(
        self, path_or_bytes: "str | os.PathLike[str] | bytes", sess_options: "Any" = None, providers: "Any" = None, *,
        device: "bp.Device | str | None" = None, compiled: bool = True, **_: "Any"
    ) -> None:  # fmt: skip
        self.function = load(path_or_bytes, device=device)
        self._run = bp.compile(self.function, fullgraph=False) if compiled else self.function
        self._names = [value.name for value in self.function.outputs]
        parameters = inspect.signature(self.function).parameters.values()
        self._required = [parameter.name for parameter in parameters if parameter.default is parameter.empty]

    def get_inputs(self) -> "list[_Argument]":
        return [_Argument(value) for value in self.function.inputs]

    def get_outputs(self) -> "list[_Argument]":
        return [_Argument(value) for value in self.function.outputs]

    def get_modelmeta(self) -> _Metadata:
        return _Metadata(self.function)

    def get_providers(self) -> "list[str]":
        return ["BackplaneExecutionProvider"]

    def run(self, output_names: "Sequence[str] | None", input_feed: "Mapping[str, Any]", run_options: "Any" = None) -> "list[np.ndarray | None]":
        """The outputs of these names (None: all), as NumPy arrays; input_feed: arrays by the names of the inputs."""
        known = [value.name for value in self.function.inputs]
        for name in input_feed:
            if name not in known:
                raise bp.ArgumentValueError(f"InferenceSession.run: argument input_feed: found {name!r}, expected names of {known}")
        missing = [name for name in self._required if name not in input_feed]
        if missing:
            raise bp.ArgumentValueError(f"InferenceSession.run: argument input_feed: found no array for the inputs {missing}, expected one for each of {known}")
        wanted = self._names if output_names is None or not list(output_names) else list(output_names)
        for name in wanted:
            if name not in self._names:
                raise bp.ArgumentValueError(f"InferenceSession.run: argument output_names: found {name!r}, expected names of {self._names}")
        feed = {name: value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value for name, value in input_feed.items()}
        with bp.no_grad():
            found = dict(zip(self._names, self._run(**feed)))
        return [_as_array(found[name]) for name in wanted]


def _as_array(tensor):
    if tensor is None:
        return None
    if tensor.dtype == bp.bfloat16:
        tensor = bp.cast(tensor, bp.float32)
    return tensor.to("cpu").numpy()
