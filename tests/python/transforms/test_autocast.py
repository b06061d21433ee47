"""autocast: products run in half floats, what loses range in them in float32, eager, traced and under transforms alike."""

import asyncio

import numpy as np
import pytest

import backplane as bp
from backplane import nn, optim

HALVES = [bp.bfloat16, bp.float16]


def made(*shape, seed=0):
    return bp.asarray(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def test_each_op_runs_in_the_dtype_of_its_class():
    x, w = made(4, 3), made(5, 3)
    half = x.astype(bp.bfloat16)
    with bp.autocast(bp.bfloat16):
        assert (x @ w.T).dtype == nn.functional.linear(x, w).dtype == bp.matmul(x, w.T).dtype == bp.bfloat16
        assert nn.functional.conv1d(x[None], w[:, :, None].mT.reshape((3, 5, 1))[:, :4]).dtype == bp.bfloat16
        assert bp.exp(half).dtype == half.sum().dtype == nn.functional.layer_norm(half, (3,)).dtype == bp.float32
        assert nn.functional.cross_entropy(half, bp.zeros(4, dtype=bp.int64)).dtype == bp.float32
        assert (half * 2).dtype == bp.relu(half).dtype == bp.bfloat16 and (x * 2).dtype == (half + x).dtype == bp.float32
    assert (x @ w.T).dtype == bp.float32 and bp.exp(half).dtype == bp.bfloat16


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_a_product_is_the_product_of_rounded_arguments(dtype):
    x, w = made(4, 8), made(8, 5, seed=1)
    with bp.autocast("cpu", dtype=dtype):
        found = x @ w
    assert found.dtype == dtype and bool((found == x.astype(dtype) @ w.astype(dtype)).all())


def test_other_dtypes_and_given_outputs_are_left_alone():
    wide, whole = bp.ones((2, 2), dtype=bp.float64), bp.ones((2, 2), dtype=bp.int32)
    out = bp.zeros((2, 2))
    with bp.autocast("cpu"):
        assert (wide @ wide).dtype == bp.float64 and (whole @ whole).dtype == bp.int32
        bp.matmul(bp.ones((2, 2)), bp.full((2, 2), 1.001), out=out)
    assert out[0, 0].item() == pytest.approx(2.002, rel=1e-6)


def test_blocks_nest_and_can_be_switched_off():
    x = bp.ones((2, 2))
    assert not bp.is_autocast_enabled() and bp.get_autocast_dtype() is None
    with bp.autocast("cpu", dtype=bp.float16):
        with bp.autocast("cpu", enabled=False):
            assert (x @ x).dtype == bp.float32 and not bp.is_autocast_enabled("cpu")
        with bp.autocast(bp.bfloat16):
            assert (x @ x).dtype == bp.bfloat16
        assert (x @ x).dtype == bp.float16 and bp.get_autocast_dtype("cpu") == bp.float16
    assert (x @ x).dtype == bp.float32


def test_another_device_is_left_alone(simulator):
    x = bp.ones((2, 2), device="sim")
    with bp.autocast("cpu"):
        assert (x @ x).dtype == bp.float32
    with bp.autocast("sim", dtype=bp.float16):
        assert (x @ x).dtype == bp.float16 and (bp.ones((2, 2)) @ bp.ones((2, 2))).dtype == bp.float32


def test_a_decorated_function_and_its_steps_run_in_the_block():
    @bp.autocast("cpu")
    def product(x):
        return x @ x

    @bp.autocast("cpu")
    def products(x):
        yield x @ x

    x = bp.ones((2, 2))
    assert product(x).dtype == bp.bfloat16 and next(products(x)).dtype == bp.bfloat16 and (x @ x).dtype == bp.float32


def test_a_block_is_of_its_task():
    x = bp.ones((2, 2))

    async def first():
        with bp.autocast("cpu"):
            await asyncio.sleep(0)
            return (x @ x).dtype

    async def second():
        await asyncio.sleep(0)
        return (x @ x).dtype

    async def both():
        return await asyncio.gather(first(), second())

    assert asyncio.run(both()) == [bp.bfloat16, bp.float32]


def loss_of(w, x):
    return bp.tanh(x @ w).sum() ** 2


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_gradients_have_the_dtype_of_their_tensor(dtype):
    w, x = made(3, 2), made(4, 3, seed=1)
    with bp.autocast(dtype):
        found = bp.grad(loss_of)(w, x)
    outside = bp.grad(lambda w: ((x.astype(dtype) @ w.astype(dtype)).astype(bp.float32), w)[0].sum())(w)
    assert found.dtype == outside.dtype == bp.float32
    np.testing.assert_allclose(found.numpy(), bp.grad(loss_of)(w, x).numpy(), rtol=0.1, atol=0.2)


def test_a_derivative_does_not_depend_on_where_it_is_taken():
    """Autocast leaves formulas of derivatives alone: inside of the block and outside they give the same."""
    w = made(3, 2).requires_grad_()
    x = made(4, 3, seed=1)
    grads = []
    for inside in (True, False):
        w.grad = None
        with bp.autocast("cpu"):
            loss = loss_of(w, x)
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        grads.append(w.grad.numpy())
    np.testing.assert_array_equal(*grads)


@pytest.mark.parametrize("transform", ["grad", "jvp", "vmap", "vmap of grad", "checkpoint"])
def test_transforms_see_the_casts(transform):
    w, x = made(3, 2), made(4, 3, seed=1)

    def stated(w, x):
        return bp.tanh((x.astype(bp.bfloat16) @ w.astype(bp.bfloat16))).astype(bp.float32).sum() ** 2

    def run(f):
        ones = bp.ones_like(w)
        return {
            "grad": lambda: bp.grad(f)(w, x),
            "jvp": lambda: bp.jvp(lambda w: f(w, x), (w,), (ones,))[1],
            "vmap": lambda: bp.vmap(f, in_axes=(None, 0))(w, x[:, None]),
            "vmap of grad": lambda: bp.vmap(bp.grad(f), in_axes=(None, 0))(w, x[:, None]),
            "checkpoint": lambda: bp.grad(bp.checkpoint(f))(w, x),
        }[transform]()

    with bp.autocast("cpu"):
        found = run(loss_of)
    expected = run(stated)
    assert found.dtype == expected.dtype == bp.float32
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=2e-2, atol=1e-3)


