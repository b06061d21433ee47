"""to_graph's table: Fourier transforms, factorisations and triangular systems."""

import backplane as bp

from ._jaxpr_table import computes, refuse


@computes("fft")
def fourier(x, *, fft_type, fft_lengths):
    axes = tuple(range(x.ndim - len(fft_lengths), x.ndim))
    kind = getattr(fft_type, "name", str(fft_type)).rpartition(".")[2]
    functions = {"FFT": bp.fft.fftn, "IFFT": bp.fft.ifftn, "RFFT": bp.fft.rfftn, "IRFFT": bp.fft.irfftn}
    kind = {"0": "FFT", "1": "IFFT", "2": "RFFT", "3": "IRFFT"}.get(kind, kind)
    return functions[kind](x, s=tuple(fft_lengths), axes=axes)


@computes("cholesky")
def cholesky(x, *, symmetrize_input=True):
    """Without symmetrize_input JAX reads the lower triangle alone."""
    if not symmetrize_input:
        below = bp.tril(x, k=-1)
        x = bp.tril(x) + bp.conj(below.mT)
    return bp.linalg.cholesky(x)


@computes("triangular_solve")
def triangular_solve(a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    """The y with op(a) y = b, or y op(a) = b."""
    if not left_side:  # y op(a) = b is op(a)^T y^T = b^T
        a, b = a.mT, b.mT
        lower = not lower
    if conjugate_a:
        a = bp.conj(a)
    if transpose_a:
        a, lower = a.mT, not lower
    y = bp.ops.bp.solve_triangular(a, b, upper=not lower, unit_diagonal=unit_diagonal)
    return y if left_side else y.mT


@computes("lu")
def lu(x):
    return list(bp.ops.bp.lu_factor(x))


@computes("lu_pivots_to_permutation")
def permutation_of(pivots, *, permutation_size):
    def of_one(pivots):
        places = bp.arange(permutation_size, dtype=pivots.dtype, device=pivots.device)

        def exchange(order, row):
            i, other = row
            at_i, at_other = bp.take(order, i, axis=0), bp.take(order, other, axis=0)
            return bp.where(places == i, at_other, bp.where(places == other, at_i, order)), ()

        return bp.scan(exchange, places, (places[: pivots.shape[0]], pivots))[0]

    for _ in range(pivots.ndim - 1):
        of_one = bp.vmap(of_one)
    return of_one(pivots)


@computes("qr")
def qr(x, *, full_matrices, pivoting=False, use_magma=None):
    if pivoting:
        refuse("qr with pivoting is not supported")
    return list(bp.linalg.qr(x, mode="complete" if full_matrices else "reduced"))


@computes("eigh")
def eigh(x, *, lower, sort_eigenvalues=True, subset_by_index=None, algorithm=None, implementation=None):
    if subset_by_index not in (None, (0, x.shape[-1])):
        refuse("eigh of some eigenvalues is not supported")
    values, vectors = bp.linalg.eigh(x, UPLO="L" if lower else "U")
    return [vectors, values]


@computes("svd")
def svd(x, *, full_matrices, compute_uv, subset_by_index=None, algorithm=None):
    if subset_by_index not in (None, (0, min(x.shape[-2:]))):
        refuse("svd of some singular values is not supported")
    if not compute_uv:
        return [bp.linalg.svdvals(x)]
    u, s, vh = bp.linalg.svd(x, full_matrices=full_matrices)
    return [s, u, vh]


@computes("clz")
def leading_zeros(x):
    dtype, bits = x.dtype, 8 * x.dtype.itemsize
    if not bp.isdtype(x.dtype, "unsigned integer"):
        x = bp.bitcast(x, getattr(bp, f"uint{bits}"))
    found = bp.full(x.shape, bits, dtype=x.dtype, device=x.device)
    for place in range(bits):
        found = bp.where(bp.bitwise_right_shift(x, place) > 0, bp.full((), bits - 1 - place, dtype=x.dtype, device=x.device), found)
    return bp.cast(found, dtype)


@computes("population_count")
def ones(x):
    bits = 8 * x.dtype.itemsize
    found = bp.zeros_like(x)
    one = bp.ones((), dtype=x.dtype, device=x.device)
    for place in range(bits):
        found = found + bp.bitwise_and(bp.bitwise_right_shift(x, place), one)
    return found


@computes("platform_index")
def platform(*, device, platforms):
    """The branch for the CPU, or else the one for all platforms that are not named."""
    chosen = next((i for i, names in enumerate(platforms) if names is not None and "cpu" in names), None)
    return bp.full((), platforms.index(None) if chosen is None else chosen, dtype=bp.int32, device=device)


@computes("optimization_barrier")
def barrier(*inputs):
    return list(inputs)


@computes("name")
def named(x, *, name):
    return x


@computes("eig")
def eig(x, *, compute_left_eigenvectors, compute_right_eigenvectors, enable_eigvec_derivs=False, implementation=None):
    if compute_left_eigenvectors:
        refuse("left eigenvectors of eig are not supported")
    if not compute_right_eigenvectors:
        return [bp.linalg.eigvals(x)]
    return list(bp.linalg.eig(x))


@computes("householder_product")
def householder_product(x, taus):
    """The first columns of the product of the reflections I - tau v v^H."""
    rows, columns = x.shape[-2:]
    low = bp.tril(x, k=-1)
    eye = bp.eye(rows, columns, dtype=x.dtype, device=x.device)
    vectors, found = low + eye, bp.broadcast_to(eye, x.shape)
    for i in reversed(range(taus.shape[-1])):
        vector = bp.slice(vectors, [-1], [i], [i + 1], [1])
        tau = bp.expand_dims(bp.slice(taus, [-1], [i], [i + 1], [1]), axis=-1)
        found = found - tau * (vector @ (bp.conj(vector.mT) @ found))
    return found


@computes("tridiagonal_solve")
def tridiagonal_solve(lower, middle, upper, b, *, perturb_singular=False):
    """As a full system, which is solved with pivots."""
    if perturb_singular:
        refuse("tridiagonal_solve with perturb_singular is not supported")
    n = middle.shape[-1]
    rows = bp.expand_dims(bp.arange(n, device=middle.device), axis=1)
    distance = bp.expand_dims(bp.arange(n, device=middle.device), axis=0) - rows
    matrix = bp.zeros((*middle.shape, n), dtype=middle.dtype, device=middle.device)
    for offset, line in ((-1, lower), (0, middle), (1, upper)):
        matrix = bp.where(bp.equal(distance, offset), bp.expand_dims(line, axis=-1), matrix)
    return bp.linalg.solve(matrix, b)
