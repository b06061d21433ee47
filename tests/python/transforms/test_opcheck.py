"""opcheck passes ops that match their declarations, and names the faults of other ops."""

import backplane as bp
import numpy as np
import pytest

_names = iter(range(10**6))


@pytest.fixture
def name():
    return f"checked::op{next(_names)}"


@pytest.fixture
def x():
    return bp.asarray([[0.5, -1.5, 2.0], [1.0, 3.0, -0.5]])


def verdicts(op, *args, **kwargs):
    """Check -> (verdict, text)."""
    report = bp.opcheck(op, args, kwargs, raise_exception=False)
    return {row.check: (row.verdict, row.text) for row in report.rows}


def fails(op, check, *args, **kwargs):
    """The text of the check that fails, which is the only one, and the exception that opcheck raises for it."""
    found = verdicts(op, *args, **kwargs)
    assert {c for c, (verdict, _) in found.items() if verdict == "failed"} == {check}, found
    with pytest.raises(bp.OpCheckError) as raised:
        bp.opcheck(op, args, kwargs)
    assert check in str(raised.value) and not raised.value.report
    return found[check][1]


def square(name, **rules):
    """x * x with every rule, or others in their place."""

    @bp.custom_op(name)
    def op(x: bp.Tensor) -> bp.Tensor:
        return bp.multiply(x, x)

    op.register_shape(rules.get("shape", lambda x: x))
    op.register_vjp(rules.get("vjp", lambda g, x: bp.multiply(g, bp.multiply(bp.conj(x), 2))))
    op.register_jvp(rules.get("jvp", lambda t_x, x: bp.multiply(t_x, bp.multiply(x, 2))))
    op.register_batch(rules.get("batch", lambda x: bp.multiply(x, x)))
    return op


# ---- what passes -------------------------------------------------------------------------------------------------


def test_a_sound_op_passes(name, x):
    report = bp.opcheck(square(name), (x,))
    assert report and not report.failed
    passed = {row.check for row in report.rows if row.verdict == "passed"}
    assert {"call", "mutation", "aliasing", "shape", "layouts", "gradient", "second order", "forward", "batch"} <= passed
    assert "float64, complex128" in str(report)


SAMPLES = {
    "add": (lambda x: (x, x[0]), {}),
    "exp": (lambda x: (x,), {}),
    "sum": (lambda x: (x,), {"axis": 0}),
    "max": (lambda x: (x,), {"axis": 1}),
    "matmul": (lambda x: (x, x.T), {}),
    "softmax": (lambda x: (x,), {"axis": -1}),
    "sort": (lambda x: (x,), {}),
    "reshape": (lambda x: (x, (3, 2)), {}),
    "permute_dims": (lambda x: (x, (1, 0)), {}),
    "concat": (lambda x: ([x, x],), {"axis": 1}),
    "where": (lambda x: (bp.greater(x, 0), x, 2), {}),
    "take": (lambda x: (x, bp.asarray([1, 0])), {"axis": 1}),
}


@pytest.mark.parametrize("op", SAMPLES)
def test_ops_of_the_registry_pass(op, x):
    make, kwargs = SAMPLES[op]
    report = bp.opcheck(op, make(x), kwargs)
    assert any(row.check == "batch" and row.verdict == "passed" for row in report.rows), report


def test_integers_have_no_gradient_to_check():
    found = verdicts(bp.bitwise_and, bp.asarray([1, 2]), bp.asarray([3, 1]))
    assert found["gradient"][0] == "not stated" and found["batch"][0] == "passed"


def test_what_is_not_stated_is_said(name, x):
    @bp.custom_op(name)
    def bare(x: bp.Tensor) -> bp.Tensor:
        return bp.add(x, 1)

    found = verdicts(bare, x)
    base = name.partition("::")[2]
    assert found["shape"] == ("not stated", "no shape rule: the kernel decides")
    for check, rule in {"gradient": "vjp", "forward": "jvp", "batch": "batch"}.items():
        assert found[check] == ("not stated", f"no {rule} rule is registered; add one with @{base}.register_{rule}")
    assert bp.opcheck(bare, (x,))


