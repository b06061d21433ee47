"""aten.txt: every row reads every argument of its operators, and computes what PyTorch computes on PyTorch's own samples."""

import re
import zlib

import comparison
import pytest
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

import backplane as bp
from backplane.torch import _aten_rows, _graph_functions, _tensors

WORD = re.compile(r"[A-Za-z_]\w*")
# Arguments that set the place and layout of a result, or how it is computed, but not its value.
NO_VALUE = {"layout", "device", "pin_memory", "memory_format", "non_blocking", "copy", "generator", "requires_grad", "implicit", "check_errors", "driver", "stable",
            "sorted", "output_size", "compute_mode", "assume_unique", "sparse_grad", "sparse", "path", "cudnn_enable", "cudnn_enabled", "benchmark", "deterministic",
            "allow_tf32", "stride", "physical_layout", "unsafe", "compute_v", "compute_uv"}  # fmt: skip
# What a derivative reads elsewhere: its own intermediate results, and sizes that the operands have.
UNREAD = {"max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward", "native_layer_norm_backward", "native_group_norm_backward", "log_sigmoid_backward",
          "leaky_relu_backward", "batch_norm_backward", "_weight_norm_interface_backward", "_native_batch_norm_legit_no_training", "max_unpool3d", "zeros_like",
          "empty_like", "ones_like", "_ctc_loss_backward", "_embedding_bag", "_embedding_bag_backward", "_embedding_bag_forward_only",
          "_embedding_bag_per_sample_weights_backward", "segment_reduce", "_segment_reduce_backward", "fractional_max_pool2d_backward", "fractional_max_pool3d_backward"}  # fmt: skip
# Samples are drawn for these operators in the short form.
SHORT = {"add", "addmm", "bmm", "cat", "clamp", "cumsum", "gather", "index_put", "index_select", "linalg.vector_norm", "masked_fill", "mean", "nn.functional.conv2d",
         "nn.functional.gelu", "nn.functional.group_norm", "nn.functional.layer_norm", "nn.functional.max_pool2d", "nn.functional.nll_loss",
         "nn.functional.scaled_dot_product_attention", "scatter_add", "slice", "softmax", "sort", "std", "sum", "where"}  # fmt: skip
# Results with a free sign or order, and sums whose terms cancel.
FREE = {"_linalg_eigh", "_linalg_svd", "linalg_eig", "linalg_qr", "sort", "topk", "nanmedian", "sum", "linalg_matrix_exp", "mode", "median"}


def overloads():
    for name in sorted({schema.name for schema in torch._C._jit_get_all_schemas() if schema.name.startswith("aten::")}):
        packet = getattr(torch.ops.aten, name.removeprefix("aten::"), None)
        for overload in packet.overloads() if packet is not None else ():
            found = getattr(packet, overload)
            if torch._C._dispatch_has_kernel(found.name()) and _aten_rows.has_row(found):  # others are TorchScript's
                yield found


def test_every_row_compiles_and_names_an_operator():
    seen = set()
    for overload in overloads():
        name, _, which = overload.name().removeprefix("aten::").partition(".")
        seen |= {name, f"{name}.{which or 'default'}"}
        assert callable(_aten_rows.row_of(overload))
    assert set(_aten_rows.names()) <= seen


def test_every_row_reads_every_argument():
    unread = {}
    for overload in overloads():
        words = set(WORD.findall(_aten_rows.expression_of(overload)))
        name = overload.name().removeprefix("aten::").partition(".")[0]
        missing = [a.name for a in overload._schema.arguments if _aten_rows.name_in_row(a.name) not in words and a.name not in NO_VALUE]
        if missing and name not in UNREAD:
            unread[overload.name()] = missing
    assert unread == {}


