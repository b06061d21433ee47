"""Dtypes, and promotion as the Python array API standard's table has it."""

import copy
import itertools
import pickle

import backplane as bp
import numpy as np
import pytest

SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
FLOATING = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
ALL = ["bool", *SIGNED, *UNSIGNED, "float16", "bfloat16", *FLOATING, *COMPLEX]


def standard(a, b):
    """The table of the standard; None where it leaves the pair undefined."""
    if a == b:
        return a
    for kind in (SIGNED, UNSIGNED, FLOATING, COMPLEX):
        if a in kind and b in kind:
            return max(a, b, key=kind.index)
    if {a, b} & set(SIGNED) and {a, b} & set(UNSIGNED):
        signed, unsigned = sorted((a, b), key=UNSIGNED.__contains__)
        wider = UNSIGNED.index(unsigned) + 1
        return SIGNED[max(wider, SIGNED.index(signed))] if wider < 4 else None
    if {a, b} & set(FLOATING) and {a, b} & set(COMPLEX):
        return "complex128" if "float64" in (a, b) or "complex128" in (a, b) else "complex64"
    return None


@pytest.mark.parametrize("a, b", list(itertools.product(["bool", *SIGNED, *UNSIGNED, *FLOATING, *COMPLEX], repeat=2)))
def test_promotion_is_the_standards(a, b):
    expected = standard(a, b)
    if expected is None:
        return
    left, right = getattr(bp, a), getattr(bp, b)
    assert bp.result_type(left, right).name == expected
    assert bp.where(bp.asarray(True), bp.zeros(1, dtype=left), bp.zeros(1, dtype=right)).dtype.name == expected


@pytest.mark.parametrize("a, b", list(itertools.product(ALL, repeat=2)))
def test_promotion_commutes(a, b):
    left, right = getattr(bp, a), getattr(bp, b)
    try:
        expected = bp.result_type(left, right)
    except bp.DtypeError:
        with pytest.raises(bp.DtypeError):
            bp.result_type(right, left)
    else:
        assert bp.result_type(right, left) is expected


@pytest.mark.parametrize(
    "a, b, expected",
    [
        ("int64", "float16", "float16"),
        ("bool", "float32", "float32"),
        ("float16", "bfloat16", "float32"),
        ("bfloat16", "float32", "float32"),
        ("bool", "int8", "int8"),
    ],
)
def test_promotion_where_the_standard_is_silent(a, b, expected):
    assert bp.result_type(getattr(bp, a), getattr(bp, b)).name == expected


def test_uint64_with_signed_is_an_error():
    with pytest.raises(bp.DtypeError, match="uint64"):
        bp.result_type(bp.uint64, bp.int8)


@pytest.mark.parametrize("name", ALL)
def test_a_dtype_is_one_object(name):
    dtype = getattr(bp, name)
    assert dtype.name == name
    assert copy.deepcopy(dtype) is dtype and pickle.loads(pickle.dumps(dtype)) is dtype
    assert repr(dtype) == f"backplane.{name}"
    assert bp.zeros(2, dtype=name).dtype is dtype
    assert bp.zeros(2, dtype=dtype).itemsize == dtype.itemsize


def test_what_stands_for_a_dtype():
    for given, expected in [(bool, "bool"), (int, "int64"), (float, "float32"), (complex, "complex64"),
                            (np.float64, "float64"), (np.dtype("int16"), "int16"), (np.bool_, "bool")]:
        assert bp.zeros(1, dtype=given).dtype.name == expected


