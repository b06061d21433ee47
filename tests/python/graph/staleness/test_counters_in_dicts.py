"""Numbers that a compiled function counts in a dict, by methods of dict: followed after two traces, as with d[k] += 1."""

import pytest

import backplane as bp


def by_get(d, x):
    d["n"] = d.get("n", 0) + 1
    return x * d["n"]


def by_setdefault(d, x):
    d.setdefault("n", 0)
    d["n"] += 1
    return x * d["n"]


def by_result_of_setdefault(d, x):
    n = d.setdefault("n", 0) + 1
    d["n"] = n
    return x * n


def by_update_of_words(d, x):
    d.update(n=d.get("n", 0) + 1)
    return x * d["n"]


def by_update_of_a_dict(d, x):
    d.update({"n": d.get("n", 0) + 1, "m": 5})
    return x * d["n"] + d["m"]


def by_update_of_both(d, x):
    d.update({"n": 100, "k": "text"}, n=d.get("n", 0) + 1)
    return x * d["n"]


def by_getitem(d, x):
    d["n"] = (d.__getitem__("n") if "n" in d else 0) + 1
    return x * d["n"]


def by_a_look_first(d, x):
    if "n" in d:
        d["n"] += 1
    else:
        d["n"] = 1
    return x * d["n"]


def of_floats(d, x):
    d["n"] = d.get("n", 0.5) * 2.0
    return x * d["n"]


def of_two(d, x):
    d["n"], d["m"] = d.get("n", 0) + 1, d.get("m", 0) + 2
    return x * d["n"] - d.get("m")


def of_a_default_that_counts(d, x):
    d["m"] = d.get("m", 0) + 1
    d["n"] = d.get("absent", d["m"])
    return x * d["n"]


def unpacked(d, x):
    d["n"] = d.get(*("n", 0)) + 1
    return x * d["n"]


COUNTERS = [by_get, by_setdefault, by_result_of_setdefault, by_update_of_words, by_update_of_a_dict, by_update_of_both, by_getitem, by_a_look_first, of_floats, of_two,
            of_a_default_that_counts, unpacked]  # fmt: skip


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("function", COUNTERS)
def test_a_counter_is_followed(function, between):
    """between: the program changes the number, too."""
    plain, held, runs = {}, {}, []

    def counted(x):
        bp.unguarded(runs.append, None)
        return function(held, x)

    compiled = bp.compile(counted)
    x = bp.asarray([1.0, 2.0])
    for i in range(12):
        assert compiled(x).tolist() == function(plain, x).tolist() and held == plain, i
        assert {key: type(value) for key, value in held.items()} == {key: type(value) for key, value in plain.items()}
        if between and i % 4 == 1:
            held["n"] = plain["n"] = plain["n"] + 10
    assert len(runs) <= 3, bp.compile_log()[-12:]


@pytest.mark.parametrize("change", [lambda d: d.pop("n"), lambda d: d.clear(), lambda d: d.update(n="text"), lambda d: d.update(n=True)])
def test_another_kind_of_value_is_seen(change):
    plain, held = {"m": 1}, {"m": 1}

    def f(d, x):
        n = d.get("n", 0)
        d["n"] = n + 1 if isinstance(n, int) and not isinstance(n, bool) else 50
        return x * d["n"]

    compiled = bp.compile(lambda x: f(held, x))
    for i in range(8):
        assert compiled(bp.ones(1)).item() == f(plain, bp.ones(1)).item() and held == plain
        if i == 4:
            change(plain), change(held)


def test_a_present_key_is_no_value():
    """`in` gives True, which is equal to the number 1."""
    plain, held = {"n": 1}, {"n": 1}

    def f(d, x):
        found = d.__contains__("n")
        d["n"] = d["n"] + 1
        return x * 2 if found is True else x

    compiled = bp.compile(lambda x: f(held, x))
    for _ in range(5):
        assert compiled(bp.ones(1)).item() == f(plain, bp.ones(1)).item() and held == plain


def test_tensors_that_update_stores():
    held = {}

    def f(x):
        held.update(made=bp.asarray([1.0, 2.0]), x=held.get("x", 0))
        return x

    compiled = bp.compile(f)
    seen = []
    for _ in range(3):
        compiled(bp.ones(1))
        held["made"] += 1
        seen.append(held["made"])
    assert len({id(t) for t in seen}) == 3 and all(t.tolist() == [2.0, 3.0] for t in seen)
    with pytest.raises(bp.ArgumentValueError, match=r"held\['y'\]"):
        bp.compile(lambda x: held.update(y=x * 2))(bp.ones(1))
    assert "y" not in held