def test_a_compiled_function_has_a_graph_per_setting():
    traces = []

    @bp.compile
    def product(x):
        bp.unguarded(traces.append, None)
        return bp.exp(x @ x)

    x = made(3, 3)
    for _ in range(2):
        assert product(x).dtype == bp.float32
        with bp.autocast("cpu"):
            found = product(x)
        half = x.astype(bp.bfloat16)
        np.testing.assert_array_equal(found.numpy(), bp.exp((half @ half).astype(bp.float32)).numpy())
        with bp.autocast(bp.float16):
            assert product(x).dtype == bp.float32
    assert len(traces) == 3


def test_a_block_inside_of_a_compiled_function():
    @bp.compile
    def product(x):
        with bp.autocast("cpu"):
            y = x @ x
        return y, x @ x

    inside, outside = product(bp.ones((2, 2)))
    assert inside.dtype == bp.bfloat16 and outside.dtype == bp.float32
    with bp.autocast(bp.float16):
        assert [y.dtype for y in product(bp.ones((2, 2)))] == [bp.bfloat16, bp.float16]


def test_a_graph_belongs_to_its_setting():
    """Its nodes are not cast again, and a call under another setting is refused."""
    with bp.autocast("cpu"):
        graph = bp.make_graph(lambda x: bp.exp(x) @ x)(bp.ones((2, 2)))
        assert graph(bp.ones((2, 2))).dtype == bp.bfloat16
    with pytest.raises(bp.ArgumentValueError, match="another dtype or device of autocast"):
        graph(bp.ones((2, 2)))


def test_layers_refuse_other_dtypes_outside_of_a_block():
    layer, half = nn.LayerNorm(3), bp.ones((2, 3), dtype=bp.bfloat16)
    with pytest.raises(bp.DtypeError, match="LayerNorm"):
        layer(half)
    with bp.autocast("cpu"):
        assert layer(half).dtype == bp.float32
        with pytest.raises(bp.DtypeError, match="LayerNorm"):
            layer(half.astype(bp.float64))


def test_bad_arguments():
    with pytest.raises(bp.DtypeError, match="float16 or bfloat16"):
        bp.autocast("cpu", dtype=bp.float64)
    with pytest.raises(bp.ArgumentTypeError, match="two dtypes"):
        bp.autocast(bp.float16, bp.bfloat16)
    with pytest.raises(bp.BackplaneError, match="nowhere"):
        bp.autocast("nowhere")


