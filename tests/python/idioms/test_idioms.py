"""Idioms of NumPy and PyTorch, from those libraries' documentation: they work, or are refused with what to write; none differs in silence."""

import collections

import backplane as bp
import numpy as np
import pytest
from idiom_running import arrays, lines, outcome, result
from numpy_idioms import IDIOMS as NUMPY
from numpy_lines import IDIOMS as NUMPY_LINES
from pytorch_idioms import IDIOMS as PYTORCH

SHARE = 0.95


def tensors():
    return {name: bp.asarray(value) for name, value in arrays().items()}


def of_numpy(line):
    return outcome(line, {"xp": bp, **tensors()}, result(line, {"xp": np, **arrays()}))


def of_pytorch(line):
    code, _, expected = line.partition(" -> ")
    return outcome(code, {"torch": bp, "F": bp.nn.functional, **tensors()}, result(expected, {"np": np, **arrays()}))


FAMILIES = {"NumPy": (of_numpy, lines(NUMPY)), "NumPy, further": (of_numpy, lines(NUMPY_LINES)), "PyTorch": (of_pytorch, lines(PYTORCH))}


@pytest.mark.parametrize("family", FAMILIES)
def test_idioms(family, record_property, capsys):
    run, idioms = FAMILIES[family]
    assert len(idioms) == len(set(idioms)) >= 300
    outcomes = {line: run(line) for line in idioms}
    counts = collections.Counter(found.partition(":")[0] for found in outcomes.values())
    with capsys.disabled():
        print(f"\n{family}: " + ", ".join(f"{word} {counts[word]}" for word in ("works", "refused", "fails", "differs")))
    for word, number in counts.items():
        record_property(f"{family} {word}", number)
    bad = {line: found for line, found in outcomes.items() if found.startswith(("differs", "fails"))}
    assert not {line: found for line, found in bad.items() if found.startswith("differs")}
    assert counts["works"] + counts["refused"] >= SHARE * len(idioms), bad
    assert counts["works"] >= 0.9 * len(idioms), {line: found for line, found in outcomes.items() if found != "works"}
