"""Compiled functions may ask for the types of tensors, and hand on functions that make text; text of tensors itself is refused."""

import pytest

import backplane as bp

DEFAULTS = {str: 2.0, float: 3.0}


def called(f, x):
    return f(x)


class Field:
    def __init__(self, kind, value):
        self.kind, self.value = kind, value


FINE = {
    "isinstance": lambda x: x if isinstance(x, str) else x * 2,
    "of a list": lambda x: x if isinstance([x], str) else x * 2,
    "of a dict": lambda x: x if isinstance({"a": x}, (str, bytes)) else x * 2,
    "one of many": lambda x: x * len([one for one in (str, repr, format) if callable(one)]),
    "issubclass": lambda x: x if issubclass(type(x), str) else x * 2,
    "an argument": lambda x: called(lambda y: y + 1, x) * len([called(type, str)]),
    "of a class": lambda x: Field(str, x).value * 2,
    "a key": lambda x: x * DEFAULTS[str],
    "numbers": lambda x: x * len("".join(map(str, [1, 2, 3]))),
}
REFUSED = {
    "str": lambda x: x * len(str(x)),
    "map": lambda x: x * len(list(map(str, [x]))),
    "called": lambda x: x * len(called(str, x)),
    "format": lambda x: x * len("{}".format(x)),
    "of a list": lambda x: x * len(repr([x])),
}


@pytest.mark.parametrize("name", FINE)
def test_what_makes_no_text_of_a_tensor(name):
    x = bp.asarray([1.0, 2.0])
    assert bp.compile(FINE[name])(x).tolist() == FINE[name](x).tolist()


@pytest.mark.parametrize("name", REFUSED)
def test_text_of_a_tensor_is_refused(name):
    with pytest.raises(bp.ArgumentValueError, match="makes text of a tensor"):
        bp.compile(REFUSED[name])(bp.ones(2))
