"""The cases of `./dev bench growth`: writes and reads of a few elements of a large tensor, and calls whose work is that of their result.

A case's statements are in Python, one per library, over `x` (a tensor of SIZE elements, as a vector or as rows of ROW), `i` (positions), `v`
(as many values, or rows), and what the library is called (`bp`, `np`, `torch`).
"""

import dataclasses

import numpy as np

SIZE = 10**7
SMALL = 2 * 10**5
ROW = 4
TOUCHED = (1, 1000, 100_000)


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    statements: dict
    rows: bool = False


def case(name, ours, numpy=None, torch=None, rows=False):
    return Case(name, {library: text for library, text in (("ours", ours), ("numpy", numpy), ("torch", torch)) if text}, rows)


GROWTH = [
    case("x[i] = 9", "x[i] = 9.0", "x[i] = 9.0", "x[i] = 9.0"),
    case("x[i] = v", "x[i] = v", "x[i] = v", "x[i] = v"),
    case("x[i] += 1", "x[i] += 1.0", "x[i] += 1.0", "x[i] += 1.0"),
    case("x[:n] = v", "x[:n] = v", "x[:n] = v", "x[:n] = v"),
    case("x[i], rows", "x[i]", "x[i]", "x[i]", rows=True),
    case("x[i] = v, rows", "x[i] = v", "x[i] = v", "x[i] = v", rows=True),
    case("index_put_", "x.index_put_([i], v)", None, "x.index_put_((i,), v)"),
    case("index_put_, adding", "x.index_put_([i], v, accumulate=True)", "np.add.at(x, i, v)", "x.index_put_((i,), v, accumulate=True)"),
    case("index_add_", "x.index_add_(0, i, v)", "np.add.at(x, i, v)", "x.index_add_(0, i, v)", rows=True),
    case("index_copy_", "x.index_copy_(0, i, v)", "x[i] = v", "x.index_copy_(0, i, v)", rows=True),
    case("index_fill_", "x.index_fill_(0, i, 9.0)", "x[i] = 9.0", "x.index_fill_(0, i, 9.0)", rows=True),
    case("scatter_", "x.scatter_(0, i, v)", "np.put_along_axis(x, i, v, 0)", "x.scatter_(0, i, v)"),
    case("scatter_add_", "x.scatter_add_(0, i, v)", "np.add.at(x, i, v)", "x.scatter_add_(0, i, v)"),
    case("scatter_, largest", "x.scatter_(0, i, v, 'amax')", "np.maximum.at(x, i, v)", "x.scatter_reduce_(0, i, v, 'amax')"),
    case("put_along_axis_", "x.put_along_axis_(i, v, axis=0)", "np.put_along_axis(x, i, v, 0)", "x.scatter_(0, i, v)"),
    case("take", "bp.take(x, i)", "np.take(x, i)", "torch.take(x, i)"),
    case("take_along_axis", "bp.take_along_axis(x, i, axis=0)", "np.take_along_axis(x, i, 0)", "torch.take_along_dim(x, i, 0)"),
]

# Of `x` and the inputs that `inputs` makes; the work is on the whole.
WHOLE = {
    "delete(x, 5)": (lambda r: {"x": r.standard_normal(10**6, dtype=np.float32)}, case(
        "", "bp.delete(x, 5)", "np.delete(x, 5)", "torch.cat([x[:5], x[6:]])")),
    "repeat by an array": (lambda r: {"x": r.standard_normal(10**6, dtype=np.float32), "n": r.integers(0, 5, 10**6)}, case(
        "", "bp.repeat(x, n)", "np.repeat(x, n)", "torch.repeat_interleave(x, n)")),
    "repeat of rows by an array": (lambda r: {"x": r.standard_normal((10**5, 8), dtype=np.float32), "n": r.integers(0, 5, 10**5)}, case(
        "", "bp.repeat(x, n, axis=0)", "np.repeat(x, n, axis=0)", "torch.repeat_interleave(x, n, dim=0)")),
    "stack(axis=1)": (lambda r: {"x": r.standard_normal((4, 10**6), dtype=np.float32)}, case(
        "", "bp.stack([x[0], x[1], x[2], x[3]], axis=1)", "np.stack([x[0], x[1], x[2], x[3]], axis=1)", "torch.stack([x[0], x[1], x[2], x[3]], 1)")),
    "mean of uint8": (lambda r: {"x": r.integers(0, 256, 10**7).astype(np.uint8)}, case(
        "", "bp.mean(x)", "np.mean(x)", "torch.mean(x, dtype=torch.float32)")),
    "isin": (lambda r: {"x": r.integers(0, 10**6, 10**6), "n": r.integers(0, 10**6, 1000)}, case("", "bp.isin(x, n)", "np.isin(x, n)", "torch.isin(x, n)")),
    "rolling mean by unfold": (lambda r: {"x": r.standard_normal(10**6, dtype=np.float32)}, case(
        "", "bp.mean(x.unfold(0, 16, 1), axis=-1)", "np.lib.stride_tricks.sliding_window_view(x, 16).mean(-1)", "x.unfold(0, 16, 1).mean(-1)")),
    "unique": (lambda r: {"x": r.integers(0, 10**5, 10**6)}, case("", "bp.unique_values(x)", "np.unique(x)", "torch.unique(x)")),
    "randperm": (lambda r: {"g": 0}, case("", "bp.randperm(10**6)", "np.random.default_rng(0).permutation(10**6)", "torch.randperm(10**6)")),
}


def inputs(of, total, touched):
    """x, i and v for a case, of NumPy."""
    rng = np.random.default_rng(0)
    length = total // ROW if of.rows else total
    shape, taken = ((length, ROW), (touched, ROW)) if of.rows else ((length,), (touched,))
    return {"x": rng.standard_normal(shape, dtype=np.float32), "i": rng.permutation(length)[:touched],
            "v": rng.standard_normal(taken, dtype=np.float32), "n": touched}
