"""Rows with loops whose length depends on values: against PyTorch's, also where series and fractions meet, and in compiled graphs."""

import comparison
import pytest
import torch

import backplane as bp
import backplane.torch

POLYNOMIALS = ["chebyshev_polynomial_t", "shifted_chebyshev_polynomial_w", "hermite_polynomial_h", "laguerre_polynomial_l", "legendre_polynomial_p"]


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_incomplete_gamma_functions(name, dtype):
    values = torch.tensor([0.0, 1e-6, 0.02, 0.4, 0.5, 1.0, 1.1, 1.2, 3.0, 19.0, 20.0, 21.0, 90.0, 110.0, 1000.0, 1100.0, torch.inf, -1.0], dtype=dtype)
    a, x = torch.meshgrid(values, values, indexing="ij")
    expected = getattr(torch.special, name)(a.double(), x.double()).to(dtype)  # PyTorch's in float32 are wrong by up to 12 % where a is small
    found = getattr(torch.special, name)(a.to(backplane.torch.device("cpu")), x.to(backplane.torch.device("cpu"))).cpu()
    torch.testing.assert_close(found, expected, equal_nan=True, rtol=2e-4 if dtype == torch.float32 else 3e-9, atol=1e-30)
    nan = torch.full((1,), torch.nan, dtype=dtype).to(backplane.torch.device("cpu"))
    assert getattr(torch.special, name)(nan, nan * 0 + 1).isnan().all() and getattr(torch.special, name)(nan.nan_to_num(1.0), nan).isnan().all()


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_in_compiled_graphs(name):
    function = getattr(torch.special, name)
    x, n = torch.tensor([-1.5, -1.0, -0.3, 0.0, 0.7, 1.0, 2.0], dtype=torch.float64), torch.tensor([[-1], [0], [1], [2], [7], [12]])
    with backplane.torch.forbid_fallbacks():
        found = torch.compile(lambda x, n: function(x, n) * 2, backend="backplane", fullgraph=True)(x, n)
    torch.testing.assert_close(found, function(x, n) * 2, rtol=1e-10, atol=1e-10)


def test_a_program_with_incomplete_gamma_functions():
    class Model(torch.nn.Module):
        def forward(self, a, x):
            return torch.special.gammainc(a, x).log()

    a, x = torch.rand(5) * 4 + 0.1, torch.rand(5) * 8 + 0.1
    function = backplane.torch.from_exported(torch.export.export(Model(), (a, x)))
    comparison.assert_same(bp.compile(function)(bp.asarray(a), bp.asarray(x)), Model()(a, x))
