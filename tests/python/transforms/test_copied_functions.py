"""Copies and pickles of transformed functions copy the functions behind them."""

import copy
import pickle

import backplane as bp
import pytest


@bp.compile
def doubled(x):
    return x * 2


@bp.grad
def slope(x):
    return (x**3).sum()


class Model:
    def __init__(self):
        self.weight = bp.ones((3,))
        self.forward = bp.compile(self.product)
        self.gradient = bp.grad(self.loss)

    def product(self, x):
        return x * self.weight

    def loss(self, x):
        return self.product(x).sum()


@pytest.mark.parametrize("function", [doubled, slope, bp.vmap(doubled), bp.make_graph(doubled)])
def test_a_function_copies_to_itself(function):
    assert copy.copy(function) is function
    assert copy.deepcopy(function) is function


@pytest.mark.parametrize("function", [doubled, slope])
def test_a_decorated_function_is_pickled_by_its_name(function):
    assert pickle.loads(pickle.dumps(function)) is function


def test_what_no_name_leads_to_is_no_pickle():
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(bp.compile(slope))


def test_a_method_is_the_copied_objects():
    x, model = bp.asarray([1.0, 2.0, 3.0]), Model()
    model.forward.note = "kept"
    assert model.forward(x).tolist() == [1.0, 2.0, 3.0]
    averaged = copy.deepcopy(model)
    averaged.weight *= 10
    assert averaged.forward(x).tolist() == [10.0, 20.0, 30.0] and averaged.gradient(x).tolist() == [10.0] * 3
    assert model.forward(x).tolist() == [1.0, 2.0, 3.0] and model.gradient(x).tolist() == [1.0] * 3
    assert averaged.forward.note == "kept" and averaged.forward is not model.forward
