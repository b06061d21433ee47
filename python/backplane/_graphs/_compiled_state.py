"""compile with state=: modules, optimisers and containers whose tensors a compiled function reads and replaces.

The compiled function captures the state's tensors, so each has to stay the same object from call to call. Where the function puts a
new tensor in the place of one, the new values go into the old tensor, which returns to its place. Two places of one tensor that the
function gives different values are separated first: one of them gets a copy, and the function is traced again.
"""

import contextvars as _contextvars  # loaded now: a module that is imported during a trace makes it one for that call alone
import gc as _gc

from .. import _core, tree
from .._tensors import _repr
from .._transforms._grad import no_grad
from .._calls._ops import ops

__all__ = []
_LOADED = (_contextvars, _gc, _repr)
_PLAIN = (str, int, float, complex, type(None))
_ADVICE = (
    "With state=, what keeps it may be an optimiser or a module that is missing there: add it to state=. In a dict or a list of the state, "
    "put a tensor of its shape and dtype into its place before the call"
)


def compile_with_state(fun, *, state=None, inputs=None, outputs=None, **options):
    """compile(fun, state=…): a function of fun's arguments. inputs, outputs: more of the state, as in MLX."""
    if not callable(fun):
        raise _core.ArgumentTypeError(f"compile: argument fun: found a value of type {type(fun).__name__}, expected a function")
    import functools

    compiled = _StatefulFunction(fun, [part for part in (state, inputs, outputs) if part is not None], options)

    @functools.wraps(fun, updated=())
    def call(*args, **kwargs):
        return compiled(*args, **kwargs)

    call._state = compiled.state
    return call


class _Shared(Exception):
    """Places of the state hold one tensor, and the function gives them different values."""

    def __init__(self, parts):
        super().__init__("a tensor of the state stands in several places")
        self.parts = parts  # (tensor, the places that get a copy of it)

    def separate(self):
        for tensor, places in self.parts:
            own = ops.bp.copy(tensor.detach())
            own = own.requires_grad_() if tensor.requires_grad else own
            for container, key in places:
                container[key] = own


