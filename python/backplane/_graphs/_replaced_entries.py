"""Entries of a compiled function's state that the function replaces: state["mean"] = 0.9 * state["mean"] + 0.1 * x.

A graph reads and writes the same tensors at each call. So such an entry has a tensor of its own, which stands in its place while the
function runs and which nobody else ever holds. After the call the entry is a new tensor, as the function alone would leave it. Whoever
holds the old one, an argument, a view, a captured variable or another entry, keeps what it had.
"""

from .. import _core, tree
from .._tensors import _repr
from .._transforms._grad import no_grad
from .._calls._ops import ops

__all__ = []
_LOADED = (_repr,)  # a module that is imported during a trace makes it one for that call alone


class RunsAgain(BaseException):
    """Ends a trace whose function runs again. The trace's effects are taken back. It is not an Exception, since the function did not raise it."""


class FoundReplaced(RunsAgain):
    """The function replaces entries that have no tensors of their own yet."""

    def __init__(self, places):
        super().__init__("compile: the function replaces entries of the state")
        self.places = places  # (container, key)


class RunsPlainly(RunsAgain):
    """This call does what no graph with the entries' own tensors does."""


class _Entry:
    def __init__(self, index, container, key):
        self.index, self.container, self.key = index, container, key
        self.content = None  # the copy of the container that is put back after an error
        self.own = self.shown = None  # the tensor of the graph; what others see between calls
        self.versions = None  # of own and shown, when they had the same values
        self.version_before = None  # of own, when the function began
        self.is_written_to = False  # by some call so far, in place
        self.is_other = False  # may shown lie in the memory of a tensor that was there before, as a view of a parameter does?

    def now(self):
        if isinstance(self.container, dict):
            return self.container.get(self.key)
        return self.container[self.key] if self.key < len(self.container) else None

    def put(self, tensor):
        self.container[self.key] = tensor

    def is_written(self):
        """Did the call write into own?"""
        return self.own.version != self.version_before

    def pair(self, own, shown):
        self.own, self.shown, self.versions, self.version_before = own, shown, (own.version, shown.version), own.version


