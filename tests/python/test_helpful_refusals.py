"""What newcomers type by mistake, or as NumPy takes it: computed as NumPy does, or refused with the argument's name."""

import dataclasses
import math

import backplane as bp
import numpy as np
import pytest

X = np.asarray([1.0, 2.5, -4.0])


def x():
    return bp.asarray(X)


@pytest.mark.parametrize(
    "call",
    [bp.meshgrid, bp.broadcast_arrays, bp.atleast_1d, bp.atleast_2d, bp.atleast_3d, bp.fft.fftshift, bp.fft.ifftshift, bp.to_numpy, bp.median,
     bp.unique, bp.histogram, bp.digitize, bp.cov, bp.bincount, lambda value: bp.stack([value]), lambda value: bp.concat([value])],
)  # fmt: skip
@pytest.mark.parametrize("value", [None, "text", object()], ids=lambda v: type(v).__name__)
def test_no_tensor_is_refused_by_name(call, value):
    """Never by an attribute that it lacks, which says nothing of the call."""
    with pytest.raises((bp.ArgumentTypeError, TypeError)):
        call(value) if call is not bp.digitize else call(value, [1.0])


def test_a_traced_bound_of_a_slice_names_what_to_write():
    x = bp.arange(5.0)
    for key in (lambda i: slice(i, i + 2), lambda i: slice(0, i), lambda i: (slice(i, None), None)):
        for transform in (bp.compile, bp.vmap):
            with pytest.raises(bp.ArgumentValueError, match=r"x\[i \+ arange\(n\)\].*dynamic_slice"):
                transform(lambda i, key=key: x[key(i)])(bp.asarray([1, 2]) if transform is bp.vmap else bp.asarray(1))
    assert x[bp.asarray(1) : bp.asarray(3)].tolist() == [1.0, 2.0]
    assert bp.compile(lambda x, i: x[i + bp.arange(2)])(x, bp.asarray(2)).tolist() == [2.0, 3.0]


def test_an_unregistered_class_names_the_registration():
    @dataclasses.dataclass
    class Pair:
        w: object

    for transform in (bp.grad, bp.vmap):
        with pytest.raises(bp.ArgumentTypeError, match="tree.register"):
            transform(lambda pair: pair.w.sum())(Pair(bp.ones(2)))
    with pytest.raises(bp.ArgumentTypeError, match="floating or complex tensor$"):
        bp.grad(lambda x: x)("text")


def test_an_unknown_device_names_those_that_are_there():
    with pytest.raises(bp.ArgumentValueError, match="\"gpu\": no backend of that name. Devices here: cpu.*backends with a plugin: "):
        bp.ones(2, device="gpu")


@pytest.mark.parametrize("bins", [[0.0, 1.0, 3.0], (5.0, 1.0, 0.0), [2.5]], ids=str)
@pytest.mark.parametrize("right", [False, True])
def test_digitize_takes_edges_as_numpy(bins, right):
    assert bp.digitize(x(), bins, right).tolist() == bp.digitize(x(), bp.asarray(bins, dtype=bp.float64), right).tolist() == np.digitize(X, bins, right).tolist()
    with pytest.raises(bp.ShapeError, match="digitize: argument bins: found shape .2, 1., expected a vector"):
        bp.digitize(x(), [[1.0], [2.0]])


def test_histogram_takes_a_tensor_of_edges():
    edges = np.asarray([-5.0, 0.0, 2.0, 3.0])
    found, kept = bp.histogram(x(), bins=bp.asarray(edges))
    assert found.tolist() == np.histogram(X, edges)[0].tolist() and kept.tolist() == edges.tolist()


def test_histogram_takes_an_array_of_edges_as_numpy():
    for edges in (np.linspace(0, 4, 3), np.asarray([0.0, 2.0])):
        assert bp.histogram(x(), bins=edges)[0].tolist() == np.histogram(X, edges)[0].tolist()


@pytest.mark.parametrize("options", [{"prepend": 0}, {"append": 7.5}, {"prepend": 0, "append": 1, "n": 2}], ids=str)
def test_diff_takes_a_number_as_numpy(options):
    assert bp.diff(x(), **options).tolist() == np.diff(X, **options).tolist()
    matrix = np.arange(6.0).reshape(2, 3) ** 2
    for axis in (0, 1):
        assert bp.diff(bp.asarray(matrix), axis=axis, **options).tolist() == np.diff(matrix, axis=axis, **options).tolist()