class ComparedCalls(TorchDispatchMode):
    """Computes each call of aten by its row too; `wrong` holds the calls whose results differ."""

    def __init__(self):
        super().__init__()
        self.rows, self.wrong, self.refused = set(), [], []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        row = _aten_rows.row_of(function)
        expected_of = lambda: function(*args, **kwargs)  # noqa: E731
        if row is None or torch.Tag.nondeterministic_seeded in function.tags or "empty" in function.name():
            return expected_of()
        tensors = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        if any(x.is_complex() or x.is_neg() or x.layout != torch.strided for x in tensors):  # bits of conjugation are resolved above this mode
            return expected_of()
        convert = lambda x: _tensors.from_torch(x.clone()) if isinstance(x, torch.Tensor) else x  # noqa: E731
        ours, named = pytree.tree_map(convert, (_graph_functions.prepared(tuple(args)), _graph_functions.prepared(dict(kwargs))))
        expected = expected_of()
        self.rows.add(function.name())
        try:
            self._compare(function, row(*ours, **named), expected)
        except (bp.DtypeError, bp.MissingRuleError, bp.DataError, bp.ShapeError, bp.OutOfRangeError) as error:
            self.refused.append(f"{function}: {error}")
        except AssertionError as error:
            self.wrong.append(f"{function}{pytree.tree_map(lambda x: tuple(x.shape) if isinstance(x, torch.Tensor) else x, args)}: {error}")
        return expected

    def _compare(self, function, found, expected):
        if function.name().removeprefix("aten::").partition(".")[0] in FREE:
            return
        if isinstance(expected, torch.Tensor):
            found, expected = (found,), (expected,)
        if isinstance(expected, (tuple, list)):
            for x, y in zip(found, expected):
                if isinstance(y, torch.Tensor) and x is not None:
                    x = comparison.as_torch(_graph_functions.checked(x, y, None))
                    torch.testing.assert_close(x, y, rtol=1e-3, atol=1e-3, equal_nan=True, check_stride=False)


def _differentiate(result, arguments):
    outputs = [x for x in comparison.tensors(result) if x.requires_grad]
    inputs = [x for x in comparison.tensors(arguments) if x.requires_grad]
    if outputs and inputs:
        torch.autograd.grad([x.abs().sum() if x.is_complex() else x.sum() for x in outputs], inputs, allow_unused=True)


def _operators():
    database = pytest.importorskip("torch.testing._internal.common_methods_invocations", reason="expecttest is not installed").op_db
    names = {}
    for operator in database:
        names.setdefault(operator.name, []).append(operator)
    return names


def _compare_samples(names):
    mode, operators = ComparedCalls(), _operators()
    for name in names:
        for operator in operators.get(name, ()):
            for dtype in (torch.float32, torch.int64, torch.bool):
                if dtype in operator.dtypes:
                    _compare_operator(mode, operator, dtype)
    return mode


def _compare_operator(mode, operator, dtype):
    differentiable = dtype.is_floating_point and operator.supports_autograd
    torch.manual_seed(zlib.crc32(operator.name.encode()))
    try:
        samples = list(operator.sample_inputs("cpu", dtype, requires_grad=differentiable))[:6]
    except Exception:  # a sample that this build of PyTorch cannot make
        return
    for sample in samples:
        try:
            with mode:
                result = operator(sample.input, *sample.args, **sample.kwargs)
                if differentiable:
                    _differentiate(result, (sample.input, sample.args, sample.kwargs))
        except (RuntimeError, NotImplementedError, TypeError, ValueError):  # PyTorch's own refusals
            continue


def test_rows_equal_pytorch_on_samples():
    mode = _compare_samples(sorted(SHORT))
    assert mode.wrong == []
    assert len(mode.rows) > 60


@pytest.mark.whole
def test_all_rows_equal_pytorch_on_all_samples():
    mode = _compare_samples(sorted(_operators()))
    print(f"{len(mode.rows)} overloads compared, {len(mode.refused)} calls refused")
    assert mode.wrong == []
    assert len(mode.rows) > 350
