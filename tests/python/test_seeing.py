"""summary, pure_callback, debug.print and callback, detect_anomaly."""

import numpy as np
import pytest

import backplane as bp
from backplane import nn


def test_a_summary():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 2), nn.Dropout(0.5)), nn.BatchNorm1d(2))
    model[0].bias.requires_grad_(False)
    before = bp.default_generator.state
    mean = model[3].running_mean.clone()
    found = bp.summary(model, bp.ones((5, 4)))
    assert (found.total_parameters, found.trainable_parameters, found.parameter_bytes) == (62, 54, 248)
    assert [row["type"] for row in found.rows] == ["Sequential", "Linear", "ReLU", "Sequential", "Linear", "Dropout", "BatchNorm1d"]
    assert found.rows[1]["outputs"] == [(5, 8)] and found.rows[4]["depth"] == 2 and found.rows[4]["path"] == "2.0"
    text = str(found)
    assert "0: Linear" in text and "(5, 8)" in text and "62 (54 trainable)" in text
    assert bp.default_generator.state == before and bp.all(model[3].running_mean == mean) and model.training
    assert bp.summary(model).rows[1]["outputs"] == [] and bp.summary(nn.Linear(2, 3), bp.ones((1, 2))).flops > 0
    with pytest.raises(TypeError, match="argument model"):
        bp.summary(lambda x: x)


def test_a_pure_callback():
    x = bp.asarray([1.0, 2.0])
    sine = lambda x: bp.pure_callback(np.sin, x, x)  # noqa: E731
    assert bp.allclose(sine(x), bp.sin(x)) and bp.allclose(bp.compile(lambda x: sine(x) * 2)(x), bp.sin(x) * 2)
    spec = bp.types.TensorSpec((), bp.float32)
    total = lambda x: bp.pure_callback(lambda a: np.float32(a.sum()), spec, x)  # noqa: E731
    assert bp.vmap(total)(bp.ones((3, 2))).tolist() == [2.0] * 3
    pair = bp.compile(lambda x: bp.pure_callback(lambda a: {"s": np.sin(a), "n": np.int64(a.size)}, {"s": x, "n": bp.types.TensorSpec((), bp.int64)}, x))(x)
    assert pair["n"].item() == 2 and bp.allclose(pair["s"], bp.sin(x))
    assert bp.compile(lambda x: x + bp.pure_callback(lambda: np.float32(3), spec))(x).tolist() == [4.0, 5.0]
    assert bp.allclose(bp.grad(lambda x: (sine(bp.stop_gradient(x)) * x).sum())(x), bp.sin(x))
    with pytest.raises(bp.MissingRuleError):
        bp.grad(lambda x: sine(x).sum())(x)
    for run in (lambda f: f(x), lambda f: bp.compile(f)(x)):
        with pytest.raises(bp.ShapeError, match=r"returned shape \(1,\), expected \(2,\)"):
            run(lambda x: bp.pure_callback(lambda a: a[:1], x, x))
        with pytest.raises(bp.DtypeError, match="returned float64, expected float32"):
            run(lambda x: bp.pure_callback(lambda a: a.astype("float64"), x, x))


def test_print_prints_when_the_program_runs(capsys):
    def f(x):
        bp.debug.print("x = {}, {y}", x, y=2 * x)
        return x + 1

    x = bp.asarray(1.0)
    f(x)
    assert capsys.readouterr().out == "x = 1.0, 2.0\n"
    compiled = bp.compile(f)
    for _ in range(2):
        compiled(x)
    assert capsys.readouterr().out == "x = 1.0, 2.0\n" * 2
    bp.vmap(f)(bp.asarray([1.0, 2.0]))
    assert capsys.readouterr().out == "x = 1.0, 2.0\nx = 2.0, 4.0\n"
    assert bp.grad(f)(x).item() == 1.0 and bp.compile(bp.grad(f))(x).item() == 1.0
    assert capsys.readouterr().out == "x = 1.0, 2.0\n" * 2

    def loop(x):
        return bp.scan(lambda c, y: (bp.debug.print("c = {}", c), (c + y, c))[1], x, bp.ones(3))[0]

    bp.compile(loop)(x)
    assert capsys.readouterr().out == "c = 1.0\nc = 2.0\nc = 3.0\n"
    with pytest.raises(TypeError, match="argument fmt"):
        bp.debug.print(x)


