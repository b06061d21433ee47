"""Errors as users read them: the exception's type, and a text that names the op, the argument, the value found and the value expected."""

import backplane as bp
import pytest

CASES = [
    (lambda x: bp.add(x, "a"), TypeError, ["add", "'y'", "str 'a'", "Tensor"]),
    (lambda x: bp.add(x, ["1"]), TypeError, ["add", "'y'", "list", "asarray"]),
    (lambda x: bp.add(x), TypeError, ["add", "missing", "'y'"]),
    (lambda x: bp.add(x, x, x), TypeError, ["add", "3 arguments", "at most 2"]),
    (lambda x: bp.add(x, x, z=x), TypeError, ["add", "'z'", "x, y"]),
    (lambda x: bp.add(x, x, x=x), TypeError, ["add", "'x'", "twice"]),
    (lambda x: bp.sum(x, axis="0"), TypeError, ["sum", "'axis'", "str '0'", "axes"]),
    (lambda x: bp.sum(x, axis=True), TypeError, ["sum", "'axis'", "bool"]),
    (lambda x: bp.sum(x, axis=5), IndexError, ["sum", "5", "2"]),
    (lambda x: bp.sum(x, keepdims=1), TypeError, ["sum", "'keepdims'", "int", "bool"]),
    (lambda x: bp.sum(x, dtype="f3"), TypeError, ["dtype", "'f3'", "float32"]),
    (lambda x: bp.uniform((2,), high=x), TypeError, ["uniform", "'high'", "Tensor", "item()"]),
    (lambda x: bp.full((2, 0.5), 1), TypeError, ["full", "'shape'", "(2, 0.5)", "ints"]),
    (lambda x: bp.reshape(x, (4, 4)), ValueError, ["reshape", "(4, 4)", "6"]),
    (lambda x: bp.add(x, bp.zeros(4)), ValueError, ["add", "(4,)", "(2, 3)"]),
    (lambda x: bp.matmul(x, x), ValueError, ["matmul", "3", "2"]),
    (lambda x: bp.bitwise_and(x, x), TypeError, ["bitwise_and", "'x'", "float32", "int64"]),
    (lambda x: bp.add(x, x, out=3), TypeError, ["add", "'out'", "int", "Tensor"]),
    (lambda x: bp.add(x, x, out=bp.zeros(3)), ValueError, ["add", "(3,)", "(2, 3)"]),
    (lambda x: bp.zeros(2, device="nowhere"), ValueError, ["nowhere", "cpu"]),
    (lambda x: bp.zeros(2, device=3), TypeError, ["zeros", "'device'", "int"]),
    (lambda x: bp.concat(x), TypeError, ["concat", "'arrays'", "Tensor", "sequence"]),
    (lambda x: bp.concat([x, 1]), TypeError, ["concat", "'arrays'", "sequence of Tensors"]),
    (lambda x: bp.uniform((2,), generator=4), TypeError, ["uniform", "'generator'", "int", "Generator"]),
    (lambda x: bp.Tensor(), TypeError, ["asarray"]),
    (lambda x: bp.nothing, AttributeError, ["backplane", "nothing"]),
    (lambda x: bp.ops.elsewhere, AttributeError, ["elsewhere", "plugin"]),
    (lambda x: bp.explain("nothing"), ValueError, ["bp::nothing"]),
    (lambda x: bp.load_plugin("/nowhere/x.so"), ValueError, ["/nowhere/x.so"]),
    (lambda x: x.backward(), ValueError, ["backward"]),
    (lambda x: bp.add(x, 2**70), ValueError, ["64 bits"]),
]


@pytest.mark.parametrize("call, error, words", CASES)
def test_says_what_and_where(call, error, words):
    with pytest.raises(error) as caught:
        call(bp.ones((2, 3)))
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert len(text.splitlines()) <= 10


@pytest.mark.parametrize(
    "name, builtin",
    [
        ("ShapeError", ValueError),
        ("DtypeError", TypeError),
        ("ArgumentValueError", ValueError),
        ("ArgumentTypeError", TypeError),
        ("OutOfRangeError", IndexError),
        ("IndexDataError", IndexError),
        ("IndexDataError", ValueError),
        ("NumberRangeError", OverflowError),
        ("NumberRangeError", ValueError),
        ("MissingRuleError", NotImplementedError),
        ("OutOfMemoryError", MemoryError),
        ("DeviceError", RuntimeError),
        ("DeviceLostError", RuntimeError),
        ("DataError", ValueError),
        ("VersionError", ImportError),
        ("BusyError", RuntimeError),
        ("InternalError", RuntimeError),
    ],
)
def test_every_error_is_ours_and_python_s(name, builtin):
    error = getattr(bp, name)
    assert issubclass(error, bp.BackplaneError) and issubclass(error, builtin)
    assert error.__module__ == "backplane"
    with pytest.raises(builtin):
        raise error("text")


def test_a_failed_call_leaves_no_trace():
    x = bp.ones(2)
    for _ in range(3):
        with pytest.raises(ValueError):
            x + bp.ones(3)
        assert (x + x).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("arange", lambda: bp.arange(3, 2, bp.zeros((0, 1)))),
        ("full", lambda: bp.full([127], bp.zeros(0))),
        ("cumsum", lambda: bp.cumsum(7)),
        ("cumprod", lambda: bp.cumprod(iter([1]))),
    ],
)
def test_an_error_of_a_further_spellings_step_names_the_op(name, call):
    with pytest.raises(bp.BackplaneError, match=rf"\b{name}\b"):
        call()
