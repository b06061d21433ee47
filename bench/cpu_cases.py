"""The cases of `./dev bench cpu`: what is computed, on which inputs, and how each library writes it.

A Case is data: expressions over the names of its inputs, one per library. `ours`, `numpy`, `torch` and `jax` are evaluated by
cpu_times.py, where `bp`, `np`, `torch`, `F` (torch.nn.functional), `jnp`, `jnn` (jax.nn) and `lax` are at hand; `floor` is what no
library can beat: a plain loop over the same bytes, or a direct call of OpenBLAS, in cpu_floor.c.
"""

import dataclasses
import typing

import numpy as np

SIZES = {"1": 1, "1 Ki": 1 << 10, "64 Ki": 1 << 16, "1 Mi": 1 << 20, "16 Mi": 1 << 24}
QUICK = ["1", "64 Ki", "1 Mi"]


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    group: str
    size: str
    inputs: typing.Callable[[], dict]
    expressions: dict
    slow: bool = False  # left out of --quick

    @property
    def title(self):
        return f"{self.name} [{self.size}]"


def normal(*shape):
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def positive(*shape):
    return np.abs(normal(*shape)) + np.float32(0.1)


def same(call, but=None, floor=None):
    """One spelling for all libraries, where they agree on it; `but` holds the others."""
    expressions = {"ours": f"bp.{call}", "numpy": f"np.{call}", "torch": f"torch.{call}", "jax": f"jnp.{call}"}
    expressions.update(but or {})
    if floor:
        expressions["floor"] = floor
    return {library: text for library, text in expressions.items() if text}


def one_operand(ours, numpy, torch, jax):
    written = {"ours": ours, "numpy": numpy, "torch": torch, "jax": jax, "floor": "floor.copy(x)"}
    return {library: text for library, text in written.items() if text}


ELEMENTWISE = {
    "add": same("add(x, y)", floor="floor.add(x, y)"),
    "multiply": same("multiply(x, y)", floor="floor.add(x, y)"),
    "divide": same("divide(x, y)", floor="floor.add(x, y)"),
    "maximum": same("maximum(x, y)", floor="floor.add(x, y)"),
    "less": same("less(x, y)"),
    "pow": same("pow(x, y)", floor="floor.add(x, y)"),
    "where": same("where(c, x, y)"),
    "add a number": same("add(x, 2.0)", floor="floor.copy(x)"),
    "add a row": same("add(m, r)", floor="floor.copy(m)"),
    "add a column": same("add(m, k)", floor="floor.copy(m)"),
    "add transposed": same("add(m, m.T)", floor=None),
    "negative": same("negative(x)", floor="floor.copy(x)"),
    "abs": same("abs(x)", floor="floor.copy(x)"),
    "sqrt": same("sqrt(x)", floor="floor.copy(x)"),
    "exp": same("exp(x)", floor="floor.copy(x)"),
    "log": same("log(x)", floor="floor.copy(x)"),
    "sin": same("sin(x)", floor="floor.copy(x)"),
    "tanh": same("tanh(x)", floor="floor.copy(x)"),
    "cast to float64": one_operand("bp.astype(x, bp.float64)", "x.astype(np.float64)", "x.to(torch.float64)", None),
    "copy of a transposed": {"ours": "bp.copy(m.T)", "numpy": "np.copy(m.T, order='C')",
                             "torch": "m.T.clone(memory_format=torch.contiguous_format)", "floor": "floor.copy(m)"},
}
del ELEMENTWISE["cast to float64"]["floor"]

ACTIVATIONS = {
    "relu": one_operand("bp.relu(x)", "np.maximum(x, 0)", "F.relu(x)", "jnn.relu(x)"),
    "gelu": one_operand("bp.gelu(x)", None, "F.gelu(x)", "jnn.gelu(x, approximate=False)"),
    "silu": one_operand("bp.silu(x)", None, "F.silu(x)", "jnn.silu(x)"),
    "sigmoid": one_operand("bp.sigmoid(x)", None, "torch.sigmoid(x)", "jnn.sigmoid(x)"),
}