@pytest.mark.filterwarnings("ignore")
def test_powers_beyond_floats_are_infinite_as_numpys():
    assert bp.logspace(0, 400, 3, dtype=bp.float64).tolist() == np.logspace(0, 400, 3).tolist()
    for decimals in (308, 309, 400, -308, -400):
        np.testing.assert_array_equal(bp.to_numpy(bp.round(x(), decimals=decimals)), np.round(X, decimals))


def test_bincount_refuses_what_no_memory_holds():
    with pytest.raises(bp.BackplaneError, match="bincount: argument x: found .*, expected a size that memory has"):
        bp.bincount(bp.asarray([2**63 - 2]))
    with pytest.raises(bp.BackplaneError, match="bincount"):
        bp.bincount(bp.asarray([2**64 - 1], dtype=bp.uint64))


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_an_empty_axis_has_no_edge(mode):
    with pytest.raises(ValueError, match="^pad: .*expected elements along an axis that is continued"):
        bp.pad(bp.ones((0, 3)), 1, mode=mode)


def test_python_s_own_functions_of_tensors():
    assert round(x()).tolist() == [1, 2, -4] and round(bp.asarray([1.26]), 1).tolist() == bp.round(bp.asarray([1.26]), 1).tolist()
    for a, b in ((x(), 3), (7, x()), (x(), bp.asarray([2.0, 2.0, 3.0]))):
        expected = divmod(np.asarray(a), np.asarray(b))
        assert [part.tolist() for part in divmod(a, b)] == [part.tolist() for part in expected]
    with pytest.raises(TypeError, match="index: found a tensor of dtype float32 and 0 dimensions"):
        range(5)[bp.asarray(1.5)]


@pytest.mark.parametrize("dtype", [bp.float16, bp.bfloat16], ids=str)
@pytest.mark.parametrize("function", [bp.fft.fft, bp.fft.rfft, bp.fft.ifft, bp.fft.irfft, bp.fft.hfft])
def test_half_floats_are_transformed_in_float32(function, dtype):
    wave = bp.asarray([1.0, 2.0, 0.5, -1.0])
    found = function(bp.cast(wave, dtype))
    assert found.dtype in (bp.float32, bp.complex64) and found.tolist() == function(wave).tolist()
    assert math.isfinite(abs(complex(found[0].item())))


@pytest.mark.parametrize(
    "call",
    [lambda: bp.unstack(bp.zeros((2**33, 0))), lambda: bp.unbind(bp.broadcast_to(bp.ones(1), (2**31,))),
     lambda: bp.split(bp.broadcast_to(bp.ones(1), (2**31,)), 2**31), lambda: bp.split(bp.zeros(0), 2**33),
     lambda: bp.array_split(bp.zeros(2), 2**33), lambda: bp.chunk(bp.zeros((2**40, 0)), 2**31)],
)  # fmt: skip
def test_more_pieces_than_there_are_elements_are_refused_at_once(call):
    with pytest.raises(ValueError, match=r"found \d+ pieces of an axis of size \d+, expected at most .*1048576"):
        call()


def test_pieces_without_elements_of_their_own_are_made():
    assert [len(part) for part in bp.array_split(bp.zeros(2), 4)] == [1, 1, 0, 0]
    assert len(bp.unstack(bp.zeros((5, 0)))) == 5 and len(bp.chunk(bp.zeros((5, 0)), 2)) == 2
    assert [part.item() for part in bp.unbind(bp.broadcast_to(bp.ones(1), (3,)))] == [1, 1, 1]


@pytest.mark.parametrize("repetitions", [-1, (2, -1), (-1, 2, 2)], ids=str)
@pytest.mark.parametrize("of", [bp.ones(2), bp.ones((0, 3))], ids=["vector", "empty"])
def test_tile_names_its_counts(of, repetitions):
    with pytest.raises(ValueError, match="tile: found x of shape .*, expected argument repetitions to be counts from 0 on"):
        bp.tile(of, repetitions)
    assert bp.tile(of, 0).size == 0 and bp.tile(bp.asarray([1, 2]), 2).tolist() == [1, 2, 1, 2]


