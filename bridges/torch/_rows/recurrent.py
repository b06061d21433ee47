"""What rows of aten.txt call for the cells of recurrent networks, whose gates PyTorch computes in one operator on a device.

Gates lie side by side in the last axis, in PyTorch's order. `workspace` is what the backward operator reads.
"""

from __future__ import annotations

import backplane as bp

__all__ = ["gru_cell", "gru_cell_backward", "lstm_cell", "lstm_cell_backward"]


def _parts(x, count):
    size = x.shape[-1] // count
    return [bp.narrow(x, -1, i * size, size) for i in range(count)]


def _plus(x, bias):
    return x if bias is None else x + bias


def lstm_cell(input_gates, hidden_gates, cx, input_bias, hidden_bias):
    """(hy, cy, workspace): the gates (n, 4 * h) are input, forget, cell and output."""
    i, f, g, o = _parts(_plus(input_gates, input_bias) + _plus(hidden_gates, hidden_bias), 4)
    i, f, g, o = bp.sigmoid(i), bp.sigmoid(f), bp.tanh(g), bp.sigmoid(o)
    cy = f * cx + i * g
    return o * bp.tanh(cy), cy, bp.concat([i, f, g, o], axis=-1)


def lstm_cell_backward(grad_hy, grad_cy, cx, cy, workspace, has_bias):
    """(the gates' gradient, cx's, the biases')."""
    i, f, g, o = _parts(workspace, 4)
    squashed = bp.tanh(cy)
    of_output = bp.zeros_like(cy) if grad_hy is None else grad_hy
    of_cell = of_output * o * (1 - squashed * squashed)
    if grad_cy is not None:
        of_cell = of_cell + grad_cy
    gates = [of_cell * g * i * (1 - i), of_cell * cx * f * (1 - f), of_cell * i * (1 - g * g), of_output * squashed * o * (1 - o)]
    found = bp.concat(gates, axis=-1)
    return found, of_cell * f, bp.sum(found, 0) if has_bias else None


def gru_cell(input_gates, hidden_gates, hx, input_bias, hidden_bias):
    """(hy, workspace): the gates (n, 3 * h) are reset, update and new."""
    input_reset, input_update, input_new = _parts(_plus(input_gates, input_bias), 3)
    hidden_reset, hidden_update, hidden_new = _parts(_plus(hidden_gates, hidden_bias), 3)
    reset, update = bp.sigmoid(input_reset + hidden_reset), bp.sigmoid(input_update + hidden_update)
    new = bp.tanh(input_new + reset * hidden_new)
    return new + update * (hx - new), bp.concat([reset, update, new, hx, hidden_new], axis=-1)


def gru_cell_backward(grad_hy, workspace, has_bias):
    """(the gradients of the input's gates, of the hidden state's gates, of hx, of the two biases)."""
    reset, update, new, hx, hidden_new = _parts(workspace, 5)
    of_update = grad_hy * (hx - new) * update * (1 - update)
    of_new = grad_hy * (1 - update) * (1 - new * new)
    of_reset = of_new * hidden_new * reset * (1 - reset)
    of_input = bp.concat([of_reset, of_update, of_new], axis=-1)
    of_hidden = bp.concat([of_reset, of_update, of_new * reset], axis=-1)
    biases = (bp.sum(of_input, 0), bp.sum(of_hidden, 0)) if has_bias else (None, None)
    return of_input, of_hidden, grad_hy * update, *biases