def network():
    bp.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 1))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_network_trains_in_mixed_precision(compiled):
    """Parameters and states stay in float32, and the loss falls as it does in float32."""
    x = made(64, 8)
    y = bp.sin(x[:, :1]) + x[:, 1:2]
    losses = {}
    for enabled in (False, True):
        model = network()
        optimizer = optim.AdamW(model.parameters(), lr=1e-2)

        def step(x, y, model=model, optimizer=optimizer, enabled=enabled):
            def loss(model):
                with bp.autocast("cpu", enabled=enabled):
                    return nn.functional.mse_loss(model(x), y)

            value, gradients = bp.value_and_grad(loss)(model)
            optimizer.update(model, gradients)
            return value

        run = bp.compile(state=[model, optimizer])(step) if compiled else step
        losses[enabled] = [run(x, y).item() for _ in range(40)]
        assert all(p.dtype == bp.float32 for p in model.parameters())
        assert all(s["exp_avg"].dtype == bp.float32 for s in optimizer.state.values())
    assert losses[True][-1] < 0.2 * losses[True][0]
    np.testing.assert_allclose(losses[True], losses[False], rtol=0.15, atol=0.03)
    assert losses[True] != losses[False]


def test_float16_with_a_scaler():
    """Gradients of 1e-8 vanish in float16. Scaled ones do not, and a step with infinite ones is left out."""
    w = bp.asarray([[1.0]]).requires_grad_()
    x = bp.asarray([[1e-4]])
    optimizer, scaler = optim.SGD([w], lr=1.0), optim.GradScaler(init_scale=2.0**16)
    for scaled, expected in ((False, 0.0), (True, 1e-8)):
        optimizer.zero_grad()
        with bp.autocast("cpu", dtype=bp.float16):
            loss = (x @ w).sum() * 1e-4
        (scaler.scale(loss) if scaled else loss).backward()
        if scaled:
            scaler.unscale_(optimizer)
        assert w.grad.item() == pytest.approx(expected, rel=1e-2)
    optimizer.zero_grad()
    with bp.autocast("cpu", dtype=bp.float16):
        loss = (bp.asarray([[1e4]]) @ w).sum()
    scaler = optim.GradScaler(init_scale=2.0**16)
    scaler.scale(loss).backward()
    before = w.item()
    scaler.step(optimizer)
    scaler.update()
    assert w.item() == before and scaler.get_scale() == 2.0**15


@pytest.mark.parametrize("inside", [True, False])
def test_a_checkpoint_runs_again_as_it_ran_first(inside):
    x, w = made(4, 4), made(4, 4)

    def gradient(checkpoint):
        own = bp.copy(w).requires_grad_()
        f = bp.checkpoint(lambda w: bp.tanh(x @ w) @ w) if checkpoint else lambda w: bp.tanh(x @ w) @ w
        with bp.autocast("cpu"):
            loss = f(own).astype(bp.float32).sum()
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        return own.grad.numpy()

    np.testing.assert_array_equal(gradient(True), gradient(False))


def test_rules_of_own_ops_are_not_cast():
    @bp.custom_op("autocast_rules::product", shape="matmul(x, y)")
    def product(x: bp.Tensor, y: bp.Tensor) -> bp.Tensor:
        return x @ y

    @product.register_vjp
    def rule(g, x, y):
        return g @ y.T, x.T @ g

    x, y = made(3, 4), made(4, 2)
    plain = bp.grad(lambda x: product(x, y).sum())(x).numpy()
    with bp.autocast("cpu"):
        assert product(x, y).dtype == bp.float32
        np.testing.assert_array_equal(bp.grad(lambda x: product(x, y).sum())(x).numpy(), plain)


def test_the_backward_rule_of_a_custom_function_is_not_cast():
    @bp.custom_function
    def product(x, y):
        return x @ y

    product.defvjp(lambda x, y: (x @ y, (x, y)), lambda kept, g: (g.astype(bp.float32) @ kept[1].T, kept[0].T @ g.astype(bp.float32)))
    x, y = made(3, 4), made(4, 2)
    with bp.autocast("cpu"):
        assert bp.grad(lambda x: product(x, y).astype(bp.float32).sum())(x).dtype == bp.float32


@pytest.mark.parametrize("layer", [lambda: bp.nn.Conv1d(3, 4, 2), lambda: bp.nn.Conv2d(3, 4, 2), lambda: bp.nn.ConvTranspose1d(3, 4, 2)])
def test_convolutions_with_a_bias_give_half_floats(layer):
    layer = layer()
    with bp.autocast("cpu"):
        assert layer(bp.ones((2, 3, *[5] * (layer.weight.ndim - 2)))).dtype == bp.bfloat16


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_recurrent_layers_run_in_half_floats(kind, dtype):
    layer = getattr(bp.nn, kind)(3, 4)
    x = made(5, 2, 3).astype(dtype)
    expected = layer(x.astype(bp.float32))[0].detach().numpy()
    with bp.autocast("cpu"):
        y = layer(x)[0]
    assert y.dtype == bp.bfloat16
    np.testing.assert_allclose(y.astype(bp.float32).detach().numpy(), expected, atol=0.05)
