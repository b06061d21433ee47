"""Neural networks: `backplane.nn.functional` has the functions, under PyTorch's names."""

from . import functional

__all__ = ["functional"]
