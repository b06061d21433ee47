"""What to write for attributes of NumPy's, PyTorch's and JAX's objects that tensors, ops and generators have not; read once one was asked for."""

from ._hints import rows

# Of tensors.
OF_TENSORS = """
detach_: x = x.detach()
storage_offset: x.numpy(), over the same memory
data_ptr ctypes: numpy.asarray(x).ctypes, or x.__dlpack__()
storage untyped_storage: x.numpy(), over the same memory
unsqueeze_ squeeze_ t_ transpose_ resize_ resize: x = x.reshape(shape): a tensor's shape does not change
itemset: x[index] = value
setflags flags: backplane.copy(x) where another memory is wanted
put: x[positions] = values, which writes as NumPy's method; PyTorch's gives a copy: compat.torch.put(x, index, source)
byteswap newbyteorder: x.numpy()
dump dumps: pickle.dumps(x)
tofile: x.numpy().tofile(file)
map_ apply_: the function itself on x, or vmap(function)(x)
block_until_ready: backplane.synchronize()
values indices: x.max(dim=axis), min, sort and topk with dim=, which give pairs of that name
is_mps is_xpu is_meta is_vulkan: x.device.backend == name
is_nested: nothing: all tensors are dense
to_sparse to_dense coalesce: nothing: all tensors are dense
names name: a name of your own: axes have numbers alone
share_memory_ is_shared: x.numpy() in multiprocessing.shared_memory
solve lstsq: backplane.linalg.solve(a, b), or lstsq
new: x.new_empty(shape)
retains_grad register_post_accumulate_grad_hook: x.register_hook(function)
record_stream: nothing: memory waits for the streams that use it
swapaxes_ swapdims_: x[...] = the function's result, or x = it
resize_as_ set_: x = y
base: nothing: backplane.copy(x) has memory of its own
getfield setfield: x.numpy().view(dtype)
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
