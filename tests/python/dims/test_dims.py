"""First-class dimensions: a function of named axes gives the same result as of the same axes by position."""

import numpy as np
import pytest

import backplane as bp

SUBSCRIPTS = ["ik,kj->ij", "ik,kj->ji", "ik,jk->ij", "i,j->ij", "ij,ij->i", "ij,ij->", "bik,bkj->bij", "ij,jk,kl->il", "i,ij,j->", "bhqd,bhkd->bqhk"]


def numbers(*shape, seed=0, dtype="float64"):
    return bp.asarray(np.random.default_rng(seed).normal(size=shape).astype(dtype))


def by_dims(subscripts, operands):
    """einsum in named axes."""
    terms, out = subscripts.split("->")
    letters = sorted(set(terms) - {","})
    dims = dict(zip(letters, [bp.dims(1) for _ in letters]))
    product = None
    for term, x in zip(terms.split(","), operands):
        named = x[tuple(dims[letter] for letter in term)]
        product = named if product is None else product * named
    rest = tuple(dims[letter] for letter in letters if letter not in out)
    found = product.sum(rest) if rest else product
    return found.order(*(dims[letter] for letter in out)) if out else found


@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_sums_of_products_are_einsum(subscripts):
    sizes = {letter: 2 + i for i, letter in enumerate(sorted(set(subscripts) - set(",->")))}
    operands = [numbers(*(sizes[letter] for letter in term), seed=i) for i, term in enumerate(subscripts.split("->")[0].split(","))]
    expected = bp.einsum(subscripts, *operands)
    found = by_dims(subscripts, operands)
    assert isinstance(found, bp.Tensor) and bp.allclose(found, expected)
    compiled = bp.compile(lambda *xs: by_dims(subscripts, xs))
    assert bp.allclose(compiled(*operands), expected) and bp.allclose(compiled(*operands), expected)
    plain = bp.grad(lambda x: (bp.einsum(subscripts, x, *operands[1:]) ** 2).sum())(operands[0])
    assert bp.allclose(bp.grad(lambda x: (by_dims(subscripts, [x, *operands[1:]]) ** 2).sum())(operands[0]), plain)


def test_a_product_and_its_sum_are_one_matrix_product():
    def product(a, b):
        i, j, k = bp.dims(3)
        return (a[i, k] * b[k, j]).sum(k).order(i, j)

    text = str(bp.make_graph(product)(numbers(2, 3), numbers(3, 4)))
    assert text.count("matmul") == 1 and "multiply" not in text


def test_names_and_sizes():
    i, j = bp.dims(2)
    (rows,) = (bp.dims(1),)
    assert (repr(i), repr(j)) == ("i", "j") and isinstance(rows, bp.Dim) and not i.is_bound
    x = numbers(2, 3)[i, j]
    assert (i.size, j.size, x.dims, x.shape, x.ndim) == (2, 3, (i, j), (), 0)
    a, b = bp.dims()
    c, d = bp.dims(sizes=(2, None))
    assert (repr(a), repr(b), c.size, d.is_bound) == ("a", "b", 2, False)
    with pytest.raises(bp.ShapeError, match="i has size 2, found an axis of size 4"):
        numbers(4)[i]
    with pytest.raises(bp.ShapeError, match="d has no size"):
        d + 1
    with pytest.raises(bp.ArgumentValueError, match="found 1 sizes, expected 2"):
        bp.dims(2, sizes=[1])


def test_named_axes_broadcast_and_positional_ones_stay():
    i, j = bp.dims(2)
    x, y = numbers(2, 3, 4), numbers(5, 4, seed=1)
    assert (x[i] + y[j]).order(i, j).shape == (2, 5, 3, 4)
    assert bp.all((x[i] + y[j]).order(j, i) == x[None] + y[:, None, None])
    assert bp.all((1 - x[i]).order(i) == 1 - x) and bp.allclose((x[i, :, 0] @ numbers(3)).order(i), x[:, :, 0] @ numbers(3))
    assert bp.all((np.ones(4) * x[i]).order(i) == x) and bp.all((x[i] < bp.zeros(4)).order(i) == (x < 0))


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "std", "argmax", "logsumexp", "softmax", "cumsum", "sort", "all"])
def test_functions_of_axes_take_dims(name):
    i, j = bp.dims(2)
    x = numbers(3, 4, 5)
    x = x > 0 if name == "all" else x
    expected = getattr(bp, name)(x, axis=1)
    named = x[i, j]
    for found in (getattr(bp, name)(named, axis=j), *([getattr(named, name)(j)] if name != "sort" else [])):
        found = found.order(i, j) if name in ("softmax", "cumsum", "sort") else found.order(i)
        assert bp.allclose(found, expected)
    assert bp.allclose(named.sum((i, j)), x.sum(axis=(0, 1)))
    with pytest.raises(bp.ShapeError, match=r"expected dimensions of the tensor, \(i, j\)"):
        named.sum(bp.dims(1))


