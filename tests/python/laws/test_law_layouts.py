"""layout: how its tensors lie in memory changes nothing of a result: strided, transposed, off the start, backward, or one slice
shown several times; in every dtype that the entry accepts. broadcast: an elementwise op on tensors whose shapes
broadcast = the op on tensors that were broadcast before.
"""

import backplane as bp
import numpy as np
import pytest
from law_inputs import arrays_of, is_array, is_array_list, tensor_of, tensors_of
from law_registry import INEXACT, cases, widest
from law_running import assert_same, call, to_array

LAYOUTS = ("strided", "transposed", "offset", "backward", "zero_stride")
# Generators whose promise a slice shown several times would break.
WHOLE = ("spd", "permutation", "distinct", "values")


def dtypes_of(case):
    sets = [set(arg.accepts) for arg in case.entry.args if arg.is_tensor and arg.promote and arg.name in case.sample]
    return sorted(set.intersection(*sets)) if sets else [widest(())]


def specs_of(case, name):
    value = case.sample[name]
    return value["tensors"] if "tensors" in value else [value.get("tensor")]


def laid_out(array, layout, dtype):
    """The same elements; `zero_stride` takes an array whose first axis repeats one slice."""
    if layout == "backward" and array.ndim:
        return bp.asarray(np.ascontiguousarray(np.flip(array)), dtype=dtype)[(slice(None, None, -1),) * array.ndim]
    return tensor_of(array, layout, dtype)


def shown_again(array, spec):
    """An array of one slice, repeated, so that a stride of 0 can stand for it."""
    if spec is None or not np.ndim(array) or spec["gen"].startswith(WHOLE):
        return array
    return np.ascontiguousarray(np.broadcast_to(array[:1], array.shape)) if array.shape[0] else array


def mapped(case, arrays, change):
    """`change(array, spec, argument)` of every tensor among the arguments; the others as a call takes them."""
    found = tensors_of(case, arrays)
    for name, value in arrays.items():
        arg = case.entry.arg(name)
        if is_array(value):
            found[name] = change(value, specs_of(case, name)[0], arg)
        elif arg.is_tensor and is_array_list(value):
            pairs = zip(value, specs_of(case, name))
            found[name] = [item if item is None else change(item, spec, arg) for item, spec in pairs]
    return found


def has_layouts(case):
    drawn = [spec for name in case.sample if case.entry.arg(name).is_tensor for spec in specs_of(case, name) if spec]
    return any(spec["shape"] for spec in drawn) and case.entry.compare not in ("distribution", "metadata")


def ordered(case, dtype):
    """Sums depend on the order of their terms, which may follow memory: equal up to rounding; all else exactly."""
    return case.entry.compare == "exact" or dtype not in INEXACT


@pytest.mark.parametrize("case", cases("layout", has_layouts))
def test_memory_layout_changes_nothing(case):
    for dtype in dtypes_of(case):
        arrays = arrays_of(case, dtype, own_dtype=False)
        for layout in LAYOUTS:

            def plain(array, spec, arg):
                return shown_again(array, spec) if layout == "zero_stride" else array

            def packed(array, spec, arg):
                return tensor_of(plain(array, spec, arg), "", getattr(bp, dtype) if arg.promote else None)

            def spread(array, spec, arg):
                keeps = layout == "zero_stride" and (not np.ndim(array) or spec["gen"].startswith(WHOLE))
                return laid_out(plain(array, spec, arg), "" if keeps else layout, getattr(bp, dtype) if arg.promote else None)

            expected = call(case, mapped(case, arrays, packed))
            found = call(case, mapped(case, arrays, spread))
            for result, reference in zip(found, expected):
                assert result.dtype is reference.dtype and result.shape == reference.shape, f"{dtype}, {layout}"
                tolerant = result.dtype if result.dtype.name in INEXACT else bp.float32
                try:
                    assert_same(case, to_array(result), to_array(reference), tolerant, exact=ordered(case, dtype))
                except AssertionError as error:
                    raise AssertionError(f"{dtype}, {layout}: {error}") from None


# ---- broadcasting ----


def shapes_within(array):
    """Parts of an array that broadcast back to its shape."""
    yield array[..., :1]
    yield array[:1]
    yield array[0]
    yield array[(0,) * array.ndim]


def broadcasts(case):
    drawn = [name for name, value in case.sample.items() if "tensor" in value and case.entry.arg(name).is_tensor]
    full = [name for name in drawn if case.sample[name]["tensor"]["shape"] and 0 not in case.sample[name]["tensor"]["shape"]]
    return "elementwise" in case.entry.flags and len(drawn) > 1 and bool(full) and case.entry.compare not in ("distribution", "metadata")


@pytest.mark.parametrize("case", cases("broadcast", broadcasts))
def test_broadcasting_is_what_it_was_written_out(case):
    dtype = widest(dtypes_of(case))
    arrays = arrays_of(case, dtype)
    whole = np.broadcast_shapes(*[np.shape(value) for value in arrays.values() if is_array(value)])
    for name, value in arrays.items():
        if not is_array(value) or not np.ndim(value) or 0 in np.shape(value):
            continue
        for part in shapes_within(value):
            changed = {**arrays, name: part}
            written_out = {
                other: np.ascontiguousarray(np.broadcast_to(array, whole)) if is_array(array) else array for other, array in changed.items()
            }
            expected = call(case, mapped(case, written_out, lambda array, spec, arg: tensor_of(array)))
            found = call(case, mapped(case, changed, lambda array, spec, arg: tensor_of(array)))
            for result, reference in zip(found, expected):
                shape = np.broadcast_shapes(*[np.shape(array) for array in changed.values() if is_array(array)])
                assert result.shape == shape
                seen = bp.broadcast_to(result, reference.shape)
                tolerant = result.dtype if result.dtype.name in INEXACT else bp.float32
                assert_same(case, to_array(seen), to_array(reference), tolerant)
