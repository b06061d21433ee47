"""fuse_conv_bn_eval and its kin: one layer computes what the layer and its batch norm compute."""

import pytest

import backplane as bp
from backplane import nn

LAYERS = [
    (lambda bias: nn.Conv1d(4, 6, 3, bias=bias), nn.BatchNorm1d, (2, 4, 9), False), (lambda bias: nn.Conv2d(4, 6, 3, groups=2, bias=bias), nn.BatchNorm2d, (2, 4, 7, 7), False),
    (lambda bias: nn.ConvTranspose2d(4, 6, 3, bias=bias), nn.BatchNorm2d, (2, 4, 5, 5), True), (lambda bias: nn.Linear(4, 6, bias=bias), nn.BatchNorm1d, (5, 4), None),
]  # fmt: skip


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("case", range(len(LAYERS)))
def test_one_layer_computes_both(case, bias, affine):
    bp.manual_seed(case)
    make, norm, shape, transpose = LAYERS[case]
    layer, norm = make(bias), norm(6, affine=affine)
    x = bp.normal(shape)
    for _ in range(3):
        norm(layer(bp.normal(shape) * 2))
    if affine:
        nn.init.uniform_(norm.weight, 0.5, 2.0)
        nn.init.normal_(norm.bias)
    layer.eval(), norm.eval()
    fused = nn.utils.fuse_linear_bn_eval(layer, norm) if transpose is None else nn.utils.fuse_conv_bn_eval(layer, norm, transpose)
    assert type(fused) is type(layer) and bp.allclose(fused(x), norm(layer(x)), atol=1e-5)
    assert fused.weight.requires_grad and sorted(fused.state_dict()) == ["bias", "weight"] and fused.weight is not layer.weight
    weights = nn.utils.fuse_linear_bn_weights if transpose is None else nn.utils.fuse_conv_bn_weights
    found = weights(layer.weight, layer.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias, *([True] if transpose else []))
    assert bp.all(found[0] == fused.weight) and bp.all(found[1] == fused.bias)


def test_what_is_refused():
    with pytest.raises(bp.ArgumentValueError, match="training mode"):
        nn.utils.fuse_conv_bn_eval(nn.Conv2d(1, 2, 3).eval(), nn.BatchNorm2d(2))
    with pytest.raises(bp.ArgumentValueError, match="without running statistics"):
        nn.utils.fuse_conv_bn_eval(nn.Conv2d(1, 2, 3).eval(), nn.BatchNorm2d(2, track_running_stats=False).eval())
    with pytest.raises(bp.ShapeError, match="3 features after a layer of 2 outputs"):
        nn.utils.fuse_linear_bn_eval(nn.Linear(1, 2).eval(), nn.BatchNorm1d(3).eval())
    with pytest.raises(bp.ArgumentValueError, match="of 2 groups"):
        nn.utils.fuse_conv_bn_eval(nn.ConvTranspose2d(2, 2, 3, groups=2).eval(), nn.BatchNorm2d(1).eval(), transpose=True)


def test_sequences_are_packed_and_unpacked():
    sequences = [bp.normal((n, 2)) for n in (2, 5, 3)]
    packed = nn.utils.rnn.pack_sequence(sequences, enforce_sorted=False)
    for one, other in zip(nn.utils.rnn.unpack_sequence(packed), sequences, strict=True):
        assert bp.all(one == other)
    order = bp.asarray([2, 0, 1])
    assert order[nn.utils.rnn.invert_permutation(order)].tolist() == [0, 1, 2] and nn.utils.rnn.invert_permutation(None) is None


def test_older_names_of_interpolate():
    x = bp.normal((1, 2, 3, 3))
    assert bp.all(nn.functional.upsample(x, scale_factor=2) == nn.functional.interpolate(x, scale_factor=2))
    assert bp.all(nn.functional.upsample_nearest(x, size=5) == nn.functional.interpolate(x, size=5))
    expected = nn.functional.interpolate(x, size=5, mode="bilinear", align_corners=True)
    assert bp.all(nn.functional.upsample_bilinear(x, size=5) == expected) and bp.all(nn.functional.upsample(x, 5, mode="bilinear", align_corners=True) == expected)
