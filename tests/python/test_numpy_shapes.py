"""Transposes, stacks, splits, diagonals, grids and einsum are NumPy's: over dtypes, no axes, no elements, strides."""

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(3)
A3 = RNG.standard_normal((2, 3, 4))
A2 = np.arange(12).reshape(3, 4)
SQUARE = RNG.standard_normal((3, 3))


def tensor(x):
    return bp.asarray(np.ascontiguousarray(x))


def strided(x):
    """The same elements, the last axis two apart in memory."""
    wide = np.repeat(x, 2, axis=-1)
    return bp.asarray(wide)[..., ::2]


def same(found, expected):
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            same(one, other)
        return
    assert found.shape == np.shape(expected)
    assert str(found.dtype).endswith(str(np.asarray(expected).dtype))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)


WIDTHS = [1, (1, 2), [(0, 1), (2, 0), (1, 1)], [(2, 1)], ((1,), (0,), (2,)), 0]


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
@pytest.mark.parametrize("width", WIDTHS)
def test_pad(width, mode):
    same(bp.pad(tensor(A3), width, mode), np.pad(A3, width, mode))
    same(tensor(A3).pad(width, mode=mode), np.pad(A3, width, mode))


@pytest.mark.parametrize("widths", [{}, {0: 2}, {1: (1, 2)}, {-1: 1, 0: (0, 3)}, {0: 1, 1: 1, 2: 1}], ids=str)
def test_pad_by_axis(widths):
    expected = [(0, 0)] * 3
    for axis, width in widths.items():
        expected[axis] = width if isinstance(width, tuple) else (width, width)
    for mode in ("constant", "edge"):
        same(bp.pad(tensor(A3), widths, mode), np.pad(A3, expected, mode))
    with pytest.raises(IndexError, match="pad: argument pad_width: found 3"):
        bp.pad(tensor(A3), {3: 1})


def test_arrays_and_tensors_are_counts_and_positions():
    for given in (np.asarray, bp.asarray):
        same(bp.pad(tensor(A2), given([[1, 2], [0, 1]])), np.pad(A2, [[1, 2], [0, 1]]))
        same(bp.pad(tensor(A2), given([1, 2])), np.pad(A2, [1, 2]))
        same(bp.pad(tensor(A2), given(1)), np.pad(A2, 1))
        for split in ("split", "array_split", "hsplit", "vsplit"):
            for places in ([1, 2], [1]):
                same(getattr(bp, split)(tensor(A2), given(places)), getattr(np, split)(A2, places))
        same(bp.array_split(tensor(A2), given(2)), np.array_split(A2, 2))
        same(bp.split(tensor(A2), given([1, 2]), dim=0), [A2[:1], A2[1:]])


def test_pad_with_a_number():
    same(bp.pad(strided(A2), (2, 0), constant_values=7), np.pad(A2, (2, 0), constant_values=7))
    same(bp.pad(bp.asarray(3), 2), np.pad(np.asarray(3), 2))


@pytest.mark.parametrize(
    "more, text",
    [
        (([(1, 1)] * 2,), "argument pad_width: found .*, expected a count, a pair .before, after., or a pair for each of 3 axes"),
        ((1.5,), "pad_width: found 1.5"),
        ((-1,), "counts of at least 0"),
        ((1, "average"), "argument mode: found 'average', expected a function or one of constant, edge"),
        (([0, 0, 0], [1, 1, 1]), "argument mode"),
    ],
)
def test_pad_refuses(more, text):
    with pytest.raises(ValueError, match=text):
        bp.pad(tensor(A3), *more)


@pytest.mark.parametrize("decimals", [0, 1, 3, -1])
def test_round_to_decimals(decimals):
    for x in (A3 * 100, np.float32(A2) / 7, A2 * 5, np.asarray(2.675)):
        expected, out = np.asarray(np.round(x, decimals)), bp.zeros_like(bp.asarray(x))
        same(bp.round(bp.asarray(x), decimals), expected)
        same(bp.asarray(x).round(decimals, out=out), expected)
        same(out, expected)