CODES = [(order + code, np.dtype(code).name) for code in ["?", "b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
         for order in ["", "=", "|" if np.dtype(code).itemsize == 1 else "<"]]  # fmt: skip


@pytest.mark.parametrize("code, expected", CODES + [("bool", "bool"), ("int", "int64"), ("float", "float32"), ("complex", "complex64")])
def test_a_dtype_is_taken_by_its_code_and_by_python_s_word(code, expected):
    dtype = getattr(bp, expected)
    assert bp.zeros(2, dtype=code).dtype is bp.asarray([0], dtype=code).dtype is bp.empty(2, dtype=code).dtype is dtype
    assert bp.astype(bp.ones(2), code).dtype is bp.ones(2).astype(code).dtype is bp.ones(2).to(dtype=code).dtype is dtype
    assert dtype == code and bp.result_type(code) is bp.promote_types(code, dtype) is dtype and bp.can_cast(code, dtype)


def test_numpys_dtypes_and_types_are_taken_where_a_dtype_is():
    assert bp.result_type(np.int8, np.dtype("f4"), 1.0) is bp.float32 and bp.can_cast(np.int8, np.int16) and not bp.can_cast("f8", "f4")
    assert bp.finfo("f4").bits == bp.finfo(np.dtype("f4")).bits == 32 and bp.iinfo(np.uint8).max == bp.iinfo("u1").max == 255


@pytest.mark.parametrize("swapped", [">f4", ">i8", ">c16", np.dtype(">f4")], ids=str)
def test_another_order_of_bytes_is_refused(swapped):
    name = np.dtype(swapped).name
    for call in (lambda: bp.zeros(2, dtype=swapped), lambda: bp.ones(2).astype(swapped), lambda: bp.result_type(swapped), lambda: bp.empty(2, dtype=swapped)):
        with pytest.raises(bp.DtypeError, match=f"found {name} in the other byte order, expected this machine's byte order. Fix: use '{name}'"):
            call()
    assert getattr(bp, name) != swapped and bp.zeros(1, dtype=">u1").dtype is bp.uint8


@pytest.mark.parametrize("text", ["", "<", "f3", "<<f4", "f4 ", "Float", "q8", "longdouble", "S3"])
def test_a_text_that_names_no_dtype_is_refused_with_its_words(text):
    for call in (lambda: bp.zeros(2, dtype=text), lambda: bp.can_cast(text, "f4"), lambda: bp.finfo(text), lambda: bp.empty(2, dtype=text)):
        with pytest.raises(bp.DtypeError, match=f"found '{text}', expected a name such as 'float32'"):
            call()


def test_questions_about_dtypes():
    assert bp.isdtype(bp.float32, "real floating") and not bp.isdtype(bp.int8, "real floating")
    assert bp.isdtype(bp.int8, ("bool", "integral")) and bp.isdtype(bp.int8, bp.int8)
    assert bp.can_cast(bp.int8, bp.int16) and not bp.can_cast(bp.float32, bp.int32)
    for name in ("float16", "float32", "float64"):
        ours, numpys = bp.finfo(getattr(bp, name)), np.finfo(name)
        assert (ours.bits, ours.eps, ours.max) == (numpys.bits, float(numpys.eps), float(numpys.max))
        assert ours.smallest_normal == float(numpys.smallest_normal)
    for name in SIGNED + UNSIGNED:
        ours, numpys = bp.iinfo(getattr(bp, name)), np.iinfo(name)
        assert (ours.bits, ours.min, ours.max) == (numpys.bits, numpys.min, numpys.max)
    with pytest.raises(TypeError):
        bp.finfo(bp.int8)


@pytest.mark.parametrize("name", ALL)
def test_casts_round_trip_small_integers(name):
    x = bp.asarray([0, 1, 1, 0]).astype(getattr(bp, name))
    assert x.dtype.name == name
    assert x.astype(bp.int64).tolist() == [0, 1, 1, 0]


def test_astype_copies_only_where_it_must():
    x = bp.asarray([1.0])
    assert x.astype(bp.float32, copy=False) is x
    assert x.to(bp.float32) is x
    copied = x.astype(bp.float32)
    copied += 1
    assert x.item() == 1.0


def test_a_number_that_does_not_promote_keeps_its_kind():
    """A mask or an index beside float data: not a float of the data's dtype."""
    for dtype in (bp.float64, bp.bfloat16, bp.complex64, bp.int8):
        x = bp.asarray([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]).astype(dtype)
        assert bp.ops.bp.masked_select(x, True).shape == (1, 2, 3)
        assert bp.ops.bp.masked_select(x, False).shape == (0, 2, 3)


def test_a_composite_that_hands_a_number_on_gives_a_tensor():
    assert bp.ops.bp.pad_edges(1.5, [], []).numpy() == 1.5


@pytest.mark.parametrize("name", sorted(bp.DTYPES))
@pytest.mark.parametrize("n", [0, 1, 2, 3, 17, 511, 512, 513, 1025, 70_000])
def test_fills_and_ranges_of_every_length(name, n):
    dtype = bp.DTYPES[name]
    assert bp.full((n,), 3, dtype=dtype).astype(bp.float64).tolist() == [1.0 if name == "bool" else 3.0] * n
    if name != "bool":
        found = bp.ops.bp.iota(n, start=5, step=-3, dtype=dtype)
        expected = (5 - 3 * np.arange(n)).astype(np.float32 if name == "bfloat16" else name)
        assert found.astype(bp.float64).tolist() == bp.asarray(expected).astype(dtype).astype(bp.float64).tolist()


@pytest.mark.parametrize("spelled", ["f8", "<f8", "float64", np.float64, np.dtype("float64"), bp.float64])
def test_a_spelling_goes_wherever_a_dtype_goes(spelled):
    assert bp.ones(2).to(spelled).dtype == bp.float64
    assert bp.fft.fftfreq(4, dtype=spelled).dtype == bp.float64 and bp.fft.rfftfreq(4, dtype=spelled).dtype == bp.float64
    assert bp.isdtype(spelled, "real floating")