def reduction(name, torch=None, numpy=True, jax=None, whole=True):
    """Over all elements, over the last axis, and over the first axis of a square matrix."""
    torch = torch or f"torch.{name}({{0}})"
    jax = jax or f"jnp.{name}({{0}})"
    found = {}
    for title, operand, axis in (("whole", "x", None), ("rows", "m", 1), ("columns", "m", 0)):
        if axis is None and not whole:
            continue
        arguments = operand if axis is None else f"{operand}, axis={axis}"
        found[f"{name}, {title}"] = {
            "ours": f"bp.{name}({arguments})", "torch": torch.format(arguments), "jax": jax.format(arguments),
            **({"numpy": f"np.{name}({arguments})"} if numpy else {})}
    return found


REDUCTIONS = {
    **reduction("sum"), **reduction("mean"), **reduction("max", torch="torch.amax({0})"), **reduction("argmax"),
    **reduction("var", torch="torch.var({0}, correction=0)"),
    **reduction("logsumexp", torch="torch.logsumexp({0})", numpy=False, jax="jax.scipy.special.logsumexp({0})"),
}
REDUCTIONS["logsumexp, whole"]["torch"] = "torch.logsumexp(x, 0)"

# Rows of 256 where the size allows it; x is (rows, 256), w and b of the row, u and v of the channels of an image.
NORMALISING = {
    "softmax, rows": {"ours": "bp.softmax(m)", "torch": "torch.softmax(m, 1)", "jax": "jnn.softmax(m)"},
    "softmax, columns": {"ours": "bp.softmax(m, axis=0)", "torch": "torch.softmax(m, 0)", "jax": "jnn.softmax(m, axis=0)"},
    "log_softmax, rows": {"ours": "bp.log_softmax(m)", "torch": "torch.log_softmax(m, 1)", "jax": "jnn.log_softmax(m)"},
    "layer_norm": {"ours": "bp.layer_norm(m, r, s)", "torch": "F.layer_norm(m, r.shape, r, s)",
                   "jax": "(m - m.mean(1, keepdims=True)) * lax.rsqrt(m.var(1, keepdims=True) + 1e-5) * r + s"},
    "rms_norm": {"ours": "bp.rms_norm(m, r)", "torch": "F.rms_norm(m, r.shape, r, 1e-5)",
                 "jax": "m * lax.rsqrt((m * m).mean(1, keepdims=True) + 1e-5) * r"},
    "batch_norm, training": {"ours": "bp.batch_norm(i, u, v)", "torch": "F.batch_norm(i, None, None, u, v, True)",
                             "jax": "(i - i.mean((0, 2, 3), keepdims=True)) * lax.rsqrt(i.var((0, 2, 3), keepdims=True) + 1e-5)"
                                    " * u[:, None, None] + v[:, None, None]"},
    "batch_norm, inference": {"ours": "bp.batch_norm_inference(i, a, q, u, v)", "torch": "F.batch_norm(i, a, q, u, v)",
                              "jax": "(i - a[:, None, None]) * (lax.rsqrt(q + 1e-5) * u)[:, None, None] + v[:, None, None]"},
}

