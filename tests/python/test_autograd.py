"""Reverse mode from Python: backward, gradients, hooks, modes."""

import gc
import threading
import weakref

import backplane as bp
import numpy as np
import pytest


def leaf(*values):
    return bp.asarray(list(values)).requires_grad_()


def test_backward_accumulates():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5, 7]
    x.grad = None
    assert x.grad is None


@pytest.mark.parametrize("name", ["ceil", "floor", "round", "rint", "trunc", "fix", "sign"])
def test_steps_have_the_slope_zero(name):
    """Zeros, as PyTorch has them, and no gradient that is missing; also beside a path with a slope, and to the second order."""
    x = leaf(1.5, -2.0, 0.25)
    getattr(bp, name)(x).sum().backward()
    assert x.grad.tolist() == [0, 0, 0]
    (getattr(bp, name)(x * x) + x).sum().backward()
    assert x.grad.tolist() == [1, 1, 1]
    step = lambda t: getattr(bp, name)(t).sum()  # noqa: E731
    assert bp.hessian(step)(bp.asarray([1.5, 2.5])).tolist() == [[0, 0], [0, 0]]
    assert bp.jvp(step, (bp.asarray([1.5]),), (bp.ones(1),))[1].item() == 0


def test_backward_from_a_cotangent():
    x = leaf(1.0, 2.0)
    (x * x).backward(bp.asarray([1.0, 10.0]))
    assert x.grad.tolist() == [2, 40]
    with pytest.raises(ValueError, match="cotangent"):
        (x * x).backward()


def test_a_graph_runs_once_unless_retained():
    x = leaf(2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8]
    with pytest.raises((ValueError, RuntimeError)):
        y.backward()


def test_gradients_leave_grad_alone():
    x, y = leaf(2.0), leaf(3.0)
    dx, dy, none = bp.gradients((x * x * y).sum(), [x, y, leaf(1.0)])
    assert (dx.item(), dy.item(), none) == (12, 4, None)
    assert x.grad is None and bp.gradients((x * 5).sum(), x).item() == 5


def test_gradients_go_along_the_paths_to_their_inputs_alone():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    seen = []
    beside = w * w
    beside.register_hook(lambda g: seen.append("beside"))
    w.register_hook(lambda g: seen.append("w"))
    inner = x * 2
    inner.register_hook(lambda g: seen.append("inner"))
    y = bp.concat([inner * beside, beside])
    y[1:3] *= beside  # a change through a view, of which one edge leads to x
    loss = (y * y).sum()
    dx = bp.gradients(loss, x, retain_graph=True)
    assert seen == ["inner"]
    dw, of_inner = bp.gradients(loss, [w, inner], retain_graph=True)
    assert "beside" in seen and "w" in seen
    assert bp.gradients(loss, [x, inner], retain_graph=True)[1].tolist() == of_inner.tolist()  # an input below another
    loss.backward()
    assert x.grad.tolist() == dx.tolist() and w.grad.tolist() == dw.tolist()
    # Nodes beside a path are not freed.
    kept = w * w
    bp.gradients((x * x * kept).sum(), x)
    assert bp.gradients(kept.sum(), w).tolist() == [6, 8]


def test_higher_orders():
    x = leaf(2.0)
    first = bp.gradients((x**4).sum(), x, create_graph=True)
    second = bp.gradients(first.sum(), x, create_graph=True)
    third = bp.gradients(second.sum(), x)
    assert (first.item(), second.item(), third.item()) == (32, 48, 48)


def test_no_grad_nests_and_decorates():
    x = leaf(1.0)

    @bp.no_grad()
    def quiet():
        return x * 2

    with bp.no_grad():
        assert not (x * 2).requires_grad
        with bp.enable_grad():
            assert (x * 2).requires_grad
        assert not bp.grad_enabled()
    assert bp.grad_enabled() and not quiet().requires_grad
    with pytest.raises(ZeroDivisionError), bp.no_grad():
        1 / 0
    assert bp.grad_enabled()


def test_leaves_and_histories():
    x = leaf(1.0)
    y = x * 2
    assert x.is_leaf and not y.is_leaf
    assert y.requires_grad and y.grad_op == "bp::multiply" and x.grad_op is None
    assert not y.detach().requires_grad and y.detach().is_leaf
    with pytest.raises(ValueError):
        y.requires_grad = False
    with pytest.raises(TypeError):
        bp.asarray([1]).requires_grad_()
    with pytest.raises(TypeError):
        x.requires_grad = 1


def test_hooks_see_and_replace_cotangents():
    x = leaf(1.0, 2.0)
    y = x * 3
    seen = []
    handle = y.register_hook(lambda g: seen.append(g.tolist()))
    y.sum().backward(retain_graph=True)
    assert seen == [[1, 1]]
    handle.remove()
    handle.remove()
    y.register_hook(lambda g: g * 10)
    x.grad = None
    y.sum().backward()
    assert seen == [[1, 1]] and x.grad.tolist() == [30, 30]


