"""Layers that are compared with PyTorch's: a name, the constructor, and the shapes of the inputs ("i5: 2x3" are integers below 5).

`record_layers.py` runs them in PyTorch and keeps states, inputs, outputs and gradients in layer_results.npz; test_layers.py loads
the states, and compares.
"""

import numpy as np

TABLE = """
linear | Linear(3, 4) | 2x3
linear_no_bias | Linear(3, 4, bias=False) | 2x5x3
bilinear | Bilinear(3, 4, 2) | 2x3, 2x4
embedding | Embedding(5, 3, padding_idx=1) | i5:2x4
embedding_bag | EmbeddingBag(5, 3, mode="sum") | i5:2x4
conv1d | Conv1d(2, 4, 3, stride=2, padding=1) | 2x2x7
conv1d_circular | Conv1d(2, 4, 3, padding="same", padding_mode="circular") | 2x2x7
conv2d | Conv2d(4, 4, (3, 2), padding=(1, 0), groups=2) | 2x4x5x6
conv2d_reflect | Conv2d(2, 3, 3, padding=1, padding_mode="reflect", dilation=1) | 2x5x6
conv3d | Conv3d(2, 2, 2, bias=False) | 1x2x3x3x3
conv_transpose1d | ConvTranspose1d(2, 4, 3, stride=2, output_padding=1) | 2x2x5
conv_transpose2d | ConvTranspose2d(4, 2, 3, stride=2, padding=1, groups=2, dilation=2) | 1x4x4x3
conv_transpose3d | ConvTranspose3d(2, 2, 2) | 1x2x2x2x2
batch_norm1d | BatchNorm1d(3) | 4x3
batch_norm1d_long | BatchNorm1d(3, momentum=None) | 4x3x2
batch_norm2d_eval | BatchNorm2d(3).eval() | 2x3x2x2
batch_norm2d_no_stats | BatchNorm2d(3, track_running_stats=False).eval() | 2x3x2x2
batch_norm3d | BatchNorm3d(2, affine=False) | 2x2x2x2x2
layer_norm | LayerNorm((3, 4)) | 2x3x4
layer_norm_no_bias | LayerNorm(4, bias=False) | 2x3x4
rms_norm | RMSNorm(4) | 2x4
group_norm | GroupNorm(2, 4) | 2x4x3
instance_norm1d | InstanceNorm1d(3, affine=True) | 2x3x5
instance_norm2d_stats | InstanceNorm2d(3, affine=True, track_running_stats=True) | 2x3x3x3
instance_norm2d_eval | InstanceNorm2d(3, track_running_stats=True).eval() | 2x3x3x3
instance_norm3d | InstanceNorm3d(2) | 2x2x2x2x2
local_response_norm | LocalResponseNorm(2) | 2x4x3
prelu | PReLU(3) | 2x3x2
rnn | RNN(3, 4, 2) | 5x2x3
rnn_relu | RNN(3, 4, nonlinearity="relu", batch_first=True) | 2x5x3
lstm | LSTM(3, 4, 2, bidirectional=True) | 5x2x3
lstm_projected | LSTM(3, 4, proj_size=2, batch_first=True) | 2x5x3
lstm_single | LSTM(3, 4, bias=False) | 5x3
gru | GRU(3, 4, 2, batch_first=True) | 2x5x3
gru_both_ways | GRU(3, 4, bidirectional=True) | 5x2x3
rnn_cell | RNNCell(3, 4) | 2x3, 2x4
gru_cell | GRUCell(3, 4) | 2x3
lstm_cell | LSTMCell(3, 4) | 2x3
attention | MultiheadAttention(4, 2) | 3x2x4, 5x2x4, 5x2x4
attention_first | MultiheadAttention(4, 2, batch_first=True, bias=False) | 2x3x4, 2x5x4, 2x5x4
attention_sizes | MultiheadAttention(4, 2, kdim=3, vdim=5, add_bias_kv=True, add_zero_attn=True) | 3x2x4, 5x2x3, 5x2x5
encoder_layer | TransformerEncoderLayer(4, 2, 6, dropout=0.0) | 3x2x4
encoder_first | TransformerEncoderLayer(4, 2, 6, dropout=0.0, norm_first=True, activation="gelu", batch_first=True) | 2x3x4
encoder | TransformerEncoder(TransformerEncoderLayer(4, 2, 6, dropout=0.0), 2) | 3x2x4
decoder_layer | TransformerDecoderLayer(4, 2, 6, dropout=0.0) | 3x2x4, 5x2x4
decoder | TransformerDecoder(TransformerDecoderLayer(4, 2, 6, dropout=0.0), 2, LayerNorm(4)) | 3x2x4, 5x2x4
transformer | Transformer(4, 2, 1, 1, 6, dropout=0.0) | 3x2x4, 5x2x4
sequential | Sequential(Linear(3, 4), ReLU(), Sequential(Linear(4, 2), Tanh())) | 2x3
dropout_eval | Dropout(0.5).eval() | 2x3
unfold | Unfold((2, 2), padding=1) | 1x2x3x4
fold | Fold((3, 4), (2, 2)) | 1x8x6
pixel_shuffle | PixelShuffle(2) | 1x4x2x3
max_pool2d | MaxPool2d(2, stride=1, ceil_mode=True) | 1x2x4x5
avg_pool1d | AvgPool1d(3, 2, 1) | 2x2x7
adaptive_pool | AdaptiveAvgPool2d((2, None)) | 1x2x4x5
lp_pool | LPPool2d(2, 2) | 1x2x4x4
upsample | Upsample(scale_factor=2, mode="bilinear", align_corners=True) | 1x2x3x4
upsample_nearest | UpsamplingNearest2d(size=(4, 6)) | 1x2x2x3
softmax | Softmax(dim=-1) | 2x3
log_softmax | LogSoftmax(1) | 2x3
softmax2d | Softmax2d() | 1x3x2x2
glu | GLU() | 2x4
gelu | GELU("tanh") | 2x3
hardtanh | Hardtanh(-0.5, 0.5) | 2x3
leaky_relu | LeakyReLU(0.2) | 2x3
softplus | Softplus(2, 5) | 2x3
threshold | Threshold(0.1, 0.5) | 2x3
flatten | Flatten() | 2x3x4
unflatten | Unflatten(1, (2, 3)) | 2x6
identity | Identity() | 2x3
reflection_pad | ReflectionPad2d((1, 2, 0, 1)) | 1x2x3x4
constant_pad | ConstantPad1d(2, 3.5) | 1x2x3
zero_pad | ZeroPad2d((1, 0, 0, 2)) | 1x2x3x4
cosine | CosineSimilarity() | 2x3, 2x3
distance | PairwiseDistance() | 2x3, 2x3
mse | MSELoss() | 2x3, 2x3
mse_sum | MSELoss(reduction="sum") | 2x3, 2x3
l1 | L1Loss(reduction="none") | 2x3, 2x3
smooth_l1 | SmoothL1Loss(beta=0.5) | 2x3, 2x3
huber | HuberLoss(delta=0.5) | 2x3, 2x3
cross_entropy | CrossEntropyLoss(label_smoothing=0.1, ignore_index=2) | 4x3, i3:4
nll | NLLLoss() | 4x3, i3:4
kl | KLDivLoss(reduction="batchmean", log_target=True) | 2x3, 2x3
bce_logits | BCEWithLogitsLoss() | 2x3, 2x3
poisson | PoissonNLLLoss() | 2x3, 2x3
triplet | TripletMarginLoss() | 2x3, 2x3, 2x3
multi_margin | MultiMarginLoss() | 4x3, i3:4
"""


def cases():
    """(name, constructor, specs of the inputs)."""
    for line in TABLE.strip().splitlines():
        name, constructor, inputs = (part.strip() for part in line.split("|"))
        yield name, constructor, [part.strip() for part in inputs.split(",")]


def made_input(spec, random):
    if spec.startswith("i"):
        high, shape = spec[1:].split(":")
        return random.integers(0, int(high), tuple(map(int, shape.split("x"))))
    return random.normal(size=tuple(map(int, spec.split("x"))))


def flat(output):
    """The tensors in a result, in order."""
    if isinstance(output, (tuple, list)):
        return [x for part in output for x in flat(part)]
    return [] if output is None else [output]


def weights_of(shape, place):
    """What outputs are multiplied with before they are summed to a loss."""
    return np.cos(np.arange(int(np.prod(shape)), dtype=np.float64) + place).reshape(shape)
