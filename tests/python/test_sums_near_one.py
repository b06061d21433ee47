"""The logarithm of a sum of exponentials in which one term is far larger than the others keeps the digits of the others."""

import backplane as bp
import numpy as np
import pytest

# The first is the largest: log(1 + rest) is log1p(rest).
ROWS = [[15, 0], [20, 0], [30, 0, -5], [1000, 990], [-500, -512], [88, -100, 3]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", ROWS)
def test_the_digits_of_the_smaller_terms_are_kept(row, dtype):
    expected = np.log1p(np.sum(np.exp(np.asarray(row[1:], "float64") - row[0])))
    lane, columns = bp.asarray([row], dtype=dtype), bp.asarray(np.repeat(np.asarray(row, dtype)[:, None], 40, axis=1))
    found = [
        bp.ops.bp.cross_entropy(lane, bp.asarray([0])),
        -bp.log_softmax(lane)[0, 0],
        -bp.log_softmax(columns, axis=[0])[0],
        bp.logsumexp(lane - row[0]),
        bp.logsumexp(columns - row[0], axis=[0]),
    ]
    for one in found:
        np.testing.assert_allclose(one.numpy(), expected, rtol=4 * np.finfo(dtype).eps)
