"""SciPy with its array API switched on: tensors in, tensors out, with the values that it gives for NumPy's arrays."""

import backplane as bp
import numpy as np
import pytest
import scipy.cluster
import scipy.differentiate
import scipy.fft
import scipy.integrate
import scipy.optimize.elementwise as elementwise
import scipy.signal
import scipy.special
import scipy.stats
from ecosystem_data import V, X, Y, same, tensors
from scipy.spatial.transform import Rotation


def xp(x):
    return bp if isinstance(x, bp.Tensor) else np


# A function of a namespace, X, V and Y.
CALLS = {
    "tanhsinh": lambda x, v, y: scipy.integrate.tanhsinh(lambda t: xp(t).exp(-t * t), 0 * v, v).integral,
    "nsum": lambda x, v, y: scipy.integrate.nsum(lambda t: 1 / t**2, 0 * v[0] + 1, 0 * v[0] + 50).sum,
    "cubature": lambda x, v, y: scipy.integrate.cubature(lambda t: xp(t).sum(t, axis=-1), 0 * v[:2], v[:2]).estimate,
    "find_root": lambda x, v, y: elementwise.find_root(lambda t, c: t**3 - c, (0 * v, 0 * v + 3), args=(v,)).x,
    "find_minimum": lambda x, v, y: elementwise.find_minimum(lambda t: (t - 1) ** 2, (0 * v - 2, 0 * v + 0.5, 0 * v + 4)).x,
    "bracket_root": lambda x, v, y: elementwise.bracket_root(lambda t: t**3 - 1, 0 * v - 1, 0 * v).bracket,
    "derivative": lambda x, v, y: scipy.differentiate.derivative(xp(v).sin, v).df,
    "jacobian": lambda x, v, y: scipy.differentiate.jacobian(lambda t: t**2, v).df,
    "hessian": lambda x, v, y: scipy.differentiate.hessian(lambda t: xp(t).sum(t**3, axis=0), v).ddf,
    "logsumexp": lambda x, v, y: scipy.special.logsumexp(x, axis=1), "softmax": lambda x, v, y: scipy.special.softmax(x, axis=1),
    "erf": lambda x, v, y: scipy.special.erf(x), "gammaln": lambda x, v, y: scipy.special.gammaln(v), "xlogy": lambda x, v, y: scipy.special.xlogy(v, v),
    "zscore": lambda x, v, y: scipy.stats.zscore(x), "skew": lambda x, v, y: scipy.stats.skew(x), "kurtosis": lambda x, v, y: scipy.stats.kurtosis(x),
    "ttest_ind": lambda x, v, y: tuple(scipy.stats.ttest_ind(x, x + 1)), "ttest_1samp": lambda x, v, y: scipy.stats.ttest_1samp(x, 0.0).pvalue,
    "pearsonr": lambda x, v, y: scipy.stats.pearsonr(x[:, 0], y).statistic, "gmean": lambda x, v, y: scipy.stats.gmean(v), "moment": lambda x, v, y: scipy.stats.moment(x, 3),
    "describe": lambda x, v, y: scipy.stats.describe(x).variance, "entropy": lambda x, v, y: scipy.stats.entropy(v), "rankdata": lambda x, v, y: scipy.stats.rankdata(y),
    "iqr": lambda x, v, y: scipy.stats.iqr(x, axis=0), "fft": lambda x, v, y: scipy.fft.fft(v), "irfft": lambda x, v, y: scipy.fft.irfft(scipy.fft.rfft(v)),
    "detrend": lambda x, v, y: scipy.signal.detrend(y), "fftconvolve": lambda x, v, y: scipy.signal.fftconvolve(v, y),
    "whiten": lambda x, v, y: scipy.cluster.vq.whiten(x), "rotation": lambda x, v, y: Rotation.from_euler("z", v[:, None]).as_matrix(),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_scipy(name):
    expected = CALLS[name](X.copy(), V.copy(), Y.copy())
    same(CALLS[name](*tensors(X, V, Y)), expected, rtol=1e-7)
