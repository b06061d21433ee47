"""The cases of `./dev gpu`: what is computed on a GPU, on which inputs, how each library writes it, and what it has to move or multiply.

A Case is data: expressions over the names of its inputs, which gpu_times.py evaluates where `bp`, or `torch` and `F` (torch.nn.functional),
are at hand. `bytes` counts what has to be read and written once, `operations` those of a product.
"""

import dataclasses

KI, MI, GI = 1 << 10, 1 << 20, 1 << 30
ITEM = {"float32": 4, "bfloat16": 2, "float16": 2, "float64": 8, "int64": 8, "int32": 4, "bool": 1}


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    inputs: dict  # name -> (shape, dtype); integers are indices below a number: (shape, dtype, number)
    ours: str
    torch: str
    bytes: int = 0
    operations: int = 0
    share: float | None = None  # of a copy's bandwidth that is wanted
    ratio: float | None = None  # to the peer's time, at most


def nbytes(*tensors):
    total = 0
    for shape, dtype, *_ in tensors:
        count = 1
        for size in shape:
            count *= size
        total += count * ITEM[dtype]
    return total


X = ((256 * MI,), "float32")
M = ((64 * KI, 4 * KI), "float32")
H = ((64 * KI, 8 * KI), "bfloat16")
ROWS, COLUMNS, ROWS_H = ((64 * KI,), "float32"), ((4 * KI,), "float32"), ((64 * KI,), "bfloat16")
BOOLS = ((256 * MI,), "bool")


def moving(name, inputs, result, ours, torch, share=0.9):
    return Case(name, inputs, ours, torch, bytes=nbytes(*inputs.values(), *result), share=share)


def product(name, m, k, n, dtype, batch=(), ratio=1.02):
    inputs = {"x": ((*batch, m, k), dtype), "y": ((*batch, k, n), dtype)}
    return Case(name, inputs, "x @ y", "x @ y", operations=2 * m * k * n * (batch[0] if batch else 1), ratio=ratio)


def both_ways(name, inputs, result, ours, torch, **limits):
    """A function of `x` and what else, and its gradient of a random `g` by all of them."""
    names = ", ".join(name for name in inputs if name != "g")
    ours = f"bp.vjp(lambda {names}: {ours}, {names})[1](g)"
    torch = f"[x.requires_grad_() for x in ({names},)] and torch.autograd.grad({torch}, ({names},), g)"
    return Case(f"{name}, forward and backward", {**inputs, "g": result}, ours, torch, **limits)


