"""backplane.compat.torch answers as PyTorch does, whose answers stand in torch_results.json; where PyTorch is installed it is asked itself."""

import inspect
import json
import pathlib

import backplane as bp
import backplane.compat.torch as compat
import numpy as np
import pytest
from compat_running import arrays, cases, difference, outcomes, plain, result

CASES = cases("torch")
RESULTS = pathlib.Path(__file__).with_name("torch_results.json")
# Their results are of no value that a case could state, or of a device.
UNCALLED = {"save", "load", "from_numpy", "from_dlpack", "get_default_device", "use_deterministic_algorithms", "set_float32_matmul_precision", "is_conj", "is_neg", "is_inference",
            "conj", "resolve_conj", "resolve_neg", "detach", "row_stack", "unsafe_split", "unsafe_chunk", "concatenate", "argwhere", "gru_cell", "rnn_relu_cell",
            "rnn_tanh_cell", "is_same_size", "empty_like", "view_as_complex", "positive", "isreal", "special", "are_deterministic_algorithms_enabled", "binomial", "poisson", "initial_seed", "get_device"}  # fmt: skip


def more_arrays():
    x, rng = arrays(), np.random.default_rng(9)
    return {**x, "q": x["s"] @ x["s"].T + np.eye(3), "e": rng.standard_normal((2, 3, 8)), "d": x["f"]}


def stored(value):
    """A result as JSON holds it."""
    if isinstance(value, list):
        return [stored(one) for one in value]
    if isinstance(value, np.ndarray):
        parts = np.stack([value.real, value.imag], -1) if value.dtype.kind == "c" else value
        return {"dtype": value.dtype.name, "shape": value.shape, "values": parts.ravel().tolist()}
    return {"plain": value}


def loaded(value):
    if isinstance(value, list):
        return [loaded(one) for one in value]
    if "plain" in value:
        return value["plain"]
    dtype = np.dtype(value["dtype"])
    if dtype.kind == "c":
        pairs = np.array(value["values"], dtype=np.float64).reshape(-1, 2)
        return (pairs[:, 0] + 1j * pairs[:, 1]).astype(dtype).reshape(value["shape"])
    return np.array(value["values"], dtype=dtype).reshape(value["shape"])


def of_pytorch(line):
    torch = pytest.importorskip("torch")
    return plain(result(line, {"torch": torch, **{name: torch.from_numpy(value) for name, value in more_arrays().items()}}))


def recorded():
    return {line: loaded(value) for line, value in json.loads(RESULTS.read_text()).items()}


def test_every_call_answers_as_pytorch_did():
    results = recorded()
    names = {name: bp.asarray(value) for name, value in more_arrays().items()}
    assert set(results) == set(CASES), "record them: python tests/python/compat/test_compat_torch.py, where PyTorch is installed"
    wrong = outcomes(results, results.get, {"torch": compat}, names)
    assert not wrong, wrong


def test_what_is_recorded_is_pytorchs():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: its recorded answers stand for it")
    names = {name: torch.from_numpy(value) for name, value in more_arrays().items()}
    results = recorded()
    assert not outcomes(results, results.get, {"torch": torch}, names)


IN_PLACE = ["ceil", "cos", "exp", "floor", "log1p", "neg", "sigmoid", "sin", "sqrt", "tanh", "trunc"]


def test_every_function_is_called():
    one_operand = {name for name in compat.__all__ if inspect.isfunction(getattr(compat, name)) and list(inspect.signature(getattr(compat, name)).parameters)[:2] in (["input"], ["input", "out"], ["input", "args"], ["input", "other"])}
    for home, prefix in ((compat, "torch."), (compat.linalg, "torch.linalg."), (compat.fft, "torch.fft."), (compat.func, "torch.func.")):
        functions = {name for name in home.__all__ if inspect.isfunction(getattr(home, name)) and getattr(home, name).__module__ == home.__name__}
        assert not {name for name in functions - UNCALLED - one_operand if f"{prefix}{name}(" not in " ".join(CASES)}


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_functions(name):
    x = bp.asarray([0.25, 0.75])
    expected = getattr(compat, name)(x)
    found = getattr(compat, f"{name}_")(x)
    assert found is x and not difference(plain(x), plain(expected))


def test_refusals():
    x = compat.ones(2, 3)
    for call, words in (
        (lambda: compat.mean(compat.arange(3)), "floating"),
        (lambda: compat.std(x, unbiased=True, correction=1), "one of them"),
        (lambda: compat.zeros(2, pin_memory=True), "pin_memory"),
        (lambda: compat.dot(x, x), "vectors"),
        (lambda: compat.sum(x, dim=0, axis=1), "dim and axis"),
        (lambda: compat.clamp(x), "no min and no max"),
        (lambda: compat.randint(3), "size"),
        (lambda: compat.imag(x), "complex"),
        (lambda: compat.zeros(3).poisson, "poisson"),
        (lambda: compat.poisson(compat.tensor([-1.0])), "poisson"),
        (lambda: compat.stft(compat.ones(8), 4), "return_complex"),
        (lambda: compat.stft(compat.ones(3), 8, return_complex=True), "reflect"),
        (lambda: compat.as_strided(compat.ones(3), (2, 2), (2, 2)), "outside"),
        (lambda: compat.linalg.lu(compat.eye(2), pivot=False), "pivot"),
        (lambda: compat.autograd.grad(compat.ones(1, requires_grad=True).sum(), [compat.ones(1, requires_grad=True)]), "allow_unused"),
        (lambda: compat.autograd.gradcheck(lambda x: x.detach() * x, compat.ones(1, dtype=float, requires_grad=True)), "by differences"),
        (lambda: compat.lstm, "nn.LSTM"),
    ):
        with pytest.raises((bp.BackplaneError, AttributeError), match=words):
            call()


def test_modules_are_imported_by_name():
    import backplane.compat.torch.nn.functional as F
    from backplane.compat.torch import nn
    from backplane.compat.torch.autograd.functional import jacobian
    from backplane.compat.torch.utils.checkpoint import checkpoint
    from backplane.compat.torch.utils.data import DataLoader

    x = compat.ones(2)
    assert DataLoader is bp.data.DataLoader and jacobian(lambda x: 2 * x, x).tolist() == [[2, 0], [0, 2]] and checkpoint(lambda x: 2 * x, x).tolist() == [2, 2]
    assert isinstance(x, compat.FloatTensor) and not isinstance(x, compat.LongTensor) and compat.Tensor.add(x, 1).tolist() == [2, 2]
    assert nn.functional is F and F.relu is bp.nn.functional.relu
    assert compat.cuda.is_available() in (True, False) and isinstance(x, compat.Tensor) and type(x) == compat.Tensor and not isinstance(1, compat.Tensor)


def test_gradients_and_batches_pass():
    x = compat.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    compat.max(compat.sort(x, 0).values, 1).values.sum().backward()
    assert x.grad.tolist() == [[0, 1], [0, 1]]
    assert compat.vmap(lambda row: compat.std(row))(x.detach()).shape == (2,)
    assert compat.func.grad(lambda x: compat.var(x))(compat.tensor([1.0, 3.0])).tolist() == [-2.0, 2.0]


if __name__ == "__main__":  # python test_compat_torch.py records PyTorch's answers
    with RESULTS.open("w") as out:
        json.dump({line: stored(of_pytorch(line)) for line in CASES}, out, separators=(",", ":"))
        out.write("\n")
