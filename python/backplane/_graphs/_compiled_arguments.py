"""Compiled functions with an optimiser as an argument: it and the modules beside it are the state, and stay the same objects."""

from .. import _core
from ._compiled_state import compile_with_state

__all__ = []
_MOST = 8  # sets of objects whose functions are kept


class StatefulArguments:
    """compile(fun) as a function of all arguments. Each set of objects at their places has a compiled function with this state."""

    def __init__(self, fun, **options):
        for word in ("donate", "dynamic"):
            if options.get(word) is not None:
                raise _core.ArgumentValueError(
                    f"compile: found an optimiser as an argument, and the option {word}=. Fix: name the optimiser and its modules in state=, and use them without passing them"
                )
        self.fun, self.options = fun, options
        self.made = {}  # by places and ids

    def __call__(self, *args, **kwargs):
        state = {place: x for place, x in (*enumerate(args), *kwargs.items()) if _is_state(x)}
        key = tuple((place, id(x)) for place, x in state.items())
        compiled = self.made.pop(key, None)
        if compiled is None:
            if len(self.made) >= _MOST:
                del self.made[next(iter(self.made))]
            compiled = self._compile(state, len(args))
        self.made[key] = compiled  # the last one used is the last
        return compiled(*[x for i, x in enumerate(args) if i not in state], **{word: x for word, x in kwargs.items() if word not in state})

    def _compile(self, state, count):
        fun = self.fun

        def with_state(*args, **kwargs):
            rest = iter(args)
            given = [state[i] if i in state else next(rest) for i in range(count)]
            return fun(*given, **{word: x for word, x in state.items() if isinstance(word, str)}, **kwargs)

        return compile_with_state(with_state, state=list(state.values()), **self.options)


def _is_state(x):
    """An optimiser, a module, a scheduler or a loss scaler, and not a tensor or a container."""
    return hasattr(x, "state_dict") and not isinstance(x, (_core.Tensor, dict, list, tuple, type))
