"""Recurrent layers: RNN, GRU and LSTM, as scans over the steps."""

import backplane as bp

from ._table import op, refuse
from ._values import is_plain

_ACTIVATIONS = {
    "relu": lambda x, alpha, beta: bp.relu(x),
    "tanh": lambda x, alpha, beta: bp.tanh(x),
    "sigmoid": lambda x, alpha, beta: bp.sigmoid(x),
    "softsign": lambda x, alpha, beta: bp.softsign(x),
    "softplus": lambda x, alpha, beta: bp.softplus(x, threshold=50),
    "affine": lambda x, alpha, beta: x * alpha + beta,
    "leakyrelu": lambda x, alpha, beta: bp.leaky_relu(x, negative_slope=alpha),
    "thresholdedrelu": lambda x, alpha, beta: bp.where(x > alpha, x, bp.zeros_like(x)),
    "scaledtanh": lambda x, alpha, beta: bp.tanh(x * beta) * alpha,
    "hardsigmoid": lambda x, alpha, beta: bp.clip(x * alpha + beta, 0, 1),
    "elu": lambda x, alpha, beta: bp.elu(x, alpha=alpha),
}
_ALPHA = {"affine": 1.0, "leakyrelu": 0.01, "thresholdedrelu": 1.0, "scaledtanh": 1.0, "hardsigmoid": 0.2, "elu": 1.0}
_BETA = {"affine": 0.0, "scaledtanh": 1.0, "hardsigmoid": 0.5}


def _functions(names, alphas, betas, clip):
    """The activations in order; those with parameters take the next of alphas and betas, or their defaults."""
    alphas, betas = list(alphas or []), list(betas or [])
    found = []
    for name in names:
        key = name.lower()
        if key not in _ACTIVATIONS:
            refuse(f"the activation {name} is not supported")
        alpha = alphas.pop(0) if alphas and key in _ALPHA else _ALPHA.get(key, 1.0)
        beta = betas.pop(0) if betas and key in _BETA else _BETA.get(key, 0.0)

        def activation(x, function=_ACTIVATIONS[key], alpha=alpha, beta=beta):
            return function(x if clip is None else bp.clip(x, -clip, clip), alpha, beta)

        found.append(activation)
    return found


def _reversed(x, lengths):
    if lengths is None:
        return bp.flip(x, 0)
    from ._index_ops import reverse_sequence

    return reverse_sequence(x, lengths, batch_axis=1, time_axis=0)


def _one_direction(x, lengths, states, step, is_reverse):
    """(y of each step, last states); step(states, row of x) gives the next states, of which the first is the output."""
    if is_reverse:
        x = _reversed(x, lengths)

    def masked(carry, row):
        time, states = carry
        found = step(states, row)
        y = found[0]
        if lengths is not None:
            is_inside = bp.expand_dims(time < lengths, axis=-1)
            found = [bp.where(is_inside, new, old) for new, old in zip(found, states)]
            y = bp.where(is_inside, y, bp.zeros_like(y))
        return (time + 1, found), y

    time = bp.zeros((), dtype=bp.int64 if lengths is None else lengths.dtype, device=x.device)
    if is_plain(x.shape[0]) and x.shape[0] == 1:
        (_, states), y = masked((time, list(states)), x[0])
        ys = bp.expand_dims(y, axis=0)
    else:
        (_, states), ys = bp.scan(masked, (time, list(states)), x)
    return (_reversed(ys, lengths) if is_reverse else ys), states


def _layer(x, w, lengths, initial, direction, layout, make_step, hidden_size):
    """Y, then the last state of each kind, of all directions."""
    n_directions = w.shape[0]
    if n_directions != (2 if direction == "bidirectional" else 1):
        raise bp.ShapeError(f"found weights of {n_directions} directions with direction={direction!r}")
    if layout:
        x = bp.permute_dims(x, (1, 0, 2))
        initial = [None if state is None else bp.permute_dims(state, (1, 0, 2)) for state in initial]
    outputs, lasts = [], []
    for d in range(n_directions):
        zeros = bp.zeros((x.shape[1], hidden_size), dtype=x.dtype, device=x.device)
        states = [zeros if state is None else state[d] for state in initial]
        is_reverse = direction == "reverse" or d == 1
        rows, step = make_step(d, x)
        ys, last = _one_direction(rows, lengths, states, step, is_reverse)
        outputs.append(ys)
        lasts.append(last)
    y = bp.stack(outputs, axis=1)
    finals = [bp.stack([last[i] for last in lasts], axis=0) for i in range(len(initial))]
    if layout:
        y, finals = bp.permute_dims(y, (2, 0, 1, 3)), [bp.permute_dims(state, (1, 0, 2)) for state in finals]
    return y, *finals


