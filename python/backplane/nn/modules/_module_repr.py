"""What a module looks like in print: its submodules, the shapes of its tensors, and how many elements its parameters have."""

__all__ = []


def text(module):
    parts = list(module.modules())
    sized = all(part.is_sized for part in parts)
    count = sum(x.size for x in module.parameters()) if sized else 0
    lines = [module.extra_repr()] if module.extra_repr() else []
    children = [f"({name}): {_indented(repr(child))}" for name, child in module.named_children()]
    body = _head(module, lines, children)
    own = _shapes(module) if module.is_sized else ""
    note = [own] if own else []
    if not sized:
        note.append("parameters come with the first call")
    elif children or own:
        note.append(f"{count:,} parameter{'' if count == 1 else 's'}")
    return body if not note else _noted(body, ", ".join(note), bool(children))


def _head(module, lines, children):
    name = module._get_name()
    if not children:
        return f"{name}({', '.join(lines)})"
    return f"{name}(\n  " + "\n  ".join(lines + children) + "\n)"


def _noted(body, note, several):
    if not several:
        return f"{body}  # {note}"
    first, rest = body.split("\n", 1)
    return f"{first}  # {note}\n{rest}"


def _shapes(module):
    from . import _module_tree

    return ", ".join(f"{path} {tuple(x.shape)}" for path, x in _module_tree.own_tensors(module))


def _indented(body):
    return body.replace("\n", "\n  ")
