"""Where optimisers and clipping ask whether gradients are to be averaged over ranks first: within a data-parallel step they are.

`average` is None outside of such a step. It is read as any global of a module, so that a compiled function guards it.
"""

average = None  # list of tensors -> list of tensors


def averaged(gradients):
    """The gradients, averaged over the ranks of the data-parallel step that runs."""
    if average is None:
        return gradients
    return average(gradients)


def averaged_values(gradients):
    """The same of a dict's values."""
    if average is None:
        return gradients
    return dict(zip(gradients, average(list(gradients.values()))))


def mark(gradients):
    """They are averages, or scaled ones: an optimiser takes them as they are."""
    if average is not None:
        average.mark(gradients)
    return gradients