def test_a_shape_rule_from_which_no_batching_follows(name, x):
    @bp.custom_op(name, shape="same(x)")
    def reversed_op(x: bp.Tensor) -> bp.Tensor:
        return bp.copy(bp.flip(x))

    reason = f"no batch rule follows from the shape rule same; add one with @{name.partition('::')[2]}.register_batch"
    assert verdicts(reversed_op, x)["batch"] == ("not stated", reason)


def test_a_mutating_op_is_checked(name, x):
    @bp.custom_op(name, mutates_args=("x",))
    def triple(x: bp.Tensor) -> None:
        x.multiply_(3)

    triple.register_vjp(lambda g: bp.multiply(g, 3))
    triple.register_jvp("linear")
    triple.register_batch(lambda x: bp.multiply(x, 3))
    found = verdicts(triple, x)
    assert {check for check, (verdict, _) in found.items() if verdict != "passed"} == {"out", "decomposition"}


def test_devices_are_compared_with_the_first(name, x, simulator):
    op = square(name)
    assert bp.opcheck(op, (x,), devices=["cpu", "sim"])
    op.register_kernel("sim")(lambda x: bp.copy(x))
    report = bp.opcheck(op, (x,), devices=["cpu", "sim"], raise_exception=False)
    row = next(row for row in report.failed if row.check == "devices")
    assert row.device == "sim" and "against that on cpu" in row.text and "found 0.5, expected 0.25" in row.text


def test_each_device_has_its_rows(name, x):
    report = bp.opcheck(square(name), (x,), devices=["cpu", "cpu"])
    assert len(report.rows) == 2 * len({row.check for row in report.rows}) - 1  # the first is compared with none


# ---- the faults --------------------------------------------------------------------------------------------------


def test_a_wrong_gradient(name, x):
    """Without conj it is right for real numbers."""
    found = verdicts(square(name, vjp=lambda g, x: bp.multiply(g, bp.multiply(x, 2))), x)
    assert found["gradient"][0] == "failed"
    assert "the gradient of 'x' in complex128: found" in found["gradient"][1]
    assert "by finite differences" in found["gradient"][1]


def test_a_gradient_that_is_wrong_in_reals_too(name, x):
    found = verdicts(square(name, vjp=lambda g, x: bp.multiply(g, x)), x)
    assert found["gradient"][0] == "failed" and "in float64: found" in found["gradient"][1]
    assert found["forward"][0] == "failed" and "forward against reverse" in found["forward"][1]


def test_a_gradient_that_cannot_be_differentiated(name, x):
    """Right once, but cut off from its argument."""
    op = square(name, vjp=lambda g, x: bp.multiply(g, bp.multiply(bp.conj(x.detach()), 2)))
    assert "the gradient's gradient of 'x'" in fails(op, "second order", x)


def test_a_wrong_tangent(name, x):
    text = fails(square(name, jvp=lambda t_x, x: bp.multiply(t_x, x)), "forward", x)
    assert "the tangent of 'x' in float64: found" in text


def test_a_wrong_batch_rule(name, x):
    text = fails(square(name, batch=lambda x: bp.multiply(x, bp.add(x, 1e-3))), "batch", x)
    assert "vmap over axis" in text and "'x', result 0: found" in text and "by the loop" in text


def test_a_batch_rule_that_is_wrong_along_some_axis_only(name, x):
    """Rows that differ show it; equal ones would not."""
    op = square(name, batch=lambda x: bp.multiply(x, bp.flip(x, axis=0)))
    assert "vmap over axis" in fails(op, "batch", x)


def test_a_wrong_shape_rule(name, x):
    text = fails(square(name, shape=lambda x: x.shape[::-1]), "shape", x)
    assert "float32 of shape (2, 3)" in text and "its shape rule says float32 of shape (3, 2)" in text


def test_a_wrong_dtype_rule(name, x):
    assert "float64" in fails(square(name, shape=lambda x: bp.types.TensorSpec(x.shape, bp.float64)), "shape", x)


def test_a_shape_rule_that_is_wrong_when_empty(name, x):
    @bp.custom_op(name)
    def op(x: bp.Tensor) -> bp.Tensor:
        return bp.sum(x, axis=0) if x.shape[0] else bp.zeros(())

    op.register_shape(lambda x: x.shape[1:])
    assert "empty along axis 0" in fails(op, "shape", x)


