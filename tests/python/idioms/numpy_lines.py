"""Further lines of NumPy that users type without thinking, beside those of its documentation (numpy_idioms.py): the same names, one a line.

Not among them is what differs on purpose: promotion of int32 with float32, `x == None`, digits beyond float32, NaNs of `unique`.
"""

IDIOMS = """
xp.zeros(3, dtype=int)
xp.zeros((2, 3), dtype="float64")
xp.arange(5.0)
xp.arange(5, dtype=float)
xp.arange(10)[::-2]
xp.array(3.0)
xp.array([])
xp.array([[]]).shape
xp.array([1, 2.5, True])
xp.array([True, False])
xp.array([1+2j, 3])
xp.asarray(range(4))
xp.asarray((1, 2, 3))
xp.array([v[0], v[1]])
xp.array(a, copy=True)
xp.full(3, xp.nan)
xp.full(3, xp.inf)
xp.full((2,), True)
xp.empty(0).shape
xp.zeros(())
xp.zeros(0).sum()
xp.zeros((0, 3)).mean(axis=1)
xp.ones(3).cumsum()[-1]
a[..., None].shape
a[:, :, None].shape
a[None, ..., None].shape
a[a.argmax(axis=0), xp.arange(4)]
a[xp.arange(3), a.argmin(axis=1)]
a[[True, False, True]]
a[:, [True, False, True, False]]
a[xp.array([[0, 1], [2, 0]])].shape
a[slice(1, 3), 0]
x = a.copy(); x[1] = x[0]; x
x = a.copy(); x[0], x[1] = x[1].copy(), x[0].copy(); x
x = a.copy(); x[[0, 1]] = x[[1, 0]]; x
x = a.copy(); x[:, ::2] = 0; x
x = a.copy(); x[x > 0] *= 2; x
x = a.copy(); x[x < 0] = -x[x < 0]; x
x = a.copy(); x[t] = v[:int(t.sum())] if int(t.sum()) <= 6 else 0; x
x = a.copy(); x[1, :] = [1, 2, 3, 4]; x
x = a.copy(); x[:] = 7; x
x = a.copy(); x[...] = b; x
x = a.copy(); x.T[0] = 5; x
x = i.copy(); x += 1; x
x = i.copy(); x *= 3; x
x = i.copy(); x **= 2; x
x = i.copy(); x <<= 1; x
x = i.copy(); x %= 2; x
x = t.copy(); x &= ~t; x
x = t.copy(); x |= True; x
x = v.copy(); x[j % 6] += 1; x
x = xp.zeros(5); x[j] = v; x.shape
x = a.copy(); x.fill(3); x
a.strides[0] > 0
a.dtype == xp.float64
a.dtype.name
a.astype("float32").dtype.name
a.astype(bool)
i.astype(bool)
t.astype(int)
a.astype(xp.int64)
(a * 100).astype(xp.int8)
a.squeeze()
a.swapaxes(0, 1)
a.diagonal()
a.nonzero()[0]
v.argsort()[::-1]
v.argpartition(2)[2]
i.clip(1, 3)
i.clip(None, 3)
i.clip(max=2)
a.conjugate()
a.mean(axis=(0, 1))
a.mean(axis=-1, keepdims=True)
a.sum(axis=None)
a.sum(dtype=xp.float32)
i.sum(axis=1, dtype=float)
a.prod(axis=1)
a.std(axis=1, keepdims=True)
a.var(ddof=1, axis=0)
a.all(axis=0)
a.argmax(axis=0, keepdims=True)
a.cumprod(axis=1)
float(a.sum())
int(i.sum())
complex(z[0])
bool(a.any())
v.tolist()[0]
[float(x) for x in v]
sorted(v)[0]
abs(v).max()
round(float(v[0]), 2)
divmod(i, 3)[0]
divmod(7, i + 1)[1]
5 / (i + 1)
5 // (i + 1)
xp.matmul(c, a.T)
xp.dot(3, 4)
xp.dot(a, 2)
xp.multiply(2, 3)
xp.invert(i)
xp.left_shift(i, 2)
xp.right_shift(i, 1)
xp.positive(a)
xp.absolute(a)
xp.modf(a)[0]
xp.ldexp(v, 2)
xp.log10(b)
xp.arcsinh(v)
xp.arccosh(b + 1)
xp.arctanh(v / 9)
xp.degrees(v)
xp.radians(v)
xp.divmod(v, 2)[1]
xp.nextafter(v, w)
xp.signbit(v)
xp.isposinf(v)
xp.isneginf(v)
xp.isreal(z)
xp.iscomplex(z)
xp.isin(i, [1, 2], invert=True)
xp.setxor1d(j, j + 1)
xp.select([v > 0, v < -1], [v, -v], 0)
xp.compress(u, v)
xp.nan_to_num(n, nan=1.0)
xp.nancumsum(n)
xp.nanprod(n)
xp.nanvar(n)
xp.nanargmin(n)
xp.nanquantile(n, 0.5)
xp.percentile(a, [25, 50])
xp.quantile(v, 0.5, method="lower")
xp.median(a, axis=1, keepdims=True)
xp.average(v, weights=abs(w))
xp.histogram(v, bins=[-2, 0, 2])[0]
xp.histogram(v, bins=3, range=(-1, 1))[0]
xp.digitize(v, [-1, 0, 1])
xp.searchsorted([1, 2, 3], 2)
xp.searchsorted([1, 2, 3], [2, 4], side="right")
xp.cumsum(a, axis=1)
xp.cumulative_sum(v)
xp.cumulative_sum(v, include_initial=True)
xp.cumulative_prod(v)
xp.trapezoid(v, dx=0.5)
xp.trapezoid(v, xp.sort(w))
xp.gradient(a, axis=0)
xp.gradient(v, 2.0)
xp.polyval([1, 2, 3], v)
xp.vander(v[:3], 3)
xp.triu_indices(3)[1]
xp.diagflat(v[:3])
xp.broadcast_shapes((3, 1), (1, 4))
xp.rollaxis(c, 2).shape
xp.ascontiguousarray(a.T)
xp.flip(v)
xp.flipud(a)
xp.rot90(a, 2)
xp.roll(a, 1)
xp.roll(a, -1, axis=1)
xp.tile(a, (2, 1))
xp.repeat(a, [1, 2, 0], axis=0)
xp.kron(s, xp.eye(2))
xp.outer(v, w)
xp.cross(s[0], s[1])
xp.einsum("ij,ij->i", a, a)
xp.einsum("...i,i", a, b)
xp.einsum("i,j", v, w)
xp.einsum("ij,jk", s, s)
xp.einsum("bij->bj", c)
xp.einsum(a, [0, 1], b, [1])
xp.tensordot(a, a, axes=2)
xp.tensordot(a, b, axes=1)
xp.linalg.norm(a)
xp.linalg.norm(a, "fro")
xp.linalg.norm(v, 1)
xp.linalg.norm(v, xp.inf)
xp.linalg.norm(a, 2)
xp.linalg.norm(a, axis=0, keepdims=True)
xp.linalg.cond(s)
xp.linalg.eig(s)[0].real.sum()
xp.linalg.eigh(s + s.T)[0]
xp.linalg.eigvals(s).sum().real
xp.linalg.qr(s)[1].shape
xp.linalg.svd(a, full_matrices=False)[0].shape
xp.linalg.svd(a, compute_uv=False)
xp.linalg.matrix_norm(s)
xp.linalg.vector_norm(v)
xp.linalg.multi_dot([s, s, s])
xp.linalg.solve(s, s)
xp.linalg.det(xp.stack([s, s]))
xp.linalg.lstsq(a.T, b, rcond=None)[0]
xp.linalg.trace(s)
xp.linalg.diagonal(s)
xp.linalg.outer(v, w)
xp.linalg.cross(s[0], s[1])
xp.fft.fft(a, axis=0)
xp.fft.fft(v, 8)
xp.fft.fft(v, n=4)
xp.fft.fft(v, norm="ortho")
xp.fft.ifft(z)
xp.fft.fftn(a)
xp.fft.ifft2(a)
xp.fft.rfft2(a)
xp.fft.fftshift(v)
xp.fft.fftshift(a, axes=1)
xp.fft.rfftfreq(6, 0.1)
xp.fft.fftfreq(6, d=0.5)
xp.allclose(v, v)
xp.allclose(v, w, rtol=0.1)
xp.array_equal(v, w)
xp.array_equiv(v, v)
xp.isclose(n, n, equal_nan=True)
xp.iinfo(xp.int32).max
xp.finfo(xp.float32).tiny > 0
xp.can_cast(xp.int32, xp.int64)
xp.promote_types(xp.int8, xp.uint8) == xp.int16
xp.newaxis is None
xp.count_nonzero(t)
xp.count_nonzero(a > 0, axis=1)
xp.argwhere(a > 0)
xp.nonzero(a > 0)[0]
xp.where(a > 0)[1]
xp.where(v > 0, 1, -1)
xp.where(v > 0, 1.0, 0)
xp.where(v > 0, v, xp.nan)
xp.clip(v, 0, None)
xp.clip(v, None, 0)
xp.clip(i, 0.5, 2.5)
xp.clip(a, b - 1, b)
xp.clip(v, a_min=0, a_max=1)
xp.round(v, decimals=2)
xp.around(v, 1)
xp.sum(xp.array([1, 2, 3]) == 2)
xp.sum(a, 0)
xp.sum(a, axis=1, keepdims=True)
xp.mean([[1, 2], [3, 4]], axis=0)
xp.std([1, 2, 3])
xp.maximum(3, 4)
xp.minimum(v, 0.5)
xp.sqrt(4)
xp.sqrt([1, 4, 9])
xp.sin(xp.pi / 2)
xp.abs(-3)
xp.cumsum([1, 2, 3])
xp.unique([3, 1, 3])
xp.unique(a > 0)
xp.unique_counts(j)[1]
xp.concatenate([v, [1.0]])
xp.concatenate([[1, 2], [3.5]])
xp.hstack([1, 2])
xp.vstack([1, 2])
xp.stack([[1, 2], [3, 4]], axis=1)
xp.dstack([v, w]).shape
xp.append([1, 2], 3)
xp.insert([1, 2, 3], 1, 9)
xp.delete([1, 2, 3], 0)
xp.split(xp.arange(6), 2)[0]
xp.array_split(xp.arange(7), 3)[2]
xp.expand_dims(v, axis=(0, 2)).shape
xp.squeeze(xp.ones((1, 3, 1)), axis=2).shape
xp.reshape(a, -1)
xp.reshape(a, (4, -1))
a.reshape(4, 3, order="F")
a.reshape([2, 6])
a.ravel(order="F")
xp.ravel(a)
xp.transpose(a)
xp.matrix_transpose(c).shape
xp.permute_dims(c, (2, 0, 1)).shape
xp.moveaxis(c, [0, 1], [1, 0]).shape
xp.atleast_1d(3.0)
xp.diag(a)
xp.diag(a, -1)
xp.diagonal(c, axis1=1, axis2=2).shape
xp.tril(a, -1)
xp.meshgrid(v, w, sparse=True)[0].shape
xp.linspace(0, 10)
xp.linspace(0, 1, num=3)
xp.linspace(1, 3, 3, dtype=int)
xp.logspace(0, 1, 3, base=2)
xp.geomspace(1, 1000, num=4)
xp.eye(2, 3, 1)
xp.eye(3, k=-1)
xp.eye(3, dtype=int)
xp.ones_like(a, dtype=int)
xp.zeros_like(i, dtype=float)
xp.full_like(i, 2.5)
xp.full_like(a, 2, dtype=int)
xp.empty_like(a).shape
xp.take(v, 2)
xp.take(v, [0, -1])
xp.take(a, [0, 1], axis=1)
xp.convolve([1, 2, 3], [0, 1, 0.5])
xp.correlate([1, 2, 3], [0, 1, 0.5], "full")
xp.interp(2.5, [1, 2, 3], [3, 2, 0])
xp.interp([2.5, 0], [1, 2, 3], [3, 2, 0])
xp.cov(v, w)
xp.corrcoef(v, w)[0, 1]
xp.bincount([1, 1, 3])
xp.bincount(xp.array([0, 1, 1]), minlength=5)
xp.angle(z, deg=True)
xp.unwrap(v * 4)
xp.sinc(v)
xp.heaviside(v, 0.5)
xp.hypot(3, 4)
xp.lcm(4, 6)
xp.gcd(12, 18)
xp.isfinite(v).all()
xp.nan == xp.nan
xp.tri(3, 4, 1)
xp.vecdot(a, a)
xp.astype(i, xp.float64)
xp.concat([v, w])
xp.unstack(a)[0]
xp.isdtype(a.dtype, "real floating")
xp.acos(a / 9)
xp.pow(b, 2)
xp.bitwise_left_shift(i, 1)
xp.array([200], dtype=xp.uint8) + xp.array([100], dtype=xp.uint8)
xp.array([200], dtype=xp.uint8) + 100
xp.array([1], dtype=xp.int8) * 2
xp.array([1], dtype=xp.int8) + xp.array([1], dtype=xp.int64)
xp.array([1.5], dtype=xp.float32) + 1.0
xp.array([1.5], dtype=xp.float32) * xp.array([2])
-xp.array([1], dtype=xp.uint8)
~xp.array([1], dtype=xp.uint8)
abs(xp.array([-128], dtype=xp.int8))
xp.array([7, -7]) // xp.array([2, 2])
xp.array([7, -7]) % xp.array([-3, 3])
xp.array([1e10]).astype(xp.float32)
xp.array([3]) ** 0
xp.array([2]) ** xp.array([10])
xp.array([0.0]) ** 0
xp.mod(-1, 3)
xp.fmod(xp.array([-7.0]), 3)
xp.sign(xp.array([-0.0, xp.nan]))
xp.maximum(xp.array([xp.nan]), 1.0)
xp.argmax(n)
xp.sort(n)
xp.argsort(n)
xp.median(n)
xp.cumsum(n)
xp.mean(xp.array([1, 2], dtype=xp.int8))
xp.sum(xp.array([200, 100], dtype=xp.uint8))
xp.prod(xp.array([200, 2], dtype=xp.uint8))
z == z.conj()
z.real + z.imag
xp.exp(1j * v)
xp.sqrt(z)
xp.dot(z, z)
xp.vdot(z, z)
xp.abs(z) ** 2
(z * z.conj()).real
xp.roll(c, (1, 1), axis=(0, 2))
xp.swapaxes(c, -1, 0).shape
c.sum(axis=(0, 2))
c.max(axis=(1, 2))
c.reshape(2, -1).shape
c[:, 0, :].shape
c[0].T.shape
c.transpose(0, 2, 1).shape
c.mean(axis=0).std()
c[..., ::-1]
c[[0, 1], [1, 2]].shape
c[:, [0, 2], 1:3].shape
c[:, [0, 2], [1, 3]].shape
c[[0, 1], :, [1, 3]].shape
c[c > 0].shape
c[c.sum(axis=(1, 2)) > 0].shape
c[..., [1]]. shape
xp.moveaxis(c, -1, 0).shape
a.item(0)
a.item(1, 2)
x = a.copy(); x.sort(); x
x = a.copy(); x.flat[3]
xp.histogram2d(v, w, bins=2)[0]
xp.piecewise(v, [v < 0, v >= 0], [-1, 1])
xp.block([[s, s], [s, s]])
xp.r_[1:4, 0, 4]
xp.mgrid[0:2, 0:3]
xp.add.reduce(v)
xp.apply_along_axis(lambda r: r.sum(), 1, a)
xp.polyfit(v, w, 2)
xp.random.rand(2, 3).shape
xp.packbits(j)
xp.issubdtype(a.dtype, xp.floating)
xp.sum(a, where=t)
"""
