"""custom_op(elementwise=True): the derived shape, the refusals, and the check of opcheck."""

import pytest

import backplane as bp


def test_results_broadcast_and_batch():
    @bp.custom_op("element::shifted", elementwise=True, dtypes="floating", replace=True)
    def shifted(x: bp.Tensor, y: bp.Tensor) -> tuple[bp.Tensor, bp.Tensor]:
        return x + y, x - y

    x, y = bp.ones((3, 1)), bp.ones(4)
    total, difference = shifted(x, y)
    assert total.shape == difference.shape == (3, 4)
    rows = bp.vmap(shifted, in_axes=(0, None))(x, y)
    assert [tuple(row.shape) for row in rows] == [(3, 4), (3, 4)]
    assert [tuple(row.shape) for row in bp.compile(shifted)(x, y)] == [(3, 4), (3, 4)]
    assert bp.opcheck(shifted, (x, y), raise_exception=False)


@pytest.mark.parametrize(("signature", "options", "says"), [
    ("f(Tensor x) -> Tensor", {"alias": "x"}, "beside mutates_args or alias"),
    ("f(Tensor x) -> ()", {"mutates_args": ("x",)}, "beside mutates_args or alias"),
    ("f(Tensor[] x) -> Tensor", {}, "whose tensors and results are not lists"),
    ("f(Size n) -> Tensor", {}, "whose arguments include a Tensor"),
    ("f(Tensor x, Tensor y) -> Tensor", {"shape": "same(x)"}, r"expected none, or 'broadcast\(x, y\)' for each result"),
])  # fmt: skip
def test_what_is_not_elementwise_is_refused(signature, options, says):
    with pytest.raises(bp.ArgumentValueError, match=says):
        bp.custom_op("element::f", signature, elementwise=True, **options)


def test_the_shape_may_be_stated_as_well():
    op = bp.custom_op("element::stated", "stated(Tensor x, Tensor y) -> Tensor", elementwise=True, shape="broadcast(x,y)", replace=True)
    op.register_kernel(lambda x, y: x * y)
    assert op(bp.ones(2), bp.ones((3, 1))).shape == (3, 2)


def test_opcheck_finds_an_op_that_is_not_elementwise():
    @bp.custom_op("element::normalised", elementwise=True, dtypes="floating", replace=True)
    def normalised(x: bp.Tensor) -> bp.Tensor:
        return x / bp.max(x)

    report = bp.opcheck(normalised, (bp.asarray([1.0, 2.0, 4.0]),), raise_exception=False)
    assert not report
    assert "element 0 alone against the same element of the sample, result 0: found 1, expected 0.25" in str(report)
