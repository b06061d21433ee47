"""Optimisers and schedulers that are compared with PyTorch's over 50 steps; record_optimizers.py keeps what PyTorch does."""

import numpy as np

STEPS = 50
OPTIMIZERS = """
sgd | SGD(params, lr=0.05)
sgd_momentum | SGD(params, lr=0.02, momentum=0.9, dampening=0.3, weight_decay=0.1)
sgd_nesterov | SGD(params, lr=0.02, momentum=0.9, nesterov=True, maximize=False)
adam | Adam(params, lr=0.05)
adam_amsgrad | Adam(params, lr=0.05, betas=(0.8, 0.95), weight_decay=0.1, amsgrad=True)
adam_maximize | Adam(params, lr=0.001, maximize=True)
adamw | AdamW(params, lr=0.05, weight_decay=0.1)
nadam | NAdam(params, lr=0.05)
nadam_decoupled | NAdam(params, lr=0.05, weight_decay=0.1, decoupled_weight_decay=True)
radam | RAdam(params, lr=0.05, betas=(0.9, 0.9))
radam_decay | RAdam(params, lr=0.05, weight_decay=0.1)
radam_decoupled | RAdam(params, lr=0.05, weight_decay=0.1, decoupled_weight_decay=True)
adagrad | Adagrad(params, lr=0.1, lr_decay=0.01, weight_decay=0.1, initial_accumulator_value=0.1)
adadelta | Adadelta(params, lr=1.0, weight_decay=0.01)
asgd | ASGD(params, lr=0.05, t0=20, weight_decay=0.01)
rprop | Rprop(params, lr=0.01)
adamax | Adamax(params, lr=0.05, weight_decay=0.01)
rmsprop | RMSprop(params, lr=0.01)
rmsprop_centered | RMSprop(params, lr=0.01, momentum=0.9, centered=True, weight_decay=0.01)
adafactor | Adafactor(params, lr=0.05, weight_decay=0.1)
lbfgs | LBFGS(params, lr=0.1, max_iter=2, history_size=3)
lbfgs_wolfe | LBFGS(params, max_iter=4, line_search_fn="strong_wolfe")
groups | SGD([{"params": params[:1], "lr": 0.01}, {"params": params[1:], "momentum": 0.5}], lr=0.05)
"""
SCHEDULERS = """
lambda | LambdaLR(optimizer, lambda step: 0.95 ** step)
multiplicative | MultiplicativeLR(optimizer, lambda step: 0.9)
step | StepLR(optimizer, 7, 0.5)
multi_step | MultiStepLR(optimizer, [5, 5, 20], 0.3)
constant | ConstantLR(optimizer, 0.5, 6)
linear | LinearLR(optimizer, 0.25, 0.75, 10)
exponential | ExponentialLR(optimizer, 0.9)
polynomial | PolynomialLR(optimizer, 30, 2.0)
cosine | CosineAnnealingLR(optimizer, 12, 0.001)
cosine_restarts | CosineAnnealingWarmRestarts(optimizer, 5, 2, 0.001)
cyclic | CyclicLR(optimizer, 0.01, 0.1, 4, 6, mode="triangular2")
cyclic_exp | CyclicLR(optimizer, 0.01, 0.1, 5, mode="exp_range", gamma=0.97, cycle_momentum=False)
one_cycle | OneCycleLR(optimizer, 0.3, total_steps=60)
one_cycle_three | OneCycleLR(optimizer, 0.3, epochs=5, steps_per_epoch=12, three_phase=True, anneal_strategy="linear")
chained | ChainedScheduler([LinearLR(optimizer, 0.1, total_iters=5), ExponentialLR(optimizer, 0.95)])
sequential | SequentialLR(optimizer, [LinearLR(optimizer, 0.1, total_iters=5), CosineAnnealingLR(optimizer, 30), ConstantLR(optimizer, 0.2)], [5, 20])
"""


def cases(table):
    return [tuple(part.strip() for part in line.split("|")) for line in table.strip().splitlines()]


def data():
    """(first parameters, inputs, targets) of a network of two layers."""
    random = np.random.default_rng(7)
    shapes = [(4, 3), (4,), (2, 4), (2,)]
    return [random.normal(size=shape) * 0.5 for shape in shapes], random.normal(size=(8, 3)), random.normal(size=(8, 2))


def loss_of(library, params, x, y):
    w1, b1, w2, b2 = params
    return ((library.tanh(x @ w1.T + b1) @ w2.T + b2 - y) ** 2).mean()
