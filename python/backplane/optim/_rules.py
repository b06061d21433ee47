"""How each optimiser computes a parameter's next value: numbers of a whole group first, then elements.

A rule has `slots(h)`, the names of the tensors that it keeps per parameter; `start(name, p, h)`, their first values;
`numbers(h, lr, t, m)`, what all parameters of a group share at step t, which counts from 1; `apply(p, g, s, n, h)`, the next
parameter and the next tensors. lr, t and m, the momentum or the first of betas, are numbers or float64 tensors without axes; n
arrives in the dtype of p. h: the options of the group, by PyTorch's names; of momentum it says only whether there is one. The formulas are those of PyTorch's documentation, in its order of operations.
"""

import backplane as bp

__all__ = []


class Rule:
    def uses_step(self, h):
        return True

    def slots(self, h):
        return ()

    def start(self, name, p, h):
        return bp.zeros_like(p)

    def numbers(self, h, lr, t, m):
        return {"lr": lr}

    def check(self, p):
        """Refuses a parameter that the rule cannot take."""


def decays(h):
    """Do the weights decay? A tensor says yes: a trace cannot read its value."""
    return isinstance(h["weight_decay"], bp.Tensor) or h["weight_decay"] != 0


def decayed(p, g, h):
    """The gradient with the derivative of weight_decay / 2 · p²."""
    if not decays(h):
        return g
    decay = h["weight_decay"]
    return g + (decay.astype(p.dtype).to(p.device) if isinstance(decay, bp.Tensor) else decay) * p


def towards(a, b, share):
    return a + share * (b - a)


class Sgd(Rule):
    def uses_step(self, h):
        return bool(h["momentum"] and h["dampening"])

    def slots(self, h):
        return ("momentum_buffer",) if h["momentum"] else ()

    def numbers(self, h, lr, t, m):
        """The first gradient is not dampened."""
        if not self.uses_step(h):
            return {"lr": lr, "share": 1.0, "momentum": m}
        later = (t > 1).astype(t.dtype) if isinstance(t, bp.Tensor) else float(t > 1)
        return {"lr": lr, "share": 1.0 - h["dampening"] * later, "momentum": m}

    def apply(self, p, g, s, n, h):
        g = decayed(p, g, h)
        if h["momentum"]:
            buffer = n["momentum"] * s["momentum_buffer"] + n["share"] * g
            g = g + n["momentum"] * buffer if h["nesterov"] else buffer
            s = {"momentum_buffer": buffer}
        return p - n["lr"] * g, s


