"""torch.ops.<namespace>.<op>: PyTorch's own checks over the samples of the registry, and Backplane's values under every nesting."""

import pathlib
import sys
import warnings

import comparison
import pytest
import torch
from torch.testing._internal.optests import opcheck
from torch.utils import _pytree as pytree

import backplane as bp
import backplane.torch
from backplane.torch import _registered_ops

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "python/laws"))
law_inputs, law_registry = pytest.importorskip("law_inputs"), pytest.importorskip("law_registry")
numpy = pytest.importorskip("numpy")

SHORT = {"bp::softmax", "bp::matmul", "bp::add", "bp::concat", "bp::topk", "bp::cumsum"}
NOT_COMPILED = {"bp::masked_put": "the shapes inside its derivative depend on values", "bp::nextafter": "its samples hold NaN, which the check holds to differ"}
F = torch.func


def _value(value):
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        return torch.from_numpy(numpy.array(value))
    if isinstance(value, bp.DType):
        return getattr(torch, value.name)
    return [_value(x) for x in value] if isinstance(value, (list, tuple)) else value


def _call(case):
    """(operator, arguments, keyword arguments) of a sample, or None where PyTorch has no such tensor."""
    operator = getattr(torch.ops.bp, case.entry.python_name).default
    accepted = [set(argument.accepts) for argument in case.entry.args if argument.is_tensor and argument.promote]
    arrays = law_inputs.arrays_of(case, law_registry.widest(set.intersection(*accepted) if accepted else ()))
    try:
        given = {name: _value(value) for name, value in arrays.items()}
    except TypeError:
        return None
    args, kwargs = [], {}
    for place, argument in enumerate(operator._schema.arguments):
        if argument.name in given:
            value = given[argument.name]
            if "Tensor" in str(argument.type) and isinstance(value, (bool, int, float, complex)):
                value = torch.tensor(value)
            if isinstance(value, str) and hasattr(bp, value) and argument.name == "dtype":
                value = getattr(torch, value)
            if argument.kwarg_only or len(args) < place:
                kwargs[argument.name] = value
            else:
                args.append(value)
    def require(x):
        if not isinstance(x, torch.Tensor):
            return x
        return torch.empty(x.shape, dtype=x.dtype).copy_(x).requires_grad_(x.is_floating_point() or x.is_complex())

    return operator, *pytree.tree_map(require, (tuple(args), kwargs))


def _cases():
    for case in law_registry.registry():
        if not case.error and case.entry.name in _registered_ops._registered:
            yield pytest.param(case, id=str(case), marks=[] if case.entry.name in SHORT else pytest.mark.whole)


def test_every_op_that_can_be_is_registered():
    assert backplane.torch.register_ops() == len(_registered_ops._registered) > 340
    assert str(torch.ops.bp.layer_norm.default._schema).startswith("bp::layer_norm(Tensor x, Tensor? weight=None, Tensor? bias=None, *, int[] axis=[-1]")
    assert not hasattr(torch.ops.bp, "reshape") and not hasattr(torch.ops.bp, "scan")


