"""Layers that are divided among the ranks, against the whole layers: values, gradients and training."""

import numpy as np

import backplane as bp
from backplane import nn

d = bp.distributed
F = nn.functional
WIDTH, HEADS = 24, 12


class Block(nn.Module):
    """A transformer's block; `divided` gives the same with the ranks' parts of the weights."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH, dtype=bp.float64), nn.LayerNorm(WIDTH, dtype=bp.float64)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, dtype=bp.float64)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH, dtype=bp.float64), nn.Linear(2 * WIDTH, WIDTH, dtype=bp.float64)
        for name, p in self.named_parameters():  # ranks that are threads share the default generator
            with bp.no_grad():
                p[...] = ("norm" in name and "weight" in name) + bp.asarray(np.random.default_rng(p.size).normal(size=p.shape) / 4)

    def divided(self):
        self.attention = d.ParallelAttention(self.attention)
        self.up, self.down = d.ColumnParallelLinear(self.up), d.RowParallelLinear(self.down)
        return self

    def forward(self, x, mask):
        y = self.norm1(x)
        attend = self.attention(y, y, y, attn_mask=mask) if isinstance(self.attention, d.ParallelAttention) else self.attention(y, y, y, need_weights=False, attn_mask=mask)
        x = x + attend[0]
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def made():
    return Block()


def loss(model, x, mask, y):
    return F.mse_loss(model(x, mask), y)


def operands():
    draw = np.random.default_rng(1)
    x, y = (bp.asarray(draw.normal(size=(3, 5, WIDTH))) for _ in range(2))
    return x, bp.asarray(np.triu(np.ones((5, 5), bool), 1)), y


def check_divided_layers():
    n, batch = d.size(), operands()
    whole, part = made(), made().divided()
    for transform in (lambda f: f, bp.compile):
        expected, gradients = transform(bp.value_and_grad(loss))(whole, *batch)
        found, parts = transform(bp.value_and_grad(loss))(part, *batch)
        np.testing.assert_allclose(found.item(), expected.item(), rtol=1e-10)
        for name in ("norm1.weight", "norm2.bias", "down.bias", "attention.out_proj.bias"):
            np.testing.assert_allclose(
                dict(parts.named_parameters())[name].detach().numpy(), dict(gradients.named_parameters())[name].detach().numpy(), rtol=1e-8, atol=1e-12, err_msg=name
            )
        joined = d.all_gather(dict(parts.named_parameters())["up.weight"])
        np.testing.assert_allclose(joined.detach().numpy(), dict(gradients.named_parameters())["up.weight"].detach().numpy(), rtol=1e-8, atol=1e-12)
        gx = bp.grad(lambda x: loss(part, x, *batch[1:]))(batch[0])
        whole_gx = bp.grad(lambda x: loss(whole, x, *batch[1:]))(batch[0])
        np.testing.assert_allclose(gx.detach().numpy(), whole_gx.detach().numpy(), rtol=1e-8, atol=1e-12)
    divided = sum(p.size for name, p in part.named_parameters() if "norm" not in name and name not in ("down.bias", "attention.out_proj.bias"))
    assert divided * n == sum(p.size for name, p in whole.named_parameters() if "norm" not in name and name not in ("down.bias", "attention.out_proj.bias"))


def check_divided_training():
    batch = operands()
    runs = []
    for model in (made(), made().divided()):
        optimizer = bp.optim.AdamW(model.parameters(), lr=1e-2)
        losses = []
        for _ in range(5):
            value, gradients = bp.value_and_grad(loss)(model, *batch)
            optimizer.update(model, gradients)
            losses.append(value.item())
        runs.append(losses)
    np.testing.assert_allclose(runs[1], runs[0], rtol=1e-6)


def check_divided_refusals():
    n = d.size()
    for call, error in [
        (lambda: d.ColumnParallelLinear(nn.Linear(2, n + 1)) if n > 1 else d.ColumnParallelLinear(nn.ReLU()), (bp.ShapeError, bp.ArgumentTypeError)),
        (lambda: d.RowParallelLinear(nn.Conv2d(1, 1, 1)), bp.ArgumentTypeError),
        (lambda: d.ParallelAttention(nn.MultiheadAttention(12, 12, dropout=0.5, batch_first=True)), bp.ArgumentValueError),
        (lambda: d.ParallelAttention(nn.MultiheadAttention(12, 12)), bp.ArgumentValueError),
    ]:
        try:
            call()
        except error:
            continue
        raise AssertionError("a layer was not refused")


def check_batch_norm_of_all_ranks():
    """Values, statistics and gradients are those of batch norm over the joined batch; also where the ranks' batches differ in size."""
    n, r = d.size(), d.rank()
    draw = np.random.default_rng(2)
    sizes = [3 + i for i in range(n)]
    begin = sum(sizes[:r])
    mine = slice(begin, begin + sizes[r])
    x, cotangent = (draw.normal(size=(sum(sizes), 4, 5), loc=3) for _ in range(2))
    plain = nn.Sequential(nn.Conv1d(4, 4, 1), nn.BatchNorm1d(4)).double()
    for i, p in enumerate(plain.parameters()):
        with bp.no_grad():
            p.copy_(bp.asarray(np.random.default_rng(i).normal(size=p.shape)))
    joined = nn.Sequential(nn.Conv1d(4, 4, 1), nn.BatchNorm1d(4)).double()
    joined.load_state_dict(plain.state_dict())
    joined = nn.SyncBatchNorm.convert_sync_batchnorm(joined)
    assert type(joined[1]) is nn.SyncBatchNorm and list(joined.state_dict()) == list(plain.state_dict())

    def run(model, part):
        given = bp.asarray(x[part]).requires_grad_()
        y = model(given)
        (y * bp.asarray(cotangent[part])).sum().backward()
        return y.detach().numpy(), given.grad.numpy(), {name: p.grad for name, p in model.named_parameters()}

    (whole, gx, gradients), (found, own_gx, own_gradients) = run(plain, slice(None)), run(joined, mine)
    np.testing.assert_allclose(found, whole[mine], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(own_gx, gx[mine], rtol=1e-8, atol=1e-10)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(d.all_reduce(own_gradients[name]).numpy(), gradient.numpy(), rtol=1e-8, atol=1e-10, err_msg=name)
    for name, buffer in plain.named_buffers():
        np.testing.assert_allclose(dict(joined.named_buffers())[name].numpy(), buffer.numpy(), rtol=1e-9, err_msg=name)
    half, whole_half = (layer.half()(bp.asarray(x, dtype=bp.float16)[part]).detach() for layer, part in [(nn.SyncBatchNorm(4), mine), (nn.BatchNorm1d(4), slice(None))])
    assert half.dtype == bp.float16
    np.testing.assert_allclose(half.numpy(), whole_half.numpy()[mine], atol=2e-3)
    joined.eval(), plain.eval()
    np.testing.assert_allclose(joined(bp.asarray(x[mine])).detach().numpy(), plain(bp.asarray(x[mine])).detach().numpy(), rtol=1e-9)


CHECKS = {name: f for name, f in globals().items() if name.startswith("check_")}
