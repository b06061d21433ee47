"""compile with state=: modules, optimisers and containers whose tensors a compiled function reads and replaces.

The compiled function captures the state's tensors, so each has to stay the same object from call to call. Entries that the function
replaces have tensors of their own for that (_replaced_entries.py): when the first trace finds them, the function is traced again.
"""

import contextvars as _contextvars  # loaded now: a module that is imported during a trace makes it one for that call alone
import gc as _gc

from .. import _core, tree
from .._tensors import _repr
from .._calls._ops import ops
from .._transforms._grad import is_grad_enabled, no_grad, set_grad_enabled
from ._compiled_tape import WORD, CompiledTape, WantsTape, wants_gradients
from ._replaced_entries import FoundReplaced, ReplacedEntries, RunsPlainly, check_values

__all__ = []
_LOADED = (_contextvars, _gc, _repr)
_PROBE = _core.asarray(0.0)
_FORWARD = {"jvp", "jacfwd", "vmap", "compile", "make_graph"}  # through these the graph goes, or it is part of theirs
_TRACES = ("compile", "make_graph")  # their tensors may stand in the state until they end: they put them back
_MOST_OPTIONS = 8  # as many as graphs are kept
_PLAIN = (str, int, float, complex, type(None))
_OF_CALLS = ("_rates", "_own_rates", "_fixed", "_moving", "_later")  # attributes of optimisers that are not state
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

    names = _named_from(fun, options.get("dynamic"))

    @functools.wraps(fun, updated=())
    def call(*args, **kwargs):
        if names and len(args) <= len(names[1]):
            first, words = names
            named = dict(zip(words[first:], args[first:]))
            if twice := named.keys() & kwargs.keys():
                raise _core.ArgumentTypeError(f"{call.__name__}: argument {min(twice)!r} was given twice, by position and by name")
            args, kwargs = args[:first], {**named, **kwargs}
        return compiled(*args, **kwargs)

    call._state = compiled.state
    return call


def _named_from(fun, dynamic):
    """(place of the first argument that `dynamic` names, names of the positional ones), or None. Arguments from that place on are passed by name."""
    if not isinstance(dynamic, dict):
        return None
    import inspect

    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    words = [parameter.name for parameter in inspect.signature(fun).parameters.values() if parameter.kind in kinds]
    places = [i for i, word in enumerate(words) if word in dynamic]
    return (places[0], words) if places else None


class _Part:
    """Stands for an object of the state in the result of a graph: the caller gets the object itself, not a copy."""

    def __init__(self, index):
        self.index = index


def _named(method, fun):
    """The method as a function with the name of `fun`, which compile_log shows."""

    def traced(*args, **kwargs):
        return method(*args, **kwargs)

    traced.__name__ = getattr(fun, "__name__", type(fun).__name__)
    traced.__qualname__ = getattr(fun, "__qualname__", traced.__name__)
    return traced


