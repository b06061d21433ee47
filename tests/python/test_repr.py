"""Text for people."""

import threading

import backplane as bp
import numpy as np
import pytest


@pytest.mark.parametrize(
    "values, text",
    [
        (1.5, "tensor(1.5)"),
        ([1, 2], "tensor([1, 2])"),
        ([1.0, 2.0], "tensor([1., 2.])"),
        ([True, False], "tensor([ True, False])"),
        ([[1.0, -2.25], [10.0, 0.5]], "tensor([[ 1.00, -2.25],\n        [10.00,  0.50]])"),
        ([float("nan"), float("inf"), 1.0], "tensor([nan, inf,  1.])"),
        ([1e-10, 1.0], "tensor([1.0000e-10, 1.0000e+00])"),
        ([], "tensor([])"),
        ([[], []], "tensor([], shape=(2, 0))"),
        ([1 + 2j], "tensor([1.+2.j], dtype=complex64)"),
    ],
)
def test_small(values, text):
    assert repr(bp.asarray(values)) == text


def test_dtype_device_and_history():
    assert repr(bp.asarray([1], dtype=bp.int8)) == "tensor([1], dtype=int8)"
    x = bp.asarray([1.0]).requires_grad_()
    assert repr(x) == "tensor([1.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2.], grad_op=bp::multiply)"


def test_long_axes_are_cut():
    text = repr(bp.asarray(np.arange(2000)))
    assert text == "tensor([   0,    1,    2, ..., 1997, 1998, 1999])"
    square = repr(bp.zeros((100, 100)))
    assert square.count("...") == 7 and len(square.splitlines()) == 7
    assert max(map(len, repr(bp.asarray(np.arange(900) / 7)).splitlines())) <= 81


def test_format():
    assert f"{bp.asarray(1.25):.1f}" == "1.2"
    assert f"{bp.asarray([1])}" == "tensor([1])"
    assert str(bp.asarray([1])) == repr(bp.asarray([1]))


def test_tolist_and_item():
    assert bp.asarray([[1, 2], [3, 4]]).T.tolist() == [[1, 3], [2, 4]]
    assert bp.asarray(5).tolist() == 5 and bp.zeros((2, 0)).tolist() == [[], []]
    assert bp.asarray([[2.5]]).item() == 2.5
    assert bp.asarray([1.5], dtype=bp.float16).item() == 1.5
    assert bp.asarray([-0.15625], dtype=bp.bfloat16).item() == -0.15625
    with pytest.raises(ValueError, match=r"item: found a tensor of shape \(2,\)"):
        bp.asarray([1, 2]).item()


@pytest.mark.parametrize("bits", [0x0000, 0x0001, 0x03FF, 0x0400, 0x3C00, 0x7BFF, 0x7C00, 0x8001, 0xFBFF, 0xFC00])
def test_every_kind_of_half_reads_as_numpy_reads_it(bits):
    half = np.array([bits], dtype=np.uint16).view(np.float16)
    assert bp.asarray(half).item() == half.item()


def test_options_of_printing():
    before = bp.get_printoptions()
    try:
        bp.set_printoptions(precision=2)
        assert repr(bp.asarray([1.23456, 2.0])) == "tensor([1.23, 2.00])"
        bp.set_printoptions(precision=3, sci_mode=True)
        assert repr(bp.asarray([1.5])) == "tensor([1.500e+00])"
        bp.set_printoptions(suppress=True)
        assert repr(bp.asarray([1e-6, 1.0])) == "tensor([0., 1.])"
        bp.set_printoptions(suppress=False, threshold=5, edgeitems=1)
        assert repr(bp.arange(6)) == "tensor([0, ..., 5])"
        bp.set_printoptions(linewidth=20, threshold=1000)
        assert all(len(line) <= 21 for line in repr(bp.arange(30)).splitlines())
        assert bp.get_printoptions()["linewidth"] == 20
        bp.set_printoptions(precision=1074)
        assert float(repr(bp.asarray(5e-324, dtype=bp.float64)).split(",")[0][len("tensor("):]) == 5e-324
        bp.set_printoptions(threshold=float("inf"), linewidth=float("inf"))
        assert repr(bp.arange(2000)).count(",") == 1999 and "\n" not in repr(bp.arange(2000))
        bp.set_printoptions(profile="short")
        assert repr(bp.asarray([1.23456])) == "tensor([1.23])"
        for bad in ({"precision": -1}, {"precision": 2**31 - 1}, {"threshold": 1.5}, {"edgeitems": "3"}):
            with pytest.raises(ValueError, match="set_printoptions: argument"):
                bp.set_printoptions(**bad)
    finally:
        bp.set_printoptions(**{**before, "sci_mode": False, "suppress": False})
    assert bp.get_printoptions() == before


def test_options_of_a_block():
    before = bp.get_printoptions()
    with bp.printoptions(precision=2) as options:
        assert repr(bp.asarray([1.23456])) == "tensor([1.23])" and options["precision"] == 2
        with bp.printoptions(profile="full", sci_mode=True):
            assert repr(bp.asarray([1.5])) == "tensor([1.5000e+00])"
    assert bp.get_printoptions() == before
    with pytest.raises(ValueError, match="set_printoptions: argument profile: found 'long', expected one of default, short, full"):
        with bp.printoptions(profile="long"):
            pass
    assert bp.get_printoptions() == before


def test_a_tensor_of_one_number_is_formatted_as_the_number():
    x = bp.asarray(0.5)
    assert f"{x}" == "0.5" and f"{x:.2f}" == "0.50" and f"{bp.asarray([0.5])}" == "tensor([0.5])"
    assert f"{x.requires_grad_()}" == "0.5" and repr(bp.asarray(3)) == "tensor(3)"
    assert bp.grad(lambda y: (f"{y}", y * 2)[1])(1.0).item() == 2
    with pytest.raises(bp.ArgumentValueError, match="text of a tensor"):
        bp.compile(lambda y: (f"{y}", y * 2)[1])(bp.asarray(1.0))


def test_options_of_a_block_are_those_of_its_thread():
    entered, left = threading.Event(), threading.Event()
    found = []

    def first():
        with bp.printoptions(precision=2):
            entered.set()
            second_entered.wait()
        left.set()

    def second():
        entered.wait()
        with bp.printoptions(precision=3):
            second_entered.set()
            left.wait()
            found.append(repr(bp.asarray([1 / 3])))

    second_entered = threading.Event()
    threads = [threading.Thread(target=work) for work in (first, second)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert found == ["tensor([0.333])"] and repr(bp.asarray([1 / 3])) == "tensor([0.3333])"


def test_options_set_in_a_block_end_with_it():
    block = bp.printoptions(precision=2)
    with block, block:
        bp.set_printoptions(precision=1)
        assert repr(bp.asarray([1 / 3])) == "tensor([0.3])"
    assert repr(bp.asarray([1 / 3])) == "tensor([0.3333])" and bp.get_printoptions()["precision"] == 4
