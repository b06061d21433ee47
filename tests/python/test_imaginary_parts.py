"""Imaginary parts are dropped where the call says so (astype, real), and nowhere else."""

import operator

import backplane as bp
import numpy as np
import pytest
from backplane.nn import functional as F

Z = bp.asarray([1 + 2j, 3 - 1j])

DOORS = {
    "asarray of a list": lambda x: bp.asarray([1 + 2j], dtype=x.dtype),
    "asarray of a number": lambda x: bp.asarray(1j, dtype=x.dtype),
    "asarray of a tensor": lambda x: bp.asarray(Z, dtype=x.dtype),
    "asarray of an array": lambda x: bp.asarray(np.ones(2, np.complex64), dtype=x.dtype),
    "asarray of a list of tensors": lambda x: bp.asarray([Z[0], 1.0], dtype=x.dtype),
    "tensor": lambda x: bp.tensor([1j], dtype=x.dtype),
    "full": lambda x: bp.full((2,), 1j, dtype=x.dtype),
    "full_like": lambda x: bp.full_like(x, 1j),
    "full_like with a dtype": lambda x: bp.full_like(Z, 1j, dtype=x.dtype),
    "linspace": lambda x: bp.linspace(0, 1j, 3, dtype=bp.float64),
    "setitem of a number": lambda x: operator.setitem(x, 0, 1j),
    "setitem of a tensor": lambda x: operator.setitem(x, slice(None), Z),
    "setitem by a mask": lambda x: operator.setitem(x, x == x, 1j),
    "setitem by positions": lambda x: operator.setitem(x, bp.asarray([0]), Z[:1]),
    "in place": lambda x: operator.iadd(x, Z),
    "out": lambda x: bp.add(Z, Z, out=x),
    "fill_": lambda x: x.fill_(1j),
    "copy_": lambda x: x.copy_(Z),
    "sum": lambda x: bp.sum(Z, dtype=x.dtype),
    "prod": lambda x: bp.prod(Z, dtype=x.dtype),
    "cumulative_sum": lambda x: bp.cumulative_sum(Z, dtype=x.dtype),
    "cumulative_prod": lambda x: bp.cumulative_prod(Z, dtype=x.dtype),
    "cumsum": lambda x: bp.cumsum(Z, 0, dtype=x.dtype),
    "trace": lambda x: bp.linalg.trace(bp.stack([Z, Z]), dtype=x.dtype),
    "nansum": lambda x: bp.nansum(Z, dtype=x.dtype),
    "pad": lambda x: bp.pad(x, 1, constant_values=1j),
    "nn pad": lambda x: F.pad(x, (1, 1), value=1j),
    "median": lambda x: bp.median(Z),
    "nanmedian": lambda x: bp.nanmedian(Z),
    "median over dim": lambda x: bp.median(Z, dim=0),
    "quantile": lambda x: bp.quantile(Z, 0.5),
    "quantile at complex fractions": lambda x: bp.quantile(bp.ones(3), Z),
    "nanquantile": lambda x: bp.nanquantile(Z, 0.5),
    "percentile": lambda x: bp.percentile(Z, 50),
    "nanpercentile": lambda x: bp.nanpercentile(Z, 50),
    "histogram": lambda x: bp.histogram(Z),
    "std in a dtype": lambda x: bp.std(Z, dtype=bp.float64),
    "var in a dtype": lambda x: bp.var(Z, dtype=bp.float32),
    "mean in a dtype": lambda x: bp.mean(Z, dtype=bp.float32),
    "insert of a number": lambda x: bp.insert(x, 0, 1j),
    "insert of a tensor": lambda x: bp.insert(x, 0, Z),
    "interp": lambda x: bp.interp(Z, [0.0, 1.0], [2.0, 3.0]),
    "bincount": lambda x: bp.bincount(bp.asarray([0, 1]), Z),
    "weights of cov": lambda x: bp.cov(bp.ones((2, 2)), aweights=Z),
    "softmax": lambda x: F.softmax(Z, dim=0, dtype=bp.float32),
    "rfft": lambda x: bp.fft.rfft(Z),
    "celu": lambda x: F.celu(x, alpha=1 + 1j),
    "elu into out": lambda x: bp.ops.bp.elu(x.float(), alpha=1j, out=bp.ones(2)),
    "elu in place": lambda x: bp.Op("bp::elu", "elu_", inplace=True)(x.float(), alpha=1j),
    "softplus of a leaf": lambda x: F.softplus(bp.ones(2).requires_grad_(), beta=1j),
    "softplus inside vmap": lambda x: bp.vmap(lambda row: F.softplus(row, beta=1j))(bp.ones((2, 3))),
    "softplus inside grad": lambda x: bp.grad(lambda y: bp.sum(F.softplus(y, beta=1j)))(bp.ones(3)),
    "normal": lambda x: bp.normal((2,), mean=1j, dtype=bp.float64),
    "uniform": lambda x: bp.uniform((2,), high=1j),
    "addcmul": lambda x: bp.addcmul(bp.ones(2), bp.ones(2), bp.ones(2), value=1j),
    "order of a norm": lambda x: bp.linalg.vector_norm(Z, ord=2 + 1j),
    "arange": lambda x: bp.arange(0, 3 + 1j),
    "cross_entropy": lambda x: F.cross_entropy(bp.ones((2, 3)), bp.asarray([0, 1]), ignore_index=1 + 2j),
    "nll_loss": lambda x: F.nll_loss(bp.ones((2, 3)), bp.asarray([0, 1]), ignore_index=1 + 2j),
    "list of a custom op": lambda x: summed(bp.ones(2), [1.0, 1j]),
}


