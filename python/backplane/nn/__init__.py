"""Neural networks: `backplane.nn.functional` has the functions, under PyTorch's names."""

from . import functional

__all__ = ["functional"]

TYPE_CHECKING = False
if not TYPE_CHECKING:  # to whom a name that is in no list is an error

    def __getattr__(name):
        import sys

        from .._hints import no_attribute

        raise no_attribute(sys.modules[__name__], name)


del TYPE_CHECKING