class _StatefulFunction:
    def __init__(self, fun, state, options):
        self.fun, self.state = fun, state
        self.compiled = _core.compile(self._traced, **options)
        self.places = []  # (dict or list, key, tensor) of each tensor of the state
        self.contents = []  # (dict, list or generator, its content before the call)
        self.optimizers = []
        self.is_found = False  # do places and contents hold for the next call too, if its containers hold the same?

    def _traced(self, *args, **kwargs):
        result = self.fun(*args, **kwargs)
        replaced = _core.unguarded(self._replaced)
        if replaced:
            own = {id(container) for container, _ in self.contents}
            result = _core.unguarded(_apart, result, [now for *_, now in replaced], (args, kwargs), own)
        for container, key, tensor, now in replaced:
            tensor[...] = now
            container[key] = tensor
        return result

    def _replaced(self):
        """(container, key, the tensor of the state, the one that the function put into its place), where these are two."""
        now_there = []
        for container, key, tensor in self.places:
            now = container.get(key) if isinstance(container, dict) else container[key] if key < len(container) else None
            if isinstance(now, _core.Tensor) and now.shape == tensor.shape and now.dtype == tensor.dtype:
                now_there.append((container, key, tensor, now))
        if parts := self._parted(now_there):
            raise _Shared(parts)
        found = [place for place in now_there if place[3] is not place[2]]
        of_state = {id(tensor) for _, _, tensor, _ in found}
        return [(*place, ops.bp.copy(now) if id(now) in of_state else now) for *place, now in found]  # two may have changed places

    def _parted(self, now_there):
        """(tensor, places) for the places of one tensor that no longer hold one. An optimiser's parameters follow those of the module."""
        followers = {id(group["params"]) for optimizer in self.optimizers for group in optimizer.param_groups}
        by_tensor = {}
        for container, key, tensor, now in now_there:
            if id(container) not in followers:
                by_tensor.setdefault(id(tensor), (tensor, {}))[1].setdefault(id(now), []).append((container, key))
        parts = []
        for tensor, by_value in by_tensor.values():
            stays = id(tensor) if id(tensor) in by_value else next(iter(by_value))
            parts += [(tensor, places) for value, places in by_value.items() if value != stays]
        return parts

    def __call__(self, *args, **kwargs):
        args, kwargs = tuple(map(_constant, args)), {word: _constant(value) for word, value in kwargs.items()}
        while True:
            try:
                return self._called(args, kwargs)
            except _Shared as shared:
                shared.separate()

    def _called(self, args, kwargs):
        for optimizer in self.optimizers:
            optimizer.init_state()
        if not self.is_found or not self._refresh():
            self._find()
        self._set_rates()
        try:
            with no_grad():
                return self.compiled(*args, **kwargs)
        except BaseException as error:
            self._restore()
            if getattr(error, "keeps_tensor", False):
                raise _core.ArgumentValueError(f"{error}. {_ADVICE}") from None
            raise
        finally:
            for optimizer in self.optimizers:
                optimizer._rates = None

    # ---- what the state consists of ---------------------------------------------------------------------------------

    def _find(self):
        """The state as it is before a call: the containers with their contents, and the tensors by their places."""
        self.places, self.contents, self.optimizers = [], [], []
        self.is_found, seen = True, set()
        for part in self.state:
            self._visit(part, seen)

    def _refresh(self):
        """Brings the contents up to date. False: a container has another tensor or container than before."""
        for i in _core.changed_contents(self.contents):
            container, content = self.contents[i]
            if isinstance(container, _core.Generator):
                self.contents[i] = (container, container.state)
            else:
                if _has_other_parts(container, content):
                    return False
                self.contents[i] = (container, _copied(container))
        return True

    def _visit(self, part, seen):
        if isinstance(part, (_core.Tensor, *_PLAIN)) or id(part) in seen:
            return
        seen.add(id(part))
        if isinstance(part, (dict, list)):
            self._visit_items(part, part.items() if isinstance(part, dict) else enumerate(part), seen)
        elif isinstance(part, (tuple, set, frozenset)):
            self.is_found = self.is_found and isinstance(part, tuple)
            for item in part:
                self._visit(item, seen)
        elif isinstance(part, _core.Generator):
            self.contents.append((part, part.state))
        else:
            self._visit_object(part, seen)

    def _visit_items(self, container, items, seen):
        self.contents.append((container, _copied(container)))
        for key, value in list(items):
            if isinstance(value, _core.Tensor):
                self.places.append((container, key, value))
            else:
                self._visit(value, seen)

    def _visit_object(self, part, seen):
        """A module, an optimiser, a scheduler, or another object with attributes."""
        if hasattr(part, "init_state") and hasattr(part, "param_groups"):
            part.init_state()
            if getattr(part, "_own_rates", None) is None:
                part._own_rates = _rates(part)
            self.optimizers.append(part)
        if not hasattr(part, "__dict__") or callable(part) and not _has_state(part):
            return
        attributes = vars(part)
        seen.add(id(attributes))
        self._visit_items(attributes, [(key, value) for key, value in attributes.items() if key not in ("_rates", "_own_rates", "_fixed")], seen)

    # ---- one call ---------------------------------------------------------------------------------------------------

    def _restore(self):
        for container, content in self.contents:
            if isinstance(container, _core.Generator):
                container.state = content
            elif isinstance(container, dict):
                container.clear()
                container.update(content)
            else:
                container[:] = content

    def _set_rates(self):
        """The groups' learning rates and momentums, in the tensors that the compiled function reads."""
        for optimizer in self.optimizers:
            found = _moving(optimizer)
            if len(found) != len(optimizer._own_rates):
                optimizer._own_rates = _rates(optimizer)
            elif found != optimizer._own_rates.tolist():
                optimizer._own_rates[...] = _rates(optimizer)
            fixed = [_whole_step().fixed_options(optimizer, group) for group in optimizer.param_groups]
            if fixed != optimizer._fixed:
                optimizer._fixed = fixed
            optimizer._rates, optimizer._group_count = optimizer._own_rates, len(found)


def _apart(result, new, arguments, own):
    """The result with copies of what may lie in memory of the state that is about to be written: old tensors of it, and views of them.

    own: the containers of the state by their ids, which stay as they are where they are returned.
    """
    kept = {id(x) for x in (*new, *tree.leaves(arguments))}
    copies = {}

    def apart(x):
        if not isinstance(x, _core.Tensor) or id(x) in kept:
            return x
        if id(x) not in copies:
            copies[id(x)] = x, ops.bp.copy(x)  # x is held, so that no other gets its id
        return copies[id(x)][1]

    return tree.map(apart, result, is_leaf=lambda x: not isinstance(x, (tuple, list, dict)) or id(x) in own)


def _whole_step():
    from ..optim import _whole_step

    return _whole_step


def _moving(optimizer):
    return [list(_whole_step().moving_options(group)) for group in optimizer.param_groups]


def _rates(optimizer):
    """The same as a tensor beside the parameters."""
    params = optimizer.param_groups[0]["params"]
    return _core.asarray(_moving(optimizer), dtype=_core.float64, device=params[0].device if params else None)


def _copied(container):
    return dict(container) if isinstance(container, dict) else list(container)


def _has_other_parts(container, content):
    """Has more than a number or a text changed?"""
    if not isinstance(content, dict):
        container, content = dict(enumerate(container)), dict(enumerate(content))
    if container.keys() != content.keys():
        return True
    pairs = [(value, content[key]) for key, value in container.items()]
    return any(x is not y and not (isinstance(x, _PLAIN) and isinstance(y, _PLAIN)) for x, y in pairs)


def _constant(x):
    """A tensor without its history, which nothing in the call follows."""
    return x.detach() if isinstance(x, _core.Tensor) and x.requires_grad else x


def _has_state(part):
    """Is it an object that is called, as a module, and not a function or a class?"""
    return not hasattr(part, "__code__") and not isinstance(part, type)