@pytest.mark.parametrize("decimals", [0, 1, -1])
def test_the_parts_of_a_complex_number_are_rounded_apart(decimals):
    z = np.asarray([complex(1.25, np.nan), complex(np.inf, -17.31), complex(-0.0, 2.5)])
    out = bp.zeros(3, dtype=bp.complex128)
    for found in (bp.round(bp.asarray(z), decimals), bp.round(bp.asarray(z), decimals, out=out)):
        same(bp.real(found), np.round(z.real, decimals))
        same(bp.imag(found), np.round(z.imag, decimals))


ONE = [
    ("transpose", {}), ("transpose", {"axes": (1, 2, 0)}), ("swapaxes", {"axis1": 0, "axis2": -1}), ("ravel", {}), ("atleast_3d", {}),
    ("rot90", {"k": 1}), ("rot90", {"k": 2}), ("rot90", {"k": -1, "axes": (1, 2)}), ("rot90", {"k": 0}), ("fliplr", {}), ("flipud", {}),
    ("diagflat", {"k": -1}), ("split", {"indices_or_sections": 2, "axis": 2}), ("split", {"indices_or_sections": [1, 3], "axis": -1}),
    ("array_split", {"indices_or_sections": 3, "axis": 2}), ("array_split", {"indices_or_sections": [2, -1, 9], "axis": 2}),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "bool", "complex64"])
@pytest.mark.parametrize("name, more", ONE)
def test_one_tensor_is_arranged_as_by_numpy(name, more, dtype):
    x = (A3 * 3).astype(dtype)
    expected = getattr(np, name)(x, **more) if "indices_or_sections" not in more else getattr(np, name)(x, *more.values())
    for made in (tensor, strided):
        found = getattr(bp, name)(made(x), **more) if "indices_or_sections" not in more else getattr(bp, name)(made(x), *more.values())
        same(found, expected)


@pytest.mark.parametrize("name", ["transpose", "ravel", "atleast_1d", "atleast_2d", "atleast_3d", "diagflat"])
@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 0), (2, 3)])
def test_any_number_of_axes_is_arranged_as_by_numpy(name, shape):
    x = RNG.standard_normal(shape)
    same(getattr(bp, name)(bp.asarray(x)), getattr(np, name)(x))


def test_several_tensors_get_axes_together():
    x, y = np.ones(3), np.array(2.0)
    same(bp.atleast_2d(tensor(x), bp.asarray(y)), list(np.atleast_2d(x, y)))


@pytest.mark.parametrize("name", ["vstack", "hstack", "dstack"])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 2), (0, 3)])
def test_stacks_join_as_numpys(name, shape):
    x, y = RNG.standard_normal(shape), RNG.standard_normal(shape).astype("float32")
    same(getattr(bp, name)([tensor(x), tensor(y)]), getattr(np, name)([x, y]))


@pytest.mark.parametrize("k", [-2, -1, 0, 1, 3])
def test_diagonals_are_read_and_made_as_by_numpy(k):
    same(bp.diag(tensor(A2), k), np.diag(A2, k))
    same(bp.diag(tensor(A2[0]), k), np.diag(A2[0], k))


def test_pieces_are_views_and_chunks_are_torchs():
    x = bp.asarray(np.arange(7.0))
    pieces = bp.chunk(x, 3)
    assert [piece.tolist() for piece in pieces] == [[0, 1, 2], [3, 4, 5], [6]]
    pieces[1][0] = 9.0
    assert x.tolist()[3] == 9
    assert [piece.shape[0] for piece in bp.chunk(x, 5)] == [2, 2, 2, 1]
    with pytest.raises(ValueError, match="divisor"):
        bp.split(x, 2)


