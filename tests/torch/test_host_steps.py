"""Operators without a row in compiled functions: PyTorch's CPU computes them, counted, where that is allowed."""

import comparison
import pytest
import torch

import backplane as bp
import backplane.torch

LIBRARY = torch.library.Library("host_steps", "FRAGMENT")


@torch.library.custom_op("host_steps::triple", mutates_args=())
def triple(x: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    return (x * 3).to(dtype or x.dtype)


triple.register_fake(lambda x, dtype=None: torch.empty_like(x, dtype=dtype))
triple.register_autograd(lambda ctx, g: (g * 3, None))


@torch.library.custom_op("host_steps::extremes", mutates_args=())
def extremes(xs: list[torch.Tensor], scale: float, word: str) -> tuple[torch.Tensor, list[torch.Tensor]]:
    assert word == "plain"
    return torch.stack([x.max() for x in xs]), [x.amin(0) * scale for x in xs]


@extremes.register_fake
def _(xs, scale, word):
    return xs[0].new_empty(len(xs)), [x.new_empty(x.shape[1:]) for x in xs]


@torch.library.custom_op("host_steps::shift", mutates_args={"x"})
def shift(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    x.add_(by)
    return x.sum(0)


shift.register_fake(lambda x, by: x.new_empty(x.shape[1:]))


@torch.library.custom_op("host_steps::ramp", mutates_args=())
def ramp(n: int) -> torch.Tensor:
    return torch.arange(n, dtype=torch.float32)


ramp.register_fake(lambda n: torch.empty(n))


def shifted(x, by):
    total = shift(x[1:], by)
    return x * 2, total


CASES = {
    "derivative": (lambda x: triple(x.sin()).cos(), lambda n: (torch.randn(n, 3, requires_grad=True),)),
    "dtype": (lambda x: triple(x, torch.bfloat16) + 1, lambda n: (torch.randn(n, 3),)),
    "half": (lambda x: triple(x) * 2, lambda n: (torch.randn(n, 3).bfloat16(),)),
    "lists": (lambda x: extremes([x, x * 2], 0.5, "plain"), lambda n: (torch.randn(n, 3),)),
    "changed": (shifted, lambda n: (torch.randn(n, 3), torch.randn(3))),
    "no tensors": (lambda x: ramp(x.shape[0]) + x, lambda n: (torch.randn(n),)),
    "of aten": (lambda x: torch.special.airy_ai(x) * 2, lambda n: (torch.rand(n, 3) + 1,)),
    "strided": (lambda x: triple(x.t()[::2]).t(), lambda n: (torch.randn(n, 3),)),
    "autocast": (lambda x: triple(x @ x.t()) + 1, lambda n: (torch.randn(n, 3),)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dynamic", [None, True], ids=["", "dynamic"])
def test_pytorch_computes_an_operator_without_a_row(name, dynamic):
    function, make = CASES[name]
    compiled = torch.compile(function, backend="backplane", dynamic=dynamic, fullgraph=True)
    backplane.torch.reset_fallbacks()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=name == "autocast"), backplane.torch.forbid_fallbacks(False):
        for n in (4, 4, 6):
            arguments = make(n)
            twins = comparison.copied(arguments)
            expected, found = function(*arguments), compiled(*twins)
            comparison.assert_same(found, expected, 1e-2 if name == "autocast" else 1e-5)
            comparison.assert_same(twins, arguments)
            if twins[0].requires_grad:
                expected.sum().backward()
                found.sum().backward()
                comparison.assert_same(twins[0].grad, arguments[0].grad)
    assert sum(backplane.torch.fallbacks().values()) == 3


def test_on_another_device():
    others = [str(info.device) for info in bp.devices() if info.device.backend not in ("cpu", "cuda")]
    if not others:
        pytest.skip("no device beside the CPU")
    x = torch.randn(3, 4)
    compiled = torch.compile(CASES["derivative"][0], backend="backplane", options={"device": others[0]})
    with backplane.torch.forbid_fallbacks(False):
        comparison.assert_same(compiled(x), CASES["derivative"][0](x), 1e-5)


def drawn(x):
    return torch.empty_like(x).uniform_(2, 3) + torch.empty(x.shape[0], 1).exponential_(), torch.multinomial(torch.softmax(x, -1), 2), torch.poisson(x.exp())


def test_random_numbers_are_pytorchs():
    compiled, x = torch.compile(drawn, backend="backplane", fullgraph=True), torch.randn(4, 3)
    with backplane.torch.forbid_fallbacks():
        for seed in (0, 1):
            torch.manual_seed(seed)
            uniform, indices, counts = compiled(x)
            assert 2 <= uniform.min() and indices.shape == (4, 2) and counts.shape == x.shape
    torch.manual_seed(1)
    comparison.assert_same(uniform, drawn(x)[0])
    assert not torch.equal(compiled(x)[2], counts)


def test_it_warns_once():
    backplane.torch.reset_fallbacks()
    compiled = torch.compile(lambda x: triple(x) + 1, backend="backplane")
    with pytest.warns(RuntimeWarning, match="host_steps::triple: Backplane has no row for this operator; PyTorch's CPU computes it") as seen:
        compiled(torch.ones(2))
        compiled(torch.ones(2))
    assert len(seen) == 1 and backplane.torch.fallbacks() == {"host_steps::triple": 2}


def test_where_it_is_forbidden_the_operator_is_named():
    compiled = torch.compile(lambda x: triple(x) + 1, backend="backplane")
    with backplane.torch.forbid_fallbacks(), pytest.raises(Exception, match=r"torch.compile: found operators without a row in Backplane's table: host_steps.triple.default. Fix: "):
        compiled(torch.ones(2))
    with backplane.torch.forbid_fallbacks(False):
        compiled(torch.ones(2))
    with backplane.torch.forbid_fallbacks(), pytest.raises(NotImplementedError, match="host_steps::triple: Backplane has no row for this operator, and the host may not"):
        compiled(torch.ones(2))