def test_a_hook_is_removed_also_where_its_tensor_was_changed_since():
    x = bp.ones(3).requires_grad_()
    y = x * 2
    kept, removed = y.register_hook(lambda g: g * 10), y.register_hook(lambda g: g * 100)
    y += 1
    removed.remove()
    removed.remove()
    y.sum().backward()
    assert x.grad.tolist() == [20, 20, 20] and kept is not None
    with pytest.raises(bp.ArgumentTypeError, match="expected a function"):
        y.register_hook(3)


def test_a_hook_s_own_exception_comes_through():
    class Mine(Exception):
        pass

    def fail(g):
        raise Mine("from the hook")

    x = leaf(1.0)
    y = x * 2
    y.register_hook(fail)
    with pytest.raises(Mine, match="from the hook"):
        y.sum().backward()
    z = x * 2
    z.register_hook(lambda g: 3)
    with pytest.raises(TypeError, match="int"):
        z.sum().backward()


def test_hooks_are_dropped_with_the_graph():
    class Witness:
        def __call__(self, g):
            return None

    witness = Witness()
    reference = weakref.ref(witness)
    y = leaf(1.0) * 2
    y.register_hook(witness)
    del witness
    assert reference() is not None
    del y
    gc.collect()
    assert reference() is None


def test_in_place_changes_are_tracked():
    x = leaf(1.0, 2.0)
    y = x * 2
    y += 1
    y[0] *= 5
    y.sum().backward()
    assert x.grad.tolist() == [10, 2]
    with pytest.raises(ValueError, match="leaf"):
        x += 1
    with bp.no_grad():
        x += 1
    assert x.version > 0
    saved = leaf(1.0)
    a = saved.exp()
    b = a * a
    a += 1
    with pytest.raises(ValueError, match="in place"):
        b.sum().backward()


def test_a_long_chain_runs_and_dies_without_recursion():
    x = leaf(1.0)
    y = x
    for _ in range(20_000):
        y = y + 1
    y.sum().backward()
    assert x.grad.item() == 1
    z = x
    for _ in range(20_000):
        z = z + 1
    del z


def test_a_training_step_in_place():
    w = leaf(1.0, -1.0)
    for _ in range(50):
        loss = ((w - bp.asarray([3.0, 4.0])) ** 2).sum()
        loss.backward()
        with bp.no_grad():
            w -= 0.1 * w.grad
        w.grad = None
    assert loss.item() < 1e-6


@pytest.mark.parametrize("rank", [1, 3, 9, 16])  # the more axes a slice names, the longer what its view remembers
def test_a_change_through_a_view_reaches_its_base(rank):
    x = bp.asarray(np.arange(2.0**rank).reshape((2,) * rank))
    x.requires_grad = True
    y = x * 1
    key = (slice(0, 1), slice(None, None, -1), slice(1, None))[:rank] + (slice(1, 2),) * max(rank - 3, 0)
    view = y[key]
    view *= 3
    assert (y != x).sum().item() <= view.size
    y.sum().backward()
    changed = np.ones((2,) * rank)
    changed[key] = 3
    np.testing.assert_array_equal(x.grad.numpy(), changed)


@pytest.mark.parametrize("recording", [False, True])
def test_a_long_chain_of_views_dies_without_recursion(recording):
    x = leaf(1.0, 2.0) if recording else bp.asarray([1.0, 2.0])
    view = x
    for _ in range(20_000):
        view = view[:]
    np.testing.assert_array_equal(view.detach().numpy(), [1, 2])
    del view


def test_an_in_place_change_that_reads_its_target_keeps_the_value_before():
    x, w = bp.asarray([1.0, 2.0]).requires_grad_(), bp.asarray([3.0, 5.0]).requires_grad_()
    y = x * 1
    y *= w
    y *= y  # (x w)^2
    y.sum().backward()
    assert x.grad.tolist() == [18.0, 100.0] and w.grad.tolist() == [6.0, 40.0]


def test_an_in_place_change_differentiates_twice():
    x = bp.asarray(3.0).requires_grad_()
    y = x * 1
    y *= x
    y *= x  # x^3
    first = bp.gradients(y, x, create_graph=True)
    assert first.item() == 27.0 and bp.gradients(first, x).item() == 18.0


@pytest.mark.parametrize("view", [lambda b: bp.unfold(b, 0, 2, 1)[0], lambda b: bp.broadcast_to(b, (2, 4))[0]])
def test_writing_through_what_cannot_be_written_back_is_refused(view):
    base = bp.ones((4,)).requires_grad_() * 1
    with pytest.raises(ValueError, match="copy it first"):
        piece = view(base)
        piece *= 2.0


