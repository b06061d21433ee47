"""Runs the cases of backplane.compat, numpy_cases.txt and torch_cases.txt, beside the library itself, and compares values, dtypes and structures."""

import ast
import pathlib

import numpy as np


def arrays():
    rng = np.random.default_rng(5)
    a = rng.standard_normal((3, 4))
    n = rng.standard_normal(6)
    n[[1, 4]] = np.nan
    return {
        "a": a, "b": rng.uniform(0.5, 2, 4), "c": rng.standard_normal((2, 3, 4)), "s": rng.standard_normal((3, 3)) + 2 * np.eye(3),
        "f": rng.standard_normal((3, 4)).astype(np.float32), "v": rng.standard_normal(6), "w": rng.standard_normal(6), "i": rng.integers(0, 5, (3, 4)),
        "j": rng.integers(0, 4, 6), "p": rng.integers(1, 9, 6), "t": a > 0, "u": rng.random(6) < 0.5, "n": n,
        "z": rng.standard_normal(3) + 1j * rng.standard_normal(3), "k": np.cumsum(rng.uniform(0.2, 1, 6)),
    }  # fmt: skip


def cases(library):
    text = pathlib.Path(__file__).with_name(f"{library}_cases.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def result(code, names):
    """Of a line with statements, the value of the last one, which is an expression."""
    *statements, last = ast.parse(code).body
    names = dict(names)
    exec(compile(ast.Module(statements, []), code, "exec"), names)
    return eval(compile(ast.Expression(last.value), code, "eval"), names)


def plain(value):
    """The value as NumPy's arrays, numbers and lists of them."""
    if isinstance(value, (tuple, list)):
        return [plain(one) for one in value]
    if hasattr(value, "detach"):
        value = value.detach()
        return (value.resolve_conj() if hasattr(value, "resolve_conj") else value).numpy()
    return value


def outcomes(lines, of_library, of_ours, names):
    """The faults, by line. `of_library` gives the library's result of a line, `names` our names that lines see."""
    wrong = {}
    for line in lines:
        try:
            found = difference(plain(result(line, {**of_ours, **names})), of_library(line))
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        if found:
            wrong[line] = found
    return wrong


def difference(found, expected, exact_dtype=True, rtol=1e-10):
    """What differs, or ''."""
    if isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            return f"found {found!r}, expected {expected!r}"
        return next(filter(None, map(difference, found, expected, [exact_dtype] * len(found), [rtol] * len(found))), "")
    if isinstance(expected, (str, type(None))) or not hasattr(np.asarray(expected).dtype, "kind"):
        return "" if found == expected else f"found {found!r}, expected {expected!r}"
    is_array = hasattr(found, "dtype") and hasattr(expected, "dtype")
    found, expected = np.asarray(found), np.asarray(expected)
    if is_array and exact_dtype and found.dtype != expected.dtype:
        return f"found dtype {found.dtype}, expected {expected.dtype}"
    if found.shape != expected.shape:
        return f"found shape {found.shape}, expected {expected.shape}"
    if expected.dtype.kind not in "fciub":
        return "" if (found == expected).all() else f"found {found!r}, expected {expected!r}"
    rtol = max(rtol, 2e-6) if expected.dtype.name in ("float32", "complex64") else rtol
    return "" if np.allclose(found, expected, rtol=rtol, atol=rtol, equal_nan=True) else f"found {found!r}, expected {expected!r}"