@pytest.mark.parametrize(
    "function",
    [bp.linalg.inv, bp.linalg.det, bp.linalg.qr, bp.fft.rfft, bp.tril, lambda x: bp.concat([x, x]), lambda x: bp.stack([x, x + 1], axis=-1), lambda x: x.T,
     lambda x: bp.nn.functional.layer_norm(x, (3,)), lambda x: bp.median(x, axis=0), lambda x: bp.where(x > 0, x, bp.zeros(3, dtype=x.dtype)), lambda x: x.reshape(9),
     lambda x: bp.nn.functional.linear(x, bp.ones((2, 3), dtype=x.dtype)), lambda x: bp.einsum("ij->ji", x)],
)  # fmt: skip
def test_any_function_is_batched(function):
    i, j = bp.dims(2)
    x = numbers(2, 4, 3, 3)
    found = bp.tree.leaves(bp.tree.map(lambda y: y.order(i, j), function(x[i, j])))
    expected = bp.tree.leaves(bp.vmap(bp.vmap(function))(x))
    assert all(bp.allclose(a, b) for a, b in zip(found, expected, strict=True))


def test_axis_words_of_functions_of_one_name():
    i, j = bp.dims(2)
    x = numbers(2, 4)
    expected = bp.softmax(x, axis=1)
    for found in (bp.softmax(x[i, j], j), bp.nn.functional.softmax(x[i, j], j), bp.nn.functional.softmax(x[i, j], dim=j), bp.softmax(x[i, j], axis=(j,))):
        assert bp.allclose(found.order(i, j), expected)
    assert bp.allclose(bp.linalg.vector_norm(x[i, j], axis=j).order(i), bp.linalg.vector_norm(x, axis=1))
    assert bp.allclose(bp.flip(x[i, j], axis=j).order(i, j), bp.flip(x, axis=1)) and bp.allclose(bp.var(x[i], axis=0).order(i), bp.var(x, axis=1))


def test_modules_and_methods():
    i = bp.dims(1)
    model = bp.nn.Sequential(bp.nn.Linear(3, 4), bp.nn.Tanh(), bp.nn.LayerNorm(4))
    x = numbers(5, 3, dtype="float32")
    assert bp.allclose(model(x[i]).order(i), model(x), atol=1e-6)
    assert x[i].astype(bp.float64).dtype == bp.float64 and bp.all(x[i].clip(0, 1).order(i) == x.clip(0, 1))


def test_gathers():
    i, j, k = bp.dims(3)
    table, rows = numbers(6, 4), bp.asarray([[5, 0, 1], [2, 2, 3]])
    assert bp.all(table[rows[i, j]].order(i, j) == table[rows])
    assert bp.all(table[rows[i, j], k].order(k, i, j) == bp.permute_dims(table[rows], (2, 0, 1)))
    assert bp.all(table[rows[i], k].order(i, k) == bp.permute_dims(table[rows], (0, 2, 1)))
    square = numbers(4, 4, seed=2)
    d = bp.dims(1)
    assert bp.all(square[d, d].order(d) == bp.linalg.diagonal(square)) and bp.allclose(square[d, d].sum(d), bp.linalg.trace(square))
    p = bp.dims(1)
    order = bp.asarray([1, 0, 3, 2])
    assert bp.all(square[p, order[p]].order(p) == bp.take_along_axis(square, order[:, None], axis=1)[:, 0])
    q, r = bp.dims(sizes=(3, 2))
    assert bp.all(numbers(8)[q + r].order(q, r) == numbers(8)[bp.arange(3)[:, None] + bp.arange(2)])
    grad = bp.grad(lambda t: t[rows[i, j]].order(i, j).sum())(table)
    assert bp.all(grad == bp.grad(lambda t: t[rows].sum())(table))


