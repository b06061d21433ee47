"""Normalisations of backplane.nn.functional: running statistics, the supported shapes, and the refusals."""

import backplane as bp
import backplane.nn.functional as F
import numpy as np
import pytest


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(2, 3, size=shape)


@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5), (2, 3, 4, 2)])
def test_running_statistics_follow_the_batch_in_place(shape):
    x = numbers(*shape)
    mean, var = bp.zeros((3,), dtype=bp.float64), bp.ones((3,), dtype=bp.float64)
    held = mean
    F.batch_norm(bp.asarray(x).requires_grad_(), mean, var, training=True, momentum=0.25)
    axes = tuple(i for i in range(x.ndim) if i != 1)
    np.testing.assert_allclose(held.numpy(), 0.25 * x.mean(axes), rtol=1e-12)
    np.testing.assert_allclose(var.numpy(), 0.75 + 0.25 * x.var(axes, ddof=1), rtol=1e-12)
    assert not held.requires_grad


def test_without_momentum_the_running_statistics_are_the_mean_of_all_batches():
    batches = [numbers(5, 3, seed=seed) for seed in range(3)]
    mean, var, count = bp.zeros(3, dtype=bp.float64), bp.zeros(3, dtype=bp.float64), bp.asarray(0)
    for x in batches:
        F.batch_norm(bp.asarray(x), mean, var, training=True, momentum=None, num_batches_tracked=count)
    assert count.item() == 3
    np.testing.assert_allclose(mean.numpy(), np.mean([x.mean(0) for x in batches], 0), rtol=1e-12)
    np.testing.assert_allclose(var.numpy(), np.mean([x.var(0, ddof=1) for x in batches], 0), rtol=1e-12)
    F.batch_norm(bp.asarray(batches[0]), mean, var, momentum=None)
    assert count.item() == 3
    with pytest.raises(bp.ArgumentValueError, match="batch_norm: argument momentum: found None without num_batches_tracked"):
        F.batch_norm(bp.asarray(batches[0]), mean, var, training=True, momentum=None)


def test_outside_training_the_running_statistics_are_used_and_kept():
    x, mean, var = numbers(4, 3, 5), numbers(3, seed=1), np.array([0.5, 1.0, 2.0])
    running = bp.asarray(mean), bp.asarray(var)
    y = F.batch_norm(bp.asarray(x), *running, eps=0.1)
    np.testing.assert_allclose(y.numpy(), (x - mean[:, None]) / np.sqrt(var[:, None] + 0.1), rtol=1e-12)
    np.testing.assert_array_equal(running[0].numpy(), mean)


def test_instance_norm_follows_the_mean_over_examples():
    x = numbers(4, 3, 5)
    mean, var = bp.zeros((3,), dtype=bp.float64), bp.zeros((3,), dtype=bp.float64)
    y = F.instance_norm(bp.asarray(x), mean, var, momentum=1.0, eps=0.0).numpy()
    np.testing.assert_allclose(y.mean(2), 0, atol=1e-12)
    np.testing.assert_allclose(y.var(2), 1, rtol=1e-12)
    np.testing.assert_allclose(mean.numpy(), x.mean((0, 2)), rtol=1e-12)
    np.testing.assert_allclose(var.numpy(), x.var(2, ddof=1).mean(0), rtol=1e-12)


def test_groups_of_one_channel_are_instances_and_one_group_is_a_layer():
    x = bp.asarray(numbers(2, 4, 5))
    np.testing.assert_allclose(F.group_norm(x, 4).numpy(), F.instance_norm(x).numpy(), rtol=1e-12)
    np.testing.assert_allclose(F.group_norm(x, 1).numpy(), F.layer_norm(x, (4, 5)).numpy(), rtol=1e-9)


