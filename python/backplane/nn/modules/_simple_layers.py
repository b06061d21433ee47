"""Activations, dropout, pooling, padding, losses, and layers that only change shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from backplane import DType, Device, Tensor

from .. import functional as F
from .. import init
from .._arguments import sizes
from ._function_layers import layers
from ._layer_arguments import check_dtype, new_parameter
from ._module import Module

_ACTIVATIONS = layers(globals(), """
CELU = celu(alpha, inplace)
ELU = elu(alpha, inplace)
GELU = gelu(approximate)
Hardshrink = hardshrink(lambd)
Hardsigmoid = hardsigmoid(inplace)
Hardswish = hardswish(inplace)
Hardtanh = hardtanh(min_val, max_val, inplace)
LeakyReLU = leaky_relu(negative_slope, inplace)
LogSigmoid = logsigmoid()
Mish = mish(inplace)
RReLU = rrelu(lower, upper, inplace)
ReLU = relu(inplace)
ReLU6 = relu6(inplace)
SELU = selu(inplace)
SiLU = silu(inplace)
Sigmoid = sigmoid()
Softplus = softplus(beta, threshold)
Softshrink = softshrink(lambd)
Softsign = softsign()
Tanh = tanh()
Tanhshrink = tanhshrink()
Threshold = threshold(threshold, value, inplace)
AlphaDropout = alpha_dropout(p, inplace)
Dropout = dropout(p, inplace)
Dropout1d = dropout1d(p, inplace)
Dropout2d = dropout2d(p, inplace)
Dropout3d = dropout3d(p, inplace)
FeatureAlphaDropout = feature_alpha_dropout(p, inplace)
AdaptiveAvgPool1d = adaptive_avg_pool1d(output_size)
AdaptiveAvgPool2d = adaptive_avg_pool2d(output_size)
AdaptiveAvgPool3d = adaptive_avg_pool3d(output_size)
AdaptiveMaxPool1d = adaptive_max_pool1d(output_size, return_indices)
AdaptiveMaxPool2d = adaptive_max_pool2d(output_size, return_indices)
AdaptiveMaxPool3d = adaptive_max_pool3d(output_size, return_indices)
AvgPool1d = avg_pool1d(kernel_size, stride, padding, ceil_mode, count_include_pad)
AvgPool2d = avg_pool2d(kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
AvgPool3d = avg_pool3d(kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
FractionalMaxPool2d = fractional_max_pool2d(kernel_size, output_size, output_ratio, return_indices)
FractionalMaxPool3d = fractional_max_pool3d(kernel_size, output_size, output_ratio, return_indices)
LPPool1d = lp_pool1d(norm_type, kernel_size, stride, ceil_mode)
LPPool2d = lp_pool2d(norm_type, kernel_size, stride, ceil_mode)
LPPool3d = lp_pool3d(norm_type, kernel_size, stride, ceil_mode)
MaxPool1d = max_pool1d(kernel_size, stride, padding, dilation, return_indices, ceil_mode)
MaxPool2d = max_pool2d(kernel_size, stride, padding, dilation, return_indices, ceil_mode)
MaxPool3d = max_pool3d(kernel_size, stride, padding, dilation, return_indices, ceil_mode)
MaxUnpool1d = max_unpool1d(kernel_size, stride, padding)
MaxUnpool2d = max_unpool2d(kernel_size, stride, padding)
MaxUnpool3d = max_unpool3d(kernel_size, stride, padding)
CosineSimilarity = cosine_similarity(dim, eps)
PairwiseDistance = pairwise_distance(p, eps, keepdim)
PixelShuffle = pixel_shuffle(upscale_factor)
PixelUnshuffle = pixel_unshuffle(downscale_factor)
ChannelShuffle = channel_shuffle(groups)
BCELoss = binary_cross_entropy(weight, size_average, reduce, reduction)
BCEWithLogitsLoss = binary_cross_entropy_with_logits(weight, size_average, reduce, reduction, pos_weight)
CosineEmbeddingLoss = cosine_embedding_loss(margin, size_average, reduce, reduction)
CrossEntropyLoss = cross_entropy(weight, size_average, ignore_index, reduce, reduction, label_smoothing)
CTCLoss = ctc_loss(blank, reduction, zero_infinity)
GaussianNLLLoss = gaussian_nll_loss(full, eps, reduction)
HingeEmbeddingLoss = hinge_embedding_loss(margin, size_average, reduce, reduction)
HuberLoss = huber_loss(reduction, delta)
KLDivLoss = kl_div(size_average, reduce, reduction, log_target)
L1Loss = l1_loss(size_average, reduce, reduction)
MSELoss = mse_loss(size_average, reduce, reduction)
MarginRankingLoss = margin_ranking_loss(margin, size_average, reduce, reduction)
MultiLabelMarginLoss = multilabel_margin_loss(size_average, reduce, reduction)
MultiLabelSoftMarginLoss = multilabel_soft_margin_loss(weight, size_average, reduce, reduction)
MultiMarginLoss = multi_margin_loss(p, margin, weight, size_average, reduce, reduction)
NLLLoss = nll_loss(weight, size_average, ignore_index, reduce, reduction)
PoissonNLLLoss = poisson_nll_loss(log_input, full, size_average, eps, reduce, reduction)
SmoothL1Loss = smooth_l1_loss(size_average, reduce, reduction, beta)
SoftMarginLoss = soft_margin_loss(size_average, reduce, reduction)
TripletMarginLoss = triplet_margin_loss(margin, p, eps, swap, size_average, reduce, reduction)
TripletMarginWithDistanceLoss = triplet_margin_with_distance_loss(distance_function, margin, swap, reduction)
""")

__all__ = [
    *_ACTIVATIONS, "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "Flatten", "GLU",
    "Identity", "LogSoftmax", "PReLU", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "Softmax", "Softmax2d", "Softmin", "Unflatten", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d",
    "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class Identity(Module):
    """Its input. Takes any arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class _AlongDim(Module):
    function: ClassVar[str]
    first: ClassVar[int | None] = None

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = self.first if dim is None else dim

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self.function)(input, dim=self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """exp(x) / sum(exp(x)) along dim."""

    function = "softmax"


class LogSoftmax(_AlongDim):
    """The logarithm of softmax along dim."""

    function = "log_softmax"


class Softmin(_AlongDim):
    """softmax of -x along dim."""

    function = "softmin"


class GLU(_AlongDim):
    """The first half of input along dim times the sigmoid of the second."""

    function, first = "glu", -1


class Softmax2d(Module):
    """softmax over the channels of images (n, c, h, w) or (c, h, w)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, dim=-3)


class PReLU(Module):
    """max(0, x) + weight · min(0, x), with one weight, or one for each of num_parameters channels (axis 1)."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Device | str | None = None, dtype: DType | None = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = _filled((num_parameters,), init, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        check_dtype(self, self.weight, input)
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


def _filled(shape, value, device, dtype):
    return init.constant_(new_parameter(shape, device, dtype), value)


class Flatten(Module):
    """Axes start_dim to end_dim as one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Axis dim as axes of unflattened_size."""

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Upsample(Module):
    """interpolate of nn.functional: to a size, or scale_factor times as large."""

    def __init__(
        self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
        align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor)

    def extra_repr(self) -> str:
        first = f"size={self.size}" if self.size is not None else f"scale_factor={self.scale_factor}"
        return f"{first}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Upsample of images with mode 'nearest'."""

    def __init__(self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Upsample of images with mode 'bilinear' and align_corners."""

    def __init__(self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None) -> None:
        super().__init__(size, scale_factor, "bilinear", align_corners=True)


class _Pad(Module):
    axes: ClassVar[int]
    mode: ClassVar[str]

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = tuple(sizes(type(self).__name__, "padding", padding, 2 * self.axes))

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, mode=self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    mode = "constant"

    def __init__(self, padding: int | Sequence[int], value: float = 0) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, mode="constant", value=self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


def _padding(name, base, axes, mode):
    doc = f"The last {axes} axes padded by sizes (before and after each, the last axis first), with mode {mode!r}."
    made: Callable[..., Module] = type(base)(name, (base,), {"__doc__": doc, "__module__": __name__, "axes": axes, "mode": mode})
    globals()[name] = made


for _axes in (1, 2, 3):
    for _name, _base, _mode in (
        ("ReflectionPad", _Pad, "reflect"), ("ReplicationPad", _Pad, "replicate"), ("CircularPad", _Pad, "circular"),
        ("ConstantPad", _ConstantPad, "constant"), ("ZeroPad", _ConstantPad, "constant"),
    ):  # fmt: skip
        _padding(f"{_name}{_axes}d", _base, _axes, _mode)
