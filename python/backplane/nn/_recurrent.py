"""One step of recurrent networks, with the arguments of torch.lstm_cell and its like."""

from collections.abc import Sequence

import backplane as bp
from backplane import Tensor

__all__ = ["gru_cell", "lstm_cell", "rnn_relu_cell", "rnn_tanh_cell"]


def lstm_cell(
    input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """(h, c) after one step from hx = (h, c), each (*, m), for input (*, n); w_ih (4m, n) and w_hh (4m, m) hold the input, forget,
    cell and output gates."""
    if len(hx) != 2:
        raise bp.ArgumentValueError(f"lstm_cell: argument hx: found {len(hx)} tensors, expected two: the hidden and the cell state")
    return tuple(bp.lstm_cell(input, hx[0], hx[1], w_ih, w_hh, b_ih, b_hh))


def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """The hidden state (*, m) after one step from hx, for input (*, n); w_ih (3m, n) and w_hh (3m, m) hold the reset, update and new
    gates."""
    return bp.gru_cell(input, hx, w_ih, w_hh, b_ih, b_hh)


def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """tanh(input w_ihᵀ + b_ih + hx w_hhᵀ + b_hh)."""
    return bp.rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih, b_hh)


def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """relu(input w_ihᵀ + b_ih + hx w_hhᵀ + b_hh)."""
    return bp.rnn_relu_cell(input, hx, w_ih, w_hh, b_ih, b_hh)
