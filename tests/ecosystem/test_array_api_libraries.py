"""array-api-compat and array-api-extra take backplane for the array namespace that it is."""

import array_api_compat
import array_api_extra as xpx
import backplane as bp
import numpy as np
import pytest
from ecosystem_data import V, X, same, tensors


def test_the_namespace_is_found():
    v, x = tensors(V, X)
    assert array_api_compat.is_array_api_obj(v) and array_api_compat.array_namespace(v, x) is bp
    assert array_api_compat.device(v) == v.device and array_api_compat.size(x) == x.size
    same(array_api_compat.to_device(v, "cpu"), V)


FUNCTIONS = {
    "atleast_nd": lambda x, v: xpx.atleast_nd(v, ndim=3), "cov": lambda x, v: xpx.cov(x.T), "create_diagonal": lambda x, v: xpx.create_diagonal(v, offset=1),
    "expand_dims": lambda x, v: xpx.expand_dims(v, axis=(0, 2)), "isclose": lambda x, v: xpx.isclose(v, v + 1e-9), "kron": lambda x, v: xpx.kron(v, v),
    "nunique": lambda x, v: xpx.nunique(v), "pad": lambda x, v: xpx.pad(v, 2), "setdiff1d": lambda x, v: xpx.setdiff1d(v, v[:2]), "sinc": lambda x, v: xpx.sinc(v),
    "set": lambda x, v: xpx.at(v)[0].set(5.0), "add": lambda x, v: xpx.at(v, v > 1).add(1.0), "one_hot": lambda x, v: xpx.one_hot(xpx.isclose(v, v).astype(int), 3),
    "nan_to_num": lambda x, v: xpx.nan_to_num(v), "partition": lambda x, v: xpx.partition(v, 2)[2], "isin": lambda x, v: xpx.isin(v, v[:3]),
    "apply_where": lambda x, v: xpx.apply_where(v > 1, v, lambda v: v * 2, lambda v: v - 1),
    "lazy_apply": lambda x, v: xpx.lazy_apply(np.sin, v, shape=v.shape, dtype=v.dtype, as_numpy=True),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    expected = FUNCTIONS[name](X.copy(), V.copy())
    found = FUNCTIONS[name](*tensors(X, V))
    same(found, expected, rtol=1e-6 if name == "one_hot" else 1e-9)
