"""Ops that change several arguments in place: Tensor(mut) in an entry. They do what the function does, and then write its results."""

import backplane as bp
import numpy as np
import pytest
from entries_plugin import entries  # noqa: F401


@pytest.fixture(scope="module")
def momentum():
    @bp.custom_op("changing::momentum", mutates_args=("p", "m"))
    def momentum(p: bp.Tensor, grad: bp.Tensor, m: bp.Tensor, *, lr: bp.types.Scalar = 0.5) -> None:
        m[...] = 0.5 * m.numpy() + grad.numpy()
        p[...] = p.numpy() - lr * m.numpy()

    @momentum.register_vjp
    def momentum_vjp(g, lr):
        g_p, g_m = g
        through = g_m - lr * g_p
        return g_p, through, 0.5 * through

    momentum.register_batch("loop")
    return momentum


def tensors():
    draw = np.random.default_rng(0)
    return [bp.asarray(draw.random((3, 4)), dtype=bp.float32) for _ in range(4)]


def changed(p, m, v):
    return [x.tolist() for x in (p, m, v)]


def test_each_result_goes_to_the_argument_of_its_name(entries):
    p, grad, m, v = tensors()
    expected = entries.step(p, grad, m, v, lr=0.5)
    assert expected._fields == ("p", "m", "v") if hasattr(expected, "_fields") else expected.p.shape == p.shape
    returned = entries.step_(p, grad, m, v, lr=0.5)
    assert returned.p is p and returned.m is m and returned.v is v
    assert changed(p, m, v) == changed(*expected)


def test_views_of_the_arguments_and_parts_of_tensors_follow(entries):
    p, grad, m, v = tensors()
    expected = entries.step(p[1:], grad[1:], m.T[:, 1:].T, v[1:])
    view, first = p[1], p[0].tolist()
    entries.step_(p[1:], grad[1:], m.T[:, 1:].T, v[1:])
    assert changed(p[1:], m[1:], v[1:]) == changed(*expected)
    assert view.tolist() == expected.p[0].tolist() and p[0].tolist() == first


def test_an_argument_may_be_read_twice(entries):
    p, _, m, v = tensors()
    expected = entries.step(p, p, m, v)
    entries.step_(p, p, m, v)
    assert changed(p, m, v) == changed(*expected)


def test_one_changed_argument_is_the_in_place_form(entries):
    x = bp.asarray([2.0, 4.0])
    assert entries.halve_(x) is x and x.tolist() == [1, 2] and entries.halve(x).tolist() == [0.5, 1]


@pytest.mark.parametrize("held", ["alone", "through a view", "by NumPy"])
def test_large_tensors_are_changed_in_one_pass_with_the_bits_of_its_parts(entries, held):
    draw = np.random.default_rng(0)
    arrays = [draw.random(40000).astype("float32") for _ in range(4)]
    parts = [[bp.asarray(a[i : i + 8000]) * 1 for a in arrays] for i in range(0, 40000, 8000)]
    p, grad, m, v = (bp.asarray(a.copy()) for a in arrays) if held == "by NumPy" else (bp.asarray(a) * 1 for a in arrays)
    view = p[:3] if held == "through a view" else None
    for _ in range(4):
        entries.step_(p, grad, m, v, lr=0.25)
        for part in parts:
            entries.step_(*part, lr=0.25)
    for i, whole in ((0, p), (2, m), (3, v)):
        np.testing.assert_array_equal(whole.numpy(), np.concatenate([part[i].numpy() for part in parts]))
    assert view is None or view.tolist() == p[:3].tolist()
    new = entries.step(p, grad, m, v, lr=0.25)
    entries.step_(p, grad, m, v, lr=0.25)
    assert changed(p, m, v) == changed(*new)


