"""Idioms of PyTorch, one a line, written from its documentation, and what they give, in NumPy.

Left of the arrow `torch` is backplane and F its nn.functional; names are those of numpy_idioms.py, and k (2, 3) ints below 3, l (3,) ints
below 4 (labels), g (2, 3, 8, 8) images, h (5, 3, 3, 3) kernels. Of a line with statements the last expression counts.
"""

IDIOMS = """
torch.tensor([1.0, 2.0]) -> np.array([1.0, 2.0])
torch.tensor([[1, 2], [3, 4]]) -> np.array([[1, 2], [3, 4]])
torch.tensor([1, 2], dtype=torch.float64) -> np.array([1.0, 2.0])
torch.as_tensor([1, 2]) -> np.array([1, 2])
torch.from_numpy(torch.ones(2).numpy()) -> np.ones(2)
torch.zeros(2, 3) -> np.zeros((2, 3))
torch.ones((2, 3)) -> np.ones((2, 3))
torch.zeros(3, requires_grad=True).requires_grad -> True
torch.full((2, 2), 3.0) -> np.full((2, 2), 3.0)
torch.eye(3) -> np.eye(3)
torch.arange(5) -> np.arange(5)
torch.arange(1, 6, 2) -> np.arange(1, 6, 2)
torch.linspace(0, 1, 5) -> np.linspace(0, 1, 5)
torch.logspace(0, 2, 3) -> np.logspace(0, 2, 3)
torch.zeros_like(a) -> np.zeros_like(a)
torch.ones_like(a) -> np.ones_like(a)
torch.full_like(a, 2.0) -> np.full_like(a, 2.0)
torch.empty(2, 3).shape == (2, 3) -> True
torch.empty_like(a).shape == a.shape -> True
torch.rand(2, 3).shape == (2, 3) -> True
torch.randn(2, 3).shape == (2, 3) -> True
torch.randint(0, 5, (4,)).dtype == torch.int64 -> True
torch.randperm(6).sort(dim=0).values.tolist() -> list(range(6))
torch.rand_like(a).shape == a.shape -> True
torch.manual_seed(3); x = torch.rand(2); torch.manual_seed(3); torch.equal(x, torch.rand(2)).all() -> True
torch.bernoulli(torch.ones(3)) -> np.ones(3)
torch.normal((3,)).shape == (3,) -> True
torch.is_tensor(a) -> True
torch.numel(a) -> 12
a.numel() -> 12
a.dim() -> 2
a.ndim -> 2
a.shape == (3, 4) -> True
a.size == 12 -> True
a.dtype == torch.float64 -> True
a.device == "cpu" -> True
a.to("cpu") -> a
a.to(torch.float32) -> a.astype(np.float32)
a.to(dtype=torch.float32) -> a.astype(np.float32)
a.to(device="cpu", dtype=torch.float64) -> a
a.float() -> a.astype(np.float32)
a.double() -> a
i.long() -> i
i.bool() -> i != 0
a.int() -> a.astype(np.int32)
a.half().dtype == torch.float16 -> True
a.type_as(i) -> a.astype(int)
a.cpu() -> a
a.item() if a.numel() == 1 else 0 -> 0
a[0, 0].item() -> a[0, 0].item()
a.tolist() -> a.tolist()
a.numpy() -> a
a.detach() -> a
a.data -> a
a.clone() -> a
a.contiguous() -> a
a.is_contiguous -> True
a.T.contiguous() -> a.T
a.requires_grad -> False
a.clone().requires_grad_().requires_grad -> True
a.is_floating_point() -> True
z.is_complex() -> True
a.view(4, 3) -> a.reshape(4, 3)
a.view(-1) -> a.reshape(-1)
a.view(2, -1) -> a.reshape(2, -1)
a.reshape(2, 6) -> a.reshape(2, 6)
a.reshape(-1) -> a.reshape(-1)
a.flatten() -> a.ravel()
c.flatten(1) -> c.reshape(2, 12)
torch.flatten(c, 0, 1) -> c.reshape(6, 4)
c.unflatten(2, (2, 2)) -> c.reshape(2, 3, 2, 2)
a.t() -> a.T
a.T -> a.T
c.mT -> c.swapaxes(1, 2)
c.permute(2, 0, 1) -> c.transpose(2, 0, 1)
torch.permute(c, (1, 0, 2)) -> c.transpose(1, 0, 2)
c.transpose(0, 2) -> c.transpose(2, 1, 0)
torch.swapaxes(c, 0, 1) -> c.swapaxes(0, 1)
c.swapdims(0, 1) -> c.swapaxes(0, 1)
torch.movedim(c, 0, 2) -> np.moveaxis(c, 0, 2)
a.unsqueeze(0) -> a[None]
torch.unsqueeze(a, -1) -> a[..., None]
a[None].squeeze() -> a
a[None].squeeze(0) -> a
torch.squeeze(a[:, None], 1) -> a
b.expand(3, 4) -> np.broadcast_to(b, (3, 4))
b.expand(3, -1) -> np.broadcast_to(b, (3, 4))
b.expand_as(a) -> np.broadcast_to(b, (3, 4))
torch.broadcast_to(b, (3, 4)) -> np.broadcast_to(b, (3, 4))
b.repeat(2) -> np.tile(b, 2)
b.repeat(3, 1) -> np.tile(b, (3, 1))
b.tile(2, 1) -> np.tile(b, (2, 1))
torch.tile(b, (2,)) -> np.tile(b, 2)
b.repeat_interleave(2) -> np.repeat(b, 2)
torch.repeat_interleave(a, 2, dim=0) -> np.repeat(a, 2, 0)
torch.cat([a, a]) -> np.concatenate([a, a])
torch.cat((a, a), dim=1) -> np.concatenate([a, a], 1)
torch.cat([a, a], 1) -> np.concatenate([a, a], 1)
torch.concat([a, a], dim=0) -> np.concatenate([a, a])
torch.stack([v, w]) -> np.stack([v, w])
torch.stack((v, w), dim=1) -> np.stack([v, w], 1)
torch.vstack([v, w]) -> np.vstack([v, w])
torch.hstack([v, w]) -> np.hstack([v, w])
torch.chunk(v, 3) -> tuple(np.split(v, 3))
v.chunk(2) -> tuple(np.split(v, 2))
v.split(2) -> tuple(np.split(v, 3))
torch.tensor_split(v, 4)[0] -> np.array_split(v, 4)[0]
a.unbind(0)[1] -> a[1]
torch.unbind(a, dim=1)[0] -> a[:, 0]
a.narrow(1, 1, 2) -> a[:, 1:3]
a.select(0, 1) -> a[1]
a.index_select(0, torch.tensor([0, 2])) -> a[[0, 2]]
torch.index_select(a, 1, torch.tensor([1])) -> a[:, [1]]
a.gather(1, torch.tensor([[0], [1], [2]])) -> np.take_along_axis(a, np.array([[0], [1], [2]]), 1)
torch.gather(a, 0, torch.tensor([[0, 1, 2, 0]])) -> np.take_along_axis(a, np.array([[0, 1, 2, 0]]), 0)
torch.take_along_dim(a, a.argsort(1), 1) -> np.sort(a, 1)
a.masked_fill(a > 0, 0.0) -> np.where(a > 0, 0, a)
a.masked_select(a > 0) -> a[a > 0]
torch.masked_select(a, t) -> a[t]
torch.where(a > 0, a, torch.zeros_like(a)) -> np.where(a > 0, a, 0)
torch.where(a > 0, a, 0.0) -> np.where(a > 0, a, 0)
a[a > 0] -> a[a > 0]
a[:, 1] -> a[:, 1]
a[..., -1] -> a[..., -1]
a[torch.tensor([0, 2])] -> a[[0, 2]]
a[[0, 2]] -> a[[0, 2]]
x = a.clone(); x[0] = 0; x -> np.concatenate([np.zeros((1, 4)), a[1:]])
x = a.clone(); x[x < 0] = 0; x -> np.maximum(a, 0)
x = a.clone(); x.add_(1); x -> a + 1
x = a.clone(); x.mul_(2); x -> a * 2
x = a.clone(); x.sub_(1); x -> a - 1
x = a.clone(); x.div_(2); x -> a / 2
x = a.clone(); x.zero_(); x -> np.zeros_like(a)
x = a.clone(); x.fill_(3.0); x -> np.full_like(a, 3)
x = a.clone(); x.copy_(b); x -> np.broadcast_to(b, (3, 4))
x = a.clone(); x.clamp_(min=0); x -> np.maximum(a, 0)
x = a.clone(); x.masked_fill_(x > 0, 0); x -> np.where(a > 0, 0, a)
x = a.clone(); x.index_add_(0, torch.tensor([0, 0]), a[:2]); x -> np.concatenate([a[:1] + a[:2].sum(0), a[1:]])
x = a.clone(); x.index_fill_(1, torch.tensor([0]), 9.0); x -> np.where(np.arange(4) == 0, 9, a)
x = a.clone(); x.index_copy_(0, torch.tensor([2]), a[:1]); x -> np.concatenate([a[:2], a[:1]])
x = torch.zeros(3, 4, dtype=torch.float64); x.scatter_(1, torch.tensor([[1], [2], [0]]), 1.0); x -> np.eye(4)[[1, 2, 0]]
torch.zeros(3, 4).scatter(1, l.unsqueeze(1), 1.0) -> np.eye(4)[l]
torch.zeros(5, dtype=torch.float64).scatter_add(0, j, v) -> np.bincount(j, v, minlength=5)
torch.zeros(4, dtype=torch.float64).index_add(0, j, v) -> np.bincount(j, v, minlength=4)
x = a.clone(); x += 1; x -> a + 1
x = a.clone(); x[:, 0] *= 2; x[:, 0] -> a[:, 0] * 2
a + b -> a + b
a - 1 -> a - 1
a * 2.0 -> a * 2
a / b -> a / b
a // 0.5 -> a // 0.5
a % 0.7 -> a % 0.7
a ** 2 -> a ** 2
-a -> -a
a @ b -> a @ b
i & 1 -> i & 1
t | t -> t
~t -> ~t
t ^ t -> t ^ t
t + t -> t
a > 0 -> a > 0
a.gt(0) -> a > 0
a.lt(b) -> a < b
a.eq(a) -> a == a
torch.ne(i, 1) -> i != 1
a.ge(0) & a.le(1) -> (a >= 0) & (a <= 1)
torch.equal(i, i).all() -> True
torch.allclose(a, a) -> True
torch.isclose(a, a + 1e-9) -> np.isclose(a, a + 1e-9)
torch.add(a, b) -> a + b
torch.sub(a, b) -> a - b
torch.mul(a, b) -> a * b
torch.div(a, b) -> a / b
torch.true_divide(i, 2) -> i / 2
torch.pow(a, 2) -> a ** 2
a.pow(3) -> a ** 3
torch.remainder(a, 2) -> np.remainder(a, 2)
torch.fmod(a, 2) -> np.fmod(a, 2)
torch.neg(a) -> -a
torch.abs(a) -> abs(a)
a.abs() -> abs(a)
torch.sign(a) -> np.sign(a)
torch.sqrt(b) -> np.sqrt(b)
b.rsqrt() -> 1 / np.sqrt(b)
torch.square(a) -> a ** 2
torch.reciprocal(b) -> 1 / b
torch.exp(a) -> np.exp(a)
torch.expm1(a) -> np.expm1(a)
torch.log(b) -> np.log(b)
torch.log1p(b) -> np.log1p(b)
b.log2() -> np.log2(b)
torch.sin(a) -> np.sin(a)
torch.atan2(v, w) -> np.arctan2(v, w)
torch.tanh(a) -> np.tanh(a)
torch.sigmoid(a) -> 1 / (1 + np.exp(-a))
torch.relu(a) -> np.maximum(a, 0)
torch.erf(torch.zeros(2)) -> np.zeros(2)
torch.lgamma(torch.ones(2)) -> np.zeros(2)
torch.floor(a) -> np.floor(a)
torch.ceil(a) -> np.ceil(a)
torch.round(a) -> np.round(a)
torch.trunc(a) -> np.trunc(a)
torch.frac(a) -> a - np.trunc(a)
torch.clamp(a, -1, 1) -> np.clip(a, -1, 1)
a.clamp(min=0) -> np.maximum(a, 0)
torch.clip(a, 0, 1) -> np.clip(a, 0, 1)
torch.maximum(v, w) -> np.maximum(v, w)
torch.minimum(v, w) -> np.minimum(v, w)
torch.lerp(v, w, 0.5) -> v + 0.5 * (w - v)
torch.addcmul(v, w, w, value=2) -> v + 2 * w * w
torch.addcdiv(v, w, abs(w) + 1) -> v + w / (abs(w) + 1)
torch.hypot(v, w) -> np.hypot(v, w)
torch.logaddexp(v, w) -> np.logaddexp(v, w)
torch.isnan(n) -> np.isnan(n)
torch.isfinite(n) -> np.isfinite(n)
torch.nan_to_num(n) -> np.nan_to_num(n)
torch.logical_and(a > 0, b > 1) -> np.logical_and(a > 0, b > 1)
torch.logical_not(i) -> i == 0
torch.bitwise_and(i, 3) -> i & 3
a.sum() -> a.sum()
a.sum(dim=1) -> a.sum(1)
a.sum(1, keepdim=True) -> a.sum(1, keepdims=True)
torch.sum(a, dim=(0, 1)) -> a.sum()
u.sum() -> u.sum()
a.mean() -> a.mean()
a.mean(dim=0) -> a.mean(0)
a.mean(-1, keepdim=True) -> a.mean(-1, keepdims=True)
a.prod() -> a.prod()
a.std(dim=0) -> a.std(0, ddof=1)
a.var(dim=1) -> a.var(1, ddof=1)
a.std(dim=0, unbiased=False) -> a.std(0)
a.var(dim=1, correction=0) -> a.var(1)
a.max() -> a.max()
a.max(dim=1).values -> a.max(1)
a.max(dim=1).indices -> a.argmax(1)
a.min(dim=0)[0] -> a.min(0)
values, indices = a.max(dim=1); indices -> a.argmax(1)
torch.amax(a, dim=1) -> a.max(1)
a.amin(dim=(0, 1)) -> a.min()
a.argmax() -> a.argmax()
a.argmax(dim=1) -> a.argmax(1)
torch.argmin(a, dim=0) -> a.argmin(0)
a.median() -> np.median(a)
v[:5].median(dim=0).values -> np.median(v[:5])
torch.quantile(a, 0.3) -> np.quantile(a, 0.3)
t.any() -> t.any()
t.all(dim=1) -> t.all(1)
torch.any(t, dim=0) -> t.any(0)
torch.cumsum(a, dim=0) -> a.cumsum(0)
a.cumsum(1) -> a.cumsum(1)
torch.cumprod(a, dim=1) -> a.cumprod(1)
torch.cummax(v, 0).values -> np.maximum.accumulate(v)
torch.logsumexp(a, dim=1) -> np.log(np.exp(a).sum(1))
torch.diff(v) -> np.diff(v)
a.norm() -> np.linalg.norm(a)
a.norm(dim=1) -> np.linalg.norm(a, axis=1)
torch.norm(v, p=1) -> abs(v).sum()
torch.linalg.norm(s) -> np.linalg.norm(s)
torch.linalg.vector_norm(v) -> np.linalg.norm(v)
torch.count_nonzero(i) -> np.count_nonzero(i)
torch.nansum(n) -> np.nansum(n)
torch.nanmean(n) -> np.nanmean(n)
torch.sort(v).values -> np.sort(v)
torch.sort(v, dim=0).values -> np.sort(v)
v.sort(dim=-1, descending=True).values -> np.sort(v)[::-1]
torch.argsort(v) -> np.argsort(v)
torch.argsort(v, descending=True) -> np.argsort(-v)
torch.topk(v, 2).values -> np.sort(v)[::-1][:2]
v.topk(2, largest=False).indices -> np.argsort(v)[:2]
torch.topk(a, 2, dim=1).indices -> np.argsort(-a, 1)[:, :2]
torch.unique(j) -> np.unique(j)
torch.unique(j, return_counts=True)[1] -> np.unique(j, return_counts=True)[1]
torch.unique(i, dim=0) -> np.unique(i, axis=0)
torch.bincount(j) -> np.bincount(j)
torch.searchsorted(torch.arange(5), torch.tensor([2])) -> np.array([2])
torch.bucketize(v, torch.tensor([0.0])) -> np.searchsorted([0.0], v)
torch.nonzero(j)[0] -> np.nonzero(j)[0]
torch.flip(v, dims=(0,)) -> v[::-1]
torch.flip(a, [1]) -> a[:, ::-1]
torch.roll(v, 1) -> np.roll(v, 1)
torch.roll(a, shifts=1, dims=0) -> np.roll(a, 1, 0)
torch.roll(a, 1, 0) -> np.roll(a, 1, 0)
torch.rot90(a) -> np.rot90(a)
torch.tril(s) -> np.tril(s)
torch.triu(s, diagonal=1) -> np.triu(s, 1)
torch.diag(b) -> np.diag(b)
torch.diagonal(s) -> np.diagonal(s)
torch.trace(s) -> np.trace(s)
torch.outer(v, b) -> np.outer(v, b)
torch.dot(v, w) -> v @ w
torch.mm(a, a.t()) -> a @ a.T
torch.mv(a, b) -> a @ b
torch.matmul(a, b) -> a @ b
torch.bmm(c, c.mT) -> c @ c.swapaxes(1, 2)
torch.addmm(s, s, s) -> s + s @ s
torch.einsum("bij,bkj->bik", c, c) -> np.einsum("bij,bkj->bik", c, c)
torch.einsum("ij->i", a) -> a.sum(1)
torch.tensordot(s, s, 1) -> s @ s
torch.kron(b, v) -> np.kron(b, v)
torch.cross(v[:3], w[:3]) -> np.cross(v[:3], w[:3])
torch.linalg.inv(s) -> np.linalg.inv(s)
torch.inverse(s) -> np.linalg.inv(s)
torch.linalg.det(s) -> np.linalg.det(s)
torch.linalg.solve(s, v[:3]) -> np.linalg.solve(s, v[:3])
torch.linalg.svdvals(a) -> np.linalg.svd(a)[1]
torch.linalg.eigvalsh(s + s.T) -> np.linalg.eigvalsh(s + s.T)
torch.linalg.cholesky(s @ s.T) -> np.linalg.cholesky(s @ s.T)
torch.linalg.matrix_rank(s) -> np.linalg.matrix_rank(s)
torch.fft.fft(v) -> np.fft.fft(v)
torch.fft.rfft(v) -> np.fft.rfft(v)
torch.meshgrid(v, b, indexing="ij")[0] -> np.meshgrid(v, b, indexing="ij")[0]
torch.real(z) -> z.real
z.real -> z.real
z.imag -> z.imag
z.conj() -> z.conj()
torch.angle(z) -> np.angle(z)
z.abs() -> abs(z)
F.relu(a) -> np.maximum(a, 0)
F.gelu(torch.zeros(2)) -> np.zeros(2)
F.silu(a) -> a / (1 + np.exp(-a))
F.leaky_relu(a, 0.1) -> np.where(a > 0, a, 0.1 * a)
F.elu(a) -> np.where(a > 0, a, np.exp(a) - 1)
F.softplus(a) -> np.log1p(np.exp(a))
F.sigmoid(a) -> 1 / (1 + np.exp(-a))
F.tanh(a) -> np.tanh(a)
F.softmax(a, dim=1) -> np.exp(a) / np.exp(a).sum(1, keepdims=True)
a.softmax(dim=-1) -> np.exp(a) / np.exp(a).sum(1, keepdims=True)
torch.softmax(a, dim=0) -> np.exp(a) / np.exp(a).sum(0)
F.log_softmax(a, dim=1) -> a - np.log(np.exp(a).sum(1, keepdims=True))
F.cross_entropy(a, l) -> -(a - np.log(np.exp(a).sum(1, keepdims=True)))[np.arange(3), l].mean()
F.nll_loss(a, l) -> -a[np.arange(3), l].mean()
F.mse_loss(v, w) -> ((v - w) ** 2).mean()
F.mse_loss(v, w, reduction="sum") -> ((v - w) ** 2).sum()
F.l1_loss(v, w) -> abs(v - w).mean()
F.binary_cross_entropy_with_logits(v, u.double()) -> (np.log1p(np.exp(-abs(v))) + np.maximum(v, 0) - v * u).mean()
F.one_hot(l, 4) -> np.eye(4, dtype=int)[l]
F.embedding(k, s) -> s[k]
F.linear(a, a) -> a @ a.T
F.linear(a, a, b[:3]) -> a @ a.T + b[:3]
F.layer_norm(a, (4,), eps=0.0) -> (a - a.mean(1, keepdims=True)) / a.std(1, keepdims=True)
F.dropout(a, p=0.0) -> a
F.dropout(a, training=False) -> a
F.normalize(a, dim=1) -> a / np.linalg.norm(a, axis=1, keepdims=True)
F.cosine_similarity(v, w, dim=0) -> v @ w / np.linalg.norm(v) / np.linalg.norm(w)
F.pad(v, (1, 2)) -> np.pad(v, (1, 2))
F.pad(a, (1, 1, 0, 2), value=3.0) -> np.pad(a, ((0, 2), (1, 1)), constant_values=3)
F.conv2d(g, h).shape == (2, 5, 6, 6) -> True
F.conv2d(g, h, padding=1, stride=2).shape == (2, 5, 4, 4) -> True
F.max_pool2d(g, 2) -> g.reshape(2, 3, 4, 2, 4, 2).max((3, 5))
F.max_pool2d(g, 2).reshape(-1) -> g.reshape(2, 3, 4, 2, 4, 2).max((3, 5)).reshape(-1)
F.adaptive_max_pool2d(g, 4, return_indices=True)[0] -> g.reshape(2, 3, 4, 2, 4, 2).max((3, 5))
F.avg_pool2d(g, 2) -> g.reshape(2, 3, 4, 2, 4, 2).mean((3, 5))
F.adaptive_avg_pool2d(g, 1) -> g.mean((2, 3), keepdims=True)
F.interpolate(g, scale_factor=2).shape == (2, 3, 16, 16) -> True
F.batch_norm(a, torch.zeros(4, dtype=torch.float64), torch.ones(4, dtype=torch.float64), eps=0.0) -> a
F.scaled_dot_product_attention(c, c, c).shape == c.shape -> True
x = v.clone().requires_grad_(); (x ** 2).sum().backward(); x.grad -> 2 * v
x = v.clone().requires_grad_(); y = (x * w).sum(); y.backward(); x.grad -> w
x = torch.ones(3, requires_grad=True); (2 * x).sum().backward(); x.grad.zero_(); x.grad -> np.zeros(3)
x = v.clone().requires_grad_(); y = x.detach() * x; y.sum().backward(); x.grad -> v
torch.no_grad().__enter__() is None -> False
torch.set_grad_enabled(True) >= 0 -> True
torch.set_printoptions(precision=4) -> None
torch.get_num_threads() > 0 -> True
torch.vmap(torch.dot)(a, a) -> (a * a).sum(1)
torch.vmap(lambda x: x.sum())(a) -> a.sum(1)
torch.finfo(torch.float32).eps -> np.finfo(np.float32).eps
torch.iinfo(torch.int32).max -> 2 ** 31 - 1
torch.promote_types(torch.int32, torch.float32) == torch.float32 -> True
torch.get_default_dtype() == torch.float32 -> True
len(a) -> 3
[x.item() for x in v] -> v.tolist()
torch.stack([x * 2 for x in a]) -> a * 2
1.0 - torch.eye(2) -> 1.0 - np.eye(2)
(a.unsqueeze(1) - a.unsqueeze(0)).pow(2).sum(-1) -> ((a[:, None] - a[None]) ** 2).sum(-1)
(a - a.mean(dim=0)) / a.std(dim=0) -> (a - a.mean(0)) / a.std(0, ddof=1)
(a.argmax(dim=1) == l).float().mean() -> np.float32((a.argmax(1) == l).mean())
torch.cat([x.unsqueeze(0) for x in a], dim=0) -> a
torch.triu(torch.ones(3, 3), diagonal=1).bool() -> np.triu(np.ones((3, 3)), 1) > 0
a.masked_fill(~t, float("-inf")).softmax(dim=-1).sum(dim=-1) -> np.where(t.any(1), 1.0, np.nan)
torch.arange(3)[:, None] < torch.arange(4) -> np.arange(3)[:, None] < np.arange(4)
"""
