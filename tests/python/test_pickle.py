"""Tensors, devices, generators and public functions survive pickle and copy."""

import copy
import inspect
import pickle

import backplane as bp
import numpy as np
import pytest


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", ["bool", "int8", "bfloat16", "float32", "complex128"])
def test_tensors_by_pickle(name, protocol):
    x = bp.asarray([[0, 1], [1, 0]]).astype(getattr(bp, name)).T
    again = pickle.loads(pickle.dumps(x, protocol=protocol))
    assert again.tolist() == x.tolist() and again.dtype is x.dtype and again.device == x.device
    assert again.is_leaf and not again.requires_grad


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_leaves_keep_requires_grad(duplicate):
    x = bp.ones(3).requires_grad_()
    (x * 2).sum().backward()
    again = duplicate(x)
    assert again.requires_grad and again.is_leaf and (again.grad is None) == (duplicate is not copy.deepcopy)
    assert not np.shares_memory(again.detach().numpy(), x.detach().numpy())


@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickle.dumps])
def test_a_history_cannot_be_copied(duplicate):
    with pytest.raises(ValueError, match="detach"):
        duplicate(bp.ones(3).requires_grad_() * 2)


def test_a_shallow_copy_shares_memory():
    x = bp.ones(3)
    assert np.shares_memory(copy.copy(x).numpy(), x.numpy())


def test_deepcopy_copies_the_gradient():
    x = bp.asarray([1.0, 2.0], dtype=bp.float32).requires_grad_()
    (x * x).sum().backward()
    copied = copy.deepcopy(x)
    x.grad += 1
    assert copied.grad.tolist() == [2.0, 4.0] and not copied.grad.requires_grad
    assert copy.deepcopy(bp.ones(2).requires_grad_()).grad is None


def test_deepcopy_keeps_identity_within_a_structure():
    x = bp.ones(2)
    first, second = copy.deepcopy([x, x])
    assert first is second


def test_devices():
    device = bp.device("cpu")
    assert pickle.loads(pickle.dumps(device)) == device == "cpu"
    assert (device.backend, device.ordinal) == ("cpu", 0) and hash(device) == hash("cpu")
    assert repr(device) == "device('cpu')" and str(device) == "cpu"


def public_functions():
    for module in (bp, bp.linalg, bp.fft, bp.tree, bp.nn.functional):
        for name, value in vars(module).items():
            if not name.startswith("_") and (inspect.isroutine(value) or inspect.isclass(value)) and not isinstance(value, bp.Op):
                yield pytest.param(value, id=f"{module.__name__}.{name}")


@pytest.mark.parametrize("value", public_functions())
def test_public_functions_and_classes_are_found_again(value):
    assert pickle.loads(pickle.dumps(value)) is value
    assert copy.deepcopy(value) is value


@pytest.mark.parametrize("name", ["abs", "add", "matmul", "softmax"])
def test_ops_are_found_again(name):
    value = getattr(bp, name)
    assert repr(pickle.loads(pickle.dumps(value))) == repr(value)
