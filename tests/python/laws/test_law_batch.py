"""vmap: batching an op = calling it row by row. vmap_grad, grad_vmap: the gradients of rows, and the gradient of a batch,
= each row's gradient taken alone.

Every tensor argument alone at every position of the batch axis, all together at axes that differ, and two batches in
one another. Rows are drawn as samples of their own, so that each holds what the entry's generators promise.
"""

import dataclasses

import backplane as bp
import numpy as np
import pytest
from law_inputs import arrays_of, is_array, is_array_list, tensors_of
from law_registry import INEXACT, cases, widest
from law_running import assert_same, call, to_array

ROWS = 3


def rows_of(case, dtype, count):
    """The sample's arrays, drawn once per row."""
    apart = [dataclasses.replace(case, number=case.number + 1000 * row) for row in range(count)]
    return [arrays_of(row, dtype) for row in apart]


def wide_dtype(case):
    accepted = [set(arg.accepts) for arg in case.entry.args if arg.is_tensor and arg.promote and arg.name in case.sample]
    common = set.intersection(*accepted) if accepted else set()
    return widest(common)


def places_of(arrays):
    """(argument, position in its list or None) of every tensor."""
    found = []
    for name, value in arrays.items():
        if is_array(value):
            found.append((name, None))
        elif is_array_list(value):
            found += [(name, i) for i, item in enumerate(value) if item is not None]
    return found


def at(arrays, place):
    name, position = place
    return arrays[name] if position is None else arrays[name][position]


def put(arrays, place, value):
    name, position = place
    changed = dict(arrays)
    changed[name] = value if position is None else [value if i == position else item for i, item in enumerate(arrays[name])]
    return changed


class Batched:
    """A sample with the batch in some of its tensors: those of `axes`, place -> axis of the batch."""

    def __init__(self, case, rows, axes):
        self.case, self.rows, self.axes = case, rows, axes
        self.places = list(axes)

    def row(self, i):
        arrays = self.rows[0]
        for place in self.places:
            arrays = put(arrays, place, at(self.rows[i], place))
        return arrays

    def tensors(self):
        return [bp.asarray(np.stack([np.asarray(at(row, p)) for row in self.rows], axis=a)) for p, a in self.axes.items()]

    def function(self, *tensors):
        arguments = tensors_of(self.case, self.rows[0])
        for place, tensor in zip(self.places, tensors):
            arguments = put(arguments, place, tensor)
        return tuple(call(self.case, arguments))


def batches_of(case, rows):
    """Each tensor alone at each axis; then together at their first axes, and at axes that differ."""
    ranks = {place: np.ndim(at(rows[0], place)) for place in places_of(rows[0])}
    for place, rank in ranks.items():
        for axis in range(-1, rank + 1):
            yield {place: axis}
    if len(ranks) > 1:
        yield {place: 0 for place in ranks}
        yield {place: rank if i % 2 else 0 for i, (place, rank) in enumerate(ranks.items())}
    if len(ranks) > 2:
        for left_out in ranks:
            yield {place: 0 for place in ranks if place != left_out}


def batches(case):
    tensors = any("tensor" in value or any(value.get("tensors", ())) for value in case.sample.values())
    return tensors and case.entry.rules["batch"] != "none" and "random" not in case.entry.flags


def assert_rows(case, found, expected):
    """`found`: the results of the batch; `expected`: a list of results for each row."""
    exact = case.entry.compare in ("exact", "metadata")
    for j, result in enumerate(found):
        rows = np.stack([row[j] for row in expected])
        dtype = result.dtype if result.dtype.name in INEXACT else bp.float32
        assert_same(case, to_array(result), rows, dtype, exact=exact)


@pytest.mark.parametrize("case", cases("vmap", batches))
def test_batching_is_a_loop(case):
    rows = rows_of(case, wide_dtype(case), ROWS)
    for axes in batches_of(case, rows):
        batch = Batched(case, rows, axes)
        found = bp.vmap(batch.function, in_axes=tuple(axes.values()))(*batch.tensors())
        expected = [[to_array(t) for t in call(case, tensors_of(case, batch.row(i)))] for i in range(ROWS)]
        try:
            assert_rows(case, found, expected)
        except AssertionError as error:
            raise AssertionError(f"with the batch at {axes}: {error}") from None


@pytest.mark.parametrize("case", cases("vmap", batches))
def test_an_out_axis_moves_the_batch(case):
    rows = rows_of(case, wide_dtype(case), ROWS)
    batch = Batched(case, rows, {place: 0 for place in places_of(rows[0])})
    first = bp.vmap(batch.function)(*batch.tensors())
    last = bp.vmap(batch.function, out_axes=-1)(*batch.tensors())
    for a, b in zip(first, last):
        np.testing.assert_array_equal(np.moveaxis(to_array(a), 0, -1), to_array(b))


