"""What to write for attributes of NumPy's, PyTorch's and JAX's objects that tensors, ops and generators have not; read once one was asked for."""

from ._hints import rows

# Of tensors.
OF_TENSORS = """
detach_: x = x.detach()
fill_diagonal_: x[range(n), range(n)] = value
put_: x[positions] = values
dist: backplane.linalg.norm(x - y)
get_device: x.device
storage_offset: x.numpy(), over the same memory
flat: x.reshape(-1), which indexes and iterates over all elements
grad_fn: x.grad_op, the name of the op that made it
retain_grad: x.register_hook(function), which sees the gradient of any tensor
is_cuda: x.device.backend == "cuda"
type: x.dtype, or x.to(dtype)
data_ptr ctypes: numpy.asarray(x).ctypes, or x.__dlpack__()
storage untyped_storage: x.numpy(), over the same memory
as_strided: reshape, unfold or broadcast_to
unsqueeze_ squeeze_ t_ transpose_ resize_ resize: x = x.reshape(shape): a tensor's shape does not change
partition: backplane.partition(x, k), a copy
put: x[positions] = values
itemset: x[index] = value
choose: backplane.take_along_axis(backplane.stack(choices), x[None], axis=0)[0]
searchsorted: backplane.searchsorted(x, values)
setflags flags: backplane.copy(x) where another memory is wanted
byteswap newbyteorder: x.numpy()
dump dumps: pickle.dumps(x)
tofile: x.numpy().tofile(file)
masked_scatter: x[condition] = values
map_ apply_: the function itself on x, or vmap(function)(x)
cuda: x.to("cuda")
at: x = x + 0; x[index] = value: jax.numpy's x.at[index].set(value) is an assignment
block_until_ready: backplane.synchronize()
addr: x + a[:, None] * b
clamp_min clamp_max: x.clip(min=..., max=...)
compress: backplane.compress(condition, x, axis)
ger: x.outer(y)
values indices: x.max(dim=axis), min, sort and topk with dim=, which give pairs of that name
is_cpu: x.device.backend == "cpu"
is_mps is_xpu is_meta is_vulkan: x.device.backend == name
layout is_sparse is_quantized is_nested: nothing: all tensors are dense
to_sparse to_dense coalesce: nothing: all tensors are dense
names name: a name of your own: axes have numbers alone
share_memory_ is_shared: x.numpy() in multiprocessing.shared_memory
mode: backplane.unique(x, return_counts=True), and argmax of the counts
unique_consecutive: x[backplane.concat([backplane.asarray([True]), x[1:] != x[:-1]])]
histc: backplane.histogram(x, bins, range)[0]
multinomial: argmax(log(p) - log(-log(rand(count, n))), axis=-1) of backplane, which draws with replacement
bernoulli bernoulli_: backplane.bernoulli(p)
exponential_: x.copy_(-backplane.log(backplane.rand(*x.shape)) / rate)
log_normal_: x.normal_(mean, std).exp_()
random_: x.copy_(backplane.randint(low, high, x.shape))
allclose: backplane.allclose(x, y)
cross: backplane.linalg.cross(x, y)
kron: backplane.kron(x, y)
hsplit vsplit dsplit: backplane.hsplit(x, n), vsplit and dsplit
split_with_sizes: backplane.split(x, sizes, dim=0)
solve lstsq: backplane.linalg.solve(a, b), or lstsq
cholesky_solve triangular_solve: backplane.linalg.solve_triangular
logdet: backplane.linalg.slogdet(x), whose logabsdet is of the absolute value
pinverse: backplane.linalg.pinv(x)
diag_embed: x[..., None] * backplane.eye(n)
msort: x.sort(dim=0).values
is_nonzero: bool(x)
is_signed: x.dtype.kind
is_same_size: x.shape == y.shape
is_conj is_neg is_inference: nothing: no tensor is a lazy view
resolve_conj resolve_neg conj_physical: x.conj()
adjoint: x.mH
new: x.new_empty(shape)
cfloat: x.to(backplane.complex64)
cdouble: x.to(backplane.complex128)
char: x.to(backplane.int8)
retains_grad register_post_accumulate_grad_hook: x.register_hook(function)
record_stream: nothing: memory waits for the streams that use it
select_scatter slice_scatter diagonal_scatter: y = x.clone(); y[index] = values
tril_ triu_ cumsum_ cumprod_ abs_ addmm_ baddbmm_ addmv_ masked_scatter_ swapaxes_ swapdims_: x[...] = the function's result, or x = it
resize_as_ set_: x = y
base: nothing: backplane.copy(x) has memory of its own
getfield setfield: x.numpy().view(dtype)
frexp: numpy.frexp on x.numpy(), on the host
"""

# Of ops, which NumPy's ufuncs have.
OF_OPS = """
reduce: sum, prod, max, min, all, any, logsumexp
accumulate: cumsum, cumprod, cummax, cummin
reduceat: segment_sum
outer: the op on x[:, None] and y
at: index_add, scatter_add, or x[positions] = values
"""

# Of generators, which NumPy's default_rng(seed) has; g is the generator.
OF_GENERATORS = """
random: backplane.rand(*shape, generator=g)
normal: backplane.normal(mean, std, shape, generator=g)
standard_normal: backplane.randn(*shape, generator=g)
uniform: backplane.uniform(low, high, shape, generator=g)
integers randint: backplane.randint(low, high, shape, generator=g)
permutation: backplane.permutation(n, generator=g), by which x[...] puts elements in random order
shuffle permuted: x = x[backplane.permutation(len(x), generator=g)]
choice: x[backplane.randint(0, len(x), shape, generator=g)], or without replacement x[backplane.permutation(len(x), generator=g)[:count]]
exponential standard_exponential: -backplane.log1p(-backplane.rand(*shape, generator=g)) * scale
lognormal: backplane.exp(backplane.normal(mean, std, shape, generator=g))
multivariate_normal: mean + backplane.randn(n, d, generator=g) @ backplane.linalg.cholesky(cov).T
beta binomial gamma poisson multinomial: backplane.asarray of what numpy.random.default_rng(seed) gives
seed: g.manual_seed(seed)
get_state set_state bit_generator: g.state
"""

_TEXTS = {"Tensor": OF_TENSORS, "Op": OF_OPS, "Generator": OF_GENERATORS}


def of_object(kind, name):
    """What to write for an attribute that objects of the kind have not."""
    return f"; use {dict(rows(_TEXTS[kind]))[name]}"
