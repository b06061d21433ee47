"""x[i] = y and x[i] += y inside transforms: the same as the functional form."""

import backplane as bp
import numpy as np
import pytest

X = bp.asarray([1.0, 2.0, 3.0])


def assigned(x, y):
    z = bp.zeros(3) + x
    z[1] = y
    return z


def added(x, y):
    z = bp.copy(x)
    z[0:2] += y * y
    return z


def chained(x, y):
    z = bp.copy(x)
    z *= 2
    part = z[1:]
    part *= y
    z += part.sum()
    return z


JACOBIANS = {
    assigned: ([[1, 0, 0], [0, 0, 0], [0, 0, 1]], [0, 1, 0]),
    added: (np.eye(3), [8, 8, 0]),
    chained: ([[2, 8, 8], [0, 16, 8], [0, 8, 16]], [10, 14, 16]),
}


@pytest.mark.parametrize("jacobian", [bp.jacrev, bp.jacfwd])
@pytest.mark.parametrize("function", list(JACOBIANS))
def test_mutation_is_differentiated(function, jacobian):
    by_x, by_y = jacobian(function, (0, 1))(X, 4.0)
    assert np.asarray(by_x) == pytest.approx(np.asarray(JACOBIANS[function][0]))
    assert np.asarray(by_y) == pytest.approx(np.asarray(JACOBIANS[function][1]))


@pytest.mark.parametrize("function", list(JACOBIANS))
def test_mutation_under_vmap_is_a_loop(function):
    xs, ys = bp.asarray(np.arange(6.0, dtype=np.float32).reshape(2, 3)), bp.asarray([4.0, 5.0])
    found = bp.vmap(function)(xs, ys)
    assert np.asarray(found).tolist() == [function(x, y).tolist() for x, y in zip(xs, ys)]
    found = bp.vmap(function, (None, 0))(xs[0], ys)
    assert np.asarray(found).tolist() == [function(xs[0], y).tolist() for y in ys]


@pytest.mark.parametrize("function", list(JACOBIANS))
def test_mutation_under_both(function):
    ys = bp.asarray([4.0, 5.0])
    found = bp.vmap(bp.grad(lambda y: function(X, y).sum()))(ys)
    assert found.tolist() == [bp.grad(lambda y: function(X, y).sum())(y).item() for y in ys]


def test_an_input_changed_inside_keeps_its_value_outside():
    x = bp.asarray([1.0, 2.0])

    def f(x):
        x[0] = 5.0
        x *= 3
        return x.sum()

    assert bp.grad(f)(x).tolist() == [0.0, 3.0]
    assert bp.jvp(f, (x,), (x,))[1].item() == 6
    assert bp.vmap(f)(x[None] * 1).tolist() == [21.0]
    assert x.tolist() == [1.0, 2.0]


def test_captured_tensors_refuse_batched_values():
    captured = bp.zeros(3)

    def f(x):
        captured[0] = x
        return x

    with pytest.raises(bp.BackplaneError):
        bp.vmap(f)(X)
    assert captured.tolist() == [0.0, 0.0, 0.0]


def test_tensors_made_inside_take_batched_values():
    def f(x):
        z = bp.zeros(2)
        z[1] = x
        return z

    assert bp.vmap(f)(X).tolist() == [[0, 1], [0, 2], [0, 3]]


def test_index_arrays_are_written_through():
    def f(x):
        z = x * 1
        z[bp.asarray([0, 2])] = z[1] * bp.ones(2)
        return z

    assert np.asarray(bp.jacrev(f)(X)).tolist() == [[0, 1, 0], [0, 1, 0], [0, 1, 0]]
    assert np.asarray(bp.jacfwd(f)(X)).tolist() == [[0, 1, 0], [0, 1, 0], [0, 1, 0]]


@pytest.mark.parametrize("transform", ["grad", "jvp", "vmap"])
def test_out_is_refused(transform):
    out = bp.zeros(())

    def f(x):
        return bp.add(x, x, out=out)

    call = {"grad": lambda: bp.grad(f)(1.0), "jvp": lambda: bp.jvp(f, (1.0,), (1.0,)), "vmap": lambda: bp.vmap(f)(X)}
    with pytest.raises(bp.BackplaneError, match="out"):
        call[transform]()


class Program:
    """Random in-place changes of a vector and of views of it, as linear maps of what the vector held at first."""

    def __init__(self, seed, steps):
        self.random, self.steps = np.random.default_rng(seed), []
        places = [np.arange(8)]  # per tensor: which elements of the base it shows
        for _ in range(steps):
            kind = self.random.choice(["view", "view", "scale", "add"])
            of = int(self.random.integers(len(places)))
            if kind == "view":
                cut = slice(*sorted(self.random.integers(0, len(places[of]) + 1, 2)), int(self.random.integers(1, 3)))
                if len(places[of][cut]):
                    places.append(places[of][cut])
                    self.steps.append(("view", of, cut))
            elif kind == "scale":
                self.steps.append(("scale", of, float(self.random.integers(2, 5))))
            else:
                other = int(self.random.integers(len(places)))
                self.steps.append(("add", of, other))
        self.places, self.read = places, int(self.random.integers(len(places)))

    def gradient(self):
        """Of the sum over the tensor that is read at the end."""
        map_, seen = np.eye(8), 1
        for kind, of, what in self.steps:
            if kind == "view":
                seen += 1
            elif kind == "scale":
                map_[self.places[of]] *= what
            else:
                map_[self.places[of]] += map_[self.places[what]].sum(0)
        return map_[self.places[self.read]].sum(0)

    def run(self, base):
        tensors = [base]
        for kind, of, what in self.steps:
            if kind == "view":
                tensors.append(tensors[of][what])
            elif kind == "scale":
                tensors[of] *= what
            else:
                tensors[of] += tensors[what].sum()
        return tensors[self.read].sum()


@pytest.mark.parametrize("seed", range(60))
def test_any_order_of_changes_to_a_base_and_its_views_is_differentiated(seed):
    program = Program(seed, 12)
    leaf = bp.ones(8, dtype=bp.float64).requires_grad_()
    program.run(leaf * 1).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), program.gradient())
    np.testing.assert_allclose(bp.grad(lambda x: program.run(x * 1))(leaf.detach()).numpy(), program.gradient())
    np.testing.assert_allclose(bp.jacfwd(lambda x: program.run(x * 1))(leaf.detach()).numpy(), program.gradient())