@pytest.mark.parametrize("case", list(_cases()))
def test_opcheck(case):
    call = _call(case)
    if call is None:
        pytest.skip("a dtype that PyTorch does not have")
    operator, args, kwargs = call
    if torch.Tag.nondeterministic_seeded in operator.tags:
        args, kwargs = pytree.tree_map(lambda x: x.detach() if isinstance(x, torch.Tensor) else x, (args, kwargs))
        assert operator(*args, **kwargs).shape == args[0].shape
        return
    tests = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
    if case.entry.name in NOT_COMPILED:
        tests = tests[:3]
    if "shape rule dynamic" in bp.explain(case.entry.name):
        tests = tests[:2]  # the shapes of the results depend on values
    if not _differentiable(case, operator, args, kwargs):
        args, kwargs = pytree.tree_map(lambda x: x.detach() if isinstance(x, torch.Tensor) else x, (args, kwargs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opcheck(operator, args, kwargs, test_utils=tests)


def _differentiable(case, operator, args, kwargs):
    named = {argument.name for argument in case.entry.differentiable}
    given = dict(zip((a.name for a in operator._schema.arguments), args)) | kwargs
    needed = {name for name, value in given.items() if any(x.requires_grad for x in comparison.tensors(value))}
    return case.entry.name != "bp::eig" and needed and needed <= named and not {"gradient", "second_order"} & case.entry.exempt.keys()  # eigenvectors have a free phase


@pytest.mark.parametrize("case", list(_cases()))
def test_gradcheck(case):
    call = _call(case)
    if call is None or torch.Tag.nondeterministic_seeded in call[0].tags or not _differentiable(case, *call):
        pytest.skip("nothing to differentiate")
    operator, args, kwargs = call
    inputs = [x for x in comparison.tensors((args, kwargs)) if x.requires_grad]
    if any(x.dtype not in (torch.float64, torch.complex128) for x in inputs) or sum(x.numel() for x in inputs) > 60:
        pytest.skip("not in float64, or large")

    def function(*values):
        given = iter(values)
        filled = pytree.tree_map(lambda x: next(given) if isinstance(x, torch.Tensor) and x.requires_grad else x, (args, kwargs))
        found = operator(*filled[0], **filled[1])
        found = found if isinstance(found, (tuple, list)) else (found,)
        return tuple(y for y, (_, _, constant) in zip(found, case.entry.results) if (y.is_floating_point() or y.is_complex()) and not constant)

    torch.autograd.gradcheck(function, inputs, check_forward_ad=not any(x.is_complex() for x in inputs))


ROWS = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(3, 4)
NESTINGS = {
    "grad": lambda f: F.grad(f),
    "hessian": lambda f: F.hessian(f),
    "jacfwd": lambda f: F.jacfwd(f),
    "jacrev of jacfwd": lambda f: F.jacrev(F.jacfwd(f)),
    "jacfwd of jacfwd": lambda f: F.jacfwd(F.jacfwd(f)),
    "jvp": lambda f: lambda x: F.jvp(f, (x,), (torch.ones_like(x),))[1],
    "jvp of grad": lambda f: lambda x: F.jvp(F.grad(f), (x,), (torch.ones_like(x),))[1],
    "vmap of grad": lambda f: F.vmap(F.grad(f)),
    "grad of vmap": lambda f: F.grad(lambda x: F.vmap(f)(x).sum()),
    "jvp of vmap": lambda f: lambda x: F.jvp(F.vmap(f), (x,), (torch.ones_like(x),))[1],
    "vmap of jvp": lambda f: F.vmap(lambda row: F.jvp(f, (row,), (torch.ones_like(row),))[1]),
    "grad of grad of grad": lambda f: F.grad(lambda x: F.grad(lambda y: F.grad(f)(y).pow(2).sum())(x).sum()),
    "vmap of hessian": lambda f: F.vmap(F.hessian(f)),
    "vmap of vmap": lambda f: F.vmap(F.vmap(lambda x: f(x[None]))),
}


@pytest.mark.parametrize("nesting", NESTINGS)
def test_nestings_of_torch_func_equal_pytorch(nesting):
    """No loop over the batch: a fallback of vmap would warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        found = NESTINGS[nesting](lambda x: (torch.ops.bp.softmax(x) * torch.ops.bp.sin(x)).sum())(ROWS)
    expected = NESTINGS[nesting](lambda x: (torch.softmax(x, -1) * torch.sin(x)).sum())(ROWS)
    torch.testing.assert_close(found, expected)


def test_double_backward():
    x = ROWS.clone().requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: torch.ops.bp.layer_norm(torch.ops.bp.matmul(x, x.T)), (x,))


def test_export_keeps_dynamic_sizes():
    class Module(torch.nn.Module):
        def forward(self, x, w):
            return torch.ops.bp.softmax(torch.ops.bp.matmul(x, w)), torch.ops.bp.concat([x, x])

    program = torch.export.export(Module(), (torch.randn(3, 4), torch.randn(4, 5)), dynamic_shapes=({0: torch.export.Dim("n")}, None))
    calls = [node for node in program.graph.nodes if node.op == "call_function"]
    assert [str(node.target) for node in calls] == ["bp.matmul.default", "bp.softmax.default", "bp.concat.default"]
    assert all(isinstance(node.meta["val"].shape[0], torch.SymInt) for node in calls)
    function, x, w = backplane.torch.from_exported(program), torch.randn(6, 4), torch.randn(4, 5)
    comparison.assert_same(function(x, w), (torch.softmax(x @ w, -1), torch.cat([x, x])))


@pytest.mark.parametrize("backend", ["aot_eager", "backplane"])
def test_compiled_with_derivatives(backend):
    x = torch.randn(3, 4, requires_grad=True)
    torch.compile(lambda x: (torch.ops.bp.softmax(x) * x).sum(), backend=backend, fullgraph=True)(x).backward()
    y = x.detach().clone().requires_grad_()
    (torch.softmax(y, -1) * y).sum().backward()
    comparison.assert_same(x.grad, y.grad)


def test_random_ops_follow_manual_seed_and_refuse_derivatives():
    x = torch.ones(50)
    drawn = [torch.ops.bp.dropout(x) for _ in (torch.manual_seed(4), torch.manual_seed(4))]
    torch.manual_seed(4)
    assert torch.equal(torch.ops.bp.dropout(x), drawn[0]) and not torch.equal(drawn[0], drawn[1])
    with pytest.raises(bp.MissingRuleError, match="bp::dropout draws random numbers"):
        torch.ops.bp.dropout(x.requires_grad_())


def test_a_custom_op_of_python_is_an_operator():
    @bp.custom_op("torchtest::cubed", dtypes="floating")
    def cubed(x: bp.Tensor) -> bp.Tensor:
        return bp.asarray(x.numpy() ** 3)

    cubed.register_shape(lambda x: x)
    cubed.register_vjp(lambda g, x: 3 * g * x * x)
    cubed.register_jvp(lambda t_x, x: 3 * t_x * x * x)
    backplane.torch.register_ops()
    x = ROWS.clone().requires_grad_()
    torch.ops.torchtest.cubed(x).sum().backward()
    comparison.assert_same(x.grad, 3 * ROWS**2)
    comparison.assert_same(torch.func.hessian(lambda x: torch.ops.torchtest.cubed(x).sum())(ROWS[0]), torch.diag(6 * ROWS[0]))


def test_results_do_not_share_the_operand():
    x = torch.ones(3)
    y = torch.ops.bp.positive(x)
    y += 1
    assert x.tolist() == [1.0, 1.0, 1.0]
