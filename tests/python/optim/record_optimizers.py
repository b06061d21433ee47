"""Writes optimizer_results.npz with PyTorch's trajectories: python tests/python/optim/record_optimizers.py, where torch is installed."""

import pathlib

import numpy as np
import optimizer_cases as cases
import torch


def trajectory(constructor):
    first, x, y = cases.data()
    params = [torch.nn.Parameter(torch.from_numpy(p)) for p in first]
    optimizer = eval(constructor, {**vars(torch.optim), "params": params})
    x, y = torch.from_numpy(x), torch.from_numpy(y)

    def closure():
        optimizer.zero_grad()
        loss = cases.loss_of(torch, params, x, y)
        loss.backward()
        return loss

    rows = []
    for _ in range(cases.STEPS):
        optimizer.step(closure)
        rows.append(np.concatenate([p.detach().numpy().reshape(-1) for p in params]))
    return np.stack(rows)


def rates(constructor):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1, momentum=0.9)
    scheduler = eval(constructor, {**vars(torch.optim.lr_scheduler), "optimizer": optimizer})
    rows = [(optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"])]
    for _ in range(cases.STEPS):
        optimizer.step()
        scheduler.step()
        rows.append((optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"]))
    return np.array(rows)


def main():
    torch.set_default_dtype(torch.float64)  # of the counters, too
    store = {f"optimizer {name}": trajectory(constructor) for name, constructor in cases.cases(cases.OPTIMIZERS)}
    store.update({f"scheduler {name}": rates(constructor) for name, constructor in cases.cases(cases.SCHEDULERS)})
    np.savez_compressed(pathlib.Path(__file__).with_name("optimizer_results.npz"), **store)


if __name__ == "__main__":
    main()
