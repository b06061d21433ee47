"""Backplane under the names of other libraries: `import backplane.compat.numpy as np`, `import backplane.compat.torch as torch`.

Names that the libraries share and mean differently (sort, split, max, std, transpose) mean there what that library means, with its signatures
and defaults. Both give and take Backplane's tensors, whose methods are Backplane's.
"""
