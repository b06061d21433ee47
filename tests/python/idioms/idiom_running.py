"""What an idiom gives with NumPy and with us, and how the two compare: works, refused (with what the error says), or differs."""

import ast

import numpy as np


def arrays():
    rng = np.random.default_rng(12)
    a = rng.standard_normal((3, 4))
    n = rng.standard_normal(6)
    n[[1, 4]] = np.nan
    return {
        "a": a, "b": rng.uniform(0.5, 2, 4), "c": rng.standard_normal((2, 3, 4)), "s": rng.standard_normal((3, 3)) + 2 * np.eye(3), "v": rng.standard_normal(6),
        "w": rng.standard_normal(6), "i": rng.integers(0, 5, (3, 4)), "j": rng.integers(0, 4, 6), "t": a > 0, "u": rng.random(6) < 0.5, "n": n,
        "z": rng.standard_normal(3) + 1j * rng.standard_normal(3), "k": rng.integers(0, 3, (2, 3)), "l": rng.integers(0, 4, 3),
        "g": rng.standard_normal((2, 3, 8, 8)), "h": rng.standard_normal((5, 3, 3, 3)),
    }  # fmt: skip


def lines(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def result(code, names):
    """Of a line with statements, the value of the last one, which is an expression."""
    parts = ast.parse(code).body
    names = dict(names)
    exec(compile(ast.Module(parts[:-1], []), code, "exec"), names)
    return eval(compile(ast.Expression(parts[-1].value), code, "eval"), names)


def plain(value):
    """The value without tensors, for a comparison with NumPy's."""
    if isinstance(value, (tuple, list)):
        return [plain(one) for one in value]
    return np.asarray(value.detach()) if hasattr(value, "detach") else value


def same(found, expected):
    if isinstance(expected, (tuple, list)):
        return len(found) == len(expected) and all(same(one, other) for one, other in zip(found, expected))
    if isinstance(expected, str) or expected is None:
        return found == expected
    found, expected = np.asarray(found), np.asarray(expected)
    return found.shape == expected.shape and found.dtype.kind == expected.dtype.kind and np.allclose(found, expected, rtol=2e-5, atol=2e-6, equal_nan=True)


# An error that says what to write.
HINTS = ("use ", "Fix:", "expected", "asarray", "assign", "write ", "cast")


def outcome(code, names, expected):
    """'works', 'differs: …' or 'refused: …', 'fails: …' where the error gives no hint."""
    try:
        found = plain(result(code, names))
    except Exception as error:
        kind = "refused" if any(hint in str(error).replace("unexpected", "") for hint in HINTS) else "fails"
        return f"{kind}: {type(error).__name__}: {error}"
    return "works" if same(found, plain(expected)) else f"differs: {found!r}, expected {expected!r}"
