"""A view that was taken before its base got a history has its part of that history, in any order of access."""

import threading

import backplane as bp
import pytest

LENGTH = 4


def weights():
    return bp.asarray([2.0, 3.0, 5.0, 7.0]).requires_grad_()


def started(change):
    """Something to view, its view, and a leaf that `change` gave to the first one's history."""
    a, base = weights(), bp.zeros(LENGTH)
    view = base[1:3]
    change(base, a)
    return a, base, view


CHANGES = {
    "added": lambda base, a: base.__iadd__(a),
    "copied": lambda base, a: base.copy_(a),
    "set": lambda base, a: base.__setitem__(slice(None), a),
    "set in part": lambda base, a: base.__setitem__(slice(1, 4), a[1:]),
    "set by a mask": lambda base, a: base.__setitem__(bp.asarray([False, True, True, True]), a[1:]),
    "through another view": lambda base, a: base[1:].copy_(a[1:]),
    "through a view of a view": lambda base, a: base[:][1:].reshape(3, 1)[:, 0].copy_(a[1:]),
}

USES = {
    "a method": lambda v: v.sum(),
    "an operator": lambda v: (v * 1).sum(),
    "a number's": lambda v: (1 * v).sum(),
    "beside what has none": lambda v: (v * bp.ones(2)).sum(),
    "a view of it": lambda v: v[0] + v[1],
    "a view of a view": lambda v: v.reshape(2, 1).T.sum(),
    "a list": lambda v: bp.concat([bp.zeros(1), v]).sum(),
    "a product": lambda v: v @ bp.ones(2),
    "in place": lambda v: v.mul_(1).sum(),
    "into another": lambda v: bp.zeros(2).add_(v).sum(),
    "compiled": lambda v: bp.compile(lambda x: x.sum())(v),
    "checkpointed": lambda v: bp.checkpoint(lambda x: x.sum())(v),
    "captured by a checkpoint": lambda v: bp.checkpoint(lambda x: (x * v).sum())(bp.ones(2)),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_seen_by_every_use(change, use):
    a, _, view = started(CHANGES[change])
    result = USES[use](view)
    assert result.item() == 8
    result.backward()
    assert a.grad.tolist() == [0, 1, 1, 0]


ANSWERS = {
    "requires_grad": lambda v: v.requires_grad,
    "is_leaf": lambda v: not v.is_leaf,
    "refuses to be a leaf": lambda v: pytest.raises(ValueError, v.requires_grad_, False),
    "grad_op": lambda v: v.grad_op is not None,
}


@pytest.mark.parametrize("question", ANSWERS)
def test_what_it_says_of_itself(question):
    assert ANSWERS[question](started(CHANGES["added"])[2])


def test_backward_from_the_view():
    a, _, view = started(CHANGES["added"])
    view.backward(bp.asarray([10.0, 20.0]))
    assert a.grad.tolist() == [0, 10, 20, 0]


def test_a_chain_of_views_and_a_second_change():
    a, base = weights(), bp.zeros(LENGTH)
    first = base[1:]
    second = first[:2]
    base += a
    other = base[2:]
    second *= 3
    base *= 2
    (second.sum() + first.sum() + other.sum()).backward()
    assert second.tolist() == [18, 30] and a.grad.tolist() == [0, 12, 18, 4]


def test_a_view_from_before_a_leaf_wanted_a_gradient():
    base = bp.ones(LENGTH)
    view = base[1:3]
    base.requires_grad_()
    (view * view).sum().backward()
    assert base.grad.tolist() == [0, 2, 2, 0]
    with pytest.raises(ValueError, match="view of a tensor that requires a gradient and is a leaf"):
        view += 1


def test_a_view_that_is_a_leaf_of_its_own_stays_one():
    base = bp.ones(LENGTH)
    view = base[1:3].requires_grad_()
    base.requires_grad_()
    (view * 3).sum().backward()
    assert view.is_leaf and view.grad.tolist() == [3, 3] and base.grad is None


@pytest.mark.parametrize("again", [lambda w: w.requires_grad_(), lambda w: w.requires_grad_(False).requires_grad_()], ids=["set again", "off and on"])
def test_setting_a_leaf_again_leaves_its_views_as_they_are(again):
    w = weights()
    view = w[1:3]
    view.register_hook(lambda g: g * 10)
    total = (view * view).sum()
    again(w)
    assert bp.gradients(total, [view], retain_graph=True)[0].tolist() == [60, 100]
    view.sum().backward()
    assert w.grad.tolist() == [0, 10, 10, 0]


def test_a_view_that_was_a_leaf_of_its_own_asks_its_base_again():
    base = bp.ones(LENGTH)
    view = base[1:3].requires_grad_()
    base.requires_grad_()
    view.requires_grad_(False)
    (view * 3).sum().backward()
    assert view.grad is None and base.grad.tolist() == [0, 3, 3, 0]


def test_what_shares_no_history_stays_without():
    a, base = weights(), bp.zeros(LENGTH)
    detached, copied, of_ints = base.detach(), bp.asarray(base, copy=True), base.astype(bp.int64)
    base += a
    assert not any(t.requires_grad for t in (detached, copied, of_ints))
    with bp.no_grad():
        assert not (base[1:3] * 2).requires_grad


@pytest.mark.parametrize("write", [lambda d, x: d.copy_(x), lambda d, x: d.__setitem__(slice(1, 3), x[1:3])], ids=["whole", "part"])
def test_what_is_written_over_its_own_memory_has_its_history(write):
    x = weights()
    detached = x.detach()
    write(detached, x)
    detached.sum().backward()
    assert x.grad.tolist()[1:3] == [1, 1]


def test_threads_that_read_it_at_once():
    for _ in range(50):
        a, _, view = started(CHANGES["added"])
        gate, sums = threading.Barrier(4), []

        def read(gate=gate, sums=sums, view=view):
            gate.wait()
            sums.append((view * 1).sum())

        threads = [threading.Thread(target=read) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        bp.stack(sums).sum().backward()
        assert a.grad.tolist() == [0, 4, 4, 0]
