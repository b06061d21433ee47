"""`custom_op`, `opcheck`, and the methods of Op that give an op of Python's kernels and rules: names and documentation.

What they do stands in _custom_op.py and _opcheck.py, which are imported when they are first used.
"""

from __future__ import annotations

from .. import _core
from .._tensors._members import extend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, overload

    from .._core import Device, DType, Function, Op
    from ._opcheck_report import OpCheckReport

__all__ = ["custom_op", "opcheck"]


if TYPE_CHECKING:

    @overload
    def custom_op(
        name: str, /, *, signature: str | None = None, mutates_args: str | Sequence[str] = (), alias: str | None = None,
        shape: str | Sequence[str] | None = None, elementwise: bool = False, dtypes: str | Sequence[DType] = "any",
        device_types: str | Device | Sequence[str | Device] | None = None, doc: str | None = None, replace: bool = False
    ) -> Callable[[Callable[..., Any]], Op]: ...

    @overload
    def custom_op(
        name: str, function: Callable[..., Any] | str, /, *, signature: str | None = None, mutates_args: str | Sequence[str] = (),
        alias: str | None = None, shape: str | Sequence[str] | None = None, elementwise: bool = False,
        dtypes: str | Sequence[DType] = "any", device_types: str | Device | Sequence[str | Device] | None = None,
        doc: str | None = None, replace: bool = False
    ) -> Op: ...


def custom_op(
    name: str, function: Callable[..., Any] | str | None = None, /, *, signature: str | None = None,
    mutates_args: str | Sequence[str] = (), alias: str | None = None, shape: str | Sequence[str] | None = None,
    elementwise: bool = False, dtypes: str | Sequence[DType] = "any", device_types: str | Device | Sequence[str | Device] | None = None,
    doc: str | None = None, replace: bool = False
) -> Any:
    """Defines an op in Python; it is then one like any other: recorded, batched, explained, found in `backplane.ops`.

        @bp.custom_op("mine::scale")
        def scale(x: bp.Tensor, factor: bp.types.Scalar = 2) -> bp.Tensor:
            return bp.asarray(x.numpy() * factor)

    name: "namespace::name". function: the kernel for all devices (or those of device_types); one without a body is a
    signature alone. A string in its place is the signature of an op whose kernels come later.
    signature: "scale(Tensor x, Scalar factor=2) -> Tensor", as in a registry file, instead of type hints.
    mutates_args: ("x",), ("p", "m"): the kernels change these arguments in place and return None. The op returns the
        changed tensors. Of one, it is the first argument.
    alias: "x" or "maybe x": the result is a view of x, by a `view.*` shape; such an op has no kernel.
    shape: a word of the registry's vocabulary, "broadcast(x, y)"; a list of them for several results. It gives the
    batch rule too. Without one, and without register_shape, the kernel decides. "dynamic(max=x.shape[0])": the kernel
    returns at most so many rows; the op NAME_padded returns so many, zeros behind the rows that there are, and their
    number. "dynamic(max=[x.shape[0], 2], dtype=int64)" also states the other sizes, and a dtype other than x's.
    elementwise: an element of a result depends on the elements at its place alone. The results have the shape to which
        the tensors broadcast, so no `shape` is needed; `backplane.numpy.ufunc` takes the op, and opcheck tests it.
    dtypes: what tensor arguments accept: a class ("floating") or a list of dtypes.
    replace: takes the place of a Python op of that name; otherwise a name that is taken is refused.

    Returns the Op, to which register_kernel, register_shape, register_vjp, register_jvp, register_batch and
    register_decomposition add; what is left out is an error where it is needed.
    """
    from . import _custom_op

    return _custom_op.define(name, function, signature=signature, mutates_args=mutates_args, alias=alias, shape=shape,
                             elementwise=elementwise, dtypes=dtypes, device_types=device_types, doc=doc, replace=replace)  # fmt: skip


def _rule(op, name, function):
    from . import _custom_op

    return _custom_op.register_rule(op, name, function)


def opcheck(
    op: Op | str, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None, *,
    devices: str | Device | Sequence[str | Device] | None = None, raise_exception: bool = True
) -> OpCheckReport:
    """Checks an op against what it declares, on one sample of arguments: `bp.opcheck(scale, (x,), {"factor": 3})`.

    op: an Op, of a registry file or defined in Python. devices: where to run; by default where the sample is.
    Checked are, each where it is declared: mutation and aliasing, the shape and dtype rule (also strided and empty
    variants of the sample), that an op is elementwise where its shape rule says so, the gradient and its gradient by finite
    differences in float64 and complex128, forward against reverse mode, batching against a loop over every axis, in-place and out= against the function, the
    decomposition against the kernel, and on several devices the results against the first one's.

    Returns the report; raises OpCheckError with it where a check failed, unless raise_exception is False.
    """
    from . import _opcheck

    return _opcheck.check_op(op, args, dict(kwargs or {}), devices, raise_exception)


class OpMembers:
    """Kernels and rules of an op that Python defined."""

    def register_kernel(self: Op, *devices: Any, dtypes: str | Sequence[DType] = "any") -> Any:
        """The op's kernel for devices, "cpu"; for all without their own where none is named.

        `@op.register_kernel("cpu")` over a function of the op's arguments. It returns the results as new tensors, made
        by ops or from other libraries' memory; with mutates_args it changes its first argument and returns None.
        """
        from . import _custom_op

        if len(devices) == 1 and callable(devices[0]) and not isinstance(devices[0], _core.Device):
            return _custom_op.register_kernel(self, (), dtypes)(devices[0])
        return _custom_op.register_kernel(self, devices, dtypes)

    def register_shape(self: Op, function: Function, /) -> Function:
        """The shape and dtype of the results, from those of the arguments: `@op.register_shape`.

        Its parameters are names of the op's arguments, any of them; tensors come as bp.types.TensorSpec, with shape and
        dtype alone. It returns a TensorSpec, or a shape (with the dtype of the first tensor); a list of them for
        several results.
        """
        return _rule(self, "shape", function)

    def register_vjp(self: Op, function: Function, /) -> Function:
        """The reverse derivative: `@op.register_vjp` over a function from cotangents to cotangents.

        Its parameters say by their names what is kept for it: `g`, the result's cotangent (a tuple for several results);
        names of arguments; `out`, the result (or its name); `needs`, whose attributes say which are wanted. It returns a
        cotangent per tensor argument in order, or a dict by name; None is a zero. Each is summed to its argument's
        shape and cast to its dtype. For complex numbers it is the adjoint under Re sum(conj(a) * b).
        """
        return _rule(self, "vjp", function)

    def register_jvp(self: Op, function: Function | str, /) -> Function | str:
        """The forward derivative: `@op.register_jvp` over a function from tangents to tangents; "linear" where it is so.

        Parameters: `t_x` for the tangent of argument x (a zero where it has none), arguments, `out`. It returns a
        tangent per result, None for a zero.
        """
        return _rule(self, "jvp", function)

    def register_batch(self: Op, function: Function | str, /) -> Function | str:
        """The batch rule, for vmap: `@op.register_batch`; or "loop", to call the op row by row, which is counted.

        Parameters: arguments, of which those that differ from row to row have the batch as axis 0; `batched`, whose
        attributes say which do. It returns the results with the batch as axis 0.
        """
        return _rule(self, "batch", function)

    def register_decomposition(self: Op, function: Function, /) -> Function:
        """The same result from other ops: `@op.register_decomposition`, for devices without a kernel.

        What has no rule of its own is differentiated and batched through it. A function of arguments, by name.
        """
        return _rule(self, "decomposition", function)


extend(_core.Op, OpMembers)
