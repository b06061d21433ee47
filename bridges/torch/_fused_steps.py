"""Steps of optimizers over lists of parameters on the device, composed of PyTorch's operators: what `fused=True` calls.

grad_scale divides the gradients, and a found_inf of 1 leaves everything as it is: torch.amp.GradScaler passes both.
"""

from __future__ import annotations

import torch

__all__ = ["OPERATORS"]


def _skipped(found_inf):
    return found_inf is not None and bool(found_inf.item())


def _gradient(grad, parameter, grad_scale, maximize, weight_decay):
    """The gradient that the step takes; PyTorch's kernels write the one without scale back."""
    if grad_scale is not None:
        grad.div_(grad_scale.to(grad.device))
    found = -grad if maximize else grad
    return found.add(parameter, alpha=weight_decay) if weight_decay else found


def _adam(parameters, grads, averages, squares, most, steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf, decoupled):
    if _skipped(found_inf):
        return
    lr = float(lr)
    for i, (x, grad, average, square, step) in enumerate(zip(parameters, grads, averages, squares, steps)):
        g = _gradient(grad, x, grad_scale, maximize, 0.0 if decoupled else weight_decay)
        if decoupled and weight_decay:
            x.mul_(1 - lr * weight_decay)
        count = float(step)
        average.lerp_(g, 1 - beta1)
        square.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        if amsgrad:
            torch.maximum(most[i], square, out=most[i])
        size = (most[i] if amsgrad else square).sqrt().div_((1 - beta2**count) ** 0.5).add_(eps)
        x.addcdiv_(average, size, value=-lr / (1 - beta1**count))


def fused_adam(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, *, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale=None, found_inf=None):
    """A step of Adam."""
    _adam(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf, False)


def fused_adamw(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, *, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale=None, found_inf=None):
    """A step of AdamW."""
    _adam(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf, True)


def fused_sgd(self, grads, momentum_buffer_list, *, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step, grad_scale=None, found_inf=None):
    """A step of SGD."""
    if _skipped(found_inf):
        return
    for i, (x, grad) in enumerate(zip(self, grads)):
        g = _gradient(grad, x, grad_scale, maximize, weight_decay)
        if momentum:
            buffer = momentum_buffer_list[i]
            if is_first_step:
                buffer.copy_(g)
            else:
                buffer.mul_(momentum).add_(g, alpha=1 - dampening)
            g = g.add(buffer, alpha=momentum) if nesterov else buffer
        x.add_(g, alpha=-float(lr))


def fused_adagrad(self, grads, state_sums, state_steps, *, lr, lr_decay, weight_decay, eps, maximize, grad_scale=None, found_inf=None):
    """A step of Adagrad."""
    if _skipped(found_inf):
        return
    for x, grad, total, step in zip(self, grads, state_sums, state_steps):
        g = _gradient(grad, x, grad_scale, maximize, weight_decay)
        total.addcmul_(g, g)
        x.addcdiv_(g, total.sqrt().add_(eps), value=-float(lr) / (1 + (float(step) - 1) * lr_decay))


OPERATORS = {
    "_fused_adam_": fused_adam,
    "_fused_adam_.tensor_lr": fused_adam,
    "_fused_adamw_": fused_adamw,
    "_fused_adamw_.tensor_lr": fused_adamw,
    "_fused_sgd_": fused_sgd,
    "_fused_sgd_.tensor_lr": fused_sgd,
    "_fused_adagrad_": fused_adagrad,
    "_fused_adagrad_.tensor_lr": fused_adagrad,
}