class _StatefulFunction:
    def __init__(self, fun, state, options):
        self.fun, self.state = fun, state
        self.compiled = _core.compile(_named(self._traced, fun), **options)
        self.contents = []  # (dict, list or generator, its content before the call)
        self.replaced = ReplacedEntries()
        self.tape = CompiledTape()
        self.optimizers = []
        self.options = []  # the lists of options that optimisers had
        self.parts = {}  # by its id, each module and other object of the state
        self.attributes = set()  # the ids of their dicts
        self.later = []  # (scheduler, arguments) of the steps that the trace left for the end of the call
        self.named = []  # the objects that graphs know by their positions here: returned ones, and schedulers
        self.is_found = False  # do the contents hold for the next call too, if its containers hold the same?

    def _traced(self, *args, **kwargs):
        """The function's result, and the rest of the call, which needs values: the replaced entries, and schedulers' steps."""
        gradients = kwargs.pop(WORD, None)
        if _core.unguarded(self._is_plain):
            return self._plain_constants(*args, **kwargs), ((), (), (), False, None)
        try:
            args, kwargs = _core.unguarded(self._start_tape, gradients, (args, kwargs))
            result = self.fun(*args, **kwargs)
            result, gradients = _core.unguarded(self._without_tape, result)
        finally:
            _core.unguarded(self._stop_tape)
        return _core.unguarded(self._outcome, result, gradients)

    def _is_plain(self):
        """Before the function runs: does it run as it is?"""
        if not _has_values():
            self.replaced.start()
            self.later = []
            for optimizer in self.optimizers:
                optimizer._later = self.later
            return False
        if self.replaced.entered:
            raise RunsPlainly("compile: the function runs as it is")
        return True

    def _start_tape(self, gradients, arguments):
        self.tape.start(gradients)
        return self.tape.inside(arguments)

    def _without_tape(self, result):
        return self.tape.outcome(result, self.contents, self.later, self._position)

    def _stop_tape(self):
        self.tape.stop()

    def _outcome(self, result, gradients):
        returns_parts = any(id(x) in self.parts for x in tree.leaves(result, is_leaf=self._is_part))
        if returns_parts:
            result = tree.map(lambda x: _Part(self._position(x)) if self._is_part(x) else x, result, is_leaf=self._is_part)
        made = self._take_made()
        (result, gradients), replaced = self.replaced.replaced(self.contents, (result, gradients))
        later = tuple((self._position(scheduler), given) for scheduler, given in self.later)
        return result, (replaced, made, later, returns_parts, gradients)

    def _take_made(self):
        """(container, key, tensor) of what the function added to dicts of the state, which do not have it until the call ends.

        A tensor that becomes an attribute of an object is refused: a module would have to find its role from a value.
        """
        made = []
        for container, content in self.contents:
            if type(container) is dict and id(container) not in self.attributes:
                new = {key: x for key, x in container.items() if key not in content and isinstance(x, _core.Tensor)}
                if any(_core.may_share_outside_memory(x) for x in new.values()):
                    raise RunsPlainly("compile: a new entry may share the memory of a tensor that was there before")
                for key, x in new.items():
                    del container[key]
                    made.append((self._position(container), key, ops.bp.copy(x)))
        return tuple(made)

    def _position(self, x):
        found = [i for i, known in enumerate(self.named) if known is x]
        if not found:
            self.named.append(x)
        return found[0] if found else len(self.named) - 1

    def _is_part(self, x):
        return id(x) in self.parts

    def _plain(self, *args, **kwargs):
        result = self.fun(*args, **kwargs)
        _core.unguarded(self._check_plain)
        return result

    def _plain_constants(self, *args, **kwargs):
        """The same with the results of the graph, which have no history."""
        if not _core.unguarded(self._has_tape):
            return self._plain(*args, **kwargs)
        with set_grad_enabled(True):
            return _core.unguarded(tree.map, _constant, self._plain(*args, **kwargs))

    def _has_tape(self):
        return self.tape.is_used and _has_values()

    def _check_plain(self):
        check_values(self.contents, () if _has_values() else _TRACES)

    def __call__(self, *args, **kwargs):
        given = (args, kwargs)
        args, kwargs = tuple(map(_constant, args)), {word: _constant(value) for word, value in kwargs.items()}
        while True:
            if _core.unguarded(self._is_followed, given):
                return self._recorded(*given)
            try:
                return self._called(args, kwargs)
            except FoundReplaced as found:
                self.replaced.add(found.places)
                self.is_found = False
            except WantsTape as wanted:
                self.tape.add(wanted)
            except RunsPlainly:
                return self._run(lambda: self._plain_constants(*args, **kwargs))

    def _is_followed(self, arguments):
        return _is_followed(arguments) or (self.tape.is_used and wants_gradients(arguments))

    def _recorded(self, args, kwargs):
        """The function as it is, as a transform outside of the call, or its own backward(), differentiates its arguments."""
        for optimizer in self.optimizers:
            optimizer.init_state()
        _core.unguarded(self._find)
        return self._run(lambda: self._plain(*args, **kwargs), set_grad_enabled(is_grad_enabled()))

    def _called(self, args, kwargs):
        for optimizer in self.optimizers:
            optimizer.init_state()
        if not _core.unguarded(self._enter, (args, kwargs)):
            raise RunsPlainly("compile: the function runs as it is")
        result, (made, later, returns_parts, gradients) = self._run(lambda: self._computed(args, kwargs))
        for i, key, value in made:
            self.named[i][key] = value
        self.tape.leave_new(gradients, self.named)
        for i, given in later:
            self.named[i].step(*given)
        return tree.map(lambda x: self.named[x.index] if type(x) is _Part else x, result) if returns_parts else result

    def _computed(self, args, kwargs):
        result, (replaced, *rest, gradients) = self.compiled(*args, **kwargs, **_core.unguarded(self.tape.arguments, self.contents, self.replaced))
        self.tape.leave(gradients, self.contents, self.named)
        self.replaced.leave(replaced)
        return result, (*rest, gradients)

    def _enter(self, arguments):
        """False: in the trace of another function, and where memory is shared, the function runs as it is."""
        if not self.is_found or not self._refresh():
            self._find()
        try:
            return _has_values() and self.replaced.enter(arguments)
        except BaseException:
            self._restore()
            raise

    def _run(self, function, mode=None):
        """Calls it without recording, or in the block `mode`."""
        self._set_rates()
        try:
            with mode or no_grad():
                return function()
        except BaseException as error:
            self._restore()
            if getattr(error, "keeps_tensor", False):
                raise _core.ArgumentValueError(f"{error}. {_ADVICE}") from None
            raise
        finally:
            for optimizer in self.optimizers:
                optimizer._rates = optimizer._later = None

    # ---- what the state consists of ---------------------------------------------------------------------------------

    def _find(self):
        """The state as it is before a call: the containers with their contents."""
        self.contents, self.optimizers, self.parts, self.attributes = [], [], {}, set()
        self.replaced.optimizers.clear()
        self.is_found, seen = True, set()
        for part in self.state:
            self._visit(part, seen)
        self.replaced.find(self.contents)

    def _refresh(self):
        """Brings the contents up to date. False: a container has another tensor or container than before."""
        is_copied = False
        for i in _core.changed_contents(self.contents):
            container, content = self.contents[i]
            if isinstance(container, _core.Generator):
                self.contents[i] = (container, container.state)
            else:
                if _has_other_parts(container, content):
                    return False
                self.contents[i] = (container, _copied(container))
                is_copied = True
        if is_copied:
            self.replaced.find(self.contents)
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
        for _, value in list(items):
            self._visit(value, seen)

    def _visit_object(self, part, seen):
        """A module, an optimiser, a scheduler, or another object with attributes."""
        if hasattr(part, "init_state") and hasattr(part, "param_groups") and getattr(part, "rule", None) is not None:
            part.init_state()
            if getattr(part, "_own_rates", None) is None:
                part._own_rates = _rates(part)
            self.optimizers.append(part)
        if not hasattr(part, "__dict__") or callable(part) and not _has_state(part):
            return
        self.parts[id(part)] = part
        attributes, first = vars(part), len(self.contents)
        seen.add(id(attributes))
        self.attributes.add(id(attributes))
        self._visit_items(attributes, [(key, value) for key, value in attributes.items() if key not in _OF_CALLS], seen)
        if self.optimizers and part is self.optimizers[-1]:
            self.replaced.optimizers |= {id(container) for container, _ in self.contents[first:]}

    # ---- one call ---------------------------------------------------------------------------------------------------

    def _restore(self):
        self.replaced.fail()
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
            found = optimizer._moving = _moving(optimizer)
            if len(found) != len(optimizer._own_rates):
                optimizer._own_rates = _rates(optimizer)
            elif found != optimizer._own_rates.tolist():
                optimizer._own_rates[...] = _rates(optimizer)
            if (fixed := [_whole_step().fixed_options(optimizer, group) for group in optimizer.param_groups]) != optimizer._fixed:
                optimizer._fixed = self._known(fixed)
            optimizer._rates, optimizer._group_count = optimizer._own_rates, len(found)

    def _known(self, fixed):
        """The list that stood for the same options before: a graph is kept for it, which knows it by identity."""
        known = next((one for one in self.options if one == fixed), fixed)
        self.options = [known, *(one for one in self.options if one is not known)][:_MOST_OPTIONS]
        return known


def _has_values():
    """Outside of all traces?"""
    return _core.has_values(_PROBE)


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


def _is_followed(arguments):
    """Does a transform of reverse mode differentiate one of them?"""
    return any(isinstance(x, _core.Tensor) and not _FORWARD.issuperset(_core.transforms_of(x)) for x in tree.leaves(arguments))


def _has_state(part):
    """Is it an object that is called, as a module, and not a function or a class?"""
    return not hasattr(part, "__code__") and not isinstance(part, type)
