"""backward() and .grad in a function of compile(state=): the gradients of the state's tensors around a call, and in its trace.

A function that uses them is found by the first trace, and traced again with a tape. What the tensors hold as .grad when the call begins is
an argument of the graph, if the function was seen to ask for it; what they hold when it ends is a result.
"""

from .. import _core, tree
from ._replaced_entries import RunsAgain, RunsPlainly, tensors_of

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
        self.shown = []  # of each, the tensor that others see when the call begins: the gradient is that one's
        self.places = {}  # (id of the container, key) of each entry: the id of its tensor
        self.tape = None

    def add(self, wanted):
        self.is_used = True
        self.reads_gradients = self.reads_gradients or wanted.what == "gradients"

    # ---- around a call ----------------------------------------------------------------------------------------------

    def arguments(self, contents, replaced):
        """What the traced function gets: which tensors require a gradient, the changes of hooks so far, and the gradients."""
        entries = list(_tensors_now(contents))
        self.tensors = list({id(x): x for _, _, x in entries}.values())
        if not self.is_used:
            return {}
        self.places = {(id(container), key): id(x) for container, key, x in entries}
        shown_of = {id(entry.own): entry.shown for entry in replaced.entered}
        self.shown = [shown_of.get(id(x), x) for x in self.tensors]
        wanted = [x.requires_grad for x in self.shown]
        for x, own, wants in zip(self.shown, self.tensors, wanted):
            if x is not own and own.requires_grad != wants:
                own.requires_grad_(wants)
        flags = "".join("1" if wants else "0" for wants in wanted)
        return {WORD: (flags, str(_core.leaf_hook_changes()), tuple(x.grad for x in self.shown) if self.reads_gradients else None)}

    def leave(self, found, contents):
        """After a call. found: its result of `outcome`."""
        if not found:
            return
        gradients, flags, new_flags = found
        for x, gradient in zip(self.shown, gradients):
            if gradient is not False:
                x.grad = gradient
        for i, wanted in flags:
            self.shown[i].requires_grad_(wanted)
        for i, key, wanted in new_flags:
            contents[i][0][key].requires_grad_(wanted)

    # ---- inside the trace -------------------------------------------------------------------------------------------

    def start(self, given):
        """given: what `arguments` gave."""
        gradients = None if given is None or given[2] is None else list(given[2])
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

    def outcome(self, result, contents, later):
        """(result, what `leave` gets) without the tape. The state's entries, and the arguments of later steps, are without it afterwards.

        Of what `leave` gets, a gradient is False where it is still that of before the call.
        """
        if not self.is_used:
            return result, None
        containers = {id(container) for container, _ in contents}
        one, new_flags = _once(self.tape.outside), []
        for i, (container, _) in enumerate(contents):
            for _, key, x in list(_tensors_now([(container, None)])):
                if self.places.get((id(container), key)) != id(x):
                    self._check_new(key, x)
                    new_flags.append((i, key, x.requires_grad and x.is_leaf))
                if (plain := one(x)) is not x:
                    container[key] = plain
        later[:] = [(scheduler, tree.map(one, given)) for scheduler, given in later]
        result = tree.map(one, result, is_leaf=lambda x: not isinstance(x, (tuple, list, dict)) or id(x) in containers)
        return result, (tuple(map(one, self.tape.gradients())), self.tape.flags(), tuple(new_flags))

    def _check_new(self, key, x):
        """A tensor that the function put into an entry."""
        if any(x is known for known in self.tensors):
            raise RunsPlainly("compile: an entry becomes the tensor of another one, whose gradient goes with it")
        if self.tape.has_own_gradient(x):
            raise _core.ArgumentValueError(
                f"compile: the function puts a tensor into the entry {key!r} of its state, and computes its gradient, which only tensors have "
                "that were there before. Fix: change the tensor that is there in place under no_grad, or set the gradient of the new one to None"
            )


def _tensors_now(contents):
    """(container, key, tensor) of what the containers hold now."""
    return tensors_of([(container, container) for container, _ in contents])


def wants_gradients(arguments):
    """Is one of them a leaf that requires a gradient? Then the call is the function as it is."""
    return any(isinstance(x, _core.Tensor) and x.requires_grad and x.is_leaf for x in tree.leaves(arguments))


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
