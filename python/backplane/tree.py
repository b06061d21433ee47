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

__all__ = ["Structure", "flatten", "leaves", "map", "register", "structure", "unflatten"]

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
