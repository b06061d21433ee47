"""Functions of tensors, by the chapters of the array API standard."""
