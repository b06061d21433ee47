"""What types of the extension module have from Python: classes without objects, whose members are the type's.

For type checkers they are bases of the type (python/stubs), so that nothing is annotated twice. Functions stand outside their classes
where an annotation says bool or int, which are methods of Tensor too.
"""


def extend(kind, members):
    """Gives a type the functions and properties of a class. What only the class names goes by the type's name for it."""
    for name, member in vars(members).items():
        if not callable(member) and not isinstance(member, property):
            continue
        if getattr(member, "__module__", None) == members.__module__ and ("." in member.__qualname__ or member.__qualname__.startswith("_")):
            member.__name__, member.__qualname__ = name, f"{kind.__name__}.{name}"
        setattr(kind, name, member)
