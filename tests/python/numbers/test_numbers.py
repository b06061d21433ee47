"""Every floating elementwise op, activation, loss and norm against mpmath: value, first and second derivative, within the stated bounds.

The short form of `./dev test numbers`: few points, float32 and float64, by kernels and by decompositions.
"""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "laws"))

from law_registry import registry  # noqa: E402
from number_measure import bound_of, measure  # noqa: E402
from number_references import REFERENCES  # noqa: E402
from number_vectors import DERIVATIVES, VECTORS  # noqa: E402
from sanitized import WHOLE  # noqa: E402

POINTS = 12
# mpmath takes seconds for a handful of points of these.
FEWER = ("zeta", "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "erfinv", "ndtri", "lgamma", "digamma", "polygamma")
OPS = Path(__file__).resolve().parents[3] / "ops"
NORMS = ("vector_norm", "vector_norm_slope")


def elementwise():
    """Ops whose results are floating and follow element by element."""
    found = set()
    for case in registry():
        entry = case.entry
        floating = [arg for arg in entry.args if arg.is_tensor and "float32" in arg.accepts]
        if "elementwise" in entry.flags and floating and all(rule in ("", "compute", "real") for _, rule, _ in entry.results):
            found.add(entry.python_name)
    return found


def losses_and_norms():
    texts = [(OPS / name).read_text() for name in ("loss.yaml", "normalization.yaml")]
    return {name for text in texts for name in re.findall(r"- op: (\w+)\(", text)} | set(NORMS)


# Exact, and tested elsewhere: the next number of the dtype, and a copy of two parts.
ELSEWHERE = {"nextafter", "complex_from"}


def test_every_op_has_a_reference():
    stated = set(REFERENCES) | {name.partition(",")[0] for name in VECTORS} | set(DERIVATIVES) | ELSEWHERE
    assert elementwise() | losses_and_norms() <= stated, (elementwise() | losses_and_norms()) - stated


@pytest.mark.parametrize("name", [*REFERENCES, *VECTORS])
def test_errors_stay_within_the_bound(name):
    count = 3 if name in FEWER and not WHOLE else POINTS
    for dtype in ("float32", "float64"):
        for way, orders in measure(name, dtype, count).items():
            for order, worst in enumerate(orders):
                assert worst.error <= bound_of(name, dtype, order), f"{name}, {dtype}, {way}, derivative {order}: {worst}"
