"""Containers: unflatten inverts flatten, leaves come in one order, and mismatches are named by their place."""

import collections
import dataclasses

import backplane as bp
import pytest
from hypothesis import given
from hypothesis import strategies as st

Point = collections.namedtuple("Point", "x y")

leaves = st.integers() | st.floats(allow_nan=False) | st.text(max_size=2)
trees = st.recursive(
    leaves | st.none(),
    lambda inner: st.lists(inner, max_size=3)
    | st.lists(inner, max_size=3).map(tuple)
    | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    | st.dictionaries(st.text(max_size=2), inner, max_size=3).map(collections.OrderedDict)
    | st.tuples(inner, inner).map(lambda pair: Point(*pair)),
    max_leaves=12,
)


@given(trees)
def test_unflatten_inverts_flatten(tree):
    found, structure = bp.tree.flatten(tree)
    again = bp.tree.unflatten(structure, found)
    assert again == tree and type(again) is type(tree)
    assert len(found) == structure.n_leaves
    assert bp.tree.structure(again) == structure
    assert bp.tree.leaves(tree) == found


@given(trees)
def test_map_of_the_identity_changes_nothing(tree):
    assert bp.tree.map(lambda leaf: leaf, tree) == tree
    assert bp.tree.map(lambda a, b: (a, b), tree, tree) == bp.tree.map(lambda a: (a, a), tree)


@given(trees, trees)
def test_structures_are_equal_exactly_when_they_hold_the_same_containers(a, b):
    marked_a, marked_b = (bp.tree.map(lambda leaf: 0, tree) for tree in (a, b))
    same_kinds = repr(marked_a) == repr(marked_b)
    if same_kinds:
        assert bp.tree.structure(a) == bp.tree.structure(b)
    if bp.tree.structure(a) == bp.tree.structure(b):
        assert marked_a == marked_b


def test_leaves_of_a_dict_come_by_sorted_keys_and_it_keeps_its_order():
    tree = {"b": 1, "a": 2}
    found, structure = bp.tree.flatten(tree)
    assert found == [2, 1]
    assert list(bp.tree.unflatten(structure, found)) == ["b", "a"]
    assert bp.tree.structure({"a": 0, "b": 0}) == structure
    ordered = collections.OrderedDict(b=1, a=2)
    assert bp.tree.leaves(ordered) == [1, 2]


def test_a_defaultdict_keeps_its_factory():
    tree = collections.defaultdict(list, b=1, a=2)
    again = bp.tree.map(lambda leaf: -leaf, tree)
    assert type(again) is collections.defaultdict and again["new"] == [] and again["a"] == -2


def test_none_is_a_container_of_nothing():
    assert bp.tree.leaves([None, 1, None]) == [1]
    assert bp.tree.map(lambda leaf: 0, [None, 1]) == [None, 0]


def test_the_named_results_of_an_op_are_a_container():
    results = bp.topk(bp.asarray([2.0, 0.0, 1.0]), 2)
    again = bp.tree.map(lambda leaf: leaf + 0, results)
    assert type(again) is type(results)
    assert again[1].tolist() == results[1].tolist()


def test_a_dataclass_and_a_subclass_of_a_list_are_leaves():
    @dataclasses.dataclass
    class Pair:
        a: int

    class Mine(list):
        pass

    for leaf in (Pair(1), Mine([1]), "text", {1, 2}, bp.zeros(2)):
        assert bp.tree.leaves([leaf])[0] is leaf


def test_is_leaf_stops_the_descent():
    assert bp.tree.leaves([(1, 2), [3]], is_leaf=lambda node: isinstance(node, tuple)) == [(1, 2), 3]
    with pytest.raises(ZeroDivisionError):
        bp.tree.leaves([1], is_leaf=lambda node: 1 / 0)


class Box:
    def __init__(self, content, label):
        self.content, self.label = content, label


bp.tree.register(Box, lambda box: ((box.content,), box.label), lambda label, children: Box(children[0], label))


def test_a_registered_class_is_a_container():
    doubled = bp.tree.map(lambda leaf: 2 * leaf, [Box({"a": 3}, "name")])
    assert doubled[0].content == {"a": 6} and doubled[0].label == "name"
    assert bp.tree.structure(Box(1, "a")) == bp.tree.structure(Box(2, "a"))
    assert bp.tree.structure(Box(1, "a")) != bp.tree.structure(Box(1, "b"))


def test_registering_twice_is_refused():
    for taken in (Box, dict, type(None), bp.Tensor):
        with pytest.raises(ValueError, match="registered already"):
            bp.tree.register(taken, lambda x: ((), None), lambda data, children: None)
    with pytest.raises(TypeError, match="argument type"):
        bp.tree.register(3, lambda x: ((), None), lambda data, children: None)
    with pytest.raises(TypeError, match="argument unflatten"):
        bp.tree.register(int, lambda x: ((), None), 3)


def test_a_mismatch_names_its_place():
    with pytest.raises(ValueError, match=r"argument 2\[0\]\['w'\]: found a list of 1, expected a tuple of 2"):
        bp.tree.map(lambda a, b: a, [{"w": (1, 2)}], [{"w": [1]}])
    with pytest.raises(ValueError, match=r"keys \('b',\), expected a dict with the keys \('a',\)"):
        bp.tree.map(lambda a, b: a, {"a": 1}, {"b": 1})
    with pytest.raises(ValueError, match=r"argument 2\.y: found .*int.*, expected a list of 1"):
        bp.tree.map(lambda a, b: a, Point(1, [2]), Point(1, 2))


def test_rest_may_have_more_below_a_leaf():
    assert bp.tree.map(lambda a, b: b, [0, 0], [(1, 2), {"a": 3}]) == [(1, 2), {"a": 3}]


def test_wrong_numbers_of_leaves_are_refused():
    structure = bp.tree.structure([1, 2])
    for wrong in ([], [1], [1, 2, 3]):
        with pytest.raises(ValueError, match="argument leaves"):
            bp.tree.unflatten(structure, wrong)


def test_keys_without_an_order_come_as_they_were_inserted():
    mixed = {"b": 1.0, 0: 2.0, "a": 3.0}
    assert bp.tree.leaves(mixed) == [1.0, 2.0, 3.0]
    assert list(bp.tree.map(lambda x: x * 2, mixed).items()) == [("b", 2.0), (0, 4.0), ("a", 6.0)]
    assert bp.tree.structure(mixed) == bp.tree.structure({"b": 4, 0: 5, "a": 6}) != bp.tree.structure({0: 5, "b": 4, "a": 6})
    product = lambda d: (d["a"] * d[0]).sum()
    gradient = bp.grad(product)({0: bp.ones(2) * 3, "a": bp.ones(2) * 2})
    assert gradient[0].tolist() == [2.0, 2.0] and gradient["a"].tolist() == [3.0, 3.0]
    assert bp.compile(product)({"a": bp.ones(2) * 2, 0: bp.ones(2) * 3}).item() == 12.0


def test_a_container_inside_itself_ends():
    endless = []
    endless.append(endless)
    with pytest.raises(RecursionError):
        bp.tree.leaves(endless)


def test_a_structure_prints_its_containers():
    assert repr(bp.tree.structure({"a": (1, [2]), "b": None})) == "Structure({'a': (*, [*]), 'b': None})"
