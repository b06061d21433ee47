"""What to write for names of NumPy, PyTorch and JAX that this package has not; read once such a name was asked for in vain."""

import importlib
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
jnp: backplane itself, which has NumPy's functions
lax: cond, while_loop, scan, map and the functions of backplane itself
seed: manual_seed(seed)
random_sample ranf: rand(*shape)
standard_normal: randn(*shape)
exponential standard_exponential: -log1p(-rand(*shape)) * scale
lognormal: exp(normal(mean, std, shape))
multivariate_normal: mean + randn(n, d) @ linalg.cholesky(cov).T
gamma: exp(lgamma(x)) for the function of positive x, asarray(numpy.random.default_rng(seed).gamma(...)) for random numbers
default_rng: Generator(seed), as generator= of the random functions
dtype: DType, the type of x.dtype, which names such as "float32" and NumPy's dtypes equal
bool_: bool, as a dtype backplane.bool
categorical: multinomial(p, count, replacement=True)
as_strided lib stride_tricks: x.unfold(axis, size, step) for windows, broadcast_to, reshape and slices for other views
special: the functions of backplane itself: erf, sigmoid, logit, lgamma, digamma, …
expit: sigmoid(x)
gammaln: lgamma(x)
tree_map tree_util: backplane.tree.map
custom_vjp custom_jvp: custom_function(f), then f.defvjp or f.defjvp
eval_shape: add.infer(...), which every op has, or make_graph(function)(*args)
make_jaxpr: make_graph(function)(*args)
top_k: topk(x, k)
select_n: where(condition, y, x), in each other
reduce_window: max_pool2d, avg_pool2d of nn.functional, or a reduction of x.unfold(axis, size, step) over its last axis
conv_general_dilated: conv1d, conv2d, conv3d of nn.functional
dot_product_attention: nn.functional.scaled_dot_product_attention(q, k, v)
swish: silu(x)
cumtrapz: cumsum((y[1:] + y[:-1]) / 2 * diff(x), axis=0)
pmap: vmap, which runs a batch on one device
device_put: x.to(device)
device_get: x.numpy()
block_until_ready: synchronize()
cuda: device("cuda"), synchronize("cuda"), memory_stats("cuda")
load_state_dict state_dict: the methods of bp.nn.Module, with save and load
DataLoader: backplane.data.DataLoader
utils: backplane.data, and backplane.nn.utils
nditer: loops over x.tolist(), or no loop
matrix mat: asarray, and @ for products
asfortranarray asarray_chkfinite require: asarray
floating: isdtype(x.dtype, "real floating")
integer: isdtype(x.dtype, "integral")
number: isdtype(x.dtype, "numeric")
errstate seterr: nothing: no floating-point error is reported
array2string array_repr array_str: repr(x), str(x) under printoptions(...)
set_default_tensor_type: set_default_dtype(dtype)
use_deterministic_algorithms: nothing: every kernel gives the same result for the same call
range: arange(start, stop)
euler_gamma: 0.5772156649015329
remat: checkpoint(function)
custom_gradient: custom_function(f), then f.defvjp
amp: backplane.autocast and backplane.GradScaler
backends: devices(), and the packages that devices come in
accelerator mps xpu cpu: device(name), devices()
get_default_device: default_device()
initial_seed get_rng_state set_rng_state: default_generator.state
multiprocessing: one process per device, whose gradients another library adds up
sparse_coo_tensor: sparse.coo((values, (rows, columns)), shape)
sparse_csr_tensor: sparse.csr((values, columns, row_starts), shape)
nested jagged masked: a padded tensor beside a mask
profiler: profile()
fx: make_graph(function)
compiler: compile(function)
library: custom_op(name)
quantization quantize_per_tensor ao: round and clip, and astype(backplane.int8)
hub testing: numpy.testing on x.numpy()
ma: x beside a mask of bools: where, sum(x, where=mask)
polynomial: polyval, convolve, or numpy's on x.numpy()
typing dtypes: DType, and types
rec recarray record core char strings emath exceptions ctypeslib f2py: NumPy itself, for what is no tensor
is_inference_mode_enabled: not is_grad_enabled()
set_anomaly_enabled set_detect_anomaly: with detect_anomaly():
get_device: x.device
layout strided contiguous_format channels_last preserve_format memory_format: nothing: x.strides says how x lies, and ascontiguousarray(x) copies
lstm gru rnn_tanh rnn_relu: nn.LSTM, nn.GRU or nn.RNN
lstsq: linalg.lstsq(a, b)
lu: linalg.lu(a)
lu_solve: linalg.solve(a, b)
triangular_solve: linalg.solve_triangular(a, b)
orgqr geqrf: linalg.qr(x)
lobpcg: linalg.svd(x), or eigh
nuclear_norm: linalg.matrix_norm(x, ord="nuc")
frobenius_norm: linalg.matrix_norm(x)
resolve_neg: conj(x)
j0 j1 y0 y1: bessel_j0, bessel_j1, bessel_y0 or bessel_y1
k0 k1 k0e k1e: modified_bessel_k0 or _k1, scaled_modified_bessel_k0 or _k1
bessel_i0e bessel_i1e: i0e or i1e
empty_strided empty_permuted: empty(shape)
as_strided_scatter: y = x.clone(); y[index] = values
to_dlpack: x.__dlpack__()
set_float32_matmul_precision get_float32_matmul_precision: nothing: float32 products are computed in float32
get_num_interop_threads set_num_interop_threads: set_num_threads(n)
Storage UntypedStorage: x.numpy(), over the same memory
IntTensor ShortTensor ByteTensor CharTensor BoolTensor HalfTensor BFloat16Tensor: asarray(values, dtype=...)
complex32 chalf csingle: complex64
float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu: float16 or bfloat16, the smallest floating dtypes there are
longdouble float128 clongdouble complex256: float64, or complex128
intc: int32
intp longlong: int64
ubyte: uint8
ushort: uint16
uintc: uint32
uint uintp ulong ulonglong: uint64
byte: int8
datetime64 timedelta64: integers: array.astype("int64")
object_ str_ bytes_ void character: lists of Python's
generic inexact complexfloating flexible signedinteger unsignedinteger: isdtype(x.dtype, kind)
True_ False_: True and False
asmatrix bmat: asarray
memmap: asarray(numpy.memmap(...))
eval async_eval: nothing: a function computes when it is called
save_safetensors: save(tensors, "x.safetensors")
igamma: gammainc(a, x)
igammac: gammaincc(a, x)
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
lu_solve: solve(a, b)
logdet: slogdet(x), whose logabsdet is of the absolute value
tensorsolve tensorinv: solve or inv of reshaped matrices
matrix_norms: matrix_norm(x)
inv_ex solve_ex cholesky_ex: inv, solve or cholesky, whose errors tell
vander: backplane.vander(x)
"""

# Of backplane.fft.
_OF_FFT = """
dct idct dst idst dctn idctn dstn idstn: scipy.fft on x.numpy(), on the host
next_fast_len: n itself: every length is transformed
"""

# Of backplane.nn.
_OF_NN = """
DataParallel parallel: vmap, which runs a batch on one device
value_and_grad: backplane.value_and_grad(loss)(model, ...)
losses: backplane.nn.functional
MultiHeadAttention: backplane.nn.MultiheadAttention
RoPE: backplane.nn.functional.rotary_embedding
"""

# Of backplane.nn.functional.
_OF_FUNCTIONAL = """
lstm gru rnn_tanh rnn_relu: bp.nn.LSTM, bp.nn.GRU or bp.nn.RNN
multi_head_attention_forward: bp.nn.MultiheadAttention
scaled_mm grouped_mm: matmul of backplane
clip_grad_norm_: bp.nn.utils.clip_grad_norm_(parameters, most)
"""

# Of backplane.optim.
_OF_OPTIM = """
AdaDelta: backplane.optim.Adadelta
MultiOptimizer: parameter groups, or one optimiser for each part
clip_grad_norm: backplane.nn.utils.clip_grad_norm(gradients, most)
cosine_decay: backplane.optim.lr_scheduler.CosineAnnealingLR
exponential_decay: backplane.optim.lr_scheduler.ExponentialLR
join_schedules: backplane.optim.lr_scheduler.SequentialLR
linear_schedule: backplane.optim.lr_scheduler.LinearLR
schedulers: backplane.optim.lr_scheduler
step_decay: backplane.optim.lr_scheduler.StepLR
"""

# Of backplane.random.
_OF_RANDOM = """
rand random random_sample: backplane.rand(*shape), or default_rng(seed).random(size)
randn standard_normal: backplane.randn(*shape), or default_rng(seed).standard_normal(size)
randint: backplane.randint(low, high, shape), or default_rng(seed).integers(low, high, size)
uniform normal permutation: the function of this name of backplane, or the method of default_rng(seed)
choice shuffle exponential: the method of default_rng(seed)
seed RandomState: default_rng(seed), or backplane.manual_seed(seed)
"""

_TEXTS = {"": _OF_PACKAGE, ".random": _OF_RANDOM, ".fft": _OF_FFT, ".linalg": _OF_LINALG, ".nn": _OF_NN, ".nn.functional": _OF_FUNCTIONAL, ".optim": _OF_OPTIM}


def no_attribute(module, name):
    """The error for a name that the module does not have. It names the replacement, or NumPy's function."""
    part = module.__name__.removeprefix("backplane")
    hint = "" if name.startswith("_") else _hint(part, name)
    return AttributeError(f"module '{module.__name__}' has no attribute '{name}'{hint}", name=name, obj=module)


