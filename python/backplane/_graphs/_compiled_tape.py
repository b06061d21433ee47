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
        self.concerned = []  # those of them that require a gradient, or have one
        self.places = {}  # (id of the container, key) of each entry: its tensor
        self.tape = None

    def add(self, wanted):
        self.is_used = True
        self.reads_gradients = self.reads_gradients or wanted.what == "gradients"

    # ---- around a call ----------------------------------------------------------------------------------------------

    def arguments(self, contents, replaced):
        """What the traced function gets: which tensors require a gradient, the changes of hooks so far, and the gradients."""
        if not self.is_used:
            return {}
        self.places = {(id(container), key): x for container, key, x in _tensors_now(contents)}
        self.tensors = list({id(x): x for x in self.places.values()}.values())
        shown_of = {id(entry.own): entry.shown for entry in replaced.entered}  # what others see of it
        pairs = [(x, shown_of.get(id(x), x)) for x in self.tensors]
        pairs = [(own, shown, shown.requires_grad) for own, shown in pairs if shown.requires_grad or shown.grad is not None]
        for own, shown, wanted in pairs:
            if own is not shown and own.requires_grad != wanted:
                own.requires_grad_(wanted)
        self.concerned = [own for own, *_ in pairs]
        form = str(hash(tuple((id(own), wanted) for own, _, wanted in pairs)))  # another order, too, is another trace
        return {WORD: (form, str(_core.leaf_hook_changes()), tuple(shown.grad for _, shown, _ in pairs) if self.reads_gradients else None)}

    def leave(self, found, contents, named):
        """After a call, before replaced entries get their new tensors. found: its result of `outcome`. named: what its positions mean."""
        if not found:
            return
        gradients, flags, _ = found
        content_of = {id(container): content for container, content in contents}
        for i, key, gradient in gradients:
            content_of[id(named[i])][key].grad = gradient
        for i, key, wanted in flags:
            content_of[id(named[i])][key].requires_grad_(wanted)

    def leave_new(self, found, named):
        """Afterwards: the tensors that took places require a gradient where the function said so."""
        for i, key, wanted in found[2] if found else ():
            named[i][key].requires_grad_(wanted)

    # ---- inside the trace -------------------------------------------------------------------------------------------

    def start(self, given):
        """given: what `arguments` gave."""
        gradients = None
        if given is not None and given[2] is not None:
            known = {id(x): gradient for x, gradient in zip(self.concerned, given[2])}
            gradients = [known.get(id(x)) for x in self.tensors]
        tape = _core.Tape(self.tensors, gradients, not self.is_used, WantsTape)
        tape.enter()
        self.tape = tape

    def stop(self):
        if self.tape is not None:
            self.tape.leave()
            self.tape = None

    def inside(self, arguments):
        """The function's arguments with tensors of the tape, which follows writes into values that are computed from them."""
        return tree.map(_once(self.tape.inside), arguments) if self.is_used else arguments

    def outcome(self, result, contents, later, position):
        """(result, what `leave` gets) without the tape. The state's entries, and the arguments of later steps, are without it afterwards.

        `leave` gets entries of the state by the position of their container and their key: with new gradients, with other flags, with other tensors.
        """
        if not self.is_used:
            return result, None
        containers = {id(container): container for container, _ in contents}
        one, new_flags = _once(self.tape.outside), []
        for container, key, x in list(_tensors_now(contents)):
            if self.places.get((id(container), key)) is not x:
                self._check_new(key, x)
                new_flags.append((position(container), key, x.requires_grad and x.is_leaf))
            if (plain := one(x)) is not x:
                container[key] = plain
        later[:] = [(scheduler, tree.map(one, given)) for scheduler, given in later]
        result = tree.map(one, result, is_leaf=lambda x: not isinstance(x, (tuple, list, dict)) or id(x) in containers)
        place_of = {id(x): (position(containers[container]), key) for (container, key), x in self.places.items() if container in containers}
        gradients = tuple((*place_of[id(x)], one(new)) for x, new in zip(self.tensors, self.tape.gradients()) if new is not False)
        flags = tuple((*place_of[id(self.tensors[i])], wanted) for i, wanted in self.tape.flags())
        return result, (gradients, flags, tuple(new_flags))

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
