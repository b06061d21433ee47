"""The package as the namespace of the array API: `__init__.py` sets it, so that tensors find the functions without importing them."""

package = None