def test_splits_and_flattening():
    i, j, k = bp.dims(3)
    x = numbers(6, 4)
    i.size = 2
    assert bp.all(x[(i, j), k].order(i, j, k) == x.reshape(2, 3, 4)) and j.size == 3
    assert bp.all(x[(i, j), k].order((i, k), j) == bp.permute_dims(x.reshape(2, 3, 4), (0, 2, 1)).reshape(8, 3))
    m, n = bp.dims(2)
    with pytest.raises(bp.ShapeError, match="m and n without sizes"):
        x[(m, n), k]
    with pytest.raises(bp.ShapeError, match="do not split"):
        x[(i, i), k]
    rows = bp.dims(1)
    assert bp.all(x[rows, k].index(k, 0).order(rows) == x[:, 0])
    assert bp.all(x[rows, k].index((rows, k), (bp.asarray([1, 2]), 3)) == x[[1, 2], 3])
    both = bp.dims(1)
    assert bp.all(x[rows, k].index((rows, k), both).order(both) == x.reshape(24))


def test_joins():
    i, j = bp.dims(2)
    x, y = numbers(3), numbers(4, seed=1)
    both = bp.dims(1)
    assert bp.all(bp.stack([x[i], x[i] + 1]).order(i) == bp.stack([x, x + 1], axis=1))
    assert bp.all(bp.concat([x[i].order(i), y[j].order(j)])[both].order(both) == bp.concat([x, y]))
    equal = bp.asarray([1, 2, 2])[i] == bp.asarray([2, 1, 5, 2])[j]
    assert equal.order(i, j).tolist() == [[False, True, False, False], [True, False, False, True], [True, False, False, True]]


def test_assignment():
    i, j, k = bp.dims(3)
    a, b = numbers(2, 3), numbers(3, 4)
    out = bp.zeros((2, 4), dtype=a.dtype)
    out[i, j] = (a[i, k] * b[k, j]).sum(k)
    assert bp.allclose(out, a @ b)
    other = bp.zeros((4, 2), dtype=a.dtype)
    other[j, i] = out[i, j]
    assert bp.all(other == out.T)
    other[j, 1] = 5.0
    assert bp.all(other[:, 1] == 5) and bp.all(other[:, 0] == out[0])
    target, rows = bp.zeros(5, dtype=a.dtype), bp.asarray([4, 0, 2])
    target[rows[k]] = b[k, 0]
    assert bp.all(target[rows] == b[:, 0])
    with pytest.raises(bp.ShapeError, match="found a value with the dimension i"):
        other[j] = out[i, j]


def test_refusals():
    i, j = bp.dims(2)
    x = numbers(2, 3)[i, j]
    with pytest.raises(TypeError, match=r"Fix: x.order\(i, j\)"):
        bool(x)
    with pytest.raises(TypeError, match=r"numpy: found a tensor with the dimensions \(i, j\)"):
        x.numpy()
    with pytest.raises(bp.ShapeError, match="order: found i twice"):
        x.order(i, i)
    with pytest.raises(IndexError, match="0 positional axes"):
        x[0]
    a, b = numbers(2), numbers(2)
    k = bp.dims(1)
    product = a[k] * b[k]
    a[...] = 0
    with pytest.raises(bp.ArgumentValueError, match="changed in place before the product was used"):
        product.sum(k)
    with pytest.raises(TypeError, match="argument out"):
        bp.add(a[k], 1, out=bp.zeros(2))


