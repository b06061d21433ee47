"""A function that the backward pass runs again has the settings of its call: default dtype and device, fallbacks, autocast."""

import backplane as bp
import pytest


def checkpointed(f):
    return bp.checkpoint(f)


def with_rules(f):
    """Its residuals depend on the settings. A second derivative runs the forward rule again."""
    made = bp.custom_function(f)
    made.defvjp(lambda x: (made(x), (x, x * x * bp.ones(3))), lambda kept, g: (g * 3 * kept[1].astype(g.dtype),))
    return made


def cubed(x):
    return x * x * x * bp.ones(3)


def test_a_checkpoint_keeps_the_default_dtype():
    x = bp.ones(3, dtype=bp.float32).requires_grad_()
    with bp.default_dtype(bp.float64):
        y = checkpointed(cubed)(x)
    assert y.dtype is bp.float64
    y.sum().backward()
    assert x.grad.dtype is bp.float32 and x.grad.tolist() == [3.0] * 3


def test_a_checkpoint_keeps_the_default_dtype_of_the_process():
    x = bp.ones(3, dtype=bp.float32).requires_grad_()
    y = checkpointed(cubed)(x)
    bp.set_default_dtype(bp.float64)
    try:
        y.sum().backward()
    finally:
        bp.set_default_dtype(bp.float32)
    assert y.dtype is bp.float32 and x.grad.dtype is bp.float32


@pytest.mark.parametrize("wrap", [checkpointed, with_rules])
def test_what_a_function_reads_is_the_same_in_every_run(wrap):
    seen = []

    def noting(x):
        seen.append((bp.default_dtype(), bp.host_fallback() == "forbid", bp._core.batch_loop_allowed(), bp.get_autocast_dtype()))
        return x * x * x

    made = wrap(noting)
    x = bp.ones(3).requires_grad_()
    blocks = bp.default_dtype(bp.float64), bp.host_fallback("forbid"), bp.allow_batch_loop(False), bp.autocast("cpu")
    with blocks[0], blocks[1], blocks[2], blocks[3]:
        y = made(x)
    first = seen[0]
    assert first == (bp.float64, True, False, bp.bfloat16)
    (gradient,) = bp.gradients([y.sum()], [x], create_graph=True)
    gradient.sum().backward()
    assert len(seen) > 1 and set(seen) == {first}
    assert bp.default_dtype() is bp.float32 and bp.host_fallback() != "forbid" and not bp.is_autocast_enabled()


def test_a_backward_rule_has_the_default_dtype_of_the_call_and_no_autocast():
    seen = []

    def backward(kept, g):
        seen.append((bp.default_dtype(), bp.is_autocast_enabled()))
        return (g,)

    made = bp.custom_function(lambda x: x * 1)
    made.defvjp(lambda x: (made(x), ()), backward)
    x = bp.ones(3).requires_grad_()
    with bp.default_dtype(bp.float64), bp.autocast("cpu"):
        y = made(x)
    y.sum().backward()
    assert seen == [(bp.float64, False)]


def test_a_function_that_raises_leaves_no_setting_behind():
    calls = []

    def failing(x):
        calls.append(bp.default_dtype())
        if len(calls) > 1:
            raise ValueError("in the second run")
        return x * 2

    x = bp.ones(3).requires_grad_()
    with bp.default_dtype(bp.float64):
        y = bp.checkpoint(failing)(x)
    with pytest.raises(ValueError, match="second run"):
        y.sum().backward()
    assert calls == [bp.float64, bp.float64] and bp.default_dtype() is bp.float32
