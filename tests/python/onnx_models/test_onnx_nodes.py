"""onnx's own node tests: how many pass, and that none of the others returns a value."""

import collections

import node_cases
import pytest

LEAST_PASSING = 1760
# Each op that is refused, and why: training, images in files, and ops of other domains.
REFUSED = ("test_ada", "test_ai_onnx_ml", "test_image_decoder", "test_momentum", "test_nesterov", "test_training_dropout", "test_not_")


def test_node_tests_pass_or_raise(record_property, capsys):
    outcomes = {name: node_cases.outcome(case) for name, case in node_cases.node_cases().items()}
    counts = collections.Counter(kind for kind, _ in outcomes.values())
    with capsys.disabled():
        print(f"\nonnx node tests with tensors only: {dict(counts)} of {len(outcomes)}")
    assert {name: why for name, (kind, why) in outcomes.items() if kind in ("wrong", "error")} == {}
    assert [name for name, (kind, _) in outcomes.items() if kind == "refused" and not name.startswith(REFUSED)] == []
    assert counts["pass"] >= LEAST_PASSING


@pytest.mark.parametrize("name", ["test_image_decoder_decode_png_rgb", "test_adam"])
def test_a_refusal_names_the_node_and_the_op(name):
    kind, why = node_cases.outcome(node_cases.node_cases()[name])
    assert kind == "refused" and ("ImageDecoder" in why or "Adam" in why) and "opset" in why