@pytest.mark.parametrize("held", ["alone", "by NumPy"])
def test_large_tensors_are_changed_without_copies(entries, held):
    arguments = [np.full(1 << 18, 0.5, dtype="float32") for _ in range(4)]
    arguments = [bp.asarray(x) if held == "by NumPy" else bp.asarray(x) * 1 for x in arguments]
    for _ in range(3):
        entries.step_(*arguments)
    bp.reset_peak_memory_stats()
    before = bp.memory_stats("cpu")["allocated_bytes"]
    entries.step_(*arguments)
    assert bp.memory_stats("cpu")["peak_bytes"] - before < arguments[0].nbytes


def test_large_arguments_may_share_memory_with_one_that_is_only_read(entries):
    draw = np.random.default_rng(0)
    whole, m, v = (bp.asarray(draw.random(n).astype("float32")) * 1 for n in (40001, 40000, 40000))
    for grad in (whole[1:], whole[:-1]):  # the argument itself, and one that lies across it
        for _ in range(3):
            expected = entries.step(whole[1:], grad * 1, m, v)
            entries.step_(whole[1:], grad, m, v)
            assert changed(whole[1:], m, v) == changed(*expected)


@pytest.mark.parametrize("n", [3, 50000])
def test_a_result_that_is_an_argument_is_read_before_it_is_written(entries, n):
    a, b = bp.ones(n), bp.full(n, 2.0)
    for first, second in [(2, 1), (1, 2), (2, 1)]:
        entries.swap_(a, b)
        assert (a == first).all() and (b == second).all()
    rows = bp.stack([a, b])
    entries.swap_(rows[0], rows[1])
    assert (rows[0] == 1).all() and (rows[1] == 2).all()


@pytest.mark.parametrize("wide", range(4))
def test_one_pass_over_several_dtypes_writes_each_its_own(entries, wide):
    draw = np.random.default_rng(0)
    for _ in range(3):
        arguments = [bp.asarray(draw.random(40000), dtype=bp.float64 if i == wide else bp.float32) for i in range(4)]
        expected = [x[:100] * 1 for x in arguments]
        entries.step_(*arguments)
        entries.step_(*expected)
        for found, want in zip(arguments, expected):
            assert found.dtype == want.dtype
            np.testing.assert_array_equal(found[:100].numpy(), want.numpy())


def test_rows_of_one_argument_alone_are_batched(entries):
    p, grad, m, v = (x[0] for x in tensors())
    rows = bp.vmap(entries.step, in_axes=(0, None, None, None))(bp.stack([p, p * 2]), grad, m, v)
    for i in range(2):
        for found, want in zip(rows, entries.step(p * (i + 1), grad, m, v)):
            np.testing.assert_allclose(found[i].tolist(), want.tolist(), rtol=1e-6)


def test_opcheck_tries_the_in_place_form(entries, momentum):
    bp.opcheck(entries.step, tensors())
    bp.opcheck(momentum, tensors()[:3])


def test_arguments_may_have_shapes_of_their_own(entries):
    rows, row, total = bp.ones((3, 4)), bp.asarray([0.0, 1, 2, 3]), bp.zeros(4)
    entries.keep_(rows, row, total)
    assert rows.tolist() == [[1, 2, 3, 4]] * 3 and total.tolist() == [0, 1, 2, 3]
    with pytest.raises(bp.ShapeError):
        entries.keep_(rows, bp.ones((2, 3, 4)), total)
    assert rows.tolist() == [[1, 2, 3, 4]] * 3 and total.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("calls", [1, 3])
def test_a_compiled_function_changes_them_at_each_call(entries, calls):
    p, grad, m, v = tensors()
    q, n, w = (x * 1 for x in (p, m, v))

    def step(p, grad, m, v):
        entries.step_(p, grad, m, v)
        return p.sum() + m.sum()

    compiled = bp.compile(step)
    for _ in range(calls):
        assert abs(float(compiled(p, grad, m, v)) - float(step(q, grad, n, w))) < 1e-5
        np.testing.assert_allclose(changed(p, m, v), changed(q, n, w), rtol=1e-6)


def loss(entries, change, grad, p, m, v):
    p, m, v = (x + grad * 0 for x in (p, m, v))
    new = entries.step_(p, grad, m, v) if change else entries.step(p, grad, m, v)
    return (new.p * new.p).sum() + (p if change else new.p).sum() + new.v.sum()


