"""bp.profile: compiled functions run as they do without it, and each op and fused kernel has its costs."""

import json

import pytest

import backplane as bp


def program(x, w):
    h = bp.tanh(x @ w)
    return (bp.exp(h) * 2 + 1).sum()


def test_a_compiled_function_stays_fused():
    x, w = bp.rand(8, 4), bp.rand(4, 4)
    compiled = bp.compile(program)
    before, plan = compiled(x, w), bp.explain_plan(program)(x, w)
    with bp.profile() as p:
        after = compiled(x, w)
        assert bp.explain_plan(program)(x, w) == plan
    assert after.item() == before.item()
    assert [event["kind"] for event in p.events] == ["kernel", "region"]
    product, fused = p.events
    assert product["name"] == "bp::matmul" and fused["name"] == "fused(tanh, exp, multiply, add, sum)"
    assert product["flops"] == 2 * 8 * 4 * 4 and product["bytes"] == 4 * (8 * 4 + 4 * 4 + 8 * 4)
    assert fused["bytes"] == 4 * (8 * 4 + 1) and fused["flops"] == 5 * 32
    assert product["line"] == f"{__file__}:11" and fused["line"] == f"{__file__}:11-12"


def test_calls_have_costs_and_lines():
    x = bp.rand(16, 16)
    with bp.profile() as p:
        with p.range("both"):
            bp.sin(x)
            x @ x
        bp.softmax(x)
    outer, sine, product, softmax = p.events
    assert [event["kind"] for event in p.events] == ["range", "op", "op", "op"] and [event["depth"] for event in p.events] == [0, 1, 1, 0]
    assert (sine["bytes"], sine["flops"], product["flops"], softmax["flops"]) == (2 * 1024, 256, 2 * 16**3, None)
    assert sine["line"].startswith(f"{__file__}:") and outer["bytes"] is None
    costs = p.costs()
    assert 0 < costs["bp::sin"]["roofline"] <= 1 and costs["bp::softmax"]["roofline"] is None and costs["bp::sin"]["lines"] == [sine["line"]]
    text = str(p)
    assert "roofline" in text and "bp::sin" in text and "test_profile.py" in text
    with bp.profile(lines=False) as p:
        bp.sin(x)
    assert p.events[0]["line"] == ""


def test_a_trace_is_no_run():
    with bp.profile() as p:
        bp.compile(lambda x: bp.sin(x) + 1)(bp.rand(3))
    assert [event["kind"] for event in p.events if event["kind"] != "op"] == ["region"]
    assert not any(event["name"] in ("bp::sin", "bp::add") for event in p.events)


CALLS = {
    "scan": lambda x: bp.scan(lambda c, row: (c + row, c), bp.zeros(3), x)[0],
    "while_loop": lambda x: bp.while_loop(lambda y: y.sum() < 50, lambda y: y * 2, x),
    "cond": lambda x: bp.cond(x.sum() > 0, bp.sin, bp.cos, x),
    "map": lambda x: bp.map(bp.sin, x),
    "derivative": lambda x: bp.grad(lambda y: bp.scan(lambda c, row: (c * row, c), bp.ones(3), y)[0].sum())(x),
    "pure_callback": lambda x: bp.pure_callback(lambda y: y + 1, x, x),
    "print": lambda x: bp.debug.print("{}", x) or x * 2,
}


@pytest.mark.parametrize("call", CALLS)
def test_steps_that_are_calls(call, capsys):
    compiled, x = bp.compile(lambda x: CALLS[call](x + 1) * 2), bp.rand(4, 3)
    expected = compiled(x)
    with bp.profile() as p:
        found = compiled(x)
    assert bp.array_equal(found, expected)
    assert p.events


def test_memory_and_traces_for_perfetto(tmp_path):
    with bp.profile() as p:
        kept = [bp.rand(64, 64) for _ in range(3)]
        kept[0] @ kept[1]
    timeline = p.memory_timeline()
    assert timeline and all(size > 0 for _, size in timeline)
    p.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == len(p.events)
    assert [event["args"]["bytes"] for event in events if event["ph"] == "C"] == [size for _, size in timeline]


def test_derivatives_and_errors_under_a_profile():
    x = bp.rand(4, 4)
    with bp.profile() as p:
        gradient = bp.compile(bp.grad(lambda x: program(x, x)))(x)
        with pytest.raises(bp.ShapeError):
            x @ bp.rand(3, 3)
        eager = bp.grad(lambda x: program(x, x))(x)
    assert bp.allclose(gradient, eager, rtol=1e-4) and any(event["name"] == "bp::matmul" for event in p.events)
    with pytest.raises(bp.ArgumentValueError, match="is still running"):
        bp.profile().events
