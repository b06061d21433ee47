"""Writing through a view that was made under no_grad has the derivative that finite differences have, on the tape and in every transform."""

import backplane as bp
import pytest

X = [1.0, 2.0, 3.0, 4.0]
VIEWS = {
    "slice": lambda y: y[1:],
    "strided": lambda y: y[::2],
    "reshape": lambda y: y.reshape(2, 2),
    "transpose": lambda y: y.reshape(2, 2).T,
    "chunk": lambda y: bp.split(y, 2)[1],
    "slice of a slice": lambda y: y[1:][1:],
    "flip": lambda y: bp.flip(y, axis=0),
    "diagonal": lambda y: bp.diagonal(y.reshape(2, 2)),
    "squeezed": lambda y: y[None].squeeze(0)[2:],
}
WRITES = {
    "number": lambda v, x: v.__imul__(10),
    "zero": lambda v, x: v.zero_(),
    "value": lambda v, x: v.copy_((x[0] * x[1]).broadcast_to(v.shape)),
    "add": lambda v, x: v.__iadd__(x[3] * x[3]),
    "item": lambda v, x: v.__setitem__(0, x[2] * x[2]),
    "square": lambda v, x: v.mul_(v),
    "view of it": lambda v, x: v[:1].mul_(x[1]),
    "nested view": lambda v, x: v[:][:1].__imul__(3),
}
BASES = {"history": lambda x: x * x, "none": lambda x: bp.ones(4, dtype=x.dtype), "written": lambda x: bp.zeros(4, dtype=x.dtype).add_(x)}


def program(base, view, write):
    def run(x):
        y = BASES[base](x)
        with bp.no_grad():
            v = VIEWS[view](y)
        WRITES[write](v, x)
        return (y * y).sum() + (v * v).sum() + x.sum()

    return run


def differences(f, h=1e-2):
    """Of f without transforms, in float64, exact for the polynomials here up to rounding."""
    x = bp.asarray(X, dtype=bp.float64)
    unit = bp.eye(len(X), dtype=bp.float64)
    four = [(f(x + h * e) * 8 - f(x - h * e) * 8 - f(x + 2 * h * e) + f(x - 2 * h * e)) / (12 * h) for e in unit]
    return [d.item() for d in four]


def on_the_tape(f):
    x = bp.asarray(X).requires_grad_()
    f(x).backward()
    return x.grad.tolist()


TRANSFORMS = {
    "tape": on_the_tape,
    "grad": lambda f: bp.grad(f)(bp.asarray(X)).tolist(),
    "vjp": lambda f: bp.vjp(f, bp.asarray(X))[1](bp.asarray(1.0))[0].tolist(),
    "jvp": lambda f: [bp.jvp(f, (bp.asarray(X),), (e,))[1].item() for e in bp.eye(4)],
    "vmap of grad": lambda f: bp.vmap(bp.grad(f))(bp.asarray([X, X]))[1].tolist(),
    "grad of vmap": lambda f: bp.grad(lambda x: bp.vmap(f)(bp.stack([x, x])).sum() / 2)(bp.asarray(X)).tolist(),
    "compiled grad": lambda f: bp.compile(bp.grad(f))(bp.asarray(X)).tolist(),
    "grad of compiled": lambda f: bp.grad(bp.compile(f))(bp.asarray(X)).tolist(),
    "compiled, on the tape": lambda f: on_the_tape(bp.compile(f)),
    "checkpoint": lambda f: on_the_tape(bp.checkpoint(f)),
    "grad of checkpoint": lambda f: bp.grad(bp.checkpoint(f))(bp.asarray(X)).tolist(),
}


# What a transform cannot tell from a copy is not written through there, with no_grad or without.
MAY_COPY = ("reshape", "transpose", "diagonal")
LEVELS = [name for name in TRANSFORMS if name not in ("tape", "compiled, on the tape", "checkpoint")]


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_recorded_write_has_its_derivative(transform, write, base):
    for view in VIEWS:
        f = program(base, view, write)
        expected = differences(f)
        if view in MAY_COPY and transform in LEVELS:
            with pytest.raises(bp.ArgumentValueError, match="which may be a view or a copy, is refused inside"):
                TRANSFORMS[transform](f)
            continue
        assert TRANSFORMS[transform](f) == pytest.approx(expected, rel=1e-4, abs=1e-3), view


ANSWERS = {
    "tape": lambda f, x: bp.gradients(f(x := bp.asarray(x).requires_grad_()), [x])[0].tolist(),
    "grad": lambda f, x: bp.grad(f)(bp.asarray(x)).tolist(),
    "vmap of grad": lambda f, x: bp.vmap(bp.grad(f))(bp.asarray([x, x]))[0].tolist(),
    "compiled grad": lambda f, x: bp.compile(bp.grad(f))(bp.asarray(x)).tolist(),
    "checkpoint": lambda f, x: bp.grad(bp.checkpoint(f))(bp.asarray(x)).tolist(),
}


def read(x):
    y = x * 2
    with bp.no_grad():
        v = y[1:]
    return (v * x[1:]).sum()


def written_unrecorded(x):
    y = x * 2
    with bp.no_grad():
        v = y[1:]
        v *= 10
    return y.sum()


def base_written_unrecorded(x):
    y = x * 2
    with bp.no_grad():
        v = y[1:]
    with bp.no_grad():
        y *= 3
    return (v * x[1:]).sum() + y.sum()


def base_written(x):
    y = x * 2
    with bp.no_grad():
        v = y[1:]
    y *= 3
    return (v * x[1:]).sum()


def view_of_a_constant_view(x):
    y = x * 2
    with bp.no_grad():
        v = y[1:]
    u = v[:1]
    return (u * x[:1]).sum() + y.sum()


@pytest.mark.parametrize("transform", ANSWERS)
@pytest.mark.parametrize("f, expected", [
    (read, [0, 4, 6]), (written_unrecorded, [2, 2, 2]), (base_written_unrecorded, [2, 14, 20]), (base_written, [0, 24, 36]),
    (view_of_a_constant_view, [6, 2, 2])
], ids=lambda f: getattr(f, "__name__", ""))  # fmt: skip
def test_what_is_not_recorded_is_a_constant(f, expected, transform):
    assert ANSWERS[transform](f, [1.0, 2.0, 3.0]) == expected


def test_a_saved_value_that_an_unrecorded_write_changes_is_refused():
    x = bp.asarray([1.0, 2.0, 3.0]).requires_grad_()
    y = x * 2
    total = (y * y).sum()
    with bp.no_grad():
        v = y[1:]
        v *= 10
    with pytest.raises(ValueError, match="saved was changed"):
        total.backward()


def test_a_leaf_is_not_written_through_such_a_view():
    before, after = bp.ones(3), bp.ones(3).requires_grad_()
    with bp.no_grad():
        first, second = before[1:], after[1:]
    before.requires_grad_()
    for view in (first, second):
        with pytest.raises(ValueError, match="view of a tensor that requires a gradient and is a leaf"):
            view *= 2
        with bp.no_grad():
            view *= 2
    assert before.tolist() == after.tolist() == [1, 2, 2]


def test_a_leaf_of_its_own_stays_one():
    flat = bp.zeros(4)
    with bp.no_grad():
        w = flat[1:3].requires_grad_()
    (w * 3).sum().backward()
    assert w.is_leaf and w.grad.tolist() == [3, 3]
    with pytest.raises(ValueError, match="a tensor that requires a gradient and is a leaf"):
        w += 1