@pytest.mark.parametrize("case", cases("vmap", batches))
def test_batches_nest(case):
    """The outer batch in every tensor, the inner one in each alone, both at axis 0 or 1 in turn."""
    inner_size = 2
    drawn = rows_of(case, wide_dtype(case), ROWS * inner_size)
    places = places_of(drawn[0])
    for inner in places:
        # drawn[i * inner_size + j]: row i outside, row j inside; the other tensors differ by i alone
        def arrays_at(i, j):
            arrays = drawn[i * inner_size]
            return put(arrays, inner, at(drawn[i * inner_size + j], inner))

        def stacked(place):
            if place != inner:
                return np.stack([np.asarray(at(drawn[i * inner_size], place)) for i in range(ROWS)])
            grid = [[np.asarray(at(arrays_at(i, j), place)) for j in range(inner_size)] for i in range(ROWS)]
            return np.stack([np.stack(row) for row in grid], axis=1)  # (inner, outer, …)

        batch = Batched(case, drawn, {place: 0 for place in places})
        inside = bp.vmap(batch.function, in_axes=tuple(0 if place == inner else None for place in places))
        outside = bp.vmap(inside, in_axes=tuple(1 if place == inner else 0 for place in places))
        found = outside(*[bp.asarray(stacked(place)) for place in places])
        grid = [[[to_array(t) for t in call(case, tensors_of(case, arrays_at(i, j)))] for j in range(inner_size)] for i in range(ROWS)]
        expected = [[np.stack([row[j][k] for j in range(inner_size)]) for k in range(len(found))] for row in grid]
        assert_rows(case, found, expected)


@pytest.mark.parametrize("case", cases("vmap", batches))
def test_a_batch_of_none(case):
    """Size 0 gives empty results of the rows' shapes."""
    rows = rows_of(case, wide_dtype(case), 1)
    batch = Batched(case, rows, {place: 0 for place in places_of(rows[0])})
    found = bp.vmap(batch.function)(*[tensor[:0] for tensor in batch.tensors()])
    for result, row in zip(found, call(case, tensors_of(case, rows[0]))):
        assert result.shape == (0, *row.shape) and result.dtype == row.dtype


# ---- with gradients ----


def differentiable_places(case, arrays):
    names = {arg.name for arg in case.entry.differentiable if arg.promote and "float64" in arg.accepts}
    return [place for place in places_of(arrays) if place[0] in names and at(arrays, place).dtype == np.float64]


def has_gradient(case):
    named = {arg.name for arg in case.entry.differentiable if "float64" in arg.accepts}
    drawn = any("tensor" in case.sample.get(name, {}) or any(case.sample.get(name, {}).get("tensors", ())) for name in named)
    return drawn and batches(case)


def loss_of(batch, weights):
    """A scalar of the row: its inexact results under fixed weights."""

    def loss(*tensors):
        total = None
        for result, weight in zip(batch.function(*tensors), weights):
            if weight is not None:
                term = bp.sum(bp.real(bp.multiply(result, weight)))
                total = term if total is None else bp.add(total, term)
        return total

    return loss


def weights_of(case, results):
    rng = np.random.default_rng(17)
    drawn = [rng.uniform(-1, 1, result.shape) for result in results]
    kept = [result.dtype.name in INEXACT and not nondiff for result, (_, _, nondiff) in zip(results, case.entry.results)]
    return [bp.asarray(w, dtype=bp.float64) if keep else None for w, keep in zip(drawn, kept)]


def prepared(case):
    rows = rows_of(case, "float64", ROWS)
    places = differentiable_places(case, rows[0])
    batch = Batched(case, rows, {place: 0 for place in places})
    weights = weights_of(case, call(case, tensors_of(case, rows[0])))
    return batch, loss_of(batch, weights), tuple(range(len(places))), any(w is not None for w in weights)


def gradients_by_row(batch, loss, argnums):
    """Per input, the rows' gradients, each taken alone."""
    found = []
    for i in range(ROWS):
        tensors = [bp.asarray(np.array(at(batch.rows[i], place))) for place in batch.places]
        found.append([to_array(g) for g in bp.grad(loss, argnums=argnums)(*tensors)])
    return [np.stack([row[k] for row in found]) for k in range(len(argnums))]


@pytest.mark.parametrize("case", cases("vmap_grad", has_gradient))
def test_gradients_of_rows(case):
    batch, loss, argnums, any_loss = prepared(case)
    if argnums and any_loss:
        found = bp.vmap(bp.grad(loss, argnums=argnums))(*batch.tensors())
        for g, expected in zip(found, gradients_by_row(batch, loss, argnums)):
            np.testing.assert_allclose(to_array(g), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("case", cases("grad_vmap", has_gradient))
def test_the_gradient_of_a_batch(case):
    batch, loss, argnums, any_loss = prepared(case)
    if argnums and any_loss:
        whole = bp.grad(lambda *tensors: bp.sum(bp.vmap(loss)(*tensors)), argnums=argnums)
        for g, expected in zip(whole(*batch.tensors()), gradients_by_row(batch, loss, argnums)):
            np.testing.assert_allclose(to_array(g), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("case", cases("vmap_grad", has_gradient))
def test_tangents_of_rows(case):
    """Forward mode inside a batch = forward mode of each row, along the row itself."""
    batch, loss, argnums, any_loss = prepared(case)
    if not argnums or not any_loss:
        return

    def tangent(*tensors):
        return bp.jvp(loss, tensors, tensors)[1]

    rows = [[bp.asarray(np.array(at(row, place))) for place in batch.places] for row in batch.rows]
    expected = np.stack([to_array(tangent(*row)) for row in rows])
    np.testing.assert_allclose(to_array(bp.vmap(tangent)(*batch.tensors())), expected, rtol=1e-9, atol=1e-9)
