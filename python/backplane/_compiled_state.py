"""compile with state=: modules, optimisers and containers whose tensors a compiled function reads and replaces.

The compiled function captures the state's tensors, so each has to stay the same object from call to call. Where the function puts a
new tensor in the place of one, the new values go into the old tensor, which returns to its place.
"""

import contextvars as _contextvars  # loaded now: a module that is imported during a trace makes it one for that call alone
import gc as _gc

from . import _core, _repr
from ._grad import no_grad
from ._ops import ops

__all__ = []
_LOADED = (_contextvars, _gc, _repr)


def compile_with_state(fun, *, state=None, inputs=None, outputs=None, **options):
    """compile(fun, state=…): a function of fun's arguments. inputs, outputs: more of the state, as in MLX."""
    if not callable(fun):
        raise _core.ArgumentTypeError(f"compile: argument fun: found a value of type {type(fun).__name__}, expected a function")
    import functools

    compiled = _StatefulFunction(fun, [part for part in (state, inputs, outputs) if part is not None], options)

    @functools.wraps(fun, updated=())
    def call(*args, **kwargs):
        return compiled(*args, **kwargs)

    return call


class _StatefulFunction:
    def __init__(self, fun, state, options):
        self.fun, self.state = fun, state
        self.compiled = _core.compile(self._traced, **options)
        self.traces = []
        self.places = None  # (dict or list, key, tensor) of each tensor of the state
        self.contents = None  # (dict or list, its content before the call)
        self.optimizers = []

    def _traced(self, *args, **kwargs):
        _core.unguarded(self.traces.append, None)
        result = self.fun(*args, **kwargs)
        for container, key, tensor, now in _core.unguarded(self._replaced):
            tensor[...] = now
            container[key] = tensor
        return result

    def _replaced(self):
        """(container, key, the tensor of the state, the one that the function put into its place), where these are two."""
        found = []
        for container, key, tensor in self.places:
            now = container.get(key) if isinstance(container, dict) else container[key] if key < len(container) else None
            if now is tensor or not isinstance(now, _core.Tensor):
                continue
            if now.shape == tensor.shape and now.dtype == tensor.dtype:
                found.append((container, key, tensor, now))
        of_state = {id(tensor) for _, _, tensor, _ in found}
        return [(*place, ops.bp.copy(now) if id(now) in of_state else now) for *place, now in found]  # two may have changed places

    def __call__(self, *args, **kwargs):
        if self.places is None:
            self._find()
        before = self._snapshot()
        self._set_rates()
        args, kwargs = tuple(map(_constant, args)), {word: _constant(value) for word, value in kwargs.items()}
        traces = len(self.traces)
        try:
            with no_grad():
                result = self.compiled(*args, **kwargs)
        except BaseException:
            self._restore(before)
            raise
        finally:
            for optimizer in self.optimizers:
                optimizer._rates = None
        if len(self.traces) != traces:
            self._find()
        return result

    # ---- what the state consists of ---------------------------------------------------------------------------------

    def _find(self):
        """The containers of the state and the tensors in them, by their places."""
        self.optimizers = []
        self.containers, seen, self._seen_places = [], set(), []
        for part in self.state:
            self._visit(part, seen)
        self.places = self._seen_places

    def _visit(self, part, seen):
        if part is None or isinstance(part, (_core.Tensor, str, int, float, complex)) or id(part) in seen:
            return
        seen.add(id(part))
        if isinstance(part, (dict, list)):
            self._visit_items(part, part.items() if isinstance(part, dict) else enumerate(part), seen)
        elif isinstance(part, (tuple, set, frozenset)):
            for item in part:
                self._visit(item, seen)
        elif isinstance(part, _core.Generator):
            self.containers.append(part)
        else:
            self._visit_object(part, seen)

    def _visit_items(self, container, items, seen):
        self.containers.append(container)
        for key, value in list(items):
            if isinstance(value, _core.Tensor):
                self._seen_places.append((container, key, value))
            else:
                self._visit(value, seen)

    def _visit_object(self, part, seen):
        """A module, an optimiser, a scheduler, or another object with attributes."""
        if hasattr(part, "init_state") and hasattr(part, "param_groups"):
            part.init_state()
            if getattr(part, "_own_rates", None) is None:
                part._own_rates = _core.asarray([float(group["lr"]) for group in part.param_groups], dtype=_core.float64)
            self.optimizers.append(part)
        if not hasattr(part, "__dict__") or callable(part) and not _has_state(part):
            return
        attributes = vars(part)
        seen.add(id(attributes))
        self._visit_items(attributes, [(key, value) for key, value in attributes.items() if key not in ("_rates", "_own_rates")], seen)

    # ---- one call ---------------------------------------------------------------------------------------------------

    def _snapshot(self):
        copies = []
        for container in self.containers:
            if isinstance(container, _core.Generator):
                copies.append((container, container.state))
            else:
                copies.append((container, dict(container) if isinstance(container, dict) else list(container)))
        return copies

    def _restore(self, copies):
        for container, content in copies:
            if isinstance(container, _core.Generator):
                container.state = content
            elif isinstance(container, dict):
                container.clear()
                container.update(content)
            else:
                container[:] = content

    def _set_rates(self):
        """The groups' learning rates, in the tensors that the compiled function reads."""
        for optimizer in self.optimizers:
            found = [float(group["lr"]) for group in optimizer.param_groups]
            if len(found) != optimizer._own_rates.size:
                optimizer._own_rates = _core.asarray(found, dtype=_core.float64)
            elif found != optimizer._own_rates.tolist():
                optimizer._own_rates[...] = _core.asarray(found, dtype=_core.float64)
            optimizer._rates, optimizer._group_count = optimizer._own_rates, len(found)


def _constant(x):
    """A tensor without its history, which nothing in the call follows."""
    return x.detach() if isinstance(x, _core.Tensor) and x.requires_grad else x


def _has_state(part):
    """Is it an object that is called, as a module, and not a function or a class?"""
    return not hasattr(part, "__code__") and not isinstance(part, type)
