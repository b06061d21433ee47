"""backward() and .grad in a function of compile(state=): the gradients of the state's tensors around a call, and in its trace.

A function that uses them is found by the first trace, and traced again with a tape. What the tensors hold as .grad when the call begins is
an argument of the graph, if the function was seen to ask for it; what they hold when it ends is a result.
"""

from .. import _core, tree
from ._replaced_entries import RunsAgain, tensors_of

__all__ = []
WORD = " gradients"  # the argument of the traced function, by a name that no parameter has


class WantsTape(RunsAgain):
    """The function called backward(), or asked for a gradient of before the call, and the trace was not made for it."""

    def __init__(self, what):
        super().__init__(f"compile: the function wants the {what}")
        self.what = what  # "tape" or "gradients"


class CompiledTape:
    def __init__(self):
        self.is_used = self.reads_gradients = False
        self.tensors = []  # of the state, each once
        self.tape = None

    def add(self, wanted):
        self.is_used = True
        self.reads_gradients = self.reads_gradients or wanted.what == "gradients"

    # ---- around a call ----------------------------------------------------------------------------------------------

    def arguments(self, contents, replaced):
        """What the traced function gets: which tensors require a gradient, and the gradients."""
        self.tensors = list({id(x): x for _, _, x in _tensors_now(contents)}.values())
        if not self.is_used:
            return {}
        shown = self._shown(replaced)
        wanted = [x.requires_grad for x in shown]
        for x, own, wants in zip(shown, self.tensors, wanted):
            if x is not own and own.requires_grad != wants:
                own.requires_grad_(wants)
        flags = "".join("1" if wants else "0" for wants in wanted)
        return {WORD: (flags, tuple(x.grad for x in shown) if self.reads_gradients else None)}

    def leave(self, gradients, replaced):
        """After a call. gradients: its result of `outcome`."""
        if not gradients:
            return
        (gradients, flags), shown = gradients, self._shown(replaced)
        for x, gradient in zip(shown, gradients):
            if gradient is not False:
                x.grad = gradient
        for i, wanted in flags:
            shown[i].requires_grad_(wanted)

    def _shown(self, replaced):
        """What others see of the tensors: entries that the function replaces have tensors of their own in it."""
        shown_of = {id(entry.own): entry.shown for entry in replaced.live if entry.shown is not None}
        return [shown_of.get(id(x), x) for x in self.tensors]

    # ---- inside the trace -------------------------------------------------------------------------------------------

    def start(self, given):
        """given: what `arguments` gave."""
        gradients = None if given is None or given[1] is None else list(given[1])
        tape = _core.Tape(self.tensors, gradients, not self.is_used, WantsTape)
        tape.enter()
        self.tape = tape

    def stop(self):
        if self.tape is not None:
            self.tape.leave()
            self.tape = None

    def inside(self, arguments):
        """The function's arguments with tensors of the tape, which follows what is written into values that are computed from them."""
        return tree.map(_once(self.tape.inside), arguments) if self.is_used else arguments

    def outcome(self, result, contents):
        """(result, gradients) without the tape: False for a gradient that is still that of before the call. The state's entries are without it, too."""
        if not self.is_used:
            return result, None
        containers = {id(container) for container, _ in contents}
        one = _once(self.tape.outside)
        for container, key, x in list(_tensors_now(contents)):
            if (plain := one(x)) is not x:
                container[key] = plain
        result = tree.map(one, result, is_leaf=lambda x: not isinstance(x, (tuple, list, dict)) or id(x) in containers)
        return result, (tuple(map(one, self.tape.gradients())), self.tape.flags())


def _tensors_now(contents):
    return tensors_of([(container, container) for container, _ in contents])


def _once(change):
    """Each tensor becomes one other tensor, wherever it stands."""
    made = {}

    def one(x):
        if not isinstance(x, _core.Tensor):
            return x
        if id(x) not in made:
            made[id(x)] = x, change(x)  # x is held for its id
        return made[id(x)][1]

    return one
