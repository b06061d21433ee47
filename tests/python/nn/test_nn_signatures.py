"""Functions of backplane.nn.functional take PyTorch's arguments, by name and by position; more arguments are keyword-only."""

import collections.abc
import inspect
import types
import typing

import backplane as bp
import backplane.nn.functional as F
import pytest

# PyTorch's arguments in their order, with the defaults that have one value in both.
SIGNATURES = {
    "adaptive_avg_pool1d": "input output_size",
    "adaptive_avg_pool2d": "input output_size",
    "adaptive_avg_pool3d": "input output_size",
    "adaptive_max_pool1d": "input output_size return_indices=False",
    "adaptive_max_pool2d": "input output_size return_indices=False",
    "adaptive_max_pool3d": "input output_size return_indices=False",
    "affine_grid": "theta size align_corners=None",
    "alpha_dropout": "input p=0.5 training=False inplace=False",
    "avg_pool1d": "input kernel_size stride=None padding=0 ceil_mode=False count_include_pad=True",
    "avg_pool2d": "input kernel_size stride=None padding=0 ceil_mode=False count_include_pad=True divisor_override=None",
    "avg_pool3d": "input kernel_size stride=None padding=0 ceil_mode=False count_include_pad=True divisor_override=None",
    "batch_norm": "input running_mean running_var weight=None bias=None training=False momentum=0.1 eps=1e-05",
    "bilinear": "input1 input2 weight bias=None",
    "binary_cross_entropy": "input target weight=None size_average=None reduce=None reduction=mean",
    "binary_cross_entropy_with_logits": "input target weight=None size_average=None reduce=None reduction=mean pos_weight=None",
    "celu": "input alpha=1.0 inplace=False",
    "celu_": "input alpha=1.0",
    "channel_shuffle": "input groups",
    "conv1d": "input weight bias=None stride=1 padding=0 dilation=1 groups=1",
    "conv2d": "input weight bias=None stride=1 padding=0 dilation=1 groups=1",
    "conv3d": "input weight bias=None stride=1 padding=0 dilation=1 groups=1",
    "conv_transpose1d": "input weight bias=None stride=1 padding=0 output_padding=0 groups=1 dilation=1",
    "conv_transpose2d": "input weight bias=None stride=1 padding=0 output_padding=0 groups=1 dilation=1",
    "conv_transpose3d": "input weight bias=None stride=1 padding=0 output_padding=0 groups=1 dilation=1",
    "cosine_embedding_loss": "input1 input2 target margin=0 size_average=None reduce=None reduction=mean",
    "cosine_similarity": "x1 x2 dim=None eps=1e-08",
    "cross_entropy": "input target weight=None size_average=None ignore_index=-100 reduce=None reduction=mean label_smoothing=0.0",
    "ctc_loss": "log_probs targets input_lengths target_lengths blank=0 reduction=mean zero_infinity=False",
    "dropout": "input p=0.5 training=True inplace=False",
    "dropout1d": "input p=0.5 training=True inplace=False",
    "dropout2d": "input p=0.5 training=True inplace=False",
    "dropout3d": "input p=0.5 training=True inplace=False",
    "elu": "input alpha=1.0 inplace=False",
    "elu_": "input alpha=1.0",
    "embedding": "input weight padding_idx=None max_norm=None norm_type=2.0 scale_grad_by_freq=False sparse=False",
    "embedding_bag": "input weight offsets=None max_norm=None norm_type=2 scale_grad_by_freq=False mode=mean sparse=False per_sample_weights=None include_last_offset=False padding_idx=None",
    "feature_alpha_dropout": "input p=0.5 training=False inplace=False",
    "fold": "input output_size kernel_size dilation=1 padding=0 stride=1",
    "fractional_max_pool2d": "input kernel_size output_size=None output_ratio=None return_indices=False _random_samples=None",
    "fractional_max_pool3d": "input kernel_size output_size=None output_ratio=None return_indices=False _random_samples=None",
    "gaussian_nll_loss": "input target var full=False eps=1e-06 reduction=mean",
    "gelu": "input approximate=none",
    "glu": "input dim=None",
    "grid_sample": "input grid mode=bilinear padding_mode=zeros align_corners=None",
    "group_norm": "input num_groups weight=None bias=None eps=1e-05",
    "gru_cell": "input hx w_ih w_hh b_ih=None b_hh=None",
    "gumbel_softmax": "logits tau=1 hard=False eps=1e-10 dim=None",
    "hardshrink": "input lambd=0.5",
    "hardsigmoid": "input inplace=False",
    "hardswish": "input inplace=False",
    "hardtanh": "input min_val=-1.0 max_val=1.0 inplace=False",
    "hardtanh_": "input min_val=-1.0 max_val=1.0",
    "hinge_embedding_loss": "input target margin=1.0 size_average=None reduce=None reduction=mean",
    "huber_loss": "input target reduction=mean delta=1.0 weight=None",
    "instance_norm": "input running_mean=None running_var=None weight=None bias=None use_input_stats=True momentum=0.1 eps=1e-05",
    "interpolate": "input size=None scale_factor=None mode=nearest align_corners=None recompute_scale_factor=None antialias=False",
    "kl_div": "input target size_average=None reduce=None reduction=mean log_target=False",
    "l1_loss": "input target size_average=None reduce=None reduction=mean weight=None",
    "layer_norm": "input normalized_shape weight=None bias=None eps=1e-05",
    "leaky_relu": "input negative_slope=0.01 inplace=False",
    "leaky_relu_": "input negative_slope=0.01",
    "linear": "input weight bias=None",
    "local_response_norm": "input size alpha=0.0001 beta=0.75 k=1.0",
    "log_softmax": "input dim=None _stacklevel=3 dtype=None",
    "logsigmoid": "input",
    "lp_pool1d": "input norm_type kernel_size stride=None ceil_mode=False",
    "lp_pool2d": "input norm_type kernel_size stride=None ceil_mode=False",
    "lp_pool3d": "input norm_type kernel_size stride=None ceil_mode=False",
    "lstm_cell": "input hx w_ih w_hh b_ih=None b_hh=None",
    "margin_ranking_loss": "input1 input2 target margin=0 size_average=None reduce=None reduction=mean",
    "max_pool1d": "input kernel_size stride=None padding=0 dilation=1 ceil_mode=False return_indices=False",
    "max_pool2d": "input kernel_size stride=None padding=0 dilation=1 ceil_mode=False return_indices=False",
    "max_pool3d": "input kernel_size stride=None padding=0 dilation=1 ceil_mode=False return_indices=False",
    "max_unpool1d": "input indices kernel_size stride=None padding=0 output_size=None",
    "max_unpool2d": "input indices kernel_size stride=None padding=0 output_size=None",
    "max_unpool3d": "input indices kernel_size stride=None padding=0 output_size=None",
    "mish": "input inplace=False",
    "mse_loss": "input target size_average=None reduce=None reduction=mean weight=None",
    "multi_margin_loss": "input target p=1 margin=1.0 weight=None size_average=None reduce=None reduction=mean",
    "multilabel_margin_loss": "input target size_average=None reduce=None reduction=mean",
    "multilabel_soft_margin_loss": "input target weight=None size_average=None reduce=None reduction=mean",
    "nll_loss": "input target weight=None size_average=None ignore_index=-100 reduce=None reduction=mean",
    "normalize": "input p=2.0 dim=1 eps=1e-12 out=None",
    "one_hot": "tensor num_classes=-1",
    "pad": "input pad mode=constant value=None",
    "pairwise_distance": "x1 x2 p=2.0 eps=1e-06 keepdim=None",
    "pixel_shuffle": "input upscale_factor",
    "pixel_unshuffle": "input downscale_factor",
    "pdist": "input p=2.0",
    "poisson_nll_loss": "input target log_input=True full=False size_average=None eps=1e-08 reduce=None reduction=mean",
    "prelu": "input weight",
    "relu": "input inplace=False",
    "relu_": "input",
    "relu6": "input inplace=False",
    "rms_norm": "input normalized_shape weight=None eps=None",
    "rnn_relu_cell": "input hx w_ih w_hh b_ih=None b_hh=None",
    "rnn_tanh_cell": "input hx w_ih w_hh b_ih=None b_hh=None",
    "rotary_embedding": "x cos sin interleaved=False",
    "rrelu": "input lower=0.125 upper=0.3333333333333333 training=False inplace=False",
    "rrelu_": "input lower=0.125 upper=0.3333333333333333 training=False",
    "scaled_dot_product_attention": "query key value attn_mask=None dropout_p=0.0 is_causal=False scale=None enable_gqa=False",
    "selu": "input inplace=False",
    "selu_": "input",
    "sigmoid": "input",
    "silu": "input inplace=False",
    "smooth_l1_loss": "input target size_average=None reduce=None reduction=mean beta=1.0",
    "soft_margin_loss": "input target size_average=None reduce=None reduction=mean",
    "softmax": "input dim=None _stacklevel=3 dtype=None",
    "softmin": "input dim=None _stacklevel=3 dtype=None",
    "softplus": "input beta=1.0 threshold=20.0",
    "softshrink": "input lambd=0.5",
    "softsign": "input",
    "tanh": "input",
    "tanhshrink": "input",
    "threshold": "input threshold value inplace=False",
    "threshold_": "input threshold value",
    "triplet_margin_loss": "anchor positive negative margin=1.0 p=2 eps=1e-06 swap=False size_average=None reduce=None reduction=mean",
    "triplet_margin_with_distance_loss": "anchor positive negative",
    "upsample": "input size=None scale_factor=None mode=nearest align_corners=None",
    "upsample_bilinear": "input size=None scale_factor=None",
    "upsample_nearest": "input size=None scale_factor=None",
    "unfold": "input kernel_size dilation=1 padding=0 stride=1",
}

