"""Functions with rules of their own (custom_function), and functions that are run again instead of remembered (checkpoint).

Both are ops that take a function (backplane/graph_function.hpp). The core calls it with flat lists of tensors; here these
become the user's containers, with the leaves that are no tensors, which stay as they are, in their places.
"""

from __future__ import annotations

from .. import _core, tree
from .._runtime._autocast import uncast
from .._runtime._settings import settings_now, under

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .._core import Function

__all__ = ["checkpoint", "custom_function"]


class custom_function:
    """A function whose derivatives and batching are given by rules, as in jax.custom_vjp and jax.custom_jvp; a decorator.

    fun: takes arguments by position and returns tensors or containers of them; leaves that are no tensors are passed through.
    nondiff_argnums: positions of arguments that are never differentiated, such as functions and options. They come first in bwd
        and in the rule of defjvp.

    Rules are ordinary code: they are themselves differentiated for higher orders. A function with a jvp rule alone also has
    reverse mode, by transposing it. Batching needs no rule: it batches the function or the rule that is asked for.
    A transform that needs a rule which is missing raises MissingRuleError; a differentiated tensor that the function uses
    without having it as an argument is an ArgumentValueError, for the rules say nothing of it.
    """
    fun: Callable[..., Any]
    nondiff_argnums: tuple[int, ...]

    def __new__(cls, fun=None, nondiff_argnums=()):
        if fun is None:
            import functools  # needed seldom, and slow to import

            return functools.partial(cls, nondiff_argnums=nondiff_argnums)
        return super().__new__(cls)

    def __init__(self, fun: Callable[..., Any] | None, nondiff_argnums: int | Sequence[int] = ()) -> None:
        _check_callable("custom_function", "fun", fun)
        if isinstance(nondiff_argnums, int):
            nondiff_argnums = (nondiff_argnums,)
        import functools

        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = tuple(nondiff_argnums)
        self.fwd = self.bwd = self.jvp = self.vmap = None

    def defvjp(self, fwd: Callable[..., tuple[Any, Any]], bwd: Callable[..., tuple[Any, ...]]) -> None:
        """Gives the rule for reverse mode.

        fwd(*args) returns (result, residuals): what the function returns, and whatever bwd needs.
        bwd(*nondiff, residuals, cotangent) returns a tuple with a cotangent per differentiable argument, of its structure,
            shapes and dtypes; None is zero. cotangent has the structure of the result, None where that is no floating tensor.
        """
        _check_callable(f"{self._name}: defvjp", "fwd", fwd)
        _check_callable(f"{self._name}: defvjp", "bwd", bwd)
        self.fwd, self.bwd = fwd, bwd

    def defjvp(self, rule: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
        """Gives the rule for forward mode, rule(*nondiff, primals, tangents) -> (result, tangent), and returns it: a decorator.

        primals and tangents are tuples of one structure; an integer tensor has the tangent None. tangent has the result's
        structure, shapes and dtypes; None is zero.
        """
        _check_callable(f"{self._name}: defjvp", "rule", rule)
        self.jvp = rule
        return rule

    def defvmap(self, rule: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
        """Gives the rule for batching, rule(axis_size, in_batched, *args) -> (result, out_batched), and returns it: a decorator.

        in_batched: per argument a container of its structure that says which tensors have the batch, always at axis 0.
        out_batched: the same for the result, or one bool for all of it.
        """
        _check_callable(f"{self._name}: defvmap", "rule", rule)
        self.vmap = rule
        return rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            args = self._positional(args, kwargs)
        return _CustomCall(self, args).run()

    def __get__(self, instance, owner=None):
        import functools

        return self if instance is None else functools.partial(self, instance)

    def __repr__(self):
        rules = [name for name, rule in (("vjp", self.bwd), ("jvp", self.jvp), ("vmap", self.vmap)) if rule]
        return f"<custom_function {self._name} with {', '.join(rules) if rules else 'no rules'}>"

    @property
    def _name(self):
        return _name_of(self.fun)

    def _positional(self, args, kwargs):
        """Rules take arguments by position alone."""
        import inspect

        bound = inspect.signature(self.fun).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise _core.ArgumentTypeError(
                f"{self._name}: found the keyword-only argument '{next(iter(bound.kwargs))}'; a custom_function takes "
                "its arguments by position"
            )
        return bound.args


def checkpoint(fun: Function) -> Function:
    """fun, of whose run a gradient keeps the arguments alone: the backward pass runs it again. A decorator.

    fun: takes and returns tensors and containers of them; other leaves are passed through. It must do the same each time that
        it is called with the same arguments, and must not change tensors in place that are not its own. The second run takes the
        random numbers of the first; the generators stay as they are.

    The result is a function that computes what fun computes. It works under every transform and in any nesting, also of
    checkpoints; tensors that fun uses without being given them get their gradients too. Where nothing is differentiated it costs
    nothing; else the time of one more run, against the memory of what that run would have saved.

    Errors: ArgumentTypeError where fun is not callable; ArgumentValueError in the backward pass where the second run differs in
        its random numbers or number of results, or where a tensor that it needs was changed in place since.
    Source: Griewank and Walther, "Revolve", ACM Transactions on Mathematical Software 26, 2000.
    """
    _check_callable("checkpoint", "fun", fun)

    import functools

    @functools.wraps(fun)
    def checkpointed(*args, **kwargs):
        return _Call(_name_of(fun), lambda inputs: fun(*inputs[0], **inputs[1]), (args, kwargs)).run("bp::checkpoint", True)

    return checkpointed


class _Template:
    """A container whose tensors were taken out."""

    def __init__(self, container):
        leaves, self.structure = tree.flatten(container)
        self.places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, _core.Tensor)]
        self.tensors = [leaves[i] for i in self.places]  # until take()
        for i in self.places:
            leaves[i] = None
        self.leaves = leaves

    def take(self):
        """The tensors; nobody keeps them here."""
        tensors, self.tensors = self.tensors, None
        return tensors

    def fill(self, values, static=None):
        """The container with these at the places of its tensors; `static` gives what stands for another leaf."""
        leaves = [static(leaf) for leaf in self.leaves] if static else list(self.leaves)
        for place, value in zip(self.places, values):
            leaves[place] = value
        return tree.unflatten(self.structure, leaves)

    def match(self, container, what):
        """The parts of a container of this structure at the places of the tensors. None stands for a whole of Nones."""
        found = []
        _match(self.fill(range(len(self.places)), lambda leaf: _STATIC), container, what, found)
        return [value for _, value in sorted(found, key=lambda pair: pair[0])]