def test_rows_are_printed_without_a_warning(capfd):
    bp.vmap(lambda x: bp.debug.print("{} {} {} {} {}", x, x, x, x, x))(bp.asarray([1.0, 2.0]))
    assert capfd.readouterr() == ("1.0 1.0 1.0 1.0 1.0\n2.0 2.0 2.0 2.0 2.0\n", "")


def test_callbacks_with_an_effect():
    seen = []
    step = bp.compile(lambda x: (bp.debug.callback(lambda x, k: seen.append((float(x), k)), x, 3), x * 2)[1])
    step(bp.asarray(1.0))
    step(bp.asarray(2.0))
    assert seen == [(1.0, 3), (2.0, 3)]


def test_the_first_nan_is_named():
    x = bp.asarray([1.0, 0.0])

    def f(x):
        y = x / x
        return (y * 2).sum()

    with bp.detect_anomaly():
        with pytest.raises(FloatingPointError, match=rf"divide: found a NaN in its result of shape \(2,\) \({__file__}:\d+\)"):
            f(x)
        with pytest.raises(FloatingPointError, match="divide: found a NaN"):
            bp.compile(f)(x)
        assert bp.log(bp.zeros(1)).item() == -float("inf") and f(bp.ones(2)).item() == 4
        y = bp.asarray([0.0]).requires_grad_()
        with pytest.raises(FloatingPointError, match="found a NaN"):
            (bp.sqrt(y) * 0).sum().backward()
        with pytest.raises(FloatingPointError, match="divide"):
            bp.vmap(lambda x: x / x)(x)
        with bp.detect_anomaly(), pytest.raises(FloatingPointError):
            f(x)
    assert bp.isnan(f(x)).item()
    with bp.detect_anomaly(check_inf=True), pytest.raises(FloatingPointError, match="log: found an infinity"):
        bp.log(bp.zeros(1))
    with bp.detect_anomaly(False):
        f(x)


def test_a_callback_may_use_its_buffer_again_and_may_not_change_its_arguments():
    buffer, x = np.empty(2, "float32"), bp.asarray([1.0, 2.0])

    def doubled(a):
        return np.multiply(a, 2, out=buffer)

    def twice(x):
        return bp.pure_callback(doubled, x, x) + bp.pure_callback(doubled, x, x * 10)

    assert bp.compile(twice)(x).tolist() == twice(x).tolist() == [22, 44]
    assert bp.vmap(lambda x: bp.pure_callback(doubled, x, x))(bp.asarray([[1.0, 2], [3, 4]])).tolist() == [[2, 4], [6, 8]]
    same = bp.compile(lambda x: bp.pure_callback(lambda a: a, x, x))(x)
    same += 1
    assert x.tolist() == [1, 2]
    for run in (twice, bp.compile(twice)):
        doubled = lambda a: a.__imul__(2)
        with pytest.raises(ValueError, match="read-only"):
            run(x)


def test_equal_prints_of_a_compiled_function_are_all_made_and_in_order(capsys):
    def f(x):
        for text in ("first {}", "second {}", "first {}"):
            bp.debug.print(text, x)
        return x * 2

    compiled = bp.compile(f)
    for _ in range(2):
        compiled(bp.asarray([1.0]))
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["first", "second", "first"] * 2


def test_export_refuses_prints(tmp_path):
    def f(x):
        bp.debug.print("{}", x)
        return x

    with pytest.raises(NotImplementedError, match="which has an effect on the running program"):
        bp.export(f, [bp.ones(2)], tmp_path / "f.safetensors")
