"""The words of a str argument: what the stubs list is what the op takes, and nothing else."""

import ast
import pathlib

import backplane as bp
import pytest

STUBS = pathlib.Path(bp.__file__).parent / "_registry.pyi"
MATRIX = bp.asarray([[1.0, 2.0, 0.5], [0.0, 3.0, 1.0]])
IMAGE = bp.reshape(bp.arange(12, dtype=bp.float32), (1, 1, 3, 4))
GRID = bp.zeros((1, 2, 2, 2))
ops = bp.ops.bp

CALLS = {
    ("qr", "mode"): lambda word: ops.qr(MATRIX, mode=word),
    ("matrix_norm", "ord"): lambda word: ops.matrix_norm(MATRIX, ord=word),
    ("fft_c2c", "norm"): lambda word: ops.fft_c2c(bp.astype(MATRIX, bp.complex64), [1], norm=word),
    ("fft_r2c", "norm"): lambda word: ops.fft_r2c(MATRIX, [1], norm=word),
    ("fft_c2r", "norm"): lambda word: ops.fft_c2r(bp.astype(MATRIX, bp.complex64), [1], 4, norm=word),
    ("searchsorted", "side"): lambda word: ops.searchsorted(bp.asarray([1.0, 2.0]), MATRIX, side=word),
    ("pad_edges", "mode"): lambda word: ops.pad_edges(MATRIX, [1, 1], [0, 2], mode=word),
    ("resample_smooth", "mode"): lambda word: ops.resample_smooth(MATRIX, 1, 2, 1.5, mode=word),
    ("grid_sample", "mode"): lambda word: ops.grid_sample(IMAGE, GRID, mode=word),
    ("grid_sample", "padding_mode"): lambda word: ops.grid_sample(IMAGE, GRID, padding_mode=word),
}


def listed():
    """(op, argument) -> the words of its Literal in the stubs."""
    if not STUBS.exists():
        pytest.skip("_registry.pyi is not beside the package; build the target backplane_python_files")
    found = {}
    for node in ast.parse(STUBS.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            if isinstance(arg.annotation, ast.Subscript) and ast.unparse(arg.annotation.value) == "Literal":
                found[node.name, arg.arg] = ast.literal_eval(arg.annotation.slice)
    return found


def test_every_literal_of_the_stubs_is_tried_here():
    assert listed().keys() == CALLS.keys()


@pytest.mark.parametrize("op, argument", CALLS)
def test_a_listed_word_is_taken(op, argument):
    for word in listed()[op, argument]:
        CALLS[op, argument](word)


@pytest.mark.parametrize("op, argument", CALLS)
def test_another_word_is_refused(op, argument):
    words = listed()[op, argument]
    for other in ("", "other", words[0].upper() + "!"):
        with pytest.raises(ValueError) as caught:
            CALLS[op, argument](other)
        text = str(caught.value)
        assert all(part in text for part in (op, argument, f"'{other}'", *words)), text