def test_an_undeclared_mutation(name, x):
    @bp.custom_op(name)
    def op(x: bp.Tensor) -> bp.Tensor:
        x.numpy()[...] = 7  # unseen by version counters
        return bp.add(x, 0)

    text = fails(op, "mutation", x)
    assert "changed 'x' in place: found [[7. 7. 7.] [7. 7. 7.]], expected [[" in text


def test_an_undeclared_mutation_by_an_op(name, x):
    @bp.custom_op(name)
    def op(x: bp.Tensor) -> bp.Tensor:
        x.add_(1)
        return bp.add(x, 0)

    assert "changed 'x' in place" in fails(op, "mutation", x)


def test_an_undeclared_alias(name, x):
    @bp.custom_op(name)
    def op(x: bp.Tensor) -> bp.Tensor:
        return bp.reshape(x, (-1,))

    assert "returned memory of 'x'" in fails(op, "aliasing", x)


def test_an_undeclared_alias_through_another_library(name, x):
    @bp.custom_op(name)
    def op(x: bp.Tensor) -> bp.Tensor:
        return bp.asarray(x.numpy())

    assert "returned memory of 'x'" in fails(op, "aliasing", x)


def test_a_buffer_that_is_kept(name, x):
    kept = np.zeros(x.shape, np.float32)

    @bp.custom_op(name)
    def op(x: bp.Tensor) -> bp.Tensor:
        if x.shape != kept.shape or x.dtype != bp.float32:
            return bp.multiply(x, 2)
        kept[...] = x.numpy() * 2
        return bp.from_dlpack(kept)

    op.register_shape(lambda x: x)
    assert "result 0 shares memory with the result of the next call" in fails(op, "aliasing", x)


@pytest.mark.parametrize("rows", [2, 3, 4])
def test_a_size_of_the_batch_in_place_of_that_of_an_axis(name, rows):
    def op(x: bp.Tensor) -> bp.Tensor:
        return bp.divide(x, x.shape[0])

    op = bp.custom_op(name)(op)
    op.register_shape(lambda x: x)
    op.register_batch(lambda x: bp.divide(x, x.shape[0]))
    assert "vmap over axis" in fails(op, "batch", bp.ones((rows, 2)))


def test_a_kernel_that_minds_the_layout(name, x):
    @bp.custom_op(name)
    def op(x: bp.Tensor) -> bp.Tensor:
        flat = np.lib.stride_tricks.as_strided(x.numpy(), x.shape, (x.shape[1] * 4, 4))
        return bp.asarray(flat.copy())

    assert "strided arguments, result 0: found" in fails(op, "layouts", x)


def test_a_wrong_decomposition(name, x):
    op = square(name)
    op.register_decomposition(lambda x: bp.add(bp.multiply(x, x), 1))
    assert "the decomposition against the kernel, result 0: found" in fails(op, "decomposition", x)


def test_a_kernel_that_raises(name, x):
    @bp.custom_op(name)
    def op(x: bp.Tensor) -> bp.Tensor:
        raise RuntimeError("of its own")

    assert fails(op, "call", x) == "of its own"


def test_what_is_no_op_or_no_argument():
    with pytest.raises(TypeError, match="argument op: found a value of type function, expected an Op"):
        bp.opcheck(lambda x: x, (1,))
    with pytest.raises(TypeError, match="argument kwargs: found 'y', expected one of"):
        bp.opcheck("exp", (bp.ones(1),), {"y": 1})
    with pytest.raises(TypeError, match="argument args: found 3 values, expected at most 1"):
        bp.opcheck("exp", (1, 2, 3))


def test_a_device_whose_wait_keeps_failing_is_named(name, x, monkeypatch):
    waits = iter(range(10_000))

    def wait(device):
        assert next(waits, None) is not None, "still waits"
        raise bp._core.DataError("lost")

    monkeypatch.setattr(bp._core, "synchronize", wait)
    with pytest.raises(bp.OpCheckError, match=r"device cpu.*: 100 waits in a row failed, the last with: .*lost"):
        bp.opcheck(square(name), (x,))