class ReplacedEntries:
    def __init__(self):
        self.entries = []  # graphs know them by their positions
        self.live, self.entered = [], []
        self.others = []  # the tensors of the state at other places
        self.optimizers = set()  # the ids of their containers, which are theirs alone: new values go into the old tensors
        self.written = []  # tensors, in the trace

    def add(self, places):
        for container, key in places:
            self.entries.append(_Entry(len(self.entries), container, key))

    def find(self, contents):
        """contents: (container, its content) of the whole state."""
        content_of = {id(container): content for container, content in contents}
        self.live = [entry for entry in self.entries if id(entry.container) in content_of]
        for entry in self.live:
            entry.content = content_of[id(entry.container)]
        own = {(id(entry.container), entry.key) for entry in self.live}
        self.others = [value for container, key, value in tensors_of(contents) if (id(container), key) not in own]

    # ---- around a call ----------------------------------------------------------------------------------------------

    def enter(self, arguments):
        """Puts the entries' own tensors into their places. False: this call has to run plainly, since tensors share memory."""
        found = [(entry, now) for entry in self.live if isinstance(now := entry.now(), _core.Tensor)]
        shown = list({id(now): now for _, now in found}.values())
        fresh = list({id(now): now for entry, now in found if entry.is_other or now is not entry.shown}.values())
        given = [x for x in tree.leaves(arguments) if isinstance(x, _core.Tensor)] if shown else []
        # The function may read the tensor of before itself. The entry's new values would reach that tensor only after the call.
        if any(entry.is_other and entry.is_written_to for entry, _ in found):
            return False
        if _share(shown, shown) or _share(shown, given) or _share(fresh, self.others):
            return False
        own_of, taken = {}, set()
        for entry, now in found:
            if id(now) not in own_of:
                own_of[id(now)] = self._own_for(entry, now, taken)
                taken.add(id(own_of[id(now)]))
            entry.pair(own_of[id(now)], now)
            entry.put(entry.own)
            self.entered.append(entry)
        return True

    def _own_for(self, entry, now, taken):
        """A tensor with the values of the one that stands there now."""
        own = entry.own
        if own is None or id(own) in taken or _form(own) != _form(now) or _core.has_lost_elements(own):
            own = _like(_outside_of_transforms(now), now)
        elif now is not entry.shown or entry.versions != (own.version, now.version):
            _write(own, now.detach())
        return own

    def leave(self, replaced):
        """After a call; replaced: what `replaced` said, with values."""
        plain = {id(new): self._without_transforms(self.entries[i], new) for i, new, *_ in replaced}
        new_of = {i: plain[id(new)] for i, new, *_ in replaced}
        entered, self.entered = self.entered, []
        for i, _, before, is_other in replaced:
            self.entries[i].is_other = is_other
            if before is not None:
                self.entries[i].is_written_to = True
                _write(self.entries[i].shown, before)
        made = {}  # by the new tensor, as places may hold one
        for entry in entered:
            new = new_of.get(entry.index)
            if new is None:
                new = entry.shown if entry.now() is entry.own else None
                if entry.versions[0] != entry.own.version:
                    entry.is_written_to = True
                    _write(entry.shown, entry.own)
                if new is None:  # a number or nothing has taken its place
                    entry.shown = None
                    continue
            elif id(new) not in made:
                made[id(new)] = new = self._without_flag(_like(new, entry.own), entry.own)
            else:
                new = made[id(new)]
            entry.pair(entry.own, new)
            if _form(new) != _form(entry.own):
                entry.versions = None
            entry.content[entry.key] = new
            entry.put(new)

    def _without_flag(self, new, own):
        """A tensor that was detached of a parameter is not a parameter, though the graph gives it as that one."""
        is_parameter = own.requires_grad or any(new is x for x in self.others)
        return new.detach() if new.requires_grad and not is_parameter else new

    @staticmethod
    def _without_transforms(entry, new):
        """A transform around the call wraps all results. The graph could write the new value into own, so own has it without the transform."""
        if not _core.transforms_of(new):
            return new
        if _form(new) != _form(entry.own):
            refuse_transformed(new, entry.key)
        return _outside_of_transforms(entry.own)

    def fail(self):
        """After a call that raised; its containers hold again what they held."""
        for entry in self.entered:
            entry.versions = None  # own may be half written
        self.entered = []

    # ---- inside the trace -------------------------------------------------------------------------------------------

    def start(self):
        """Before the function runs, which it may do several times."""
        _core.forbid_keeping([entry.own for entry in self.entered])
        for entry in self.entered:
            entry.version_before = entry.own.version

    def replaced(self, contents, result):
        """After the function ran: its result without the entries' own tensors, and of each entry that it replaced (position, the new
        tensor, what was changed in place before). The entries' own tensors get the new values, and their places back."""
        found = self._found(contents)
        self._check_parts(found)
        if any(entry.is_other and entry.is_written() for entry in self.entered):
            raise RunsPlainly("compile: the function writes into an entry over the memory of a tensor that was there before")
        if not found and not self.entered:
            return result, ()
        self.written = list({id(entry.own): entry.own for entry in (*self.entered, *(entry for entry, _ in found))}.values())
        before = [ops.bp.copy(entry.own) if entry.index is not None and entry.is_written() else None for entry, _ in found]
        values = [ops.bp.copy(now) for _, now in found]  # two may have changed places: each is read before one is written
        new = [value if self._is_of_own(now) else now for value, (_, now) in zip(values, found)]
        containers = {id(container) for container, _ in contents}
        result = self._apart(result, {id(now): x for x, (_, now) in zip(new, found)}, containers)
        for (entry, _), value in zip(found, values):
            if _form(value) == _form(entry.own):
                entry.own[...] = value
            entry.put(entry.own)
        self.written = []
        replaced = [(entry.index, x, old) for (entry, _), x, old in zip(found, new, before) if entry.index is not None]
        return result, tuple((i, x, old, _core.may_share_outside_memory(x)) for i, x, old in replaced)

    def _found(self, contents):
        """(entry, the tensor that took its place)."""
        of_place = {(id(entry.container), entry.key): entry for entry in self.entered}
        found, unknown = [], []
        for container, key, old in tensors_of(contents):
            entry = of_place.get((id(container), key)) or _Entry(None, container, key)
            now = entry.now()
            if isinstance(now, _core.Tensor) and now is not (old if entry.own is None else entry.own):
                (unknown if entry.own is None else found).append((entry, now))
                entry.own = entry.own if entry.own is not None else old
        if any(id(entry.container) not in self.optimizers for entry, _ in unknown) or not self._are_apart(unknown, contents):
            raise FoundReplaced([(entry.container, entry.key) for entry, _ in unknown])
        return found + unknown

    def _are_apart(self, found, contents):
        """Does each tensor get one new value, and does no other tensor of the state share its memory?"""
        new_of = {}
        for entry, now in found:
            if new_of.setdefault(id(entry.own), now) is not now or _form(entry.own) != _form(now):
                return False
        stay = {(id(container), key): tensor for container, key, tensor in tensors_of(contents)}
        for entry, _ in found:
            del stay[id(entry.container), entry.key]
        own = list({id(entry.own): entry.own for entry, _ in found}.values())
        return not _share(own, own) and not _share(own, list(stay.values()))

    def _is_of_own(self, now):
        """Is the tensor one that is written below, a view of one, or over the memory of one, as detach gives it?"""
        return any(now is own or _core.have_one_base(now, own[None]) or _core.shares_memory(now, own) for own in self.written)

    def _apart(self, result, new, containers):
        """The result with copies of what lies in the entries' own tensors.

        new: what takes the places of tensors, by their ids. containers: those of the state, which stay as they are where they are returned.
        """
        copies = {}

        def one(x):
            if not isinstance(x, _core.Tensor):
                return x
            if id(x) not in copies:
                copies[id(x)] = x, new[id(x)] if id(x) in new else ops.bp.copy(x) if self._is_of_own(x) else x  # x is held for its id
            return copies[id(x)][1]

        return tree.map(one, result, is_leaf=lambda x: not isinstance(x, (tuple, list, dict)) or id(x) in containers)

    def _check_parts(self, found):
        """Places of one tensor have to hold one tensor afterwards, too, and others have to hold two."""
        new_of = {id(entry): id(now) for entry, now in found}
        stay = {id(entry.own): entry.own for entry in self.entered if id(entry) not in new_of}
        if any(id(now) in stay for _, now in found):
            raise RunsPlainly("compile: an entry becomes the tensor of another one")
        if any(_core.have_one_base(now, own[None]) for _, now in found for own in stay.values()):
            raise RunsPlainly("compile: an entry becomes a view of another one")
        new_of_own = {}
        for entry in self.entered:
            if new_of_own.setdefault(id(entry.own), new_of.get(id(entry))) != new_of.get(id(entry)):
                raise RunsPlainly("compile: places of one tensor part")


