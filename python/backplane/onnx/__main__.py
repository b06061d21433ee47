"""`backplane convert MODEL.onnx MODEL.safetensors`: a model in ONNX's format as a file that `backplane run` runs without Python."""

import argparse
import re
import sys

import backplane as bp

from ._model import load


def _pair(text):
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected NAME=VALUE")
    return name, value


def _parser():
    parser = argparse.ArgumentParser(prog="backplane convert", description="converts a model in ONNX's format to one that `backplane run` runs")
    parser.add_argument("model", metavar="MODEL.onnx")
    parser.add_argument("output", metavar="MODEL.safetensors")
    parser.add_argument("--shape", metavar="INPUT=1,3,224,224", type=_pair, action="append", default=[], help="the whole shape of an input")
    parser.add_argument("--size", metavar="NAME=N", type=_pair, action="append", default=[], help="a named size, which stays dynamic if it is not given")
    parser.add_argument("--value", metavar="INPUT=NUMBER", type=_pair, action="append", default=[], help="an input that is always this number")
    return parser


def _sizes(value, shapes, sizes):
    """(example shape, names of dynamic axes) of an input."""
    if value.name in shapes:
        return shapes[value.name], {}
    if value.dims is None:
        raise bp.ArgumentValueError(f"convert: the model does not say how many axes {value.name!r} has. Fix: --shape {value.name}=1,3,224,224")
    shape, dynamic = [], {}
    for axis, size in enumerate(value.dims):
        if type(size) is str:
            name = re.sub(r"\W", "_", size) if size != "?" else f"{re.sub(chr(92) + 'W', '_', value.name)}_{axis}"
            if size in sizes or name in sizes:
                size = sizes.get(size, sizes.get(name))
            else:
                dynamic[axis] = name
                size = 2
        shape.append(size)
    return shape, dynamic


def convert(argv: "list[str]") -> int:
    options = _parser().parse_args(argv)
    shapes = {name: [int(size) for size in text.split(",") if size] for name, text in options.shape}
    sizes = {name: int(text) for name, text in options.size}
    numbers = {name: float(text) if any(c in text for c in ".einf") else int(text) for name, text in options.value}
    model = load(options.model)
    free = [value for value in model.inputs if value.name not in numbers and value.name not in model.model.defaults]
    examples, dynamic = [], []
    for value in free:
        shape, axes = _sizes(value, shapes, sizes)
        examples.append(bp.zeros(shape, dtype=getattr(bp, value.dtype)))
        dynamic.append(axes or None)

    def run(*tensors):
        return tuple(model(**dict(zip([value.name for value in free], tensors)), **numbers))

    run = _with_names(run, [value.name for value in free])
    try:
        bp.export(run, examples, options.output, dynamic=dynamic if any(dynamic) else None)
    except bp.BackplaneError as error:
        symbols = sorted({name for axes in dynamic if axes for name in axes.values()})
        fix = f"\nFix: give sizes that it depends on: {' '.join(f'--size {name}=N' for name in symbols)}" if symbols else ""
        print(f"backplane convert: {error}{fix}", file=sys.stderr)
        return 1
    for value, axes in zip(free, dynamic):
        print(f"{value.name}: {value.dtype}, dynamic sizes: {', '.join((axes or {}).values()) or 'none'}")
    return 0


def _with_names(run, names):
    from ._model import named_function

    return named_function(run, "run", names, [True] * len(names))


if __name__ == "__main__":
    try:
        sys.exit(convert(sys.argv[1:]))
    except (bp.BackplaneError, ImportError, OSError) as error:
        sys.exit(f"backplane convert: {error}")
