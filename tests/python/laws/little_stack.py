"""Runs the samples of every entry, and their gradients, each on a thread with as many bytes of stack as the argument says.

Prints a line per case, `ran` or `refused` with the error. What needs more stack than that ends the process.
"""

import sys
import threading

import backplane as bp
from law_inputs import arrays_of, leaves, tensors_of
from law_registry import registry
from law_running import call, differentiable_results


def work(case):
    arguments = tensors_of(case, arrays_of(case, "float64"))
    names = [arg.name for arg in case.entry.differentiable]
    inputs = [tensor.requires_grad_() for _, _, tensor in leaves(arguments, names)]
    ends = [result for result in differentiable_results(case, call(case, arguments)) if result.requires_grad]
    if ends and inputs:
        bp.gradients(ends, inputs, [bp.ones_like(end) for end in ends])


def outcome(case):
    try:
        work(case)
    except MemoryError as error:
        return f"refused: {error}"
    except bp.BackplaneError:
        pass  # a sample of an error, or no derivative
    return "ran"


def main():
    threading.stack_size(int(sys.argv[1]))
    for case in registry():
        print(case, end=": ", flush=True)
        thread = threading.Thread(target=lambda: print(outcome(case)))
        thread.start()
        thread.join()


main()
