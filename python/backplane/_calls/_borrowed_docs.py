"""What the functions do that the package takes from backplane.compat: NumPy's and PyTorch's, under their names and with their arguments."""

__all__ = []

_TEXT = """
addmv: input * beta + alpha * (mat @ vec).
addr: input * beta + alpha * outer(vec1, vec2).
adjoint: The conjugate transpose of the last two axes.
apply_along_axis: func1d applied to each one-dimensional slice of arr along axis; its results take the place of the axis.
asanyarray: The values as a tensor, as asarray gives it.
bartlett_window: The triangular window of window_length points; periodic leaves out the last of one point more.
blackman_window: Blackman's window of window_length points; periodic leaves out the last of one point more.
block: Tensors in nested lists joined to one: the innermost lists along the last axis.
block_diag: A matrix with the given matrices on its diagonal and 0 elsewhere.
cartesian_prod: All combinations of the elements of vectors, as rows (n, number of vectors).
cdist: The p-norm distances between the rows of x1 (*, n, d) and of x2 (*, m, d): (*, n, m).
chain_matmul: The product of matrices, in the order that needs the fewest operations.
choose: The element of the choices[a] at each place.
clamp_max: The elements limited from above.
clamp_min: The elements limited from below.
combinations: All subsets of r elements of a vector, as rows.
conj_physical: The complex conjugate.
copyto: Writes src into dst, broadcast, where `where` is true.
cumulative_trapezoid: The cumulative integral by the trapezoidal rule along dim.
diag_embed: A tensor whose last axis becomes the diagonal of matrices in the axes dim1 and dim2.
diag_indices: The indices of the diagonal of a tensor of ndim axes of size n.
diag_indices_from: The indices of the diagonal of a tensor whose axes have one size.
diagonal_scatter: A copy of input whose diagonal is src.
dist: The p-norm of input - other.
extract: The elements where the condition is true, as a vector.
fill_diagonal: Writes values into the diagonal, in place.
fromfunction: The values of a function of the indices of a tensor of this shape.
ger: The outer product of two vectors.
hamming_window: Hamming's window of window_length points; periodic leaves out the last of one point more.
hann_window: Hann's window of window_length points; periodic leaves out the last of one point more.
histc: How many elements lie in each of `bins` equal parts of min to max (of the elements' range, where both are 0).
histogram2d: The counts of pairs (x, y) in a grid, and the edges of its bins.
histogram_bin_edges: The edges of the bins of histogram.
is_nonzero: Whether the only element is not 0.
is_same_size: Whether two tensors have the same shape.
is_signed: Whether the dtype has a sign.
iscomplexobj: Whether the dtype is complex.
isrealobj: Whether the dtype is real.
issubdtype: Whether a dtype is of a kind or equals another.
lexsort: The indices that sort by the last key first, then by those before it.
logaddexp2: log2(2**x + 2**y), without overflow.
logdet: The logarithm of the determinants of (*, n, n); NaN where one is negative.
mask_indices: The indices where a mask function of an n x n matrix keeps elements.
matvec: Products of matrices (*, m, n) with vectors (*, n).
mode: The most frequent value along dim, the smallest of several, and an index of it: (values, indices).
msort: The elements sorted along axis 0.
multinomial: num_samples indices drawn in proportion to the weights in each row.
pdist: The p-norm distances between all pairs of rows of (n, d): n (n - 1) / 2 of them.
piecewise: The value of the function whose condition holds, at each element.
pinverse: The pseudo-inverse of a matrix.
place: Writes values into a tensor, in place, where the mask is true, one after the other.
polar: Complex numbers of these absolute values and angles.
poly: The coefficients of the polynomial with these roots, highest power first.
polyadd: The sum of two polynomials, coefficients highest power first.
polyder: The derivative of a polynomial, m times.
polyfit: The coefficients, highest power first, of the polynomial of degree deg that fits y at x with the least squares.
polyint: The integral of a polynomial, m times, with constants k.
polymul: The product of two polynomials.
polysub: The difference of two polynomials.
put: Writes values into a tensor, in place, at flat indices.
putmask: Writes values into a tensor, in place, where the mask is true, at the same places of values.
randint_like: Random integers from low to below high, of the shape and dtype of input.
resize: The elements in a new shape, repeated as often as needed.
resolve_conj: The tensor itself: a conjugate is computed at once.
roots: The roots of a polynomial, coefficients highest power first.
rsub: other - alpha * input.
select_scatter: A copy of input with src at an index of dim.
slice_scatter: A copy of input with src in a slice of dim.
split_with_sizes: Parts of these sizes along dim.
trapz: The integral by the trapezoidal rule along dim.
tril_indices_from: The indices of the lower triangle of a matrix.
trim_zeros: A vector without the zeros at its ends.
triu_indices_from: The indices of the upper triangle of a matrix.
unique_consecutive: The elements without repetitions that follow one another.
vecmat: Products of vectors (*, m) with matrices (*, m, n).
view_as_complex: A last axis of pairs as complex numbers.
view_as_real: Complex numbers as a last axis of pairs.
"""
DOCS = dict(line.split(": ", 1) for line in _TEXT.strip().splitlines())


def documented(name, function):
    """The function, with its text and annotations if it has none yet."""
    if hasattr(function, "__code__") and not hasattr(function, "__wrapped__"):  # a wrapper has those of what it wraps
        code = function.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)]
        function.__annotations__ = {**dict.fromkeys((*names, "return"), "Any"), **function.__annotations__}
    if not function.__doc__ and name in DOCS:
        function.__doc__ = DOCS[name]
    return function
