"""The same measurements of PyTorch and JAX: their functions of the references' names, with derivatives by their own autodiff, in float32."""

import numpy as np

SAME = "abs sign square add subtract multiply divide maximum minimum copysign sqrt reciprocal exp exp2 expm1 log log1p log2 log10 hypot logaddexp sin cos tan sinh cosh tanh sinc"
ARC = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh", "pow": "power"}
ACTIVATIONS = {"relu": "relu", "relu6": "relu6", "silu": "silu", "gelu": "gelu", "mish": "mish", "elu": "elu", "celu": "celu", "selu": "selu", "leaky_relu": "leaky_relu", "softplus": "softplus"}


def torch_functions():
    import torch
    import torch.nn.functional as F

    found = {name: getattr(torch, name) for name in [*SAME.split(), *ARC, "rsqrt", "erf", "erfc", "erfinv", "lgamma", "digamma", "logit", "xlogy", "sigmoid"]}
    found |= {name: getattr(F, theirs) for name, theirs in ACTIVATIONS.items()}
    found |= {name: getattr(F, name) for name in ("logsigmoid", "softsign", "tanhshrink", "hardtanh", "hardsigmoid", "hardswish", "hardshrink", "softshrink")}
    found |= {name: (lambda x, t, f=getattr(F, name): f(x, t, reduction="none")) for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div", "poisson_nll_loss", "soft_margin_loss")}
    found["gelu_tanh"] = lambda x: F.gelu(x, approximate="tanh")
    found["polygamma"] = lambda x: torch.polygamma(1, x)
    found["normalize"] = lambda x: F.normalize(x)[:, 0]
    found["cosine_similarity"] = F.cosine_similarity
    found["vector_norm"] = lambda x: torch.linalg.vector_norm(x, dim=1)
    found["pairwise_distance"] = F.pairwise_distance
    found["layer_norm"] = lambda x: F.layer_norm(x, (x.shape[1],))[:, 0]
    found["rms_norm"] = lambda x: F.rms_norm(x, (x.shape[1],), eps=1e-6)[:, 0]
    return found


def jax_functions():
    import jax.numpy as jnp
    from jax import lax, nn
    from jax.scipy import special

    found = {name: getattr(jnp, name) for name in SAME.split()} | {name: getattr(jnp, theirs) for name, theirs in ARC.items()}
    found |= {name: getattr(nn, name) for name in ("relu", "relu6", "silu", "mish", "elu", "celu", "selu", "leaky_relu", "softplus", "sigmoid")}
    found |= {name: getattr(special, name) for name in ("erf", "erfc", "erfinv", "digamma", "logit", "xlogy")}
    found["rsqrt"], found["lgamma"] = lax.rsqrt, special.gammaln
    found["logsigmoid"], found["softsign"], found["cbrt"] = nn.log_sigmoid, nn.soft_sign, jnp.cbrt
    found["gelu"], found["gelu_tanh"] = (lambda x: nn.gelu(x, approximate=False)), (lambda x: nn.gelu(x, approximate=True))
    found["polygamma"] = lambda x: special.polygamma(1, x)
    found["vector_norm"] = lambda x: jnp.linalg.norm(x, axis=1)
    return found


def torch_results(function, arrays, differentiable, row_wise, orders):
    import torch

    found, xs = {}, [torch.tensor(a, dtype=torch.float32) for a in arrays]

    def part(gradient):
        return gradient[:, 0] if row_wise else gradient

    found[0, 0] = function(*xs).numpy(force=True).astype(np.float64)
    for i in differentiable:
        x = xs[i].clone().requires_grad_()
        y = function(*xs[:i], x, *xs[i + 1 :])
        if not y.requires_grad:
            continue
        first = part(torch.autograd.grad(y.sum(), x, create_graph=orders > 1)[0])
        found[1, i] = first.detach().numpy(force=True).astype(np.float64)
        if orders > 1 and first.requires_grad:
            second = torch.autograd.grad(first.sum(), x, allow_unused=True)[0]
            if second is not None:
                found[2, i] = part(second).numpy(force=True).astype(np.float64)
    return found


def jax_results(function, arrays, differentiable, row_wise, orders):
    import jax
    import jax.numpy as jnp

    xs = [jnp.asarray(a, dtype=jnp.float32) for a in arrays]

    def part(gradient):
        return gradient[:, 0] if row_wise else gradient

    found = {(0, 0): np.asarray(function(*xs), np.float64)}
    for i in differentiable:

        def first(x, i=i):
            return part(jax.grad(lambda v: jnp.sum(function(*xs[:i], v, *xs[i + 1 :])))(x))

        found[1, i] = np.asarray(first(xs[i]), np.float64)
        if orders > 1:
            found[2, i] = np.asarray(part(jax.grad(lambda v: jnp.sum(first(v)))(xs[i])), np.float64)
    return found


PEERS = {"PyTorch": (torch_functions, torch_results), "JAX": (jax_functions, jax_results)}