@pytest.mark.parametrize("shape", [(3, 3), (3, 5), (4, 2), (0, 2)])
@pytest.mark.parametrize("k", [-1, 0, 2])
def test_triangles_are_numpys(shape, k):
    n, m = shape
    same(bp.tri(n, m, k, dtype=bp.float64), np.tri(n, m, k))
    same(bp.tril_indices(n, k, m), list(np.tril_indices(n, k, m)))
    same(bp.triu_indices(n, k, m), list(np.triu_indices(n, k, m)))


@pytest.mark.parametrize("sizes", [(2, 3), (4,), (), (0, 2)])
def test_indices_of_a_grid_are_numpys(sizes):
    same(bp.indices(sizes), np.indices(sizes))
    same(bp.indices(sizes, sparse=True), list(np.indices(sizes, sparse=True)))


@pytest.mark.parametrize("order", ["C", "F"])
def test_positions_flatten_and_unflatten(order):
    shape, flat = (3, 4, 5), np.array([[0, 7], [59, 31]])
    expected = np.unravel_index(flat, shape, order)
    same(bp.unravel_index(tensor(flat), shape, order=order), list(expected))
    same(bp.ravel_multi_index([tensor(x) for x in expected], shape, order=order), flat)
    outside = ([4, -1], [9, 2], [-7, 3])
    for mode in ("wrap", "clip"):
        same(bp.ravel_multi_index([tensor(np.array(x)) for x in outside], shape, mode, order), np.ravel_multi_index(outside, shape, mode, order))
    with pytest.raises(IndexError):
        bp.unravel_index(tensor(np.array([60])), shape)
    with pytest.raises(IndexError):
        bp.ravel_multi_index([tensor(np.array(x)) for x in outside], shape)
    place = tensor(np.array([60, -1]))  # which a trace does not read: modulo the shape
    same(bp.compile(lambda at: bp.unravel_index(at, shape, order=order))(place), list(np.unravel_index([0, 59], shape, order)))


def test_spaced_numbers_are_numpys():
    for endpoint in (True, False):
        same(bp.logspace(-1, 2, 7, endpoint=endpoint, base=2.0, dtype=bp.float64), np.logspace(-1, 2, 7, endpoint, 2.0))
        same(bp.geomspace(1, 1000, 4, endpoint=endpoint, dtype=bp.float64), np.geomspace(1, 1000, 4, endpoint))
    same(bp.geomspace(-2, -32, 5, dtype=bp.float64), np.geomspace(-2, -32, 5))
    assert bp.geomspace(1, 10000, 5, dtype=bp.float64).tolist() == [1, 10, 100, 1000, 10000] == bp.geomspace(1, 10000, 5, dtype=bp.int64).tolist()
    for ends in ((1j, 1000j), (1 + 1j, 8), (-1, 1 + 0j)):
        assert bp.geomspace(*ends, 4).dtype is bp.complex64
        same(bp.geomspace(*ends, 4, dtype=bp.complex128), np.geomspace(*ends, 4))
    same(bp.vander(tensor(np.arange(4)), 3), np.vander(np.arange(4), 3))
    same(bp.vander(tensor(A3[0, 0]), increasing=True), np.vander(A3[0, 0], increasing=True))
    with pytest.raises(ValueError, match="one sign"):
        bp.geomspace(-1, 1, 3)


EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ij->ji", (2, 3)), ("ba", (2, 3)), ("ii", (3, 3)), ("ii->i", (3, 3)),
    ("iij->j", (3, 3, 2)), ("iii->i", (2, 2, 2)), ("ij->", (2, 3)), ("i,i", (4,), (4,)), ("i,j->ji", (4,), (3,)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)), ("...ij,...jk->...ik", (5, 1, 2, 3), (4, 3, 2)), ("...ij,...jk", (5, 2, 3), (3, 4)),
    ("i...->...", (3, 2, 2)), ("...", (3, 2)), ("...,...", (3, 2), (2,)), ("ij...,jk...->ik...", (2, 3, 4), (3, 5, 1)), ("ij,ij->ij", (2, 3), (2, 3)),
    ("ij,ij", (2, 3), (2, 3)), ("ij,kj,kl,l->i", (2, 3), (4, 3), (4, 5), (5,)), ("ijk,ilm,njm,nlk->", (2, 3, 4), (2, 5, 2), (3, 3, 2), (3, 5, 4)),
    ("ij,kl->ijkl", (2, 3), (1, 2)), ("a,ab,abc->abc", (2,), (2, 3), (2, 3, 4)), ("ij,j->i", (2, 0), (0,)), ("ij,jk->ik", (0, 3), (3, 2)),
    ("i...i->...", (3, 2, 3)), ("ij , jk -> ki", (2, 3), (3, 4)), (",ij", (), (2, 3)), ("->", ()), ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
]  # fmt: skip


@pytest.mark.parametrize("term", EINSUMS, ids=lambda term: term[0])
@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
def test_einsum_is_numpys(term, dtype):
    text, *shapes = term
    arrays = [(RNG.standard_normal(shape) * 4).astype(dtype) for shape in shapes]
    expected = np.einsum(text, *arrays)
    same(bp.einsum(text, *map(bp.asarray, arrays)), expected)
    same(bp.einsum(text, *map(bp.asarray, arrays), optimize=False), expected)


def test_einsum_takes_lists_and_bools():
    x, y = RNG.standard_normal((2, 3)), RNG.standard_normal((3, 4))
    same(bp.einsum(bp.asarray(x), [0, 1], bp.asarray(y), [1, 2], [2, 0]), np.einsum(x, [0, 1], y, [1, 2], [2, 0]))
    same(bp.einsum(bp.asarray(x), [0, 1], bp.asarray(y), [1, 2]), np.einsum(x, [0, 1], y, [1, 2]))
    same(bp.einsum("ij,jk->ik", bp.asarray(x > 0), bp.asarray(y > 0)), np.einsum("ij,jk->ik", x > 0, y > 0))


def test_einsum_multiplies_the_cheapest_pair_first():
    # (200 x 2) (2 x 200) (200 x 2): from the right 1600 multiplications, from the left 160000.
    terms = [(bp.ones((200, 2)), ["a", "b"]), (bp.ones((2, 200)), ["b", "c"]), (bp.ones((200, 2)), ["c", "d"])]
    from backplane._api._einsum import _cheapest

    assert _cheapest(terms, ["a", "d"], {"a": 200, "b": 2, "c": 200, "d": 2}) == (1, 2)


def test_einsum_differentiates_and_batches():
    x, y = bp.asarray(RNG.standard_normal((2, 3))), bp.asarray(RNG.standard_normal((3, 4)))
    weights = RNG.standard_normal((2, 4))
    grad = bp.grad(lambda a: bp.sum(bp.einsum("ij,jk->ik", a, y) * bp.asarray(weights)))(x)
    np.testing.assert_allclose(grad.numpy(), weights @ y.numpy().T)
    rows = bp.vmap(lambda a: bp.einsum("j,jk->k", a, y))(x)
    np.testing.assert_allclose(rows.numpy(), x.numpy() @ y.numpy())


@pytest.mark.parametrize(
    "text, shapes, found",
    [("ij,jk", [(2, 3)], "1 operands"), ("ij", [(2,)], "dimensions"), ("i1", [(2, 2)], "'1'"), ("ij->ii", [(2, 2)], "once"),
     ("ij->ik", [(2, 2)], "alone"), ("ij,jk", [(2, 3), (4, 2)], "sizes 3 and 4"), ("ii", [(2, 3)], "one operand"), ("i..", [(2, 3)], "letters")],
)  # fmt: skip
def test_einsum_refuses_what_it_cannot_read(text, shapes, found):
    with pytest.raises(ValueError, match=found):
        bp.einsum(text, *(bp.ones(shape) for shape in shapes))
