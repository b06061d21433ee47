"""Recurrent cells of backplane.nn.functional: states as PyTorch takes and gives them, and limits of the gates."""

import backplane as bp
import backplane.nn.functional as F
import numpy as np
import pytest


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def test_an_lstm_step_takes_and_gives_both_states():
    x, h, c, w_ih, w_hh = (bp.asarray(numbers(*s)) for s in ((2, 3), (2, 4), (2, 4), (16, 3), (16, 4)))
    state = F.lstm_cell(x, (h, c), w_ih, w_hh)
    assert isinstance(state, tuple) and [s.shape for s in state] == [(2, 4), (2, 4)]
    assert F.lstm_cell(x, state, w_ih, w_hh)[0].shape == (2, 4)
    with pytest.raises(ValueError, match="argument hx"):
        F.lstm_cell(x, (h, c, c), w_ih, w_hh)


def test_saturated_gates_keep_or_replace_the_state():
    """Gates by biases alone: forget 1 and input 0 keep the cell; update 1 keeps the hidden state, update 0 and reset 0 forget it."""
    x, h, c = (bp.asarray(numbers(2, 3, seed=seed)) for seed in range(3))
    none, far = np.zeros(3), np.full(3, 1e3)
    bias = bp.asarray(np.concatenate([-far, far, none, far]))
    h_next, c_next = F.lstm_cell(x, (h, c), bp.zeros((12, 3), dtype=bp.float64), bp.zeros((12, 3), dtype=bp.float64), bias)
    np.testing.assert_allclose(c_next.numpy(), c.numpy(), rtol=1e-12)
    np.testing.assert_allclose(h_next.numpy(), np.tanh(c.numpy()), rtol=1e-12)
    zero = bp.zeros((9, 3), dtype=bp.float64)
    keep = F.gru_cell(x, h, zero, zero, bp.asarray(np.concatenate([none, far, none])))
    np.testing.assert_allclose(keep.numpy(), h.numpy(), rtol=1e-12)
    forget = F.gru_cell(x, h, zero, zero, bp.asarray(np.concatenate([-far, -far, far])))
    np.testing.assert_allclose(forget.numpy(), 1, rtol=1e-12)
