"""What the functions do that the package takes from backplane.compat: NumPy's and PyTorch's, under their names and with their arguments."""

__all__ = []

_TEXT = """
addbmm: input * beta + alpha * the sum of the products of matrices (b, n, m) and (b, m, p): (n, p).
addmv: input * beta + alpha * (mat @ vec).
addr: input * beta + alpha * outer(vec1, vec2).
adjoint: The conjugate transpose of the last two axes.
apply_along_axis: func1d applied to each one-dimensional slice of arr along axis; its results take the place of the axis.
apply_over_axes: func(a, axis) applied for each of the axes in turn; the axes stay, with the size 1.
asanyarray: The values as a tensor, as asarray gives it.
bartlett_window: The triangular window of window_length points; periodic leaves out the last of one point more.
base_repr: An integer's text in another base.
binary_repr: An integer's text in binary.
binomial: Random numbers of successes in `count` trials of probability `prob`, for each element.
bitwise_count: The number of ones in the binary form of each element's absolute value.
blackman_window: Blackman's window of window_length points; periodic leaves out the last of one point more.
block: Tensors in nested lists joined to one: the innermost lists along the last axis.
block_diag: A matrix with the given matrices on its diagonal and 0 elsewhere.
cartesian_prod: All combinations of the elements of vectors, as rows (n, number of vectors).
cdist: The p-norm distances between the rows of x1 (*, n, d) and of x2 (*, m, d): (*, n, m).
chain_matmul: The product of matrices, in the order that needs the fewest operations.
cholesky_inverse: The inverse of the matrix whose Cholesky factor is given, the lower one unless upper is true.
cholesky_solve: The solution x of A @ x = B, given A's Cholesky factor L, the lower one unless upper is true.
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
einsum_path: The order of pairs in which einsum would contract, and a report of its cost.
extract: The elements where the condition is true, as a vector.
fill_diagonal: Writes values into the diagonal, in place.
frexp: The mantissa, from 0.5 to below 1 by its absolute value, and the exponent of 2, an integer: (mantissa, exponent).
frombuffer: A vector of the values in a buffer of bytes.
fromfile: A vector of the values in a binary or a text file.
fromfunction: The values of a function of the indices of a tensor of this shape.
fromiter: A vector of the values of an iterable.
fromstring: A vector of the numbers in a text.
genfromtxt: A tensor of the numbers in a text file, in which some may be missing.
ger: The outer product of two vectors.
hamming_window: Hamming's window of window_length points; periodic leaves out the last of one point more.
hann_window: Hann's window of window_length points; periodic leaves out the last of one point more.
histc: How many elements lie in each of `bins` equal parts of min to max (of the elements' range, where both are 0).
histogram2d: The counts of pairs (x, y) in a grid, and the edges of its bins.
histogram_bin_edges: The edges of the bins of histogram.
histogramdd: The counts of points (n, d) in a grid of d dimensions, and the edges of its bins.
index_reduce: A copy of input in which the slices of source were multiplied, averaged, or compared (amax, amin) into the slices `index` of dim.
is_nonzero: Whether the only element is not 0.
is_same_size: Whether two tensors have the same shape.
is_signed: Whether the dtype has a sign.
iscomplexobj: Whether the dtype is complex.
isrealobj: Whether the dtype is real.
issubdtype: Whether a dtype is of a kind or equals another.
istft: The signal of a short-time Fourier transform (*, frequencies, frames): the inverse of stft, by overlapping and adding.
kaiser_window: Kaiser's window of window_length points; periodic leaves out the last of one point more. beta: its shape.
lexsort: The indices that sort by the last key first, then by those before it.
loadtxt: A tensor of the numbers in a text file, a row per line.
logaddexp2: log2(2**x + 2**y), without overflow.
logdet: The logarithm of the determinants of (*, n, n); NaN where one is negative.
mask_indices: The indices where a mask function of an n x n matrix keeps elements.
masked_scatter: A copy of input whose elements where the mask is true are those of source, one after the other.
matvec: Products of matrices (*, m, n) with vectors (*, n).
may_share_memory: Whether the memory of two tensors might overlap.
min_scalar_type: The smallest dtype that holds a number.
mode: The most frequent value along dim, the smallest of several, and an index of it: (values, indices).
msort: The elements sorted along axis 0.
multinomial: num_samples indices drawn in proportion to the weights in each row.
mvlgamma: The logarithm of the multivariate gamma function of p dimensions.
packbits: Bools or integers packed as bits into uint8, along an axis or flat.
pca_lowrank: The first q principal components of the rows of a matrix: (U, S, V).
pdist: The p-norm distances between all pairs of rows of (n, d): n (n - 1) / 2 of them.
piecewise: The value of the function whose condition holds, at each element.
pinverse: The pseudo-inverse of a matrix.
place: Writes values into a tensor, in place, where the mask is true, one after the other.
poisson: Random numbers of Poisson's distribution with the given rates, for each element.
polar: Complex numbers of these absolute values and angles.
poly: The coefficients of the polynomial with these roots, highest power first.
polyadd: The sum of two polynomials, coefficients highest power first.
polyder: The derivative of a polynomial, m times.
polydiv: The quotient and the remainder of two polynomials, coefficients highest power first.
polyfit: The coefficients, highest power first, of the polynomial of degree deg that fits y at x with the least squares.
polyint: The integral of a polynomial, m times, with constants k.
polymul: The product of two polynomials.
polysub: The difference of two polynomials.
put: Writes values into a tensor, in place, at flat indices.
putmask: Writes values into a tensor, in place, where the mask is true, at the same places of values.
randint_like: Random integers from low to below high, of the shape and dtype of input.
real_if_close: The real parts, where all imaginary parts are close to 0; else the tensor.
renorm: The slices along dim, those scaled down whose p-norm is above maxnorm.
resize: The elements in a new shape, repeated as often as needed.
resolve_conj: The tensor itself: a conjugate is computed at once.
roots: The roots of a polynomial, coefficients highest power first.
rsub: other - alpha * input.
savetxt: Writes a vector or a matrix to a text file, a row per line.
savez: Writes tensors to one .npz file, under the given names or arr_0, arr_1 and so on.
savez_compressed: Writes tensors to one compressed .npz file, under the given names or arr_0, arr_1 and so on.
scatter_reduce: A copy of input in which the elements of src were added, multiplied, averaged, or compared (amax, amin) at the indices along dim.
select_scatter: A copy of input with src at an index of dim.
shares_memory: Whether two tensors have elements in the same memory.
slice_scatter: A copy of input with src in a slice of dim.
sort_complex: The elements sorted by their real parts, then by their imaginary parts, as complex numbers.
spacing: The distance from each number to the next one of its dtype, away from 0.
split_with_sizes: Parts of these sizes along dim.
stft: The Fourier transforms of windows of a signal (*, n): (*, frequencies, frames). n_fft: the window's size, hop_length: the step (a quarter of it).
svd_lowrank: The q largest singular values of a matrix, and their vectors: (U, S, V).
trapz: The integral by the trapezoidal rule along dim.
tril_indices_from: The indices of the lower triangle of a matrix.
trim_zeros: A vector without the zeros at its ends.
triu_indices_from: The indices of the upper triangle of a matrix.
unique_consecutive: The elements without repetitions that follow one another.
unpackbits: The bits of uint8 elements, as uint8 of 0 and 1.
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