FUNCTIONS = {name: value for name, value in vars(F).items() if inspect.isfunction(value) and not name.startswith("_")}


def stated(name):
    """[(name, default text or None)]"""
    return [(part.split("=")[0], part.partition("=")[2] or None) for part in SIGNATURES[name].split()]


def test_every_function_is_in_the_table():
    assert set(FUNCTIONS) == set(SIGNATURES)


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_arguments_are_pytorchs(name):
    parameters = list(inspect.signature(FUNCTIONS[name]).parameters.values())
    positional = [(p.name, None if p.default is p.empty else str(p.default)) for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert positional == stated(name)
    others = [p for p in parameters if p.kind is not p.POSITIONAL_OR_KEYWORD]
    assert all(p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in others)


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_functions_are_documented(name):
    assert inspect.getdoc(FUNCTIONS[name])


def fits(value, annotation):
    """Is the value of the annotation? Ints are floats, as type checkers have it."""
    if isinstance(annotation, types.UnionType):
        return any(fits(value, one) for one in typing.get_args(annotation))
    if typing.get_origin(annotation) is collections.abc.Sequence:
        return isinstance(value, (list, tuple)) and all(fits(one, *typing.get_args(annotation)) for one in value)
    if typing.get_origin(annotation) is collections.abc.Callable:
        return callable(value)
    if annotation in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, (int, float) if annotation is float else annotation)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_has_a_type_that_takes_its_default(name):
    function = FUNCTIONS[name]
    types_of = typing.get_type_hints(function)
    parameters = inspect.signature(function).parameters
    assert set(types_of) == {*parameters, "return"}
    assert any(bp.Tensor in (one, *typing.get_args(one)) for one in [types_of["return"], *typing.get_args(types_of["return"])])
    for parameter in parameters.values():
        if parameter.default is not parameter.empty:
            assert fits(parameter.default, types_of[parameter.name]), parameter