class Adam(Rule):
    decoupled = False

    def slots(self, h):
        return ("exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if h["amsgrad"] else []))

    def numbers(self, h, lr, t, m):
        root = power_gap(h["betas"][1], t) ** 0.5
        return {"size": lr / power_gap(m, t), "root": root, "kept": 1 - lr * h["weight_decay"], "rest": 1 - m}

    def is_decoupled(self, h):
        return self.decoupled or h.get("decoupled_weight_decay", False)

    def apply(self, p, g, s, n, h):
        b2 = h["betas"][1]
        if not self.is_decoupled(h):
            g = decayed(p, g, h)
        elif decays(h):
            p = p * n["kept"]
        m = towards(s["exp_avg"], g, n["rest"])
        v = b2 * s["exp_avg_sq"] + (1 - b2) * (g * g)
        new = {"exp_avg": m, "exp_avg_sq": v}
        if h["amsgrad"]:
            v = new["max_exp_avg_sq"] = bp.maximum(s["max_exp_avg_sq"], v)
        return p - n["size"] * (m / (bp.sqrt(v) / n["root"] + h["eps"])), new


class AdamW(Adam):
    decoupled = True


class NAdam(Adam):
    def slots(self, h):
        return ("exp_avg", "exp_avg_sq", "mu_product")

    def start(self, name, p, h):
        return bp.ones((), dtype=p.dtype, device=p.device) if name == "mu_product" else bp.zeros_like(p)

    def numbers(self, h, lr, t, m):
        def mu(step):
            return m * (1 - 0.5 * 0.96 ** (step * h["momentum_decay"]))

        return {"lr": lr, "mu": mu(t), "mu_next": mu(t + 1), "gap": power_gap(h["betas"][1], t), "kept": 1 - lr * h["weight_decay"], "rest": 1 - m}

    def apply(self, p, g, s, n, h):
        b2 = h["betas"][1]
        if not self.is_decoupled(h):
            g = decayed(p, g, h)
        elif decays(h):
            p = p * n["kept"]
        product = s["mu_product"] * n["mu"]
        m = towards(s["exp_avg"], g, n["rest"])
        v = b2 * s["exp_avg_sq"] + (1 - b2) * (g * g)
        spread = bp.sqrt(v / n["gap"]) + h["eps"]
        p = p - (n["lr"] * (1 - n["mu"]) / (1 - product)) * (g / spread)
        p = p - (n["lr"] * n["mu_next"] / (1 - product * n["mu_next"])) * (m / spread)
        return p, {"exp_avg": m, "exp_avg_sq": v, "mu_product": product}


class RAdam(Adam):
    def slots(self, h):
        return ("exp_avg", "exp_avg_sq")

    def numbers(self, h, lr, t, m):
        b2 = h["betas"][1]
        gap, longest = power_gap(b2, t), 2 / (1 - b2) - 1
        length = longest - 2 * t * b2**t / gap
        rectified = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        is_long = length > 5
        if isinstance(length, bp.Tensor):
            factor = bp.where(is_long, bp.sqrt(bp.where(is_long, rectified, 1.0)) * gap**0.5, 0.0)
            plain = bp.where(is_long, 0.0, 1.0)
        else:
            factor, plain = ((rectified * gap) ** 0.5, 0.0) if is_long else (0.0, 1.0)
        return {"size": lr / power_gap(m, t), "factor": factor, "plain": plain, "kept": 1 - lr * h["weight_decay"], "rest": 1 - m}

    def apply(self, p, g, s, n, h):
        b2 = h["betas"][1]
        if not self.is_decoupled(h):
            g = decayed(p, g, h)
        elif decays(h):
            p = p * n["kept"]
        m = towards(s["exp_avg"], g, n["rest"])
        v = b2 * s["exp_avg_sq"] + (1 - b2) * (g * g)
        share = n["factor"] / (bp.sqrt(v) + h["eps"]) + n["plain"]
        return p - n["size"] * m * share, {"exp_avg": m, "exp_avg_sq": v}


class Adagrad(Rule):
    def slots(self, h):
        return ("sum",)

    def start(self, name, p, h):
        return bp.full_like(p, h["initial_accumulator_value"])

    def numbers(self, h, lr, t, m):
        return {"lr": lr / (1 + (t - 1) * h["lr_decay"])}

    def apply(self, p, g, s, n, h):
        g = decayed(p, g, h)
        total = s["sum"] + g * g
        return p - n["lr"] * (g / (bp.sqrt(total) + h["eps"])), {"sum": total}


class Adadelta(Rule):
    def slots(self, h):
        return ("square_avg", "acc_delta")

    def apply(self, p, g, s, n, h):
        rho, eps = h["rho"], h["eps"]
        g = decayed(p, g, h)
        square = rho * s["square_avg"] + (1 - rho) * (g * g)
        delta = bp.sqrt(s["acc_delta"] + eps) / bp.sqrt(square + eps) * g
        return p - n["lr"] * delta, {"square_avg": square, "acc_delta": rho * s["acc_delta"] + (1 - rho) * (delta * delta)}


class Adamax(Rule):
    def slots(self, h):
        return ("exp_avg", "exp_inf")

    def numbers(self, h, lr, t, m):
        return {"size": lr / power_gap(m, t), "rest": 1 - m}

    def apply(self, p, g, s, n, h):
        b2 = h["betas"][1]
        g = decayed(p, g, h)
        m = towards(s["exp_avg"], g, n["rest"])
        u = bp.maximum(b2 * s["exp_inf"], bp.abs(g) + h["eps"])
        return p - n["size"] * (m / u), {"exp_avg": m, "exp_inf": u}


class RMSprop(Rule):
    def slots(self, h):
        return ("square_avg", *(["momentum_buffer"] if h["momentum"] else []), *(["grad_avg"] if h["centered"] else []))

    def numbers(self, h, lr, t, m):
        return {"lr": lr, "momentum": m}

    def apply(self, p, g, s, n, h):
        alpha = h["alpha"]
        g = decayed(p, g, h)
        square = alpha * s["square_avg"] + (1 - alpha) * (g * g)
        new = {"square_avg": square}
        if h["centered"]:
            mean = new["grad_avg"] = towards(s["grad_avg"], g, 1 - alpha)
            square = square - mean * mean
        step = g / (bp.sqrt(square) + h["eps"])
        if h["momentum"]:
            step = new["momentum_buffer"] = n["momentum"] * s["momentum_buffer"] + step
        return p - n["lr"] * step, new


class Asgd(Rule):
    def slots(self, h):
        return ("ax", "eta", "mu")

    def start(self, name, p, h):
        if name == "ax":
            return bp.zeros_like(p)
        lr = h["lr"]
        first = 1.0 if name == "mu" else lr.astype(p.dtype) if isinstance(lr, bp.Tensor) else float(lr)
        return bp.asarray(first, dtype=p.dtype, device=p.device)

    def numbers(self, h, lr, t, m):
        late = t - h["t0"]
        mean = 1 / bp.maximum(late, 1.0) if isinstance(t, bp.Tensor) else 1 / max(late, 1.0)
        return {"eta_next": lr / (1 + h["lambd"] * lr * t) ** h["alpha"], "mu_next": mean}

    def apply(self, p, g, s, n, h):
        g = decayed(p, g, h)
        p = p * (1 - h["lambd"] * s["eta"]) - s["eta"] * g
        like = bp.zeros_like(s["eta"])
        return p, {"ax": bp.where(s["mu"] == 1, p, s["ax"] + s["mu"] * (p - s["ax"])), "eta": like + n["eta_next"], "mu": like + n["mu_next"]}


class Rprop(Rule):
    def uses_step(self, h):
        return False

    def slots(self, h):
        return ("prev", "step_size")

    def start(self, name, p, h):
        lr = h["lr"]
        return bp.zeros_like(p) if name == "prev" else bp.zeros_like(p) + (lr.astype(p.dtype) if isinstance(lr, bp.Tensor) else lr)

    def apply(self, p, g, s, n, h):
        (less, more), (least, most) = h["etas"], h["step_sizes"]
        turn, size = g * s["prev"], s["step_size"]
        size = bp.clip(bp.where(turn > 0, size * more, bp.where(turn < 0, size * less, size)), least, most)
        g = bp.where(turn < 0, 0.0, g)
        return p - bp.sign(g) * size, {"prev": g, "step_size": size}


class Lion(Rule):
    def uses_step(self, h):
        return False

    def slots(self, h):
        return ("exp_avg",)

    def numbers(self, h, lr, t, m):
        return {"lr": lr, "kept": 1 - lr * h["weight_decay"], "momentum": m}

    def apply(self, p, g, s, n, h):
        b2 = h["betas"][1]
        direction = bp.sign(towards(g, s["exp_avg"], n["momentum"]))
        p = p * n["kept"] if decays(h) else p
        return p - n["lr"] * direction, {"exp_avg": towards(g, s["exp_avg"], b2)}


class Adafactor(Rule):
    def slots(self, h):
        return ("row_var", "col_var", "variance")

    def start(self, name, p, h):
        """Matrices keep the means of their rows and columns, others every square."""
        if (name == "variance") == (p.ndim > 1):
            return None
        shape = list(p.shape)
        if name != "variance":
            shape[-1 if name == "row_var" else -2] = 1
        return bp.zeros(tuple(shape), dtype=p.dtype, device=p.device)

    def numbers(self, h, lr, t, m):
        root = 1 / t**0.5
        rho = bp.minimum(root, lr) if isinstance(root, bp.Tensor) else min(lr, root)
        return {"share": t ** h["beta2_decay"], "rho": rho, "kept": 1 - lr * h["weight_decay"]}

    def apply(self, p, g, s, n, h):
        eps1, eps2 = h["eps"]
        eps1 = bp.finfo(p.dtype).eps if eps1 is None else eps1
        size = bp.maximum(_rms(p), eps2) * n["rho"]
        p = p * n["kept"] if decays(h) else p
        square, new = g * g, {"row_var": None, "col_var": None, "variance": None}
        if g.ndim > 1:
            rows = new["row_var"] = towards(s["row_var"], bp.mean(square, axis=-1, keepdims=True), n["share"])
            columns = new["col_var"] = towards(s["col_var"], bp.mean(square, axis=-2, keepdims=True), n["share"])
            variance = rows @ columns / bp.maximum(bp.mean(rows, axis=-2, keepdims=True), eps1)
        else:
            variance = new["variance"] = towards(s["variance"], square, n["share"])
        update = g / bp.sqrt(bp.maximum(variance, eps1 * eps1))
        limit = bp.maximum(_rms(update) / h["d"], 1.0)
        return p - update * (size / limit), new


def _rms(x):
    return bp.sqrt(bp.mean(x * x))


class Muon(Rule):
    def uses_step(self, h):
        return False

    def check(self, p):
        if p.ndim != 2:
            raise bp.ShapeError(f"Muon: found a parameter of shape {tuple(p.shape)}, expected matrices; give the others to AdamW")

    def slots(self, h):
        return ("momentum_buffer",)

    def numbers(self, h, lr, t, m):
        return {"lr": lr, "kept": 1 - lr * h["weight_decay"], "momentum": m, "rest": 1 - m}

    def apply(self, p, g, s, n, h):
        buffer = towards(s["momentum_buffer"], g, n["rest"])
        update = _orthogonal(towards(g, buffer, n["momentum"]) if h["nesterov"] else buffer, h).astype(p.dtype)
        rows, columns = p.shape
        ratio = max(1, rows / columns) ** 0.5
        if h["adjust_lr_fn"] == "match_rms_adamw":
            ratio = 0.2 * max(rows, columns) ** 0.5
        p = p * n["kept"] if decays(h) else p
        return p - (n["lr"] * ratio) * update, {"momentum_buffer": buffer}


def _orthogonal(x, h):
    """The nearest matrix of orthonormal rows or columns, roughly: Newton-Schulz iterations in bfloat16 (Jordan et al., 2024)."""
    a, b, c = h["ns_coefficients"]
    tall = x.shape[0] > x.shape[1]
    x = x.astype(bp.bfloat16)
    x = x.T if tall else x
    x = x / bp.maximum(bp.linalg.vector_norm(x), h["eps"]).astype(x.dtype)
    for _ in range(h["ns_steps"]):
        gram = x @ x.T
        x = _sum(a, x, 1.0, _sum(b, gram, c, gram, gram), x)
    return x.T if tall else x


def _sum(beta, x, alpha, y, z):
    """beta · x + alpha · y z, rounded once."""
    wide = beta * x.astype(bp.float32) + alpha * (y.astype(bp.float32) @ z.astype(bp.float32))
    return wide.astype(x.dtype)


def power_gap(base, t):
    """1 - base ** t."""
    return 1 - base**t
