"""RNN, LSTM and GRU over sequences, and their cells."""

from __future__ import annotations

from typing import Any, ClassVar

import backplane as bp
from backplane import DType, Device, Tensor

from .. import functional as F
from .. import init
from .._dropout import dropout
from ._layer_arguments import check_dtype, fan_bound, uniform_parameter
from ._module import Module
from ..utils import rnn as _packing

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell"]


def _lstm_step(x, state, w_hh, b_hh):
    h, c = state
    h, c = bp.lstm_gates(x, F.linear(h, w_hh), c, None, b_hh)
    return h, c


def _gru_step(x, state, w_hh, b_hh):
    return (bp.gru_gates(x, F.linear(state[0], w_hh), state[0], None, b_hh),)


def _tanh_step(x, state, w_hh, b_hh):
    return (bp.tanh(x + F.linear(state[0], w_hh, b_hh)),)


def _relu_step(x, state, w_hh, b_hh):
    return (bp.relu(x + F.linear(state[0], w_hh, b_hh)),)


_STEPS = {"LSTM": _lstm_step, "GRU": _gru_step, "RNN_TANH": _tanh_step, "RNN_RELU": _relu_step}
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """What RNN, LSTM and GRU share: their weights, and the passes over layers and directions."""

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: Device | str | None = None, dtype: DType | None = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if hidden_size <= 0 or num_layers <= 0:
            raise bp.ArgumentValueError(f"{name}: found hidden_size {hidden_size} and num_layers {num_layers}, expected positive numbers")
        if not 0 <= dropout <= 1:
            raise bp.ArgumentValueError(f"{name}: argument dropout: found {dropout}, expected a number from 0 to 1")
        if proj_size and mode != "LSTM" or not 0 <= proj_size < hidden_size:
            raise bp.ArgumentValueError(f"{name}: argument proj_size: found {proj_size}, expected a number below hidden_size, and only with LSTM")
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional, self.proj_size = bias, batch_first, dropout, bidirectional, proj_size
        for layer in range(num_layers):
            for suffix in self._suffixes():
                self._add_weights(f"l{layer}{suffix}", input_size if layer == 0 else self._out() * len(self._suffixes()), device, dtype)

    def _suffixes(self):
        return ("", "_reverse") if self.bidirectional else ("",)

    def _out(self):
        return self.proj_size or self.hidden_size

    def _add_weights(self, place, inputs, device, dtype):
        rows, bound = _GATES[self.mode] * self.hidden_size, fan_bound(self.hidden_size)
        shapes = {"weight_ih": (rows, inputs), "weight_hh": (rows, self._out())}
        if self.bias:
            shapes.update(bias_ih=(rows,), bias_hh=(rows,))
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        for name, shape in shapes.items():
            setattr(self, f"{name}_{place}", uniform_parameter(shape, bound, device, dtype))

    def reset_parameters(self) -> None:
        """Draws the weights anew: uniform within ±1 / sqrt(hidden_size)."""
        bound = fan_bound(self.hidden_size)
        for x in self.parameters():
            init.uniform_(x, -bound, bound)

    def flatten_parameters(self) -> None:
        """Nothing: the weights need no common memory here. PyTorch's programs call it."""

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """input (length, n, input_size), (n, length, input_size) with batch_first, (length, input_size), or a PackedSequence.

        hx: the state (layers · directions, n, hidden_size), for LSTM a pair (h, c); zeros unless given. Returns (output, state).
        """
        if isinstance(input, _packing.PackedSequence):
            return self._of_packed(input, hx)
        single = input.ndim == 2
        if input.ndim not in (2, 3):
            raise bp.ShapeError(f"{type(self).__name__}: argument input: found {input.ndim} axes, expected 2 or 3")
        x = bp.expand_dims(input, 1) if single else input.swapaxes(0, 1) if self.batch_first else input
        states = self._states(x, hx, single)
        y, states = self._run(x, states, None)
        y = y[:, 0] if single else y.swapaxes(0, 1) if self.batch_first else y
        states = tuple(state[:, 0] for state in states) if single else states
        return y, states if self.mode == "LSTM" else states[0]

    def _of_packed(self, packed, hx):
        x, lengths = _packing.pad_packed_sequence(packed._replace(unsorted_indices=None))
        states = self._states(x, self._taken(hx, packed.sorted_indices), False)
        y, states = self._run(x, states, lengths.to(x.device))
        data = _packing.pack_padded_sequence(y, lengths).data
        states = states if self.mode == "LSTM" else states[0]
        return packed._replace(data=data), self._taken(states, packed.unsorted_indices)

    def _taken(self, states, index):
        if states is None or index is None:
            return states
        return tuple(bp.take(state, index, axis=1) for state in states) if isinstance(states, tuple) else bp.take(states, index, axis=1)

    def _states(self, x, hx, single):
        """The initial states, (layers · directions, n, size) each."""
        check_dtype(self, self.weight_ih_l0, x)
        if x.shape[-1] != self.input_size:
            raise bp.ShapeError(f"{type(self).__name__}: argument input: found {x.shape[-1]} features, expected {self.input_size}")
        count = self.num_layers * len(self._suffixes())
        shapes = [(count, x.shape[1], self._out())] + [(count, x.shape[1], self.hidden_size)] * (self.mode == "LSTM")
        if hx is None:
            return tuple(bp.zeros(shape, dtype=x.dtype, device=x.device) for shape in shapes)
        given = tuple(hx) if self.mode == "LSTM" else (hx,)
        given = tuple(bp.expand_dims(state, 1) for state in given) if single else given
        for state, shape in zip(given, shapes):
            if tuple(state.shape) != tuple(shape):
                raise bp.ShapeError(f"{type(self).__name__}: argument hx: found shape {tuple(state.shape)}, expected {tuple(shape)}")
        return given

    def _run(self, x, states, lengths):
        half = bp.get_autocast_dtype(x.device) if x.dtype is not bp.float64 else None
        if half is None:
            return self._layers(x, states, lengths, lambda parameter: parameter)
        with bp.autocast(enabled=False):  # all of it in one dtype, in which the state is carried from step to step
            states = tuple(state.astype(half) for state in states)
            return self._layers(x.astype(half), states, lengths, lambda parameter: None if parameter is None else parameter.astype(half))

    def _layers(self, x, states, lengths, given):
        """given: of a parameter, as it is computed with."""
        last = []
        for layer in range(self.num_layers):
            outputs = []
            for direction, suffix in enumerate(self._suffixes()):
                index = layer * len(self._suffixes()) + direction
                y, end = self._pass(x, tuple(state[index] for state in states), f"l{layer}{suffix}", lengths, direction == 1, given)
                outputs.append(y)
                last.append(end)
            x = outputs[0] if len(outputs) == 1 else bp.concat(outputs, axis=-1)
            if self.dropout and self.training and layer < self.num_layers - 1:
                x = dropout(x, self.dropout, True)
        return x, tuple(bp.stack(list(parts)) for parts in zip(*last))

    def _pass(self, x, state, place, lengths, reverse, given):
        """One layer in one direction: (length, n, features), and the last state. Beyond its length, a sequence keeps its state."""
        w_ih, w_hh, w_hr = (given(getattr(self, f"weight_{part}_{place}", None)) for part in ("ih", "hh", "hr"))
        b_ih, b_hh = (given(getattr(self, f"bias_{part}_{place}", None)) for part in ("ih", "hh"))
        step = _STEPS[self.mode]
        gates = F.linear(x, w_ih, b_ih)
        steps = (gates,) if lengths is None else (gates, bp.arange(x.shape[0], device=x.device))

        def body(state, now):
            new = step(now[0], state, w_hh, b_hh)
            new = (F.linear(new[0], w_hr), *new[1:]) if w_hr is not None else new
            if lengths is None:
                return new, new[0]
            inside = bp.expand_dims(now[1] < lengths, -1)
            kept = tuple(bp.where(inside, one, old) for one, old in zip(new, state))
            return kept, bp.where(inside, new[0], 0)

        state, y = bp.scan(body, state, steps, reverse=reverse)
        return y, state

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, default in (("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0), ("bidirectional", False)):
            text += f", {name}={getattr(self, name)}" if getattr(self, name) != default else ""
        return text


class RNN(RNNBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu for nonlinearity, over a sequence, in num_layers layers.

    forward(input, h) takes and gives what RNNBase.forward says.
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", *args: Any, **kwargs: Any) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise bp.ArgumentValueError(f"RNN: argument nonlinearity: found {nonlinearity!r}, expected 'tanh' or 'relu'")
        super().__init__(f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, *args, **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory over a sequence, in num_layers layers: the state is a pair (h, c). proj_size: the outputs are projected to it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent units over a sequence, in num_layers layers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)


class _Cell(Module):
    mode: ClassVar[str]

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Device | str | None = None, dtype: DType | None = None) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows, bound = _GATES[self.mode] * hidden_size, fan_bound(hidden_size)
        self.weight_ih = uniform_parameter((rows, input_size), bound, device, dtype)
        self.weight_hh = uniform_parameter((rows, hidden_size), bound, device, dtype)
        self.bias_ih = uniform_parameter((rows,), bound, device, dtype) if bias else None
        self.bias_hh = uniform_parameter((rows,), bound, device, dtype) if bias else None

    def _weights(self):
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _zeros(self, input):
        return bp.zeros((*input.shape[:-1], self.hidden_size), dtype=input.dtype, device=input.device)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(_Cell):
    """One step of RNN: forward(input (n, input_size), h (n, hidden_size) or None) gives the next h."""

    mode = "RNN_TANH"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Device | str | None = None, dtype: DType | None = None) -> None:
        super().__init__(input_size, hidden_size, bias, device, dtype)
        if nonlinearity not in ("tanh", "relu"):
            raise bp.ArgumentValueError(f"RNNCell: argument nonlinearity: found {nonlinearity!r}, expected 'tanh' or 'relu'")
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        check_dtype(self, self.weight_ih, input)
        cell = F.rnn_tanh_cell if self.nonlinearity == "tanh" else F.rnn_relu_cell
        return cell(input, self._zeros(input) if hx is None else hx, *self._weights())


class LSTMCell(_Cell):
    """One step of LSTM: forward(input, (h, c) or None) gives the next (h, c)."""

    mode = "LSTM"

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        check_dtype(self, self.weight_ih, input)
        return F.lstm_cell(input, (self._zeros(input), self._zeros(input)) if hx is None else hx, *self._weights())


class GRUCell(_Cell):
    """One step of GRU: forward(input, h or None) gives the next h."""

    mode = "GRU"

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        check_dtype(self, self.weight_ih, input)
        return F.gru_cell(input, self._zeros(input) if hx is None else hx, *self._weights())
