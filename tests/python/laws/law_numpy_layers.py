"""NumPy's form of the layers of networks: linear maps, windows, norms, attention, cells and resampling."""

import numpy as np


def linear(x, weight, bias=0.0):
    return x @ weight.T + bias


LAYERS = {
    "linear": linear,
}
