"""Types with meaning, as annotations of custom ops, and what a shape rule sees of a tensor.

    @bp.custom_op("mine::flip_sign")
    def flip_sign(x: bp.Tensor, axis: bp.types.Axis, *, factor: bp.types.Scalar = -1) -> bp.Tensor: ...

An int that is an axis, a size and a position are distinguished because they behave differently under batching. Beside
these, `bp.Tensor`, `bp.DType`, `bp.Device`, `bp.Generator`, `bool` and `str` are annotations; `float` and `complex`
mean Scalar, `int` means Index; `Optional[T]` may be None, and `list[T]` is a sequence.
"""

from typing import Annotated, Sequence, Union


class Meaning:
    """What an annotation says beyond its Python type: the registry's word for it."""

    def __init__(self, word):
        self.word = word

    def __repr__(self):
        return self.word


Scalar = Annotated[Union[bool, int, float, complex], Meaning("Scalar")]
Axis = Annotated[int, Meaning("Axis")]
Axes = Annotated[Union[int, Sequence[int]], Meaning("Axes")]
Shape = Annotated[Union[int, Sequence[int]], Meaning("Shape")]
Size = Annotated[int, Meaning("Size")]
Index = Annotated[int, Meaning("Index")]


class TensorSpec:
    """A tensor's shape and dtype without its data: what shape rules see and give."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape, dtype):
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.dtype = dtype

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        count = 1
        for length in self.shape:
            count *= length
        return count

    def __eq__(self, other):
        return isinstance(other, TensorSpec) and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self):
        return hash((self.shape, self.dtype))

    def __repr__(self):
        return f"TensorSpec({self.shape}, {self.dtype})"


del Annotated, Sequence, Union
