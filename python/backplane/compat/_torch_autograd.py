"""torch.autograd and torch.func: gradients of recorded tensors, derivatives of functions, and the check of derivatives."""

from __future__ import annotations

from .. import _core
from .._transforms._grad import enable_grad
from .._transforms._grad import gradients as gradients_of
from ._calls import op

__all__ = ["backward", "functional_hessian", "functional_jacobian", "functional_jvp", "functional_vjp", "grad_and_value", "gradcheck", "gradients", "linearized"]


def gradients(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads):
    """The gradients as a tuple. One for which no output depends on its input is refused; None with allow_unused, zeros with materialize_grads."""
    found = gradients_of(outputs, inputs, grad_outputs, retain_graph=create_graph if retain_graph is None else retain_graph, create_graph=create_graph)
    found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    inputs = (inputs,) if isinstance(inputs, _core.Tensor) else tuple(inputs)
    if materialize_grads:
        return tuple(op.zeros_like(x) if one is None else one for x, one in zip(inputs, found))
    if not allow_unused and any(one is None for one in found):
        raise _core.ArgumentValueError("grad: found an input on which no output depends, expected none; allow_unused=True gives None for it")
    return found


def backward(tensors, grad_tensors, retain_graph, create_graph, inputs):
    """Adds the gradients of the sum of the tensors to the grad of the leaves (of the inputs, where they are given)."""
    tensors = [tensors] if isinstance(tensors, _core.Tensor) else list(tensors)
    given = [grad_tensors] if isinstance(grad_tensors, _core.Tensor) else list(grad_tensors or [None] * len(tensors))
    if len(given) != len(tensors):
        raise _core.ArgumentValueError(f"backward: argument grad_tensors: found {len(given)}, expected {len(tensors)}, one for each tensor")
    if inputs is not None:
        inputs = [inputs] if isinstance(inputs, _core.Tensor) else list(inputs)
        for x, one in zip(inputs, gradients(tensors, inputs, given, retain_graph, create_graph, True, False)):
            if one is not None:
                x.grad = one if x.grad is None else x.grad + one
        return
    for place, (x, one) in enumerate(zip(tensors, given)):
        keep = bool(retain_graph or create_graph) or place < len(tensors) - 1
        x.backward(one, retain_graph=keep, create_graph=create_graph)


def grad_and_value(function, argnums, has_aux):
    """torch.func's: the gradient first, then the value."""
    both = _core.value_and_grad(function, argnums, has_aux)

    def computed(*args, **more):
        value, gradient = both(*args, **more)
        return gradient, value

    return computed




def linearized(function, primals):
    """The value at primals, and the function of tangents that forward mode gives there."""
    return function(*primals), lambda *tangents: _core.jvp(function, primals, tangents)[1]


def _several(values):
    return (values,) if isinstance(values, _core.Tensor) else tuple(values)


def _tracked(values, create_graph):
    return tuple(x if create_graph and x.requires_grad else x.detach().requires_grad_() for x in values)


def _as_given(found, like):
    return found[0] if isinstance(like, _core.Tensor) else tuple(found)


def _rows(output, inputs, create_graph):
    """The Jacobians of one output with respect to the inputs."""
    flat = op.reshape(output, [-1])
    rows = [[] for _ in inputs]
    for place in range(flat.shape[0]):
        one = gradients(flat[place], inputs, None, True, create_graph, True, True)
        for row, gradient in zip(rows, one):
            row.append(gradient)
    return tuple(
        op.reshape(op.stack(row), [*output.shape, *x.shape]) if row else op.full([*output.shape, *x.shape], 0, dtype=x.dtype) for row, x in zip(rows, inputs)
    )


def functional_jacobian(func, inputs, create_graph):
    """The derivatives of each element of the results by each element of the inputs."""
    with enable_grad():
        tracked = _tracked(_several(inputs), create_graph)
        outputs = func(*tracked)
        found = [_as_given(_rows(output, tracked, create_graph), inputs) for output in _several(outputs)]
    return _as_given(found, outputs)


def functional_hessian(func, inputs, create_graph):
    """The second derivatives of a function of one number."""
    with enable_grad():
        tracked = _tracked(_several(inputs), create_graph)
        first = gradients(func(*tracked), tracked, None, True, True, True, True)
        found = [_as_given(_rows(one, tracked, create_graph), inputs) for one in first]
    return _as_given(found, inputs)


def functional_vjp(func, inputs, v, create_graph):
    """The results, and v times the Jacobian."""
    with enable_grad():
        tracked = _tracked(_several(inputs), create_graph)
        outputs = func(*tracked)
        found = gradients(outputs, tracked, v, create_graph, create_graph, True, True)
    return outputs if create_graph else _as_given([x.detach() for x in _several(outputs)], outputs), _as_given(found, inputs)


def functional_jvp(func, inputs, v):
    """The results, and the Jacobian times v."""
    if v is None:
        v = op.ones_like(inputs)
    return _core.jvp(func, _several(inputs), _several(v))


def gradcheck(func, inputs, eps, atol, rtol, raise_exception):
    """Do the gradients agree with differences of func at inputs eps apart? Inputs are float64 tensors that require gradients."""
    inputs = _several(inputs)
    tracked = [place for place, x in enumerate(inputs) if isinstance(x, _core.Tensor) and x.requires_grad]
    if not tracked:
        raise _core.ArgumentValueError("gradcheck: found no input that requires a gradient, expected at least one")

    def of_tracked(*values):
        every = list(inputs)
        for place, value in zip(tracked, values):
            every[place] = value
        return func(*every)

    chosen = [inputs[place].detach() for place in tracked]
    found = functional_jacobian(of_tracked, tuple(chosen), False)
    outputs = of_tracked(*chosen)
    for number in range(len(_several(outputs))):
        for place, x in enumerate(chosen):
            exact = found[place] if isinstance(outputs, _core.Tensor) else found[number][place]
            columns = []
            for element in range(x.size):
                step = op.reshape(op.multiply(op.cast(op.equal(op.iota(x.size), element), x.dtype), eps), x.shape)
                high, low = (_several(of_tracked(*[one if k != place else moved for k, one in enumerate(chosen)]))[number] for moved in (x + step, x - step))
                columns.append(op.reshape((high - low) / (2 * eps), [-1]))
            numeric = op.reshape(op.stack(columns, axis=-1), exact.shape) if columns else exact
            if not bool(op.all(op.less_equal(op.abs(exact - numeric), atol + rtol * op.abs(numeric)))):
                if raise_exception:
                    raise _core.ArgumentValueError(
                        f"gradcheck: output {number}, input {tracked[place]}: found the derivatives {exact.tolist()}, expected {numeric.tolist()}, by differences"
                    )
                return False
    return True