MOVING = {
    "sort": same("sort(x)", {"jax": "jnp.sort(x, stable=False)"}),
    "argsort": same("argsort(x)", {"numpy": "np.argsort(x, stable=True)", "torch": "torch.argsort(x, stable=True)"}),
    "sort, rows": same("sort(m)", {"jax": "jnp.sort(m, stable=False)"}),
    "topk": {"ours": "bp.topk(x, t)", "torch": "torch.topk(x, t)", "jax": "lax.top_k(x, t)"},
    "cumulative_sum": same("cumulative_sum(x)", {"numpy": "np.cumsum(x)", "torch": "torch.cumsum(x, 0)", "jax": "jnp.cumsum(x)"}),
    "cumulative_sum, columns": same("cumulative_sum(m, axis=0)", {"numpy": "np.cumsum(m, axis=0)", "torch": "torch.cumsum(m, 0)",
                                                                  "jax": "jnp.cumsum(m, axis=0)"}),
    "take elements": same("take(x, j, axis=0)", {"torch": "torch.index_select(x, 0, j)"}),
    "take rows": same("take(m, h, axis=0)", {"torch": "torch.index_select(m, 0, h)"}),
    "gather": {"ours": "bp.take_along_axis(m, g, axis=1)", "numpy": "np.take_along_axis(m, g, axis=1)",
               "torch": "torch.gather(m, 1, g)", "jax": "jnp.take_along_axis(m, g, axis=1)"},
    "scatter-add": {"ours": "bp.put_along_axis(m, g, d, axis=1, accumulate=True)", "torch": "torch.scatter_add(m, 1, g, d)"},
    "index": {"ours": "m[h, l]", "numpy": "m[h, l]", "torch": "m[h, l]", "jax": "m[h, l]"},
    "index by a mask": {"ours": "bp.masked_select(x, c)", "numpy": "x[c]", "torch": "torch.masked_select(x, c)"},
    "concat": {"ours": "bp.concat([m, m], axis=1)", "numpy": "np.concatenate([m, m], axis=1)", "torch": "torch.cat([m, m], 1)",
               "jax": "jnp.concatenate([m, m], axis=1)"},
}


