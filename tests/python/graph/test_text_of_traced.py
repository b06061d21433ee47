"""In a compiled function the text of a tensor is refused, since it is not that of its values; print shows what there is."""

import logging
import pprint

import backplane as bp
import pytest

WAYS = {
    "repr": repr,
    "str": str,
    "format": format,
    "ascii": ascii,
    "f-string": lambda x: f"{x}",
    "f-string with a conversion": lambda x: f"{x!r:>30}",
    "percent": lambda x: "%s" % x,
    "percent of a tuple": lambda x: "%s %s" % (1, x),
    "str.format": lambda x: "{}".format(x),
    "format_map": lambda x: "{x}".format_map({"x": x}),
    "method": lambda x: x.__repr__(),
    "in a list": lambda x: str([x]),
    "in a dict": lambda x: f"{ {'x': x} }",
    "pformat": pprint.pformat,
    "map": lambda x: " ".join(map(str, [x])),
}


@pytest.mark.parametrize("way", WAYS)
def test_text_is_refused_with_its_line(way):
    f = bp.compile(lambda x: x * ("8" in WAYS[way](x * 2)))
    with pytest.raises(bp.ArgumentValueError, match=r"makes text of a tensor.*:\d+"):
        f(bp.asarray([4.0]))


def test_print_and_logs_are_allowed(capsys):
    def shown(x):
        print("x:", x)
        logging.getLogger(__name__).info("x: %s", x)
        return x * 2

    assert bp.compile(shown)(bp.ones(2)).tolist() == [2.0, 2.0]
    assert "traced" in capsys.readouterr().out


def test_text_of_a_tensor_from_outside_is_refused():
    w = bp.asarray([8.0])
    with pytest.raises(bp.ArgumentValueError, match="makes text of a tensor"):
        bp.compile(lambda x: x * ("8" in str(w)))(bp.ones(1))


def test_text_of_an_object_that_holds_a_tensor_is_its_own():
    class Layer:
        def __init__(self):
            self.weight = bp.ones(2)

        def __repr__(self):
            return "Layer"

    layer = Layer()
    assert bp.compile(lambda x: x * len(f"{layer} {[layer]}"))(bp.ones(1)).tolist() == [13.0]
