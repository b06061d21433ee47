"""Nested containers of tensors: taken apart into leaves, put together again, mapped over.

Containers are tuples, lists, dicts (leaves in the order of sorted keys, or of insertion where these cannot be sorted),
OrderedDicts, defaultdicts, named tuples, None (a container of nothing), and the types that `register` names. Everything
else is a leaf. The transforms take and give such containers wherever they take and give tensors.
"""

from __future__ import annotations

from . import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = [
    "Structure", "flatten", "flatten_with_path", "leaves", "map", "map_with_path", "reduce", "register", "structure", "unflatten",
]  # fmt: skip
__dir__ = __all__.copy

Structure = _core.Structure


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Structure]:
    """The leaves of a container, and its structure. is_leaf: where it answers True, the descent stops."""
    return _core.tree_flatten(tree, is_leaf)


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """The container of this structure with these leaves. Errors: ValueError where their number differs."""
    return _core.tree_unflatten(structure, leaves)


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a container, in order."""
    return _core.tree_flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Structure:
    """The structure of a container: equal for two containers that differ in leaves only."""
    return _core.tree_flatten(tree, is_leaf)[1]


def map(function: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """A container of tree's structure, of what function returns for each leaf (and those of the rest beside it).

    Errors: ValueError where one of the rest has another structure, naming the place.
    """
    return _core.tree_map(function, tree, rest, is_leaf)


def register(
    type: type,
    flatten: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten: Callable[[Any, Iterable[Any]], Any],
    variables: Callable[[Any], tuple[Iterable[Any], Any, Any]] | None = None,
) -> None:
    """Makes a class a container.

    flatten(object) returns its children and whatever else it consists of, which must compare equal with `==` where two
    structures are the same; unflatten(rest, children) makes an object again.

    variables(object): for classes with children that are not differentiated. It returns the children that grad, vjp and
    jvp differentiate, the rest (with the other children in it), and the rest of a container of gradients. unflatten
    takes both rests. Without it, every child is differentiated.

    Errors: ValueError for a class that is a container already.
    """
    _core.tree_register(type, flatten, unflatten, variables)


def flatten_with_path(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[tuple[tuple[Any, ...], Any]], Structure]:
    """([(path, leaf), …], structure): the path is a tuple of keys, indices and names of fields, for each level one."""
    found: list[tuple[tuple[Any, ...], Any]] = []

    def visit(node: Any, path: tuple[Any, ...]) -> None:
        if is_leaf is not None and is_leaf(node):
            found.append((path, node))
            return
        children, _ = _core.tree_flatten(node, lambda part: part is not node)
        if len(children) == 1 and children[0] is node:
            found.append((path, node))
            return
        for key, child in zip(_keys(node, len(children)), children):
            visit(child, (*path, key))

    visit(tree, ())
    return found, _core.tree_flatten(tree, is_leaf)[1]


def _keys(node: Any, count: int) -> list[Any]:
    if isinstance(node, dict):
        try:
            return sorted(node) if type(node).__name__ != "OrderedDict" else list(node)
        except TypeError:  # keys without an order among them
            return list(node)
    fields = getattr(type(node), "_fields", None)
    return list(fields) if fields is not None else list(range(count))


def map_with_path(function: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """map, with a function that takes the path of each leaf first, as flatten_with_path gives it."""
    paths = iter([path for path, _ in flatten_with_path(tree, is_leaf)[0]])
    return map(lambda *leaves: function(next(paths), *leaves), tree, *rest, is_leaf=is_leaf)


def reduce(function: Callable[[Any, Any], Any], tree: Any, *initial: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """function(…function(function(first, second), third)…) over the leaves; initial: what stands before the first."""
    found = [*initial[:1], *leaves(tree, is_leaf)]
    if not found:
        raise TypeError("tree.reduce: found no leaves and no initial value")
    result = found[0]
    for leaf in found[1:]:
        result = function(result, leaf)
    return result
