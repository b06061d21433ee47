"""If, Loop and Scan. A model that is called uncompiled runs the branch or the steps that its values ask for; a trace keeps them as ops."""

import numpy as np

import backplane as bp
from backplane import Tensor

from ._graph import as_tensor
from ._table import op, refuse
from ._values import Host


def _known(value):
    """The value as a Python number, or None where a trace does not know it."""
    if value is None or type(value) is Host and value.array is not None:
        return None if value is None else value.array.reshape(-1)[0]
    tensor = value if isinstance(value, Tensor) else next(iter(value.tensors.values()))
    try:
        return tensor.detach().item() if tensor.ndim == 0 else bp.reshape(tensor, ()).detach().item()
    except bp.ArgumentValueError:
        return None


@op("If", 1)
def branch(node, condition, *, env, then_branch, else_branch):
    chosen = _known(condition)
    if chosen is not None:
        return (then_branch if chosen else else_branch).run_with([], node.device, env)

    def run(graph):
        return lambda: [as_tensor(value, node.device) for value in graph.run_with([], node.device, env)]

    try:
        return bp.cond(bp.reshape(as_tensor(condition, node.device), ()), run(then_branch), run(else_branch))
    except (bp.BackplaneError, ValueError) as error:
        raise bp.ArgumentValueError(
            f"in a traced function both branches are traced, and have the same shapes. Fix: pass the input that decides as a Python number. ({error})"
        ) from error


@op("Loop", 1)
def loop(node, count, condition, *carried, env, body):
    """Steps run one after the other; a trace unrolls a known number of steps, and keeps an unknown number as one while_loop."""
    carried, scanned = list(carried), None
    limit = None if count is None else _known(count)
    going = True if condition is None else _known(condition)
    if (count is not None and limit is None) or going is None:
        return _traced_loop(node, count, condition, carried, env, body)
    step, before = 0, list(carried)
    while going and (limit is None or step < limit):
        results = body.run_with([Host(np.array(step, np.int64)), Host(np.array(True)), *carried], node.device, env)
        carried = results[1 : 1 + len(carried)]
        parts = results[1 + len(carried) :]
        scanned = [[part] for part in parts] if scanned is None else [[*row, part] for row, part in zip(scanned, parts)]
        step += 1
        going = _known(results[0])
        if going is None:
            if limit is not None and step < limit or limit is None:
                return _traced_loop(node, count, condition, before, env, body)
            going = False
    return *carried, *_stacked(node, scanned, body, len(carried))


def _stacked(node, scanned, body, n_carried):
    if scanned is None:
        if len(body.outputs) > 1 + n_carried:
            refuse("a loop without steps that collects values is not supported: their shapes are unknown")
        return []
    return [bp.stack([as_tensor(part, node.device) for part in row]) for row in scanned]


def _traced_loop(node, count, condition, carried, env, body):
    if len(body.outputs) > 1 + len(carried):
        refuse("in a traced function, a loop whose number of steps depends on values cannot collect values. Fix: call the model uncompiled")
    tensors = [as_tensor(value, node.device) for value in carried]
    limit = np.iinfo(np.int64).max if count is None else bp.reshape(as_tensor(count, node.device), ())
    first = bp.asarray(True, device=node.device) if condition is None else bp.reshape(as_tensor(condition, node.device), ())

    def goes_on(state):
        step, going, _ = state
        return bp.logical_and(going, step < limit)

    def advance(state):
        step, going, values = state
        results = [as_tensor(value, node.device) for value in body.run_with([step, going, *values], node.device, env)]
        return step + 1, bp.reshape(results[0], ()), results[1:]

    return bp.while_loop(goes_on, advance, (bp.zeros((), dtype=bp.int64, device=node.device), first, tensors))[2]


@op("Scan", 9)
def scan(
    node, *inputs, env, body, num_scan_inputs, scan_input_axes=None, scan_input_directions=None, scan_output_axes=None, scan_output_directions=None
):
    inputs = [as_tensor(x, node.device) for x in inputs]
    n_states = len(inputs) - num_scan_inputs
    axes = scan_input_axes or [0] * num_scan_inputs
    sequences = []
    for x, axis, direction in zip(inputs[n_states:], axes, scan_input_directions or [0] * num_scan_inputs):
        x = bp.moveaxis(x, axis, 0)
        sequences.append(bp.flip(x, 0) if direction else x)

    def step(states, parts):
        results = [as_tensor(value, node.device) for value in body.run_with([*states, *parts], node.device, env)]
        return results[:n_states], results[n_states:]

    states, collected = bp.scan(step, list(inputs[:n_states]), sequences)
    found = []
    for i, y in enumerate(collected):
        y = bp.flip(y, 0) if scan_output_directions and scan_output_directions[i] else y
        found.append(bp.moveaxis(y, 0, scan_output_axes[i]) if scan_output_axes else y)
    return *states, *found


@op("Scan", 8)
def scan_of_batches(node, lengths, *inputs, env, body, num_scan_inputs, directions=None):
    """The form of opset 8: each example of a batch is scanned by itself."""
    if lengths is not None:
        refuse("sequence_lens is not supported")
    inputs = [as_tensor(x, node.device) for x in inputs]
    rows = []
    for example in range(inputs[0].shape[0]):
        part = [x[example] for x in inputs]
        rows.append(scan(node, *part, env=env, body=body, num_scan_inputs=num_scan_inputs, scan_input_directions=directions))
    return tuple(bp.stack([row[i] for row in rows]) for i in range(len(body.outputs)))