def test_transforms_see_the_new_values(entries):
    p, grad, m, v = tensors()

    def of(change):
        return lambda x: loss(entries, change, x, p, m, v)

    for transform in (bp.grad, lambda f: bp.grad(lambda x: (bp.grad(f)(x) ** 2).sum()), lambda f: lambda x: bp.jvp(f, (x,), (x,))[1], lambda f: bp.compile(bp.grad(f))):
        np.testing.assert_allclose(transform(of(True))(grad).tolist(), transform(of(False))(grad).tolist(), rtol=1e-5)
    rows = bp.stack([grad, grad * 2])
    np.testing.assert_allclose(bp.vmap(of(True))(rows).tolist(), bp.vmap(of(False))(rows).tolist(), rtol=1e-5)
    leaf = (grad * 1).requires_grad_()
    of(True)(leaf).backward()
    np.testing.assert_allclose(leaf.grad.tolist(), bp.grad(of(False))(grad).tolist(), rtol=1e-5)


def test_parameters_are_changed_under_no_grad(entries):
    p, grad, m, v = tensors()
    expected = entries.step(p, grad, m, v)
    p.requires_grad_()
    with pytest.raises(bp.ArgumentValueError, match="requires a gradient and is a leaf"):
        entries.step_(p, grad, m, v)
    assert changed(p, m, v) == changed(*tensors()[:1], *tensors()[2:])
    with bp.no_grad():
        entries.step_(p, grad, m, v)
    assert changed(p, m, v) == changed(*expected) and p.requires_grad


def test_a_wider_accumulator_keeps_its_dtype(entries):
    p, grad, m, v = tensors()
    m = bp.astype(m, bp.float64)
    expected = entries.step(p, grad, m, v)
    entries.step_(p, grad, m, v)
    assert (p.dtype, m.dtype, v.dtype) == (bp.float32, bp.float64, bp.float32)
    np.testing.assert_allclose(changed(p, m, v), changed(*expected), rtol=1e-6)


def test_an_op_in_python_may_change_several(momentum):
    p, grad, m, _ = tensors()
    expected = 0.5 * m.numpy() + grad.numpy()
    want = [(p.numpy() - 0.25 * expected).tolist(), expected.tolist()]
    q, n = p * 1, m * 1
    returned = momentum(p, grad, m, lr=0.25)
    assert returned.p is p and returned.m is m and [p.tolist(), m.tolist()] == want
    compiled = bp.compile(lambda q, n: (momentum(q, grad, n, lr=0.25), q.sum())[1])
    assert abs(float(compiled(q, n)) - float(p.sum())) < 1e-5 and [q.tolist(), n.tolist()] == want
    opts = bp.vmap(lambda q, g, n: (momentum(q, g, n, lr=0.25), q * 1)[1])(bp.stack([q, q]) * 1, bp.stack([grad, grad]), bp.stack([n, n]))
    momentum(q, grad, n, lr=0.25)
    np.testing.assert_allclose(opts[1].tolist(), q.tolist(), rtol=1e-6)


def test_its_derivative_is_that_of_the_new_values(momentum):
    p, grad, m, _ = tensors()

    def of(x):
        q, n = p + 0 * x, m + 0 * x
        momentum(q, x, n)
        return (q * q).sum() + n.sum()

    new_m = 0.5 * m + grad
    new_p = p - 0.5 * new_m
    np.testing.assert_allclose(bp.grad(of)(grad).tolist(), (1 - new_p).tolist(), rtol=1e-5)


def test_wrong_definitions_of_changes_are_refused():
    def nothing(x: bp.Tensor, n: bp.types.Scalar, y: bp.Tensor) -> None:
        pass

    for names, why in [(("n",), "found 'n', expected names of arguments that are a Tensor: x, y"), (("z",), "found 'z'"), (("y",), "stands first")]:
        with pytest.raises(bp.ArgumentValueError, match=why):
            bp.custom_op("changing::nothing", nothing, mutates_args=names)