def tensors(n):
    """The inputs of every case over `n` elements; those that an expression does not name are not made."""
    rows = 1 << (n.bit_length() - 1) // 2
    columns = n // rows
    channels = min(64, columns)
    image = (max(1, n // (channels * 256)), channels, 16, 16) if n >= channels * 256 else (1, channels, 1, max(2, n // channels))
    draw = np.random.default_rng(1)
    return {
        "x": lambda: positive(n), "y": lambda: positive(n), "c": lambda: draw.random(n, dtype=np.float32) < 0.5,
        "m": lambda: normal(rows, columns), "d": lambda: normal(rows, columns), "r": lambda: positive(columns),
        "s": lambda: normal(columns), "k": lambda: normal(rows, 1), "i": lambda: normal(*image), "u": lambda: positive(channels),
        "v": lambda: normal(channels), "a": lambda: normal(channels), "q": lambda: positive(channels),
        "t": lambda: min(10, n), "j": lambda: draw.integers(0, n, n), "h": lambda: draw.integers(0, rows, rows),
        "l": lambda: draw.integers(0, columns, rows), "g": lambda: draw.integers(0, columns, (rows, columns)),
    }


def names_in(expressions, names):
    code = {name for text in expressions.values() for name in compile(text, "", "eval").co_names}
    return [name for name in names if name in code]


def sized(group, table, sizes):
    for name, expressions in table.items():
        for title, n in sizes.items():
            makers = tensors(n)
            wanted = names_in(expressions, makers)
            yield Case(name, group, title, lambda makers=makers, wanted=wanted: {w: makers[w]() for w in wanted}, expressions)


def matmul(name, group, size, x, y, floor=True, transposed=(False, False), slow=False, dtype=np.float32):
    """x and y as they lie in memory; the product is of their transposes where it says so."""
    written = [f"{letter}.mT" if turned else letter for letter, turned in zip("xy", transposed)]
    product = f"{written[0]} @ {written[1]}"
    expressions = {"ours": product, "numpy": product, "torch": product, "jax": product}
    if floor:
        expressions["floor"] = f"floor.matmul(x, y, {transposed[0]}, {transposed[1]})"
    return Case(name, group, size, lambda: {"x": normal(*x).astype(dtype), "y": normal(*y).astype(dtype)}, expressions, slow)


def products():
    for n in (1, 4, 8, 16, 31):
        yield matmul("matmul", "small matmul", str(n), (n, n), (n, n), floor=False)
        yield matmul("matmul, y transposed", "small matmul", str(n), (n, n), (n, n), floor=False, transposed=(False, True))
        yield matmul("matmul, float64", "small matmul", str(n), (n, n), (n, n), floor=False, dtype=np.float64)
        yield matmul("matmul, vector", "small matmul", str(n), (n, n), (n,), floor=False)
        if n >= 8:
            yield matmul("matmul, 64 of them", "batched small matmul", str(n), (64, n, n), (64, n, n), floor=False)
    for n in (64, 128, 256, 512, 1024, 2048):
        slow = n > 512
        yield matmul("matmul", "matmul", str(n), (n, n), (n, n), slow=slow)
        yield matmul("matmul, x transposed", "matmul", str(n), (n, n), (n, n), transposed=(True, False), slow=slow)
        yield matmul("matmul, y transposed", "matmul", str(n), (n, n), (n, n), transposed=(False, True), slow=slow)
        if n <= 512:
            yield matmul("matmul, 16 of them", "matmul", str(n), (16, n, n), (16, n, n), slow=n > 256)
    yield matmul("matmul, tall", "matmul", "4096 × 64 × 64", (4096, 64), (64, 64))
    yield matmul("matmul, vector", "matmul", "1024 × 1024 × 1", (1024, 1024), (1024, 1), floor=False)


def layers():
    """Layers based on matrix products: linear layers of few and many rows, with their bias."""
    for rows, inputs, outputs in ((1, 512, 512), (4, 512, 512), (64, 512, 512), (256, 784, 128), (1024, 256, 256)):
        def made(m=rows, k=inputs, n=outputs):
            return {"x": normal(m, k), "w": normal(n, k), "b": normal(n)}

        yield Case("linear", "linear", f"{rows} × {inputs}, {outputs}", made, {
            "ours": "bp.linear(x, w, b)", "torch": "F.linear(x, w, b)", "jax": "x @ w.T + b"})


# ResNet-18: channels, height, outputs, kernel, stride, padding.
CONVOLUTIONS = [(3, 224, 64, 7, 2, 3), (64, 56, 64, 3, 1, 1), (64, 56, 128, 3, 2, 1), (64, 56, 128, 1, 2, 0), (128, 28, 128, 3, 1, 1),
                (128, 28, 256, 3, 2, 1), (256, 14, 256, 3, 1, 1), (256, 14, 512, 3, 2, 1), (512, 7, 512, 3, 1, 1)]


def convolutions():
    for channels, height, outputs, kernel, stride, padding in CONVOLUTIONS:
        after = (height + 2 * padding - kernel) // stride + 1
        for batch in (1, 8):
            def inputs(batch=batch, c=channels, h=height, o=outputs, k=kernel, after=after):
                return {"x": normal(batch, c, h, h), "w": normal(o, c, k, k), "g": normal(batch, o, after, after)}

            size = f"{batch} × {channels} × {height}², {outputs} of {kernel}², stride {stride}"
            attributes = f"stride=({stride}, {stride}), padding=({padding}, {padding})"
            shape = f"({batch}, {channels}, {height}, {height})"
            yield Case("conv2d", "conv2d", size, inputs, {
                "ours": f"bp.conv2d(x, w, {attributes})", "torch": f"F.conv2d(x, w, {attributes})",
                "jax": f"lax.conv_general_dilated(x, w, ({stride}, {stride}), [({padding}, {padding})] * 2)"}, slow=batch > 1)
            yield Case("conv2d, backward", "conv2d", size, inputs, {
                "ours": f"(bp.conv2d_input_grad(g, w, {shape}, {attributes}), "
                        f"bp.conv2d_weight_grad(g, x, ({outputs}, {channels}, {kernel}, {kernel}), {attributes}))",
                "torch": f"torch.ops.aten.convolution_backward(g, x, w, None, [{stride}] * 2, [{padding}] * 2, [1, 1], False, [0, 0], "
                         "1, [True, True, False])"}, slow=batch > 1)


def networks():
    def heads():
        return {"q": normal(1, 8, 1024, 64), "k": normal(1, 8, 1024, 64), "v": normal(1, 8, 1024, 64)}

    for name, ours, torch in (("attention", "", ""), ("attention, causal", ", causal=True", ", is_causal=True")):
        yield Case(name, "attention", "1 × 8 × 1024 × 64", heads, {
            "ours": f"bp.attention(q, k, v{ours})", "torch": f"F.scaled_dot_product_attention(q, k, v{torch})"})
    yield Case("attention, backward", "attention", "1 × 8 × 1024 × 64", lambda: {**heads(), "g": normal(1, 8, 1024, 64)}, {
        "ours": "bp.grad(lambda q, k, v: bp.sum(bp.attention(q, k, v) * g), argnums=(0, 1, 2))(q, k, v)",
        "torch": "torch.autograd.grad((F.scaled_dot_product_attention(q.requires_grad_(), k.requires_grad_(), v.requires_grad_()) * g)"
                 ".sum(), (q, k, v))"}, slow=True)

    def cell(batch, hidden, gates):
        return {"x": normal(batch, hidden), "h": normal(batch, hidden), "c": normal(batch, hidden), "a": normal(gates * hidden, hidden),
                "w": normal(gates * hidden, hidden), "d": normal(gates * hidden), "e": normal(gates * hidden)}

    for batch, hidden in ((1, 128), (32, 256), (64, 512)):
        yield Case("LSTM cell", "recurrent cells", f"{batch} × {hidden}", lambda b=batch, n=hidden: cell(b, n, 4), {
            "ours": "bp.nn.functional.lstm_cell(x, (h, c), a, w, d, e)", "torch": "torch.lstm_cell(x, (h, c), a, w, d, e)"})
        yield Case("GRU cell", "recurrent cells", f"{batch} × {hidden}", lambda b=batch, n=hidden: cell(b, n, 3), {
            "ours": "bp.nn.functional.gru_cell(x, h, a, w, d, e)", "torch": "torch.gru_cell(x, h, a, w, d, e)"})
    yield Case("training epoch", "training epoch", "demo's network", lambda: {}, {"ours": "epoch('ours')", "torch": "epoch('torch')"})
    yield Case("training step", "training step", "transformer of 2 layers, 16 × 64 × 128", lambda: {},
               {"ours": "transformer_step('ours')", "torch": "transformer_step('torch')"})


def creating():
    """Small tensors, as scripts create them: the time is the cost of the call."""
    for name, call in (("empty", "empty((8, 8))"), ("zeros", "zeros((8, 8))"), ("full", "full((8, 8), 2.5)"), ("arange", "arange(64)")):
        yield Case(name, "creating", "64", lambda: {}, {"ours": f"bp.{call}", "numpy": f"np.{call}", "torch": f"torch.{call}"})


def all_cases():
    large = {title: n for title, n in SIZES.items() if n <= 1 << 20}
    yield from sized("elementwise", ELEMENTWISE, SIZES)
    yield from sized("elementwise", ACTIVATIONS, SIZES)
    yield from sized("elementwise", REDUCTIONS, SIZES)
    yield from sized("elementwise", NORMALISING, SIZES)
    yield from products()
    yield from layers()
    yield from convolutions()
    yield from networks()
    yield from creating()
    yield from sized("sorting and indexing", MOVING, large)


def chosen(words, quick):
    """Cases whose title or group holds every one of these words."""
    def wanted(case):
        text = f"{case.group} {case.title}".lower()
        return all(word.lower() in text for word in words) and not (quick and (case.slow or case.size in set(SIZES) - set(QUICK)))

    return [case for case in all_cases() if wanted(case)]