def _names(activations, defaults, directions):
    return activations or defaults * directions


@op("RNN", 7)
def rnn(
    x, w, r, b=None, lengths=None, h=None, *, activation_alpha=None, activation_beta=None, activations=None, clip=None, direction="forward",
    hidden_size, layout=0
):  # fmt: skip
    functions = _functions(_names(activations, ["Tanh"], w.shape[0]), activation_alpha, activation_beta, clip)

    def make_step(d, x):
        rows = bp.matmul(x, bp.matrix_transpose(w[d]))
        rows = rows if b is None else rows + b[d, :hidden_size] + b[d, hidden_size:]
        weight = bp.matrix_transpose(r[d])
        return rows, lambda states, row: [functions[d](row + bp.matmul(states[0], weight))]

    return _layer(x, w, lengths, [h], direction, layout, make_step, hidden_size)


@op("GRU", 7)
def gru(
    x, w, r, b=None, lengths=None, h=None, *, activation_alpha=None, activation_beta=None, activations=None, clip=None, direction="forward",
    hidden_size, layout=0, linear_before_reset=0
):  # fmt: skip
    n = hidden_size
    functions = _functions(_names(activations, ["Sigmoid", "Tanh"], w.shape[0]), activation_alpha, activation_beta, clip)

    def make_step(d, x):
        gate, output = functions[2 * d : 2 * d + 2]
        rows = bp.matmul(x, bp.matrix_transpose(w[d]))
        weight, weight_h = bp.matrix_transpose(r[d, : 2 * n]), bp.matrix_transpose(r[d, 2 * n :])
        bias_h = None
        if b is not None:
            rows = rows + b[d, : 3 * n]
            bias_zr, bias_h = b[d, 3 * n : 5 * n], b[d, 5 * n :]

        def step(states, row):
            state = states[0]
            both = row[:, : 2 * n] + bp.matmul(state, weight)
            both = gate(both if b is None else both + bias_zr)
            z, reset = both[:, :n], both[:, n:]
            if linear_before_reset:
                inner = bp.matmul(state, weight_h)
                inner = reset * (inner if bias_h is None else inner + bias_h)
            else:
                inner = bp.matmul(reset * state, weight_h)
                inner = inner if bias_h is None else inner + bias_h
            new = output(row[:, 2 * n :] + inner)
            return [(1 - z) * new + z * state]

        return rows, step

    return _layer(x, w, lengths, [h], direction, layout, make_step, hidden_size)


@op("LSTM", 7)
def lstm(
    x, w, r, b=None, lengths=None, h=None, c=None, p=None, *, activation_alpha=None, activation_beta=None, activations=None, clip=None,
    direction="forward", hidden_size, input_forget=0, layout=0
):  # fmt: skip
    n = hidden_size
    functions = _functions(_names(activations, ["Sigmoid", "Tanh", "Tanh"], w.shape[0]), activation_alpha, activation_beta, clip)

    def make_step(d, x):
        gate, candidate, output = functions[3 * d : 3 * d + 3]
        rows = bp.matmul(x, bp.matrix_transpose(w[d]))
        rows = rows if b is None else rows + b[d, : 4 * n] + b[d, 4 * n :]
        weight = bp.matrix_transpose(r[d])
        peephole = None if p is None else [p[d, i * n : (i + 1) * n] for i in range(3)]  # of the input, output and forget gates

        def step(states, row):
            state, cell = states
            gates = row + bp.matmul(state, weight)
            i, o, f, new = (gates[:, k * n : (k + 1) * n] for k in range(4))
            if peephole:
                i, f = i + peephole[0] * cell, f + peephole[2] * cell
            i = gate(i)
            f = 1 - i if input_forget else gate(f)
            cell = f * cell + i * candidate(new)
            if peephole:
                o = o + peephole[1] * cell
            return [gate(o) * output(cell), cell]

        return rows, step

    return _layer(x, w, lengths, [h, c], direction, layout, make_step, hidden_size)