@pytest.mark.parametrize("write, error, words", [
    (lambda x: x.__setitem__(..., bp.ones(4)), bp.ShapeError, r"x\[index\] = value: 'value' of shape \(4,\) does not broadcast to the slice, of shape \(2, 3\)"),
    (lambda x: x.__setitem__((slice(None), 1), [1.0, 2.0, 3.0]), bp.ShapeError, r"x\[index\] = value: 'value' of shape \(3,\).*\(2,\)"),
    (lambda x: x.__setitem__([0, 1], bp.ones(4)), bp.ShapeError, r"x\[index\] = value: 'values' of shape \(4,\).*\(2, 3\)"),
    (lambda x: x.__setitem__(x > 0, bp.ones(4)), bp.ShapeError, r"x\[index\] = value: 'values' of shape \(4,\).*\(6,\)"),
    (lambda x: x.__setitem__(0, 1j), bp.DtypeError, r"x\[index\] = value: a result of dtype complex64"),
    (lambda x: x.astype(bp.uint8).__setitem__(0, 300), bp.NumberRangeError, r"x\[index\] = value: argument 'value': the integer 300"),
    (lambda x: x.fill_(1j), bp.DtypeError, "fill_: a result of dtype complex64"),
    (lambda x: x.copy_(bp.ones(5)), bp.ShapeError, r"copy_: 'value' of shape \(5,\)"),
])  # fmt: skip
def test_what_is_written_is_named_as_it_was(write, error, words):
    with pytest.raises(error, match=f"^{words}"):
        write(bp.ones((2, 3)))


@pytest.mark.parametrize("draw", [bp.permutation, bp.randperm])
@pytest.mark.parametrize("value", [bp.ones(3), bp.arange(3), np.arange(3), [1, 2, 3]], ids=lambda v: type(v).__name__)
def test_a_permutation_of_elements_is_one_of_their_positions(draw, value):
    with pytest.raises(bp.ArgumentTypeError, match=r"permutation: argument n: found a value of type .*; .* x\[backplane.permutation\(len\(x\)\)\]"):
        draw(value)
    assert sorted(draw(3).tolist()) == [0, 1, 2]


def test_an_index_of_an_embedding_is_said_with_its_sign():
    with pytest.raises(bp.DataError, match=r"embedding: .*index .* is out of range for an axis of size 3; with a sign it is -1"):
        bp.nn.functional.embedding(bp.asarray([0, -1]), bp.ones((3, 2)))


def test_flatten_takes_numpys_orders():
    x = bp.arange(6).reshape(2, 3)
    assert x.flatten("F").tolist() == [0, 3, 1, 4, 2, 5] and x.flatten(order="C").tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(bp.ArgumentValueError, match="order: found 'Z'"):
        x.flatten("Z")


def test_a_histogram_inside_a_trace_asks_for_its_range():
    with pytest.raises(bp.ArgumentValueError, match="histogram: .*pass range="):
        bp.compile(lambda x: bp.histogram(x, bins=3)[0])(x())
    assert bp.compile(lambda x: bp.histogram(x, bins=3, range=(-4.0, 3.0))[0])(x()).tolist() == np.histogram(X, 3, (-4, 3))[0].tolist()


@pytest.mark.parametrize("bins", [[0.0, 1.0], (1.0, 0.0), np.asarray([0.0, 1.0])], ids=str)
def test_edges_that_are_no_tensor_are_not_read_in_a_trace(bins):
    assert bp.compile(lambda x: bp.digitize(x, bins))(x()).tolist() == np.digitize(X, np.asarray(bins)).tolist()
    with pytest.raises(bp.ArgumentValueError, match="edges that rise and fall"):
        bp.digitize(x(), [0.0, 2.0, 1.0])


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("sizes", [(3,), [2, 3]], ids=str)
def test_sizes_are_no_weight_of_a_norm(name, sizes):
    value = bp.ones((2, 3))
    with pytest.raises(bp.ArgumentTypeError, match=rf"^{name}: argument weight: found .*nn.functional.{name}\(x, .*; here, pass axis="):
        getattr(bp, name)(value, sizes)
    assert getattr(bp, name)(value, bp.ones(3), axis=-1).tolist() == getattr(bp, name)(value, [1.0] * 3, dim=[1]).tolist() == getattr(bp, name)(value).tolist()


def test_split_along_dim_has_pytorchs_pieces():
    value = bp.arange(12).reshape(6, 2)
    assert [len(part) for part in bp.split(value, 2)] == [3, 3] and [len(part) for part in bp.split(value, 4, dim=0)] == [4, 2]
    assert [part.shape[1] for part in bp.split(value, [1, 0, 1], dim=-1)] == [1, 0, 1] and len(bp.split(bp.ones((0, 2)), 2, dim=0)) == 1
    for sizes in ([4, 1], [7, -1]):
        with pytest.raises(bp.ArgumentValueError, match="split: found sizes .* expected counts whose sum is the axis's size, 6"):
            bp.split(value, sizes, dim=0)
