"""opcheck finds nothing wrong with the entries of the registry, on each of their samples."""

import backplane as bp
import pytest
from law_inputs import arrays_of, tensors_of
from law_registry import registry, within_device

# What opcheck says and the registry means so: (op, check) -> why.
MEANT = {
    ("bp::reverse_constant", "gradient"): "it hides its argument from reverse mode",
    ("bp::reverse_constant", "forward"): "it hides its argument from reverse mode alone",
    ("bp::stop_gradient", "gradient"): "it hides its argument from derivatives",
    ("bp::stop_gradient", "forward"): "it hides its argument from derivatives",
    ("bp::topk", "shape"): "its parts clamp a k beyond the axis, which its entry calls an error",
    ("bp::bitcast", "layouts"): "a dtype of another size needs a last axis of stride 1",
    ("bp::bitcast", "batch"): "a dtype of another size needs rows whose last axis has stride 1",
    **{
        (f"bp::{op}", check): "the phases of its vectors are free, so differences of them mean nothing; the laws fix the phases"
        for op in ("svd", "svd_reduced", "eigh", "eig")
        for check in ("gradient", "second order", "forward")
    },
}


@pytest.mark.parametrize("case", [case for case in registry() if not case.error and within_device(case)], ids=str)
def test_an_entry_is_what_it_says(case):
    arguments = tensors_of(case, arrays_of(case, "float32"))
    report = bp.opcheck(case.entry.name, (), arguments, raise_exception=False)
    wrong = [row for row in report.failed if (case.entry.name, row.check) not in MEANT]
    assert not wrong, report