def test_threads_add_to_one_leaf():
    leaf = bp.zeros((1 << 15,)).requires_grad_()
    graphs = [(leaf * 1.0).sum() for _ in range(64)]
    run_threads = [threading.Thread(target=lambda part: [g.backward() for g in part], args=(graphs[i::4],)) for i in range(4)]
    for thread in run_threads:
        thread.start()
    for thread in run_threads:
        thread.join()
    assert leaf.grad[0].item() == 64.0


@pytest.mark.parametrize("leaf", [True, False])
def test_a_hook_changes_elements_alone(leaf):
    """Its result replaces the gradient: of the same shape, dtype and device, or an error that states the difference."""
    for wrong, found in [
        (lambda g: bp.ones(7), r"float32 of shape \(7,\)"),
        (lambda g: g.sum(), r"float32 of shape \(\)"),
        (lambda g: bp.cast(g, bp.float64), r"float64 of shape \(3,\)"),
        (lambda g: bp.cast(g, bp.int32), r"int32 of shape \(3,\)"),
    ]:
        x = bp.ones(3).requires_grad_()
        y = x * 2
        (x if leaf else y).register_hook(wrong)
        with pytest.raises(ValueError, match=f"a hook returned a {found} on .* for a gradient that is float32 of shape .3,. on "):
            y.sum().backward()
        assert x.grad is None


def test_a_view_of_a_view_leads_to_its_base_however_long_the_chain():
    weight = bp.asarray([1.0, 2.0, 3.0]).requires_grad_()
    base = bp.zeros(3)
    view = base
    for _ in range(100):
        view = bp.permute_dims(view[:], (0,))
    view.copy_(weight)
    base.sum().backward()
    assert base.tolist() == [1, 2, 3] and weight.grad.tolist() == [1, 1, 1]
    leaf = bp.zeros(3)
    inner = leaf[:].requires_grad_()
    with pytest.raises(ValueError, match="requires a gradient and is a leaf"):
        inner[:].add_(1)


def test_a_tensor_that_is_overwritten_has_the_history_of_what_was_written():
    x, other = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * 2
    part = y[:1]

    def copy(source, out):
        return bp.lerp(source, source, 0.25, out=out)  # a composite: its parts are written over `out` at the end

    assert copy(other * other, out=y) is y
    (y * y + part).sum().backward()
    assert x.grad is None or x.grad.tolist() == [0, 0]
    assert other.grad.tolist() == [(2 * 9 + 2) * 6, 2 * 16 * 8]
    z = x * 2
    copy(bp.ones(2), out=z)
    assert not z.requires_grad
    w = x * 2
    copy(bp.ones(1), out=w[:1])
    w.sum().backward()
    assert x.grad.tolist() == [0, 2]
    with pytest.raises(ValueError, match="leaf"):
        copy(bp.ones(2), out=x)


def test_what_is_made_of_metadata_has_no_history():
    x = leaf(1.0, 2.0)
    for make in (bp.zeros_like, bp.ones_like, lambda x: bp.full_like(x, 3.0), bp.empty_like):
        made = make(x)
        assert not made.requires_grad and made.is_leaf and made.grad_op is None
    kept = bp.zeros_like(x)
    for _ in range(3):
        kept = 0.9 * kept + x.detach()
    assert not kept.requires_grad
    (bp.ones_like(x) * x).sum().backward()
    assert x.grad.tolist() == [1, 1]


@pytest.mark.parametrize("join", [bp.concat, bp.stack], ids=lambda f: f.__name__)
def test_what_is_joined_is_not_kept(join):
    x = leaf(1.0, 2.0)
    y = x * 1
    z = join([y, y * 2, x])
    y += 1  # its values are none of the derivative's
    (z * z).sum().backward()
    assert x.grad.tolist() == [2 + 8 + 2, 4 + 16 + 4]
    parts = [bp.ones(1 << 20).requires_grad_() * 1 for _ in range(4)]
    before = bp.memory_stats()["allocated_bytes"]
    joined = join(parts)
    del parts
    gc.collect()
    assert bp.memory_stats()["allocated_bytes"] <= before and joined.requires_grad


@pytest.mark.parametrize("name", ["logical_and_", "logical_or_", "logical_xor_"])
def test_an_in_place_change_without_a_derivative_ends_the_history(name):
    x = leaf(0.5, 0.0, 2.0)
    y = x * 1
    getattr(y, name)(bp.asarray([1.0, 1.0, 0.0]))
    assert bp.gradients([(y * x).sum()], [x])[0].tolist() == y.tolist()
    base = x * 1
    getattr(base[:2], name)(bp.asarray([1.0, 1.0]))
    assert bp.gradients([(base * 3).sum()], [x])[0].tolist() == [0, 0, 3]
