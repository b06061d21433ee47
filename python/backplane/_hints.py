"""What to write for names of NumPy, PyTorch and JAX that this package has not; read once such a name was asked for in vain."""

import sys

# Of the package: a name or several, and what does the same.
_OF_PACKAGE = """
int: int32 as a dtype of PyTorch's name, int64 for Python's ints
float: float32, or Python's float, which is default_dtype()
cfloat complex: complex64; of two real tensors x + 1j * y
cdouble: complex128
Size: a tuple; x.shape is one
FloatTensor: asarray(values, dtype=backplane.float32)
DoubleTensor: asarray(values, dtype=backplane.float64)
LongTensor: asarray(values, dtype=backplane.int64)
ndarray DeviceArray: Tensor
scalar_tensor: asarray(value)
autograd: x.backward(), gradients(outputs, inputs), or the transforms grad, vjp, jvp, jacrev, hessian
func: the same names in backplane itself: grad, vjp, jvp, vmap, jacrev, jacfwd, hessian
jit: compile(function)
numpy jnp: backplane itself, which has NumPy's functions
lax: cond, while_loop, scan, map and the functions of backplane itself
random: rand, randn, randint, uniform, normal, permutation, with generator=Generator(seed) or after manual_seed(seed)
seed: manual_seed(seed)
default_rng: Generator(seed), as generator= of the random functions
dtype: DType, the type of x.dtype, which names such as "float32" and NumPy's dtypes equal
bool_: bool, as a dtype backplane.bool
choice: take(x, randint(0, n, shape)), or argsort of random numbers
multinomial categorical: argmax(log(p) - log(-log(rand(count, n))), axis=-1), which draws with replacement
shuffle: take(x, permutation(n), axis=0), or randperm(n)
sliding_window_view: x.unfold(axis, size, 1)
as_strided lib stride_tricks: x.unfold(axis, size, step) for windows, broadcast_to, reshape and slices for other views
special: the functions of backplane itself: erf, sigmoid, logit, lgamma, digamma, …
expit: sigmoid(x)
gammaln: lgamma(x)
ndtr: (1 + erf(x / 2**0.5)) / 2
tree_map tree_util: backplane.tree.map
fori_loop: scan or while_loop, or a loop in Python
custom_vjp custom_jvp: custom_function(f), then f.defvjp or f.defjvp
eval_shape: add.infer(...), which every op has, or make_graph(function)(*args)
make_jaxpr: make_graph(function)(*args)
linearize: jvp(function, primals, tangents), or vjp
dynamic_slice: x[start : start + size]
dynamic_update_slice: x[start : start + size] = values
cumulative_trapezoid cumtrapz: cumsum((y[1:] + y[:-1]) / 2 * diff(x), axis=0)
pmap: vmap, which runs a batch on one device
optim: the update by hand, under no_grad: w -= rate * w.grad
device_put: x.to(device)
device_get: x.numpy()
block_until_ready: synchronize()
cuda: device("cuda"), synchronize("cuda"), memory_stats("cuda")
save: export for functions; numpy.savez of x.numpy(), or pickle, for tensors
load_state_dict state_dict: a dict of tensors, by pickle or numpy.savez
DataLoader utils: slices of tensors: x[i : i + n]
apply_along_axis: vmap(function, in_axes=axis, out_axes=axis)
vectorize: vmap(function), or the function itself, whose operators take tensors
fromfunction: function(*indices(shape))
piecewise: where(condition, x, y), in each other
choose: take_along_axis(stack(choices), index[None], axis=0)[0]
extract: x[condition]
place putmask copyto: x[condition] = values
put: x[positions] = values
r_ c_: concat, column_stack and arange
mgrid ogrid: meshgrid(..., indexing="ij") or indices(shape)
s_ index_exp: slice(start, stop, step), or the index itself
ndindex ndenumerate nditer: loops over x.tolist(), or no loop
block: concat of concats
block_diag: zeros and slices: x[:n, :n] = a
matrix mat: asarray, and @ for products
asfortranarray asarray_chkfinite require: asarray
frombuffer fromstring fromiter fromfile loadtxt genfromtxt: asarray of what NumPy's function gives
polyfit: linalg.lstsq(vander(x, n + 1), y)
poly1d: polyval(coefficients, x)
roots: linalg.eigvals of the companion matrix
lexsort: argsort by the last key first, each stable
histogram2d histogramdd: bincount(ravel_multi_index(...))
spacing: nextafter(x, inf) - x
issubdtype: isdtype(x.dtype, "real floating")
floating: isdtype(x.dtype, "real floating")
integer: isdtype(x.dtype, "integral")
number: isdtype(x.dtype, "numeric")
errstate seterr: nothing: no floating-point error is reported
array2string array_repr array_str: repr(x), str(x) under printoptions(...)
set_default_tensor_type: set_default_dtype(dtype)
use_deterministic_algorithms: nothing: every kernel gives the same result for the same call
cholesky_solve: linalg.solve_triangular twice
addmv addr: the formula itself: x + a @ v
range: arange(start, stop)
cdist: sqrt(((x[:, None] - y[None]) ** 2).sum(-1))
view_as_real: stack([x.real, x.imag], axis=-1)
view_as_complex: x[..., 0] + 1j * x[..., 1]
polar: r * exp(1j * angle)
diag_embed: x[..., None] * eye(n)
logdet: linalg.slogdet(x)[1]
ger: outer(x, y)
pdist: the upper triangle of sqrt(((x[:, None] - x[None]) ** 2).sum(-1))
cartesian_prod: stack(meshgrid(x, y, indexing="ij"), -1).reshape(-1, 2)
combinations: x[stack(triu_indices(x.size, 1), 1)]
mode: unique(x, return_counts=True), and argmax of the counts
histc: histogram(x, bins, range)[0]
unique_consecutive: x[concat([asarray([True]), x[1:] != x[:-1]])]
randint_like: randint(low, high, x.shape)
renorm: x * minimum(1, most / vector_norm(x, axis=axis, keepdims=True))
clamp_min clamp_max: clip(x, min=..., max=...)
euler_gamma: 0.5772156649015329
switch: cond, in each other, or a list of functions and a number of Python
remat: checkpoint(function)
custom_gradient: custom_function(f), then f.defvjp
hvp: jvp(grad(f), (x,), (v,))[1]
autocast: x.to(backplane.bfloat16) where it is wanted
"""

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
"""

# Of ops, which NumPy's ufuncs have.
OF_OPS = """
reduce: sum, prod, max, min, all, any, logsumexp
accumulate: cumsum, cumprod, cummax, cummin
reduceat: segment_sum
outer: the op on x[:, None] and y
at: index_add, scatter_add, or x[positions] = values
"""


def rows(text):
    """(name, what to write) of each name in such a list."""
    for line in text.strip().splitlines():
        names, _, hint = line.partition(": ")
        for name in names.split():
            yield name, hint


# Of backplane.linalg.
_OF_LINALG = """
expm: matrix_exp(x)
cho_factor: cholesky(x)
cho_solve cholesky_solve: solve_triangular twice
lu lu_factor lu_solve: solve(a, b), or qr
logdet: slogdet(x)[1]
tensorsolve tensorinv: solve or inv of reshaped matrices
matrix_norms: matrix_norm(x)
"""

# Of backplane.nn; layers that are functions of their own names are found by these.
_OF_NN = """
Module: a class of your own, or a dict, that holds tensors; its call is a function of them
Parameter: x.requires_grad_() of a tensor, or transforms such as grad of a function of the weights
Sequential ModuleList ModuleDict: a list or dict of functions, called one after the other
Linear: functional.linear(x, weight, bias), of tensors that are the weights
MultiheadAttention: functional.scaled_dot_product_attention(q, k, v), of projections by functional.linear
LSTM GRU RNN: scan over functional.lstm_cell, gru_cell or rnn_tanh_cell
Identity: the value itself
Flatten: x.flatten(1)
Upsample: functional.interpolate
BCELoss: functional.binary_cross_entropy
BCEWithLogitsLoss: functional.binary_cross_entropy_with_logits
init: randn(shape) * scale, or uniform
utils: the formula itself: g * minimum(1, most / norm) clips gradients
"""

_TEXTS = {"": _OF_PACKAGE, ".linalg": _OF_LINALG, ".nn": _OF_NN}


def no_attribute(module, name):
    """The error that a module has not the name, with what does the same, or where NumPy does it."""
    part = module.__name__.removeprefix("backplane")
    hint = "" if name.startswith("_") else _hint(part, name)
    return AttributeError(f"module '{module.__name__}' has no attribute '{name}'{hint}", name=name, obj=module)


def _hint(part, name):
    hint = dict(rows(_TEXTS.get(part, ""))).get(name)
    if hint:
        return f"; use {hint}"
    if part == ".nn" and (function := _function_of(name)):
        return f"; use backplane.nn.functional.{function}"
    home = sys.modules.get("numpy")
    for word in part.split(".")[1:]:
        home = getattr(home, word, None)
    return f"; use numpy{part}.{name} on x.numpy(), on the host" if callable(getattr(home, name, None)) else ""


def _function_of(layer):
    """The function of nn.functional that does what PyTorch's class of a layer or a loss does; None where there is none."""
    functional = sys.modules["backplane.nn.functional"]
    names = {name.replace("_", ""): name for name in vars(functional)}
    word = layer.lower()
    without_axes = word[:-2] if word[-2:] in ("1d", "2d", "3d") else word  # BatchNorm2d
    return next((names[w] for w in (word, word.removesuffix("loss"), without_axes) if w in names), None)


def of_object(kind, name):
    """The same of an attribute of tensors or ops."""
    return f"; use {dict(rows({'Tensor': OF_TENSORS, 'Op': OF_OPS}[kind]))[name]}"
