"""Writes layer_results.npz with what PyTorch's layers do: python tests/python/nn/record_layers.py, where torch is installed."""

import pathlib

import layer_cases
import numpy as np
import torch


def record(name, constructor, specs, random, store):
    layer = eval(constructor, vars(torch.nn)).double()
    for key, x in layer.state_dict().items():
        if x.is_floating_point():
            values = torch.from_numpy(random.normal(size=tuple(x.shape)) * 0.5)
            x.copy_(values.abs() + 0.5 if key.endswith("running_var") else values)
        store[f"{name}/state/{key}"] = x.numpy().copy()
    arrays = [layer_cases.made_input(spec, random) for spec in specs]
    inputs = [torch.from_numpy(np.array(x)) for x in arrays]
    for x in inputs:
        if x.is_floating_point():
            x.requires_grad_()
    outputs = layer_cases.flat(layer(*inputs))
    loss = sum((x * torch.from_numpy(layer_cases.weights_of(tuple(x.shape), i))).sum() for i, x in enumerate(outputs))
    loss.backward()
    for i, x in enumerate(arrays):
        store[f"{name}/input/{i}"] = x
    for i, x in enumerate(outputs):
        store[f"{name}/output/{i}"] = x.detach().numpy()
    for i, x in enumerate(inputs):
        if x.grad is not None:
            store[f"{name}/input_grad/{i}"] = x.grad.numpy()
    for key, x in layer.named_parameters():
        if x.grad is not None:
            store[f"{name}/grad/{key}"] = x.grad.numpy()
    for key, x in layer.named_buffers():
        store[f"{name}/buffer/{key}"] = x.numpy()


def main():
    store = {}
    for number, (name, constructor, specs) in enumerate(layer_cases.cases()):
        record(name, constructor, specs, np.random.default_rng(number), store)
    np.savez_compressed(pathlib.Path(__file__).with_name("layer_results.npz"), **store)


if __name__ == "__main__":
    main()