def named_hint(places, name):
    """What to write for a name of NumPy or PyTorch that backplane.compat does not have; places: the modules in which it stands."""
    part = "".join(f".{place}" for place in places)
    hint = _hint(part, name)
    return f"{hint}, of backplane itself" if hint and not hint.startswith("; use numpy") else hint


def _hint(part, name):
    hint = dict(rows(_TEXTS.get(part, ""))).get(name)
    if hint:
        return f"; use {hint}"
    if part == ".nn" and (function := _function_of(name)):
        return f"; use backplane.nn.functional.{function}"
    if (own := _own_spelling(part, name)):
        return f"; use {own}"
    home = sys.modules.get("numpy")
    for word in part.split(".")[1:]:
        home = getattr(home, word, None)
    return f"; use numpy{part}.{name} on x.numpy(), on the host" if callable(getattr(home, name, None)) else ""


def _own_spelling(part, name):
    """Of a function that stands elsewhere: in nn.functional, without the underscore of what changes its argument, or as a method."""
    package, functional = importlib.import_module("backplane"), importlib.import_module("backplane.nn.functional")
    if part == ".nn.functional" and (plain := name.removesuffix("_")) in vars(functional):
        return f"x = backplane.nn.functional.{plain}(x)"
    if part:
        return None
    if name in vars(functional):
        return f"backplane.nn.functional.{name}"
    if hasattr(package.Tensor, name) and callable(getattr(package.Tensor, name)):
        return f"x.{name}()"
    return f"x = backplane.{plain}(x)" if (plain := name.removesuffix("_")) in vars(package) and plain != name else None


def _function_of(layer):
    """The function of nn.functional that does what PyTorch's class of a layer or a loss does; None where there is none."""
    functional = sys.modules["backplane.nn.functional"]
    if layer in vars(functional):
        return layer
    names = {name.replace("_", ""): name for name in vars(functional)}
    word = layer.lower()
    without_axes = word[:-2] if word[-2:] in ("1d", "2d", "3d") else word  # BatchNorm2d
    return next((names[w] for w in (word, word.removesuffix("loss"), without_axes) if w in names), None)
