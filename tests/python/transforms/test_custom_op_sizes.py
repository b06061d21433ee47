"""Ops of Python whose results have sizes that depend on values: the op, its padded form, their rules and refusals."""

import backplane as bp
import numpy as np
import pytest

X = [-1.0, 2.0, 0.0, 3.0]


@bp.custom_op("sizes::positives", shape="dynamic(max=x.shape[0])", dtypes="floating")
def positives(x: bp.Tensor) -> bp.Tensor:
    """The positive elements of x, in order."""
    return bp.asarray(x.numpy()[x.numpy() > 0])


@positives.register_vjp
def positives_vjp(g, x):
    rows = bp.clip(bp.cumulative_sum((x > 0).astype(bp.int64)) - 1, 0)
    return bp.where(x > 0, bp.take(g[0], rows), 0)


@positives.register_jvp
def positives_jvp(t_x, x):
    rows = bp.argsort((x <= 0).astype(bp.int64), stable=True)
    return bp.where(bp.arange(x.shape[0]) < (x > 0).sum(), bp.take(t_x, rows), 0), None


positives.register_batch("loop")


@bp.custom_op("sizes::found", shape=["dynamic(max=[x.shape[0] * x.shape[1], 2], dtype=int64)", "dynamic(max=x.shape[0] * x.shape[1])"])
def found(x: bp.Tensor, *, least: bp.types.Scalar = 0) -> tuple[bp.Tensor, bp.Tensor]:
    """The positions where x of two axes is above `least`, and the elements there."""
    places = np.argwhere(x.numpy() > least)
    return bp.asarray(places), bp.asarray(x.numpy()[tuple(places.T)])


def test_the_op_gives_the_rows_there_are_and_its_padded_form_all():
    x = bp.asarray(X)
    assert positives(x).tolist() == [2, 3]
    rows, count = bp.ops.sizes.positives_padded(x)
    assert rows.tolist() == [2, 3, 0, 0] and int(count) == 2 and count.dtype is bp.int64
    assert positives(bp.zeros(0)).shape == (0,)
    assert positives(bp.asarray(X, dtype=bp.float64)).dtype is bp.float64
    places, values = found(bp.asarray([[1.0, 5.0], [4.0, 2.0]]), least=1.5)
    assert places.tolist() == [[0, 1], [1, 0], [1, 1]] and places.dtype is bp.int64 and values.tolist() == [5, 4, 2]
    assert [len(result.shape) for result in bp.ops.sizes.found_padded(bp.zeros((2, 3)))] == [2, 1, 0]


def test_the_padded_form_is_compiled_batched_and_exported(tmp_path):
    x = bp.asarray(X)
    compiled = bp.compile(bp.ops.sizes.positives_padded)
    assert [result.tolist() for result in compiled(x)] == [[2, 3, 0, 0], 2]
    assert [result.tolist() for result in compiled(-x)] == [[1, 0, 0, 0], 1]
    rows, counts = bp.vmap(bp.ops.sizes.positives_padded)(bp.asarray([[1.0, -1.0], [2.0, 3.0]]))
    assert rows.tolist() == [[1, 0], [2, 3]] and counts.tolist() == [1, 2]
    bp.export(lambda x: bp.ops.sizes.positives_padded(x)[0].sum(), [x], tmp_path / "sum.safetensors")
    (total,) = bp.load(tmp_path / "sum.safetensors")(x)
    assert float(total) == 5


def test_derivatives_are_those_of_the_padded_form():
    x = bp.asarray(X).requires_grad_()
    (positives(x) * bp.asarray([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [0, 1, 0, 10]
    assert bp.compile(bp.grad(lambda x: bp.ops.sizes.positives_padded(x)[0].sum()))(x.detach()).tolist() == [0, 1, 0, 1]
    bp.opcheck(positives, (bp.asarray([0.5, -1.5, 2.5]),))


@pytest.mark.parametrize("transform", [bp.compile, bp.vmap])
def test_the_op_itself_is_refused_with_the_name_of_its_padded_form(transform):
    with pytest.raises(bp.MissingRuleError, match=r"sizes::positives.*call sizes::positives_padded, which gives all rows and their count"):
        transform(positives)(bp.asarray([X]) if transform is bp.vmap else bp.asarray(X))


@pytest.mark.parametrize(("shape", "result", "says"), [
    ("dynamic(max=1)", lambda x: x, r"returned the shape \(4,\); expected at most 1 rows, as in \(1,\), by dynamic\(max=1\)"),
    ("dynamic(max=[4, 2])", lambda x: x, r"returned the shape \(4,\); expected at most 4 rows, as in \(4, 2\)"),
    ("dynamic(max=4)", lambda x: x.sum(), r"returned shapes \(\); expected 1 results with one number of rows"),
])  # fmt: skip
def test_a_kernel_that_breaks_its_word_is_named(shape, result, says):
    op = bp.custom_op("sizes::broken", "broken(Tensor x) -> Tensor", shape=shape, replace=True)
    op.register_kernel(result)
    with pytest.raises(bp.ShapeError, match="sizes::broken: its kernel " + says):
        op(bp.asarray(X))


@pytest.mark.parametrize("shape", [
    "dynamic(x.shape[0])", "dynamic(max=y.shape[0])", "dynamic(max=x.sum())", "dynamic(max=2.5)", "dynamic(max=4, dtype=int)", "dynamic(max=", "dynamic(max=__import__('os'))",
    ["dynamic(max=4)", "dynamic(max=4)"],
])  # fmt: skip
def test_what_is_no_largest_size_is_refused(shape):
    with pytest.raises(bp.ArgumentValueError, match=r"custom_op sizes::refused: argument shape: found .*, expected .*dynamic\(max="):
        bp.custom_op("sizes::refused", "refused(Tensor x) -> Tensor", shape=shape)
    assert not hasattr(bp.ops.sizes, "refused_padded")


def test_a_shape_rule_beside_the_largest_size_is_refused():
    with pytest.raises(bp.ArgumentValueError, match="sizes::positives: a shape rule: found a function, expected none: its `shape` states the largest size"):
        positives.register_shape(lambda x: x.shape)
    with pytest.raises(bp.ArgumentValueError, match="expected another name: the padded form has a result 'count'"):
        bp.custom_op("sizes::counted", "counted(Tensor x) -> (Tensor rows, Tensor count)", shape=["dynamic(max=4)", "dynamic(max=4)"])
