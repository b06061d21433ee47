"""A module as a container of tensors: its tensors as leaves, the rest as a layout, and a module made of both.

A layout is compared with `==`: two are equal where everything but the tensors is. A tensor or a module that stands in
several places is one leaf, so tied weights have one gradient.
"""

from backplane import Tensor

from ... import tree
from .._parameter import without_tape

__all__ = []

_CONTAINERS = (list, tuple, dict)


class Base:
    """What every module is. is_sized: False of a layer that has no parameters before it has seen an input (_lazy_layers.py)."""

    is_sized = True


class Slot:
    """The place of a tensor: the number of its leaf."""

    __slots__ = ("index",)

    def __init__(self, index):
        self.index = index

    def __eq__(self, other):
        return type(other) is Slot and self.index == other.index

    __hash__ = None


class Constant:
    """A tensor that a derivative does not follow. Any two are alike."""

    __slots__ = ("tensor",)

    def __init__(self, tensor):
        self.tensor = tensor

    def __eq__(self, other):
        return type(other) is Constant

    __hash__ = None


class Again:
    """A module that the layout contains already."""

    __slots__ = ("index",)

    def __init__(self, index):
        self.index = index

    def __eq__(self, other):
        return type(other) is Again and self.index == other.index

    __hash__ = None


class Node:
    """A module or a container: its type, names and contents. origin: the module whose attributes follow those of one that is made of it."""

    __slots__ = ("names", "origin", "type", "values")

    def __init__(self, type, names, values, origin=None):
        self.type, self.names, self.values, self.origin = type, names, values, origin

    def __eq__(self, other):
        if type(other) is not Node or self.type is not other.type or self.names != other.names:
            return False
        return all(map(_same, self.values, other.values))

    __hash__ = None


def _same(a, b):
    if type(a) is Constant or type(b) is Constant:  # a container of gradients has None there
        return {type(a), type(b)} <= {Constant, type(None)}
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return a.hex() == b.hex()
    if isinstance(a, (int, str)):  # a trace refuses to look at the identity of these
        return a == b
    if a is b:
        return True
    try:
        return bool(a == b)
    except Exception:  # of a comparison that is not one of wholes, as an array's
        return False


class _Walk:
    """One module, taken apart. variables: its constants stay in the layout. follows: what a module made of it sets, it takes itself."""

    def __init__(self, variables, follows=False):
        self.variables, self.follows = variables, variables or follows
        self.leaves = []
        self.slots = {}  # by tensor, found by identity
        self.modules = {}  # their numbers, in order

    def module(self, module):
        index = self.modules.get(module)
        if index is not None:
            return Again(index)
        self.modules[module] = len(self.modules)
        if not module.is_sized:
            module.refuse_unsized()
        attributes = vars(module)
        for path, x in own_tensors(module):  # settles the role of each
            module._role(path, x)
        names = tuple([name for name in attributes if name != "_origin"])
        values = [self.value(attributes[name], module, name) for name in names]
        return Node(type(module), names, values, module if self.follows else None)

    def value(self, value, owner, path):
        if isinstance(value, Tensor):
            return self.tensor(value, owner, path)
        if isinstance(value, Base):
            return self.module(value)
        if type(value) is dict:
            inner = [self.value(v, owner, f"{path}.{k}") for k, v in value.items()]
            return Node(dict, tuple(value), inner)
        if type(value) in (list, tuple):
            inner = [self.value(v, owner, f"{path}.{i}") for i, v in enumerate(value)]
            return Node(type(value), len(inner), inner)
        return value

    def tensor(self, x, owner, path):
        if self.variables and owner._role(path, x) != "parameter":
            return Constant(x)
        slot = self.slots.get(x)
        if slot is None:
            slot = self.slots[x] = Slot(len(self.leaves))
            self.leaves.append(x)
        return slot


def flatten(module, follows=False):
    """(tensors, layout)."""
    walk = _Walk(variables=False, follows=follows)
    layout = walk.module(module)
    return walk.leaves, layout


def variables(module):
    """(parameters, the layout with everything else in it, the layout of their gradients).

    The parameters are without the tape, which would otherwise record every gradient as well.
    """
    walk = _Walk(variables=True)
    layout = walk.module(module)
    return [without_tape(x) for x in walk.leaves], layout, _without_constants(layout)


def _without_constants(x):
    if isinstance(x, Constant):
        return None
    if isinstance(x, Node):
        return Node(x.type, x.names, [_without_constants(value) for value in x.values])
    return x


def unflatten(layout, leaves):
    """A new module of this layout."""
    return _build(layout, leaves, [])


def _build(x, leaves, modules):
    kind = type(x)
    if kind is Slot:
        return leaves[x.index]
    if kind is Constant:
        return x.tensor
    if kind is Again:
        return modules[x.index]
    if kind is not Node:
        return x
    if x.type is list:
        return [_build(value, leaves, modules) for value in x.values]
    if x.type is tuple:
        return tuple([_build(value, leaves, modules) for value in x.values])
    if x.type is dict:
        return dict(zip(x.names, [_build(value, leaves, modules) for value in x.values]))
    module = object.__new__(x.type)
    modules.append(module)
    attributes = vars(module)
    for name, value in zip(x.names, x.values):
        attributes[name] = _build(value, leaves, modules)
    if x.origin is not None:
        attributes["_origin"] = x.origin
    return module


def _contents(value, path):
    """(path, tensor or module) of each tensor and module in a value, within lists, tuples and dicts."""
    if isinstance(value, (Tensor, Base)):
        yield path, value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _contents(part, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            yield from _contents(part, f"{path}.{i}")


def contents(module):
    """(path, tensor or module) of a module's own attributes, in order."""
    for name, value in vars(module).items():
        if name == "_origin":
            continue
        if isinstance(value, (Tensor, Base)):
            yield name, value
        elif isinstance(value, _CONTAINERS) and name != "_roles":
            yield from _contents(value, name)


def own_tensors(module):
    return [(path, x) for path, x in contents(module) if isinstance(x, Tensor)]


def place(module, path, value):
    """Puts a value at such a path; tuples on the way are made anew."""
    name, *rest = path.split(".")
    vars(module)[name] = _with(vars(module)[name], rest, value) if rest else value


def _with(container, path, value):
    key = _key(container, path[0])
    value = _with(container[key], path[1:], value) if len(path) > 1 else value
    if isinstance(container, tuple):
        parts = [value if i == key else part for i, part in enumerate(container)]
        return type(container)(*parts) if hasattr(container, "_fields") else tuple(parts)
    container[key] = value
    return container


def _key(container, text):
    return next(key for key in container if str(key) == text) if isinstance(container, dict) else int(text)


def register(cls):
    tree.register(cls, flatten, unflatten, variables)



def leaf_names(module):
    """The first name of each tensor of flatten(module), in order."""
    walk = _Walk(variables=False)
    walk.module(module)
    names = {}
    for start, owner in module.named_modules():
        for path, x in own_tensors(owner):
            names.setdefault(x, f"{start}.{path}" if start else path)
    return [names[x] for x in walk.leaves]