def tensors_of(contents):
    """(container, key, tensor) of the containers' contents."""
    for container, content in contents:
        if isinstance(container, (dict, list)):
            for key, value in content.items() if isinstance(content, dict) else enumerate(content):
                if isinstance(value, _core.Tensor):
                    yield container, key, value


def check_values(contents, allowed=()):
    """After the function ran as it is: no entry holds a tensor of a transform, which would outlive it there. allowed: names of transforms."""
    for container, key, _ in list(tensors_of([(container, container) for container, _ in contents])):
        if not set(_core.transforms_of(container[key])).issubset(allowed):
            refuse_transformed(container[key], key)


def refuse_transformed(tensor, key):
    raise _core.ArgumentValueError(
        f"compile: the function puts a tensor of {_core.transforms_of(tensor)[0]} into the entry {key!r} of its state, which ends before the state "
        "does. Fix: return the new value from the function that is transformed (a body of scan carries it), and replace the entry outside"
    )


def _form(tensor):
    return tensor.dtype, tensor.device, tuple(tensor.shape)


def _like(new, old):
    """The new tensor; where the old one requires a gradient, one over its memory that does."""
    return new.detach().requires_grad_() if old.requires_grad and not new.requires_grad else new


def _outside_of_transforms(tensor):
    """A copy. The op `copy` would make a tensor of the transform around the call, which ends before the state does."""
    made = _core.empty(tuple(tensor.shape), tensor.dtype, tensor.device)
    _write(made, tensor.detach())
    return made


def _write(tensor, value):
    with no_grad():
        tensor[...] = value


def _share(tensors, others):
    """Do two tensors, one of each list, share memory? If the lists are the same list, two different tensors of it."""
    return any(_core.shares_memory(x, y) for x in tensors for y in others if tensors is not others or x is not y)