_STATIC = object()
_PLAIN = {type(None), bool, int, float, complex, str, bytes, _core.DType, _core.Device}


def _match(template, container, what, found):
    leaves, structure = tree.flatten(template)
    if container is None:
        found.extend((leaf, None) for leaf in leaves if leaf is not _STATIC)
        return
    children, outer = tree.flatten(template, is_leaf=lambda node: node is not template)
    if len(children) == 1 and children[0] is template:
        if template is not _STATIC:
            found.append((template, container))
        return
    others, other = tree.flatten(container, is_leaf=lambda node: node is not container)
    if outer != other:
        raise _core.ArgumentValueError(f"{what} has another structure: expected {outer}, found {other}")
    for child, part in zip(children, others):
        _match(child, part, what, found)


class _Call:
    """One call of a function: its arguments other than tensors, and the structure of its result."""

    def __init__(self, name, fun, inputs):
        self.name = name
        self.settings = settings_now()  # the backward pass may run under others
        self.fun = fun and under(self.settings, fun)
        self.inputs = _Template(inputs)
        self.output = None

    def run(self, op, recompute, rules=(None, None, None, None)):
        results = _core.call_graph(op, self.name, recompute, (self.call, *rules), self.inputs.take())
        return self.output.fill(results)

    def call(self, tensors):
        return self.results(self.fun(self.inputs.fill(tensors)))

    def results(self, returned):
        output = self.output = _Template(returned)  # a run on another thread may replace the attribute
        for leaf in output.leaves:
            if type(leaf) not in _PLAIN and _core.holds_tensor(leaf):
                raise _core.ArgumentTypeError(
                    f"{self.name}: its function returned {_shown(leaf)}, which holds tensors that derivatives would not see. Fix: return "
                    "tensors in a tuple or a dict, register the class with tree.register, or give named dimensions an order"
                )
        if self.inputs.places and not output.places:
            raise _core.ArgumentTypeError(
                f"{self.name}: its function returned no tensor, so no gradient can flow through it. Fix: return a tensor, or call the function outside"
            )
        return output.take()