def test_what_cannot_be_changed_is_refused_before_anything_is_written(entries):
    p, grad, m, v = tensors()
    before = changed(p, m, v)
    block = np.zeros((5, 4), "float32")
    for arguments, why in [
        ((p, grad, bp.from_numpy(block[:3]), bp.from_numpy(block[2:])), "share elements"),
        ((p, grad, m, m), "arguments 'm' and 'v' are both changed in place and share elements"),
        ((p, grad, m[:2], m[1:]), "share elements"),
        ((p, grad, m, 1.0), "argument 'v' is changed in place, so it must be a Tensor"),
        ((p, grad, m, bp.broadcast_to(bp.ones((1, 1)), (3, 4))), "v|result|elements|memory"),
        ((p, grad[:, :3], m, v), "shape|broadcast"),
        ((p, bp.ones((2, 3, 4)), m, v), "shape"),
        ((p, grad * 1j, m, v), "complex|dtype"),
    ]:
        with pytest.raises(bp.BackplaneError, match=why):
            entries.step_(*arguments)
        assert changed(p, m, v) == before


@pytest.fixture(scope="module")
def decomposed():
    """Ops that state how they decompose, and nothing of their derivatives."""

    @bp.custom_op("changing::squared", mutates_args=("x",))
    def squared(x: bp.Tensor, *, by: bp.types.Scalar = 2.0) -> None:
        x[...] = by * x.numpy() ** 2

    squared.register_decomposition(lambda x, by: by * x * x)

    @bp.custom_op("changing::mixed", mutates_args=("p", "m"))
    def mixed(p: bp.Tensor, grad: bp.Tensor, m: bp.Tensor) -> None:
        p[...], m[...] = p.numpy() * m.numpy(), m.numpy() * grad.numpy()

    mixed.register_decomposition(lambda p, grad, m: (p * m, m * grad))
    return squared, mixed


def test_one_argument_is_changed_by_an_op_with_a_decomposition_alone(decomposed):
    squared, _ = decomposed
    x = bp.asarray([1.0, 2.0, 3.0]).requires_grad_()
    y = x * 1
    view = y[1:]
    squared(y, by=3.0)
    assert y.tolist() == [3, 12, 27] and view.tolist() == [12, 27]
    (y[:2] * view).sum().backward()  # 9 (x0 x1)^2 + 9 (x1 x2)^2
    assert x.grad.tolist() == [72, 36 + 324, 216]
    with pytest.raises(bp.ArgumentValueError, match="argument 'x' is changed in place, but it requires a gradient and is a leaf"):
        squared(x)
    with bp.no_grad():
        squared(x, by=1.0)
    assert x.tolist() == [1, 4, 9]


def test_a_part_is_changed_by_an_op_with_a_decomposition_alone(decomposed):
    squared, _ = decomposed
    x = bp.asarray([1.0, 2.0, 3.0]).requires_grad_()
    y = x * 2
    squared(y[1:], by=1.0)
    y.sum().backward()
    assert y.tolist() == [2, 16, 36] and x.grad.tolist() == [2, 16, 24]


def test_several_arguments_are_changed_by_an_op_with_a_decomposition_alone(decomposed):
    _, mixed = decomposed
    leaves = [bp.asarray(values).requires_grad_() for values in ([1.0, 2.0], [3.0, 4.0], [5.0, 6.0])]
    p, grad, m = (x * 1 for x in leaves)
    mixed(p, grad, m)
    assert p.tolist() == [5, 12] and m.tolist() == [15, 24]
    (p * m).sum().backward()  # p m^2 grad
    assert [x.grad.tolist() for x in leaves] == [[75, 144], [25, 72], [30, 96]]


def test_a_changed_argument_that_is_read_twice_counts_twice(decomposed):
    _, mixed = decomposed
    x = bp.asarray([2.0]).requires_grad_()
    m, p = x * 1, x * 1
    mixed(p, m, m)
    (p + m).sum().backward()
    assert m.tolist() == [4] and x.grad.tolist() == [8]
