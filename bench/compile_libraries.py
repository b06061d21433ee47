"""How each library of `./dev bench compile` spells the names of compile_cases.py, takes arrays, differentiates, and compiles.

A Way is a library and whether it compiles. `call` gives a function without arguments that computes the case once and waits for its
result. Loaded in the measuring process alone, whose environment says how many threads each library may use.
"""

import types

import numpy as np


def tree_map(function, tree):
    if isinstance(tree, dict):
        return {key: tree_map(function, tree[key]) for key in sorted(tree)}  # JAX gives them in this order
    if isinstance(tree, (list, tuple)):
        return type(tree)(tree_map(function, value) for value in tree)
    return function(tree)


def leaves(tree):
    found = []
    tree_map(found.append, tree)
    return found


class Ours:
    def __init__(self):
        import backplane as bp

        self.bp = bp
        self.names = types.SimpleNamespace(
            exp=bp.exp, log=bp.log, tanh=bp.tanh, sqrt=bp.sqrt, sum=bp.sum, mean=bp.mean, max=bp.max, reshape=bp.reshape,
            permute=bp.permute_dims, relu=bp.relu, sigmoid=bp.sigmoid, scan=bp.scan,
            conv2d=lambda x, w, stride, groups: bp.conv2d(x, w, stride=[stride] * 2, padding=[w.shape[-1] // 2] * 2, groups=groups))

    def take(self, array):
        return self.bp.asarray(array, copy=True)

    def compiled(self, function):
        return self.bp.compile(function)

    def differentiated(self, case, function):
        """function(*args, cotangent) -> (value, gradients), or with a step the new first argument."""
        bp = self.bp
        if case.step:
            def step(first, *rest):
                value, gradient = bp.value_and_grad(function)(first, *rest)
                return value, bp.tree.map(case.step, first, gradient)

            return step

        def run(*args):
            n = case.differentiated
            value, pull = bp.vjp(lambda *primals: function(*primals, *args[n:-1]), *args[:n])
            return value, pull(args[-1])

        return run

    def call(self, case, args, compiles):
        args = tree_map(self.take, args)

        def function(*values):
            return case.function(self.names, *values)

        if case.differentiated:
            function = self.differentiated(case, function)
        if compiles:
            function = self.compiled(function)
        return lambda: function(*args)


class Jax(Ours):
    def __init__(self):
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_platforms", "cpu")
        self.jax, self.asarray = jax, jnp.asarray
        self.bp = types.SimpleNamespace(vjp=jax.vjp, value_and_grad=jax.value_and_grad,
                                        tree=types.SimpleNamespace(map=jax.tree.map))
        self.names = types.SimpleNamespace(
            exp=jnp.exp, log=jnp.log, tanh=jnp.tanh, sqrt=jnp.sqrt, sum=jnp.sum, mean=jnp.mean, max=jnp.max, reshape=jnp.reshape,
            permute=jnp.transpose, relu=jax.nn.relu, sigmoid=jax.nn.sigmoid, scan=jax.lax.scan,
            conv2d=lambda x, w, stride, groups: jax.lax.conv_general_dilated(
                x, w, (stride, stride), [(w.shape[-1] // 2,) * 2] * 2, feature_group_count=groups))

    def take(self, array):
        return self.asarray(array)

    def compiled(self, function):
        return self.jax.jit(function)

    def call(self, case, args, compiles):
        run = super().call(case, args, compiles)
        return lambda: self.jax.block_until_ready(run())


class Torch:
    def __init__(self, threads):
        import torch

        torch.set_num_threads(threads)
        torch.set_num_interop_threads(1)
        # All cases are functions of one code object: beyond the limit, of 8, torch.compile would run them as they are.
        torch._dynamo.config.recompile_limit = 1000
        self.torch = torch

        def scan(step, carry, xs):
            found = []
            for x in xs:
                carry, y = step(carry, x)
                found.append(y)
            return carry, torch.stack(found)

        def reduced(function):
            return lambda x, axis=None, keepdims=False: function(x) if axis is None else function(x, dim=axis, keepdim=keepdims)

        self.names = types.SimpleNamespace(
            exp=torch.exp, log=torch.log, tanh=torch.tanh, sqrt=torch.sqrt, sum=reduced(torch.sum), mean=reduced(torch.mean),
            max=reduced(torch.amax), reshape=torch.reshape, permute=torch.permute, relu=torch.relu,
            sigmoid=torch.sigmoid, scan=scan,
            conv2d=lambda x, w, stride, groups: torch.nn.functional.conv2d(x, w, stride=stride, padding=w.shape[-1] // 2, groups=groups))

    def take(self, array):
        return self.torch.from_numpy(np.array(array, copy=True))

    def call(self, case, args, compiles):
        """Gradients are the tape's, as its users take them, with a forward and a backward that are compiled together."""
        torch = self.torch
        args = tree_map(self.take, args)
        make = torch.compile if compiles else lambda function: function

        def function(*values):
            return case.function(self.names, *values)

        function = make(function)
        if not case.differentiated:
            def run():
                with torch.no_grad():
                    return function(*args)

            return run
        wanted = [leaf.requires_grad_() for leaf in leaves(args[:case.differentiated])]
        if case.step:
            update = make(lambda old, gradients: [case.step(p, g) for p, g in zip(old, gradients)])

            def run():
                value = function(*args)
                gradients = torch.autograd.grad(value, wanted)
                with torch.no_grad():
                    return value.detach(), update([leaf.detach() for leaf in wanted], gradients)

            return run

        def run():
            value = function(*args[:-1])
            return value.detach(), torch.autograd.grad(value, wanted, args[-1])

        return run


class Mlx:
    """Its own loops are unrolled, as it has no scan; derivatives are of lists of arrays."""

    def __init__(self):
        import mlx.core as mx

        mx.set_default_device(mx.cpu)
        self.mx = mx

        def scan(step, carry, xs):
            found = []
            for i in range(xs.shape[0]):
                carry, y = step(carry, xs[i])
                found.append(y)
            return carry, mx.stack(found)

        def conv2d(x, w, stride, groups):
            """MLX has channels last."""
            last = mx.conv2d(mx.transpose(x, (0, 2, 3, 1)), mx.transpose(w, (0, 2, 3, 1)), stride, w.shape[-1] // 2, groups=groups)
            return mx.transpose(last, (0, 3, 1, 2))

        self.names = types.SimpleNamespace(
            conv2d=conv2d, exp=mx.exp, log=mx.log, tanh=mx.tanh, sqrt=mx.sqrt, sum=mx.sum, mean=mx.mean, max=mx.max, reshape=mx.reshape,
            permute=mx.transpose, relu=lambda x: mx.maximum(x, 0), sigmoid=mx.sigmoid, scan=scan)

    def take(self, array):
        return self.mx.array(array)

    def call(self, case, args, compiles):
        mx = self.mx
        args = tree_map(self.take, args)

        def function(*values):
            return case.function(self.names, *values)

        def differentiated(*values):
            n = case.differentiated

            def of_leaves(*primals):
                return function(*filled(values[:n], primals), *(values[n:] if case.step else values[n:-1]))

            cotangent = mx.array(1.0) if case.step else values[-1]
            (value,), gradients = mx.vjp(of_leaves, leaves(values[:n]), [cotangent])
            gradients = filled(values[:n], gradients)
            return value, (zipped(case.step, values[0], gradients[0]) if case.step else gradients)

        made = differentiated if case.differentiated else function
        made = mx.compile(made) if compiles else made

        def run():
            result = made(*args)
            mx.eval(result)
            return result

        return run


def filled(tree, values):
    """The tree with these leaves in place of its own."""
    rest = iter(values)
    return tree_map(lambda _: next(rest), tree)


def zipped(function, first, second):
    rest = iter(leaves(second))
    return tree_map(lambda value: function(value, next(rest)), first)


WAYS = {"ours, eager": ("ours", False), "ours": ("ours", True), "torch, eager": ("torch", False), "torch.compile": ("torch", True),
        "jax.jit": ("jax", True), "mlx.compile": ("mlx", True)}


def load(threads):
    """{way: call(case, args)} of the libraries that are there."""
    libraries = {"ours": Ours(), "torch": Torch(threads)}
    for name, library in (("jax", Jax), ("mlx", Mlx)):
        try:
            libraries[name] = library()
        except ImportError:
            pass

    def caller(library, compiles):
        return lambda case, args: library.call(case, args, compiles)

    return {way: caller(libraries[name], compiles) for way, (name, compiles) in WAYS.items() if name in libraries}