def test_normalize_gives_norm_one_and_leaves_zeros():
    x = numbers(3, 4)
    x[1] = 0
    for p in (1, 2, 3.5, np.inf):
        norms = np.linalg.norm(F.normalize(bp.asarray(x), p, axis=-1).numpy(), p, axis=-1)
        np.testing.assert_allclose(norms, [1, 0, 1], rtol=1e-12)
    zero = bp.asarray(np.zeros((1, 3))).requires_grad_()
    F.normalize(zero).sum().backward()
    assert zero.grad.isfinite().all().item()


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda x: F.layer_norm(x, (3,)), "normalized_shape"),
        (lambda x: F.group_norm(x, 3), "num_groups: found 3, expected a divisor of the 4 channels"),
        (lambda x: F.batch_norm(x, None, None), "running_mean"),
        (lambda x: F.batch_norm(x[0:1, :, 0:1], None, None, training=True), "more than one"),
        (lambda x: F.instance_norm(x[:, :, 0:1]), "more than one"),
        (lambda x: F.normalize(x, dim=2, axis=0), "both dim and axis"),
    ],
)
def test_arguments_out_of_their_domain(call, text):
    with pytest.raises((ValueError, TypeError), match=text):
        call(bp.asarray(numbers(2, 4, 5)))


@pytest.mark.parametrize("axes", [(-1,), (1, 2), (2, -2), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(70, 4, 33), (3, 2, 700), (1, 1, 1), (300, 2, 128)])
def test_gradient_of_layer_norm_in_every_floating_type_is_its_formula(shape, axes):
    first = min(a % 3 for a in axes)
    for weight in (numbers(*shape[first:], seed=2), None):
        for dtype, tolerance in ((bp.float64, 1e-13), (bp.float32, 1e-5), (bp.float16, 1e-3), (bp.bfloat16, 8e-3)):
            given = [None if a is None else bp.astype(bp.asarray(a), dtype) for a in (numbers(*shape), numbers(*shape, seed=1), weight)]
            g, x, w = (1 if a is None else bp.astype(a, bp.float64).numpy() for a in given)
            r, h = 1 / np.sqrt(np.var(x, axes, keepdims=True) + 1e-5), g * w
            n = (x - np.mean(x, axes, keepdims=True)) * r
            expected = r * (h - np.mean(h, axes, keepdims=True) - n * np.mean(h * n, axes, keepdims=True))
            found = bp.layer_norm_grad(*given, axis=axes)
            assert found.dtype == dtype
            largest = np.abs(r * h).max()  # of the terms, which may cancel
            np.testing.assert_allclose(bp.astype(found, bp.float64).numpy(), expected, rtol=0, atol=tolerance * largest)


def test_gradient_of_layer_norm_refuses_axes_and_shapes_that_are_not_its_own():
    x = bp.asarray(numbers(2, 3))
    for arguments, text in (((x, x, None, (2,)), "axis"), ((x, x, None, (-99,)), "axis"), ((x[:1], x), "cotangent"),
                            ((x, x, bp.asarray(numbers(2, 1, 3))), "weight")):
        with pytest.raises((ValueError, IndexError), match=text):
            bp.layer_norm_grad(*arguments[:3], **({"axis": arguments[3]} if len(arguments) > 3 else {}))


@pytest.mark.parametrize("shape", [(5, 3, 40, 37), (2, 4, 9000), (40, 3, 7), (1, 2, 1, 1)])
def test_gradient_of_batch_norm_in_float32_is_that_in_float64(shape):
    x, g, weight = numbers(*shape), numbers(*shape, seed=1), numbers(shape[1], seed=2)

    def gradients(dtype):
        return bp.batch_norm_grad(*(bp.asarray(a.astype(np.float32).astype(dtype)) for a in (g, x, weight)))

    for got, expected in zip(gradients(np.float32), gradients(np.float64)):
        expected = expected.numpy()
        np.testing.assert_allclose(got.numpy(), expected, rtol=0, atol=2e-6 * np.abs(g).sum() / shape[1])
        assert not np.isnan(expected).any()


def followed(x, norm):
    """The running statistics after one call outside of any transform."""
    mean, var = bp.zeros((3,), dtype=bp.float64), bp.ones((3,), dtype=bp.float64)
    norm(x, mean, var)
    return mean.tolist(), var.tolist()


