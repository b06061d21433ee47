"""NumPy's form of the entries that the array API standard brings under names or arguments of its own."""

import numpy as np


def cumulative(name, initial):
    def accumulated(x, axis=None, include_initial=False):
        found = getattr(np, name)(x, axis=0 if axis is None else axis)
        if not include_initial:
            return found
        edge = [(0, 0)] * x.ndim
        edge[axis] = (1, 0)
        return np.pad(found, edge, constant_values=initial)

    return accumulated


def axes(axis):
    return tuple(axis) if isinstance(axis, list) else axis


def diff(x, axis=-1, n=1, prepend=None, append=None):
    ends = {name: value for name, value in (("prepend", prepend), ("append", append)) if value is not None}
    return np.diff(x, n=n, axis=axis, **ends)


def roll(x, shift, axis=None):
    if axis is None:
        return np.roll(x, shift[0])
    return np.roll(x, shift if len(shift) > 1 else shift[0], tuple(axis))


def searchsorted(x1, x2, side="left", sorter=None):
    return np.searchsorted(x1, x2, side=side, sorter=sorter)


def run_starts(x):
    return np.asarray([i for i in range(len(x)) if i == 0 or x[i] != x[i - 1]], np.int64)


def unique(*wanted):
    """np.unique in the standard's terms: the results of these names."""

    def found(x):
        values, first, inverse, counts = np.unique(x, True, True, True, equal_nan=False)
        every = {"values": values, "indices": first, "inverse_indices": inverse.reshape(np.shape(x)), "counts": counts}
        return [every[name] for name in wanted] if len(wanted) > 1 else every[wanted[0]]

    return found


def linear_recurrence(a, b, axis):
    a, found = np.moveaxis(a, axis, 0), np.array(np.moveaxis(b, axis, 0))
    for i in range(1, len(found)):
        found[i] += a[i] * found[i - 1]
    return np.moveaxis(found, 0, axis)


STANDARD = {
    "linear_recurrence": linear_recurrence,
    "cumulative_sum": cumulative("cumsum", 0),
    "cumulative_prod": cumulative("cumprod", 1),
    "diff": diff,
    "count_nonzero": lambda x, axis=None, keepdims=False: np.count_nonzero(x, axis=axes(axis), keepdims=keepdims),
    "roll": roll,
    "tile": lambda x, repetitions: np.tile(x, repetitions),
    "repeat_all": lambda x, repeats, axis=None: np.repeat(x, repeats, axis=axis),
    "repeat_each": lambda x, repeats, total, axis=0: np.repeat(x, repeats, axis=axis),
    "searchsorted": searchsorted,
    "argsort_flat": lambda x: np.argsort(np.ravel(x), stable=True),
    "run_starts": run_starts,
    "unique_values": unique("values"),
    "unique_counts": unique("values", "counts"),
    "unique_inverse": unique("values", "inverse_indices"),
    "unique_all": unique("values", "indices", "inverse_indices", "counts"),
    "isin_complex": lambda x, values: np.isin(x, values),
    "isin_vector": lambda x, values: np.isin(x, values),
    "isin": lambda x1, x2, invert=False: np.isin(x1, x2, invert=invert),
}