class _CustomCall(_Call):
    """A call of a custom_function: its rules over flat lists of tensors."""

    def __init__(self, custom, args):
        count = len(args)
        static = {number + count if number < 0 else number for number in custom.nondiff_argnums}
        if not all(0 <= number < count for number in static):
            raise _core.ArgumentValueError(
                f"{custom._name}: nondiff_argnums {custom.nondiff_argnums} name an argument beyond the {count} given"
            )
        self.custom = custom
        self.count = count
        self.static = {number: args[number] for number in sorted(static)}
        super().__init__(custom._name, None, tuple(arg for i, arg in enumerate(args) if i not in static))

    def run(self):
        custom = self.custom
        rules = (
            custom.fwd and under(self.settings, self.forward),
            custom.bwd and under(self.settings, uncast(self.backward)),
            custom.jvp and under(self.settings, self.jvp),
            custom.vmap and under(self.settings, self.batch),
        )
        return super().run("bp::custom_function", False, rules)

    def arguments(self, tensors):
        """All arguments, in the function's order."""
        given = iter(self.inputs.fill(tensors))
        return [self.static[i] if i in self.static else next(given) for i in range(self.count)]

    def call(self, tensors):
        return self.results(self.custom.fun(*self.arguments(tensors)))

    def forward(self, tensors):
        returned = self.custom.fwd(*self.arguments(tensors))
        if not isinstance(returned, (tuple, list)) or len(returned) != 2:
            raise _core.ArgumentTypeError(
                f"{self.name}: the fwd of defvjp returned {_shown(returned)}; expected the pair (result, residuals)"
            )
        results = self.results(returned[0])
        residuals = _Template(returned[1])
        return results, residuals.take(), (residuals, self.output)

    def backward(self, rest, residuals, cotangents):
        template, output = rest
        found = self.custom.bwd(
            *self.static.values(), template.fill(residuals), output.fill(cotangents, lambda leaf: None)
        )
        count = self.count - len(self.static)
        if not isinstance(found, (tuple, list)) or len(found) != count:
            raise _core.ArgumentTypeError(
                f"{self.name}: the bwd of defvjp returned {_shown(found)}; expected a tuple of {count}, a cotangent or "
                "None for each argument"
            )
        parts = self.inputs.match(tuple(found), f"{self.name}: what the bwd of defvjp returned")
        return self.tensors(parts, "the bwd of defvjp", "cotangent")

    def jvp(self, primals, tangents):
        returned = self.custom.jvp(
            *self.static.values(), self.inputs.fill(primals), self.inputs.fill(tangents, _zero_of)
        )
        if not isinstance(returned, (tuple, list)) or len(returned) != 2:
            raise _core.ArgumentTypeError(
                f"{self.name}: the rule of defjvp returned {_shown(returned)}; expected the pair (result, tangent)"
            )
        results = self.results(returned[0])
        parts = self.output.match(returned[1], f"{self.name}: the tangent that the rule of defjvp returned")
        return results, self.tensors(parts, "the rule of defjvp", "tangent")

    def batch(self, size, batched, tensors):
        flags = iter(self.inputs.fill(batched, lambda leaf: False))
        in_batched = [False if i in self.static else next(flags) for i in range(self.count)]
        returned = self.custom.vmap(size, in_batched, *self.arguments(tensors))
        if not isinstance(returned, (tuple, list)) or len(returned) != 2:
            raise _core.ArgumentTypeError(
                f"{self.name}: the rule of defvmap returned {_shown(returned)}; expected the pair (result, out_batched)"
            )
        results = self.results(returned[0])
        if isinstance(returned[1], bool):
            return results, [returned[1]] * len(results)
        flags = self.output.match(returned[1], f"{self.name}: the out_batched that the rule of defvmap returned")
        return results, [bool(flag) for flag in flags]

    def tensors(self, parts, rule, kind):
        for part in parts:
            if part is not None and not isinstance(part, _core.Tensor):
                raise _core.ArgumentTypeError(
                    f"{self.name}: {rule} returned {_shown(part)} as a {kind}; expected a Tensor, or None for zero"
                )
        return parts


def _zero_of(leaf):
    """The tangent of an argument that is not a tensor."""
    return 0.0 if isinstance(leaf, (int, float, complex)) and not isinstance(leaf, bool) else None


def _name_of(fun):
    return getattr(fun, "__name__", type(fun).__name__)


def _shown(value):
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a value of type {type(value).__name__}"


def _check_callable(name, argument, fun):
    if not callable(fun):
        raise _core.ArgumentTypeError(
            f"{name}: argument {argument}: found a value of type {type(fun).__name__}, expected a function"
        )