NORMS = {"batch_norm": lambda x, mean, var: F.batch_norm(x, mean, var, training=True), "instance_norm": F.instance_norm}
DIFFERENTIATED = {
    "grad": lambda f, x: bp.grad(f)(x), "value_and_grad": lambda f, x: bp.value_and_grad(f)(x)[1], "vjp": lambda f, x: bp.vjp(f, x)[1](bp.asarray(1.0, dtype=bp.float64))[0],
    "jacrev": lambda f, x: bp.jacrev(f)(x), "jacfwd": lambda f, x: bp.jacfwd(f)(x), "checkpoint": lambda f, x: bp.grad(bp.checkpoint(lambda x: f(x)))(x),
}  # fmt: skip


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("transform", [name for name in DIFFERENTIATED if name != "checkpoint"])
def test_running_statistics_follow_inside_transforms(transform, norm):
    x = bp.asarray(numbers(4, 3, 5))
    mean, var = bp.zeros((3,), dtype=bp.float64), bp.ones((3,), dtype=bp.float64)
    found = DIFFERENTIATED[transform](lambda x: (NORMS[norm](x, mean, var) ** 3).sum(), x)
    assert (mean.tolist(), var.tolist()) == followed(x, NORMS[norm])
    np.testing.assert_allclose(found.numpy(), bp.grad(lambda x: (NORMS[norm](x, None, None) ** 3).sum())(x).numpy(), atol=1e-10)


@pytest.mark.parametrize("norm", NORMS)
def test_running_statistics_follow_under_jvp(norm):
    x = bp.asarray(numbers(4, 3, 5))
    mean, var = bp.zeros((3,), dtype=bp.float64), bp.ones((3,), dtype=bp.float64)
    y, tangent = bp.jvp(lambda x: NORMS[norm](x, mean, var), (x,), (x,))
    assert (mean.tolist(), var.tolist()) == followed(x, NORMS[norm])
    np.testing.assert_allclose(tangent.numpy(), bp.jvp(lambda x: NORMS[norm](x, None, None), (x,), (x,))[1].numpy(), rtol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_running_statistics_per_row_of_vmap(norm):
    xs, means, variances = bp.asarray(numbers(2, 4, 3, 5)), bp.zeros((2, 3), dtype=bp.float64), bp.ones((2, 3), dtype=bp.float64)

    def one(x, mean, var):
        y = NORMS[norm](x, mean, var)
        return y, mean, var

    _, mean, var = bp.vmap(one)(xs, means, variances)
    for row in range(2):
        np.testing.assert_allclose((mean[row].tolist(), var[row].tolist()), followed(xs[row], NORMS[norm]), rtol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_running_statistics_that_all_rows_of_vmap_share_are_refused(norm):
    mean, var = bp.zeros((3,), dtype=bp.float64), bp.ones((3,), dtype=bp.float64)
    with pytest.raises(ValueError, match=r"running statistics: .*vmap.*in_axes=0"):
        bp.vmap(lambda x: NORMS[norm](x, mean, var))(bp.asarray(numbers(2, 4, 3, 5)))
    assert mean.tolist() == [0, 0, 0] and var.tolist() == [1, 1, 1]


@pytest.mark.parametrize("transform", DIFFERENTIATED)
def test_the_running_statistics_are_used_inside_transforms(transform):
    x, mean, var = bp.asarray(numbers(4, 3, 5)), bp.asarray(numbers(3)), bp.asarray([0.5, 1.0, 2.0], dtype=bp.float64)
    found = DIFFERENTIATED[transform](lambda x: F.batch_norm(x, mean, var, eps=0.1).sum(), x)
    np.testing.assert_allclose(found.numpy(), np.broadcast_to((1 / np.sqrt(var.numpy() + 0.1))[:, None], x.shape), rtol=1e-12)


@pytest.mark.parametrize("norm", [bp.nn.BatchNorm1d, lambda size: bp.nn.InstanceNorm1d(size, track_running_stats=True)], ids=["batch", "instance"])
def test_running_statistics_in_control_flow_are_refused_with_what_to_do(norm):
    module, xs = norm(3), bp.asarray(numbers(2, 4, 3, 5), dtype=bp.float32)
    for call in (lambda: bp.map(module, xs), lambda: bp.cond(bp.asarray(True), module, lambda x: x, xs[0])):
        with pytest.raises(bp.ArgumentValueError, match=r"running statistics: a function of control flow.*eval\(\)"):
            call()
    module.eval()
    np.testing.assert_allclose(bp.map(module, xs)[0].detach().numpy(), module(xs[0]).detach().numpy(), rtol=1e-6)
