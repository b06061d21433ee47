"""Idioms of NumPy, one a line, written from its documentation: what `np` and `backplane` compute alike from arrays and tensors.

Names: a (3, 4), b (4,), c (2, 3, 4) and s (3, 3) are floats, v (6,) and w (6,) vectors of them, i (3, 4) and j (6,) ints, t (3, 4) and u (6,)
bools, n (6,) floats with NaN, z (3,) complex numbers. Of a line with statements the last expression counts.
"""

IDIOMS = """
xp.asarray([1, 2, 3])
xp.array([[1.0, 2.0], [3.0, 4.0]])
xp.array([1, 2, 3], dtype=float)
xp.zeros((2, 3))
xp.full((2, 2), 7)
xp.full((2, 3), b[:3])
xp.eye(3)
xp.identity(3)
xp.arange(10)
xp.arange(2, 10, 3)
xp.arange(0, 1, 0.25)
xp.linspace(0, 1, 5)
xp.linspace(0, 1, 5, endpoint=False)
xp.logspace(0, 2, 4)
xp.geomspace(1, 8, 4)
xp.zeros_like(a)
xp.ones_like(i)
xp.full_like(a, 3)
xp.empty((2, 3)).shape
xp.tri(3)
xp.diag(b)
xp.diag(s)
xp.diag(s, k=1)
xp.vander(b[:3])
xp.meshgrid(v, b)[0]
xp.meshgrid(v, b, indexing="ij")[1]
xp.indices((2, 3))
xp.tril(s)
xp.triu(s, 1)
xp.tril_indices(3)[0]
a[0]
a[-1]
a[1, 2]
a[:, 1]
a[1:, ::2]
a[::-1]
v[::-2]
a[..., 0]
a[None].shape
a[xp.newaxis, :].shape
a[[0, 2]]
a[[0, 2], [1, 3]]
a[xp.ix_([0, 2], [1, 3])]
a[a > 0]
a[t]
a[t].sum()
v[j % 6]
c[0, :, 1]
x = a.copy(); x[0] = 1; x
x = a.copy(); x[x < 0] = 0; x
x = a.copy(); x[:, 1] += 10; x
x = a.copy(); x[[0, 2]] = 5; x
x = a.copy(); x[1:, 2:] = b[:2]; x
x = a.copy(); x += 1; x
x = a.copy(); x -= x.mean(); x
x = i.copy(); x //= 2; x
x = v.copy(); x[::2] = x[1::2]; x
a + b
a - 1
2 * a
a / b
a % 0.7
a ** 2
2 ** b
-a
abs(a)
a @ b
a @ a.T
b @ b
i & 3
i | 4
i ^ 1
~i
i << 1
i >> 1
t & ~t
t | t
t ^ True
a > 0
a == a
i != 2
(a > 0) & (a < 1)
(0 < v).any()
(v > 10).all()
t + t
t * t
u.sum()
u.mean()
~u
xp.maximum(t, ~t)
u.max()
u.argmax()
u.min()
xp.where(a > 0, a, 0)
xp.where(t)[0]
xp.where(u, v, w)
xp.clip(a, -0.5, 0.5)
a.clip(0, 1)
a.clip(min=0)
xp.minimum(a, 0)
xp.maximum(v, w)
xp.fmax(n, v)
xp.fmin(n, w)
xp.sign(a)
xp.abs(a)
xp.sqrt(abs(a))
xp.square(a)
xp.cbrt(a)
xp.exp(a)
xp.expm1(a)
xp.log(abs(a) + 1)
xp.log1p(abs(a))
xp.logaddexp(v, w)
xp.sin(a)
xp.cos(a)
xp.tan(a)
xp.arcsin(a / 9)
xp.arccos(a / 9)
xp.arctan(a)
xp.arctan2(v, w)
xp.hypot(v, w)
xp.tanh(a)
xp.deg2rad(a)
xp.rad2deg(a)
xp.sinc(a)
xp.floor(a)
xp.ceil(a)
xp.trunc(a)
xp.rint(a)
xp.round(a, 1)
a.round(2)
xp.power(abs(a), 0.5)
xp.add(a, b)
xp.subtract(a, b)
xp.multiply(a, b)
xp.divide(a, b)
xp.floor_divide(i, 2)
xp.mod(i, 3)
xp.remainder(a, 2)
xp.fmod(a, 2)
xp.negative(a)
xp.reciprocal(b)
xp.copysign(v, w)
xp.heaviside(a, 0.5)
xp.gcd(i, 4)
xp.lcm(i + 1, 4)
xp.isnan(n)
xp.isinf(n)
xp.isfinite(n)
xp.nan_to_num(n)
xp.logical_and(a > 0, a < 1)
xp.logical_or(i, t)
xp.logical_xor(i, 0)
xp.logical_not(i)
xp.bitwise_and(i, 3)
xp.equal(i, 2)
xp.greater_equal(a, 0)
xp.isclose(a, a + 1e-9)
xp.allclose(a, a + 1e-9)
xp.array_equal(a, a)
xp.sum(a)
xp.sum(a, axis=0)
a.sum(axis=1, keepdims=True)
a.sum((0, 1))
xp.prod(b)
a.prod(0)
xp.mean(a, axis=1)
a.mean()
xp.std(a)
a.std(axis=0, ddof=1)
a.var(1)
xp.var(a, ddof=1)
xp.median(a)
xp.median(a, axis=0)
xp.average(a, axis=1, weights=b)
xp.percentile(a, 30)
xp.quantile(a, [0.25, 0.75], axis=1)
a.max()
a.max(axis=0)
xp.min(a, axis=1)
xp.amin(a, 0)
xp.ptp(a, axis=0)
a.argmax()
a.argmax(axis=1)
xp.argmin(a, axis=0)
xp.any(t, axis=0)
t.all(axis=1)
xp.cumsum(a)
a.cumsum(axis=0)
a.cumsum()
xp.cumprod(b)
xp.diff(v)
xp.diff(a, axis=0)
xp.diff(v, 2)
xp.diff(v, prepend=xp.zeros(1))
xp.ediff1d(v)
xp.gradient(v)
xp.trapezoid(v)
xp.nansum(n)
xp.nanmean(n)
xp.nanmax(n)
xp.nanmin(n)
xp.nanstd(n)
xp.nanmedian(n)
xp.nanargmax(n)
xp.nanpercentile(n, 40)
xp.count_nonzero(i)
xp.count_nonzero(i, axis=0)
xp.nonzero(i)[1]
xp.argwhere(i)
xp.flatnonzero(j)
xp.sort(v)
xp.sort(a, axis=0)
xp.argsort(v)
a.argsort(axis=1)
v[xp.argsort(v)]
xp.sort(v)[::-1]
xp.partition(v, 2)[2]
v[xp.argpartition(v, 3)[3]]
xp.searchsorted(xp.sort(v), w)
xp.digitize(w, xp.sort(v))
xp.unique(j)
xp.unique(j, return_counts=True)[1]
xp.unique(j, return_inverse=True)[1]
xp.unique(j, return_index=True)[1]
xp.unique(i, axis=0)
xp.union1d(j, j + 1)
xp.intersect1d(j, j + 1)
xp.setdiff1d(j, j + 1)
xp.isin(j, [1, 2])
xp.bincount(j)
xp.bincount(j, weights=v)
xp.histogram(v, bins=4)[0]
xp.histogram(v, bins=4)[1]
xp.interp(w, xp.sort(v), v)
xp.polyval(b, v)
xp.convolve(v, b)
xp.convolve(v, b, mode="same")
xp.correlate(v, b)
xp.cov(a)
xp.corrcoef(a)
a.reshape(4, 3)
a.reshape(-1)
a.reshape((2, 6))
a.reshape(2, -1)
xp.reshape(a, (6, 2))
a.ravel()
a.flatten()
a.T
c.T
a.transpose()
c.transpose(2, 0, 1)
xp.transpose(c, (1, 0, 2))
xp.swapaxes(c, 0, 1)
xp.moveaxis(c, 0, -1)
xp.expand_dims(a, 0).shape
xp.squeeze(a[None]).shape
c.squeeze().shape
xp.concatenate([a, a])
xp.concatenate((a, a), axis=1)
xp.concatenate([a, c], axis=None)
xp.stack([v, w])
xp.stack([v, w], axis=1)
xp.vstack([v, w])
xp.hstack([v, w])
xp.column_stack([v, w])
xp.split(v, 3)[1]
xp.split(v, [2, 4])[2]
xp.array_split(v, 4)[0]
xp.hsplit(a, 2)[1]
xp.tile(b, 2)
xp.tile(b, (2, 1))
xp.repeat(b, 2)
xp.repeat(a, 2, axis=0)
xp.repeat(b, xp.asarray([1, 0, 2, 1]))
xp.append(v, [1.0, 2.0])
xp.append(a, a, axis=0)
xp.insert(v, 1, 5.0)
xp.insert(a, 1, b, axis=0)
xp.delete(v, 2)
xp.delete(a, [0, 2], axis=1)
xp.flip(a)
xp.flip(a, axis=1)
xp.fliplr(a)
xp.roll(v, 2)
xp.roll(a, 1, axis=0)
xp.roll(a, (1, 2), (0, 1))
xp.rot90(a)
xp.pad(v, 2)
xp.pad(a, ((1, 0), (0, 2)), constant_values=3)
xp.pad(v, 2, mode="reflect")
xp.pad(v, (1, 2), mode="edge")
xp.broadcast_to(b, (3, 4))
xp.broadcast_arrays(a, b)[1]
xp.broadcast_shapes((3, 1), (4,))
xp.atleast_2d(b).shape
xp.take(a, xp.asarray([0, 2]), axis=1)
a.take(xp.asarray([1, 0]), axis=0)
xp.take_along_axis(a, xp.argsort(a, axis=1), axis=1)
xp.dot(a, b)
xp.dot(s, s)
a.dot(b)
xp.vdot(v, w)
xp.inner(v, w)
xp.outer(v, b)
xp.matmul(a.T, a)
xp.tensordot(c, a, axes=([1, 2], [0, 1]))
xp.tensordot(s, s, 1)
xp.einsum("ij,j->i", a, b)
xp.einsum("ij->ji", a)
xp.einsum("ii", s)
xp.kron(b, v)
xp.cross(v[:3], w[:3])
xp.trace(s)
s.trace()
xp.diagonal(s)
s.diagonal()
xp.linalg.norm(v)
xp.linalg.norm(a, axis=1)
xp.linalg.norm(s, ord=2)
xp.linalg.inv(s)
xp.linalg.det(s)
xp.linalg.solve(s, v[:3])
xp.linalg.eigvalsh(s + s.T)
xp.linalg.svd(a)[1]
xp.linalg.matrix_rank(s)
xp.linalg.matrix_power(s, 3)
xp.linalg.pinv(a)
xp.linalg.cholesky(s @ s.T + xp.eye(3))
xp.linalg.slogdet(s)[1]
xp.linalg.lstsq(a.T, b)[0]
xp.fft.fft(v)
xp.fft.ifft(xp.fft.fft(v)).real
xp.fft.rfft(v)
xp.fft.irfft(xp.fft.rfft(v))
xp.fft.fft2(a)
xp.fft.fftfreq(6)
z.real
z.imag
z.conj()
xp.conj(z)
xp.real(z)
xp.angle(z)
a.real
a.imag
a.shape
a.ndim
a.size
a.nbytes
len(a)
a.astype(int)
a.astype(xp.float32)
i.astype(float)
a.copy()
xp.copy(a)
a.tolist()
v[0].item()
float(v[0])
int(j[0])
bool(u[0])
[x.item() for x in v]
a.min() < a.max()
xp.pi
xp.result_type(a, b) == a.dtype
xp.ndim(a)
xp.shape(a)
xp.size(a, 1)
xp.ravel_multi_index((xp.asarray([1, 2]), xp.asarray([0, 3])), (3, 4))
xp.unravel_index(xp.asarray([3, 7]), (3, 4))[0]
(a - a.mean(axis=0)) / a.std(axis=0)
xp.exp(a) / xp.exp(a).sum(axis=1, keepdims=True)
((a[:, None] - a[None]) ** 2).sum(-1)
xp.sqrt(((v - w) ** 2).mean())
xp.argmax(a, axis=1) == xp.argmin(a, axis=1)
xp.cumsum(xp.ones(5))[-1]
xp.sum(a * b, axis=-1)
xp.mean(a > 0)
xp.eye(3)[xp.asarray([2, 0, 1])]
xp.sum([1, 2, 3])
xp.mean([1.0, 2.0])
xp.max([3, 1, 2])
xp.where([True, False], [1, 2], [3, 4])
xp.dot([1, 2], [3, 4])
"""