def attention(what, dtype, mask=False, backward=False, ratio=None):
    """Over 4 x 16 heads of 4,096 positions of 64 features. Backward does two and a half times the products of forward."""
    inputs = dict.fromkeys("qkv", ((4, 16, 4096, 64), dtype))
    if mask:
        inputs["mask"] = ((4096, 4096), dtype)
    ours, torch = "bp.attention(q, k, v%s)", "F.scaled_dot_product_attention(q, k, v%s)"
    ours, torch = ours % (", mask" if mask else ""), torch % (", mask" if mask else "")
    if backward:
        ours = f"bp.grad(lambda q, k, v: bp.sum({ours}), argnums=(0, 1, 2))(q, k, v)"
        torch = f"[x.requires_grad_() for x in (q, k, v)] and torch.autograd.grad({torch}.sum(), (q, k, v))"
    operations = 4 * 4 * 16 * 4096**2 * 64
    return Case(f"attention, {what}", inputs, ours, torch, operations=operations * 7 // 2 if backward else operations, ratio=ratio)


def convolution(dtype, backward=False):
    """64 images of 64 channels of 56 x 56, 64 filters of 3 x 3. Backward does twice the products of forward."""
    inputs, result = {"x": ((64, 64, 56, 56), dtype), "w": ((64, 64, 3, 3), dtype)}, ((64, 64, 56, 56), dtype)
    name, ours, torch = f"conv2d, {dtype}", "bp.conv2d(x, w, padding=(1, 1))", "F.conv2d(x, w, padding=1)"
    operations = 2 * 64 * 64 * 64 * 9 * 56 * 56
    return both_ways(name, inputs, result, ours, torch, operations=3 * operations) if backward else Case(name, inputs, ours, torch, operations=operations)


CASES = [
    moving("copy", {"x": X}, [X], "bp.copy(x)", "x.clone()", None),
    moving("add", {"x": X, "y": X}, [X], "x + y", "x + y"),
    moving("add a number", {"x": X}, [X], "x + 2.0", "x + 2.0"),
    moving("add, bfloat16", {"x": H, "y": H}, [H], "x + y", "x + y"),
    moving("add a row", {"x": M, "y": COLUMNS}, [M], "x + y", "x + y"),
    moving("exp", {"x": X}, [X], "bp.exp(x)", "torch.exp(x)"),
    moving("gelu", {"x": X}, [X], "bp.gelu(x)", "F.gelu(x)"),
    moving("less", {"x": X, "y": X}, [BOOLS], "x < y", "x < y"),
    moving("where", {"c": (*BOOLS, 2), "x": X, "y": X}, [X], "bp.where(c, x, y)", "torch.where(c, x, y)"),
    moving("cast to bfloat16", {"x": M}, [((64 * KI, 4 * KI), "bfloat16")], "bp.astype(x, bp.bfloat16)", "x.to(torch.bfloat16)"),
    moving("copy of a transposed", {"x": M}, [M], "bp.copy(x.T)", "x.T.contiguous()", None),
    moving("sum", {"x": X}, [], "bp.sum(x)", "torch.sum(x)"),
    moving("sum, rows", {"x": M}, [ROWS], "bp.sum(x, axis=1)", "torch.sum(x, 1)"),
    moving("sum, columns", {"x": M}, [COLUMNS], "bp.sum(x, axis=0)", "torch.sum(x, 0)"),
    moving("sum, rows, bfloat16", {"x": H}, [ROWS_H], "bp.sum(x, axis=1)", "torch.sum(x, 1)"),
    moving("max, rows", {"x": M}, [ROWS], "bp.max(x, axis=1)", "torch.amax(x, 1)"),
    moving("argmax, rows", {"x": M}, [((64 * KI,), "int64")], "bp.argmax(x, axis=1)", "torch.argmax(x, 1)", None),
    moving("softmax", {"x": M}, [M], "bp.softmax(x)", "torch.softmax(x, 1)", 0.85),
    moving("softmax, bfloat16", {"x": H}, [H], "bp.softmax(x)", "torch.softmax(x, 1)", 0.85),
    moving("layer norm", {"x": M, "w": COLUMNS, "b": COLUMNS}, [M], "bp.layer_norm(x, w, b)", "F.layer_norm(x, w.shape, w, b)", 0.85),
    moving("rms norm", {"x": M, "w": COLUMNS}, [M], "bp.rms_norm(x, w)", "F.rms_norm(x, w.shape, w, 1e-6)", 0.85),
    both_ways("softmax", {"x": M}, M, "bp.softmax(x)", "torch.softmax(x, 1)"),
    both_ways("layer norm", {"x": M, "w": COLUMNS, "b": COLUMNS}, M, "bp.layer_norm(x, w, b)", "F.layer_norm(x, w.shape, w, b)"),
    moving("cumsum, rows", {"x": M}, [M], "bp.cumsum(x, axis=1)", "torch.cumsum(x, 1)", None),
    moving("take rows", {"x": M, "i": ((64 * KI,), "int64", 64 * KI)}, [M], "bp.take(x, i, axis=0)", "x[i]", None),
    moving("concat", {"x": M, "y": M}, [M, M], "bp.concat([x, y], axis=1)", "torch.cat([x, y], 1)", None),
    Case("sort", {"x": ((16 * MI,), "float32")}, "bp.sort(x)", "torch.sort(x)[0]"),
    Case("add at indices", {"x": ((MI, 64), "float32"), "i": ((MI,), "int64", MI)}, "bp.index_add(x, 0, i, x)", "x.index_add(0, i, x)"),
    Case("normal numbers", {}, "bp.normal((64 << 20,), dtype=bp.float32, device=device)", "torch.randn(64 << 20, device=device)"),
    Case("uniform numbers", {}, "bp.uniform((64 << 20,), dtype=bp.float32, device=device)", "torch.rand(64 << 20, device=device)"),
    product("matmul 4096, float32", 4096, 4096, 4096, "float32"),
    product("matmul 8192, bfloat16", 8192, 8192, 8192, "bfloat16"),
    product("matmul 8192, float16", 8192, 8192, 8192, "float16"),
    product("matmul 4096, float64", 4096, 4096, 4096, "float64"),
    product("matmul 256 x 512, bfloat16", 512, 512, 512, "bfloat16", (256,)),
    Case("linear, bfloat16", {"x": ((8192, 4096), "bfloat16"), "w": ((4096, 4096), "bfloat16"), "b": ((4096,), "bfloat16")},
         "bp.nn.functional.linear(x, w, b)", "F.linear(x, w, b)", operations=2 * 8192 * 4096 * 4096),
    attention("bfloat16", "bfloat16", ratio=1.5),
    attention("float32", "float32"),
    attention("bfloat16, with a mask", "bfloat16", mask=True),
    attention("bfloat16, forward and backward", "bfloat16", backward=True),
    attention("float32, forward and backward", "float32", backward=True),
    convolution("float32"),
    convolution("bfloat16"),
    convolution("float32", backward=True),
    convolution("bfloat16", backward=True),
    Case("max pool", {"x": ((64, 64, 112, 112), "float32")}, "bp.max_pool2d(x, (2, 2))", "F.max_pool2d(x, 2)"),
    Case("fft", {"x": ((64, MI), "float32")}, "bp.fft.rfft(x)", "torch.fft.rfft(x)"),
    Case("solve 2048", {"a": ((2048, 2048), "float32"), "b": ((2048, 64), "float32")}, "bp.linalg.solve(a, b)", "torch.linalg.solve(a, b)"),
    Case("svd 512", {"a": ((512, 512), "float32")}, "bp.linalg.svd(a)", "torch.linalg.svd(a)"),
]
