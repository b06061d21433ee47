"""An object in place of a tensor: every public function refuses it by its kind, never by an attribute that it lacks."""

import inspect

import backplane as bp
import backplane.nn.functional as F
import pytest

PLACES = {"dim": 0, "axis": 0, "axes": (0,), "shape": (2, 2), "dtype": bp.float32}
WRONG = ["text", slice(2), object(), True, (2, 1), [object()], {}]


def of_tensors(parameter):
    return "Tensor" in str(parameter.annotation) or "Operand" in str(parameter.annotation)


def public_functions():
    for module in (bp, bp.linalg, bp.fft, F):
        for name in dir(module):
            function = getattr(module, name)
            if name.startswith("_") or not callable(function) or inspect.isclass(function) or isinstance(function, bp.DType):
                continue
            if any(map(of_tensors, inspect.signature(function).parameters.values())):
                yield pytest.param(function, id=f"{module.__name__.rpartition('.')[2]}.{name}")


def right_value(parameter):
    if "Sequence[Tensor" in str(parameter.annotation):
        return [bp.ones((2, 2))] * 2
    return bp.ones((2, 2)) if of_tensors(parameter) else PLACES.get(parameter.name, 1)


def arguments(parameters, place, wrong):
    """A call with the wrong value in one place, and right ones where a value is needed."""
    by_position, by_name = [], {}
    for parameter in parameters:
        needed = parameter.default is parameter.empty
        if parameter is place:
            value = wrong
        elif not needed or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        else:
            value = right_value(parameter)
        if parameter.kind == parameter.KEYWORD_ONLY or by_name or not needed and parameter.kind != parameter.POSITIONAL_ONLY:
            by_name[parameter.name] = value
        else:
            by_position.append(value)
    return by_position, by_name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", list(public_functions()))
def test_a_wrong_value_is_no_missing_attribute(function):
    parameters = list(inspect.signature(function).parameters.values())
    for place in filter(of_tensors, parameters):
        for wrong in WRONG:
            by_position, by_name = arguments(parameters, place, wrong)
            try:
                function(*by_position, **by_name)
            except (bp.BackplaneError, TypeError):
                pass


def test_the_sweep_finds_the_functions():
    names = {parameter.id for parameter in public_functions()}
    assert len(names) > 300 and {"backplane.scatter", "linalg.lstsq", "fft.rfft", "functional.affine_grid"} <= names


X, V = bp.ones((3, 3)), bp.ones(2)


@pytest.mark.parametrize(
    ("call", "named"),
    [(lambda: bp.tensordot("mean", X, 2), "tensordot: argument x1: found str"), (lambda: bp.index_copy(X, -1, None, V), "index_copy: argument index: found NoneType"),
     (lambda: bp.index_copy(X, -1, bp.asarray([0]), "v"), "index_copy: argument source: found str"),
     (lambda: bp.scatter_add(X, 0, "left", V), "scatter_add: argument index: found str"), (lambda: bp.scatter(X, 0, ("a",), V), "scatter: argument index: found tuple"),
     (lambda: bp.average(slice(2)), "average: argument x: found slice"), (lambda: bp.average(X, 0, "w"), "average: argument weights: found str"),
     (lambda: bp.linalg.multi_dot(("a", "b")), "multi_dot: argument arrays: found str"),
     (lambda: bp.linalg.matrix_power(slice(None), 2), "matrix_power: argument x: found slice"), (lambda: bp.fft.fftn(slice(1)), "fftn: argument x: found slice"),
     (lambda: F.affine_grid(True, [0, 3, 5, 2]), "affine_grid: argument theta: found bool"), (lambda: bp.cov(X, fweights="w"), "cov: argument fweights: found str"),
     (lambda: bp.cov(X, slice(2)), "cov: argument y: found slice"), (lambda: bp.astype("x", bp.float32), "astype: argument x: found str"),
     (lambda: bp.gradient(X, "x"), "gradient: argument spacing: found 'x'")],
)  # fmt: skip
def test_the_argument_is_named(call, named):
    with pytest.raises(bp.ArgumentTypeError, match=named):
        call()


def test_lists_stand_for_tensors_where_ops_take_them():
    assert bp.fft.fft([1.0, 1.0]).tolist() == [2, 0] and bp.astype([1, 2], bp.float32).dtype is bp.float32
    assert bp.linalg.matrix_power([[2.0]], 2).tolist() == [[4.0]] and bp.linalg.multi_dot([[[2.0]], [[3.0]]]).tolist() == [[6.0]]
    assert [part.tolist() for part in bp.unstack([1, 2])] == [1, 2]


def test_a_chain_of_products_is_of_matrices():
    for arrays in ((2, 1), (X, bp.ones(3), X), (bp.ones((1, 3, 3)), X)):
        with pytest.raises(bp.ShapeError, match="multi_dot: argument arrays: found . dimensions"):
            bp.linalg.multi_dot(arrays)


def test_an_error_of_our_own_is_not_renamed():
    class Odd:
        def __index__(self):
            return self.missing

    with pytest.raises(AttributeError, match="missing"):
        bp.flatten(X, Odd())