def test_gradients_follow_the_mode_of_the_product():
    i = bp.dims(1)
    x = bp.ones(3).requires_grad_()
    with bp.no_grad():
        product = x[i] * x[i]
    assert not product.sum(i).requires_grad
    product = x[i] * x[i]
    with bp.no_grad():
        total = product.sum(i)
    total.backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_dims_of_an_outer_scope_in_a_compiled_function():
    i, j, k = bp.dims(3)
    product = bp.compile(lambda a, b: (a[i, k] * b[k, j]).sum(k).order(i, j))
    a, b = numbers(2, 3), numbers(3, 4)
    assert bp.allclose(product(a, b), a @ b) and bp.allclose(product(a + 1, b), (a + 1) @ b)
    with pytest.raises(bp.ShapeError, match="has size 2"):
        product(numbers(5, 3), b)
    per_sample = bp.vmap(lambda a: (a[i, k] * b[k, j]).sum((i, k)).order(j))(numbers(7, 2, 3))
    assert bp.allclose(per_sample, (numbers(7, 2, 3) @ b).sum(axis=1))


def test_attention():
    def attend(q, k, v):
        batch, head, query, key, width = bp.dims(5)
        scores = (q[batch, query, head, width] * k[batch, key, head, width]).sum(width) / 2.0
        weights = scores.softmax(key)
        return (weights * v[batch, key, head, width]).sum(key).order(batch, query, head, width)

    q, k, v = (numbers(2, 5, 3, 4, seed=seed) for seed in range(3))
    heads = [bp.permute_dims(x, (0, 2, 1, 3)) for x in (q, k, v)]
    expected = bp.permute_dims(bp.nn.functional.scaled_dot_product_attention(*heads), (0, 2, 1, 3))
    assert bp.allclose(attend(q, k, v), expected) and bp.allclose(bp.compile(attend)(q, k, v), expected)


def test_a_list_of_named_operands_becomes_one_of_them():
    i, j = bp.dims(2)
    x = numbers(3, 4)
    stacked = bp.asarray([x[i, j], 2 * x[i, j]])
    assert stacked.shape == (2,) and bp.all(stacked.index((i, j), (1, 2)) == bp.asarray([1, 2]) * x[1, 2])


def test_control_flow_runs_for_each_named_element():
    i, j = bp.dims(2)
    x, c = numbers(3, 4), bp.asarray(1.0, dtype=bp.float64)
    rows, elements = x[i], x[i, j]
    expected = bp.where(x > 0, x * 2, x - 1)
    assert bp.allclose(bp.cond(elements > 0, lambda a: a * 2, lambda a: a - 1, elements).order(i, j), expected)
    assert bp.allclose(bp.cond(c > 0, lambda a: a * 2, lambda a: a, rows).order(i), x * 2)
    assert bp.allclose(bp.switch((elements > 0).astype(bp.int32), [lambda a: a - 1, lambda a: a * 2], elements).order(i, j), expected)
    assert bp.allclose(bp.scan(lambda k, e: (k + e, k), c, rows)[0].order(i), 1 + x.sum(1))
    assert bp.allclose(bp.scan(lambda k, e: (k + e, k), rows, bp.ones(2))[0].order(i), x + 2)
    assert bp.allclose(bp.map(lambda e: e * 3, rows).order(i), x * 3)
    assert bp.allclose(bp.fori_loop(0, 3, lambda n, a: a * 2, rows).order(i), x * 8)
    assert bp.allclose(bp.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1] * 2), (bp.asarray(0), rows))[1].order(i), x * 4)
    assert bp.allclose(bp.associative_scan(lambda a, b: a + b, rows).order(i), bp.cumulative_sum(x, axis=1))


def test_control_flow_that_captures_named_dimensions_is_refused():
    i = bp.dims(1)
    rows, c = numbers(3, 4)[i], bp.asarray(1.0)
    for call in (
        lambda: bp.cond(c > 0, lambda: rows * 2, lambda: rows),
        lambda: bp.scan(lambda k, e: (k, rows), c, bp.ones(2)),
        lambda: bp.fori_loop(0, 2, lambda n, k: k + rows, c),
    ):
        with pytest.raises(bp.ArgumentTypeError, match=r"named dimensions \(i,\).*operands, or order them"):
            call()


@pytest.mark.parametrize("transform", [bp.grad, bp.vmap, lambda f: lambda x: bp.jvp(f, (x,), (x,))], ids=["grad", "vmap", "jvp"])
def test_transforms_of_named_dimensions_say_to_order_them(transform):
    i = bp.dims(1)
    with pytest.raises(bp.ArgumentTypeError, match=r"give its named dimensions an order first, as in x.order\(i\)"):
        transform(lambda x: x.sum())(numbers(3, 4)[i])