@bp.custom_op("own::summed_factors")
def summed(x: bp.Tensor, factors: list[float]) -> bp.Tensor:
    return x * sum(factors)


@pytest.mark.parametrize("dtype", [bp.float32, bp.float64, bp.int64], ids=str)
@pytest.mark.parametrize("door", DOORS)
def test_complex_elements_are_refused_where_real_ones_are_wanted(door, dtype):
    x = bp.asarray([7, 8], dtype=dtype)
    with pytest.raises(TypeError) as raised:
        DOORS[door](x)
    assert isinstance(raised.value, bp.BackplaneError)
    assert x.tolist() == [7, 8]


def test_what_says_so_drops_them_and_bools_ask_for_zero():
    assert bp.real(Z).tolist() == Z.real.tolist() == Z.astype(bp.float32).tolist() == Z.to(bp.float32).tolist() == Z.float().tolist() == [1.0, 3.0]
    assert bp.asarray([1j, 0j], dtype=bp.bool).tolist() == bp.asarray(bp.asarray([1j, 0j]), dtype=bp.bool).tolist() == [True, False]


def test_the_error_says_what_to_write():
    for call in (lambda: bp.asarray(Z, dtype=bp.float32), lambda: bp.median(Z), lambda: bp.sum(Z, dtype=bp.float32)):
        with pytest.raises(bp.DtypeError, match=r"real\(x\)"):
            call()
    with pytest.raises(bp.DtypeError, match="the complex number 1 - 2j does not fit float32.*real part"):
        bp.full((1,), 1 - 2j, dtype=bp.float32)


def test_a_kernel_in_python_takes_them():
    @bp.custom_op("own::turned")
    def turned(x: bp.Tensor, by: complex) -> bp.Tensor:
        return x * by

    assert turned(bp.ones(2), 2j).tolist() == [2j, 2j]
    assert summed(bp.ones(1), [0.5, 2**64 - 1, True]).item() == float(2**64)


def test_a_scalar_of_a_complex_result_counts():
    assert bp.addcmul(Z, Z, Z, value=1j).tolist() == [z + 1j * z * z for z in Z.tolist()]
    assert bp.full((1,), 1j).item() == 1j and bp.linspace(0, 1j, 2).tolist() == [0, 1j]
