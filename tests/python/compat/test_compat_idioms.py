"""The idioms of NumPy and PyTorch by one changed import: most work, none differs, and each refusal is of a method, which stays Backplane's."""

import pathlib
import re
import sys

import backplane as bp
import backplane.compat.numpy as compat_numpy
import backplane.compat.torch as compat_torch
import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "idioms"))
from idiom_running import arrays, lines, outcome, result  # noqa: E402
from numpy_idioms import IDIOMS as NUMPY  # noqa: E402
from numpy_lines import IDIOMS as NUMPY_LINES  # noqa: E402
from pytorch_idioms import IDIOMS as PYTORCH  # noqa: E402

GUIDE = pathlib.Path(__file__).resolve().parents[3] / "docs/guides/moving.md"
# These lines state Backplane's meaning of the name, which differs from PyTorch's.
NOT_PYTORCHS = {
    "torch.manual_seed(3); x = torch.rand(2); torch.manual_seed(3); torch.equal(x, torch.rand(2)).all() -> True", "torch.equal(i, i).all() -> True",
    "torch.normal((3,)).shape == (3,) -> True", "torch.nonzero(j)[0] -> np.nonzero(j)[0]",
}  # fmt: skip


def tensors():
    return {name: bp.asarray(value) for name, value in arrays().items()}


def of_numpy(line):
    return outcome(line, {"xp": compat_numpy, **tensors()}, result(line, {"xp": np, **arrays()}))


def of_pytorch(line):
    code, _, expected = line.partition(" -> ")
    return outcome(code, {"torch": compat_torch, "F": compat_torch.nn.functional, **tensors()}, result(expected, {"np": np, **arrays()}))


@pytest.mark.parametrize("run, text, refused", [(of_numpy, NUMPY, 0), (of_numpy, NUMPY_LINES, 1), (of_pytorch, PYTORCH, 1)], ids=["numpy", "numpy_lines", "pytorch"])
def test_idioms_by_one_changed_import(run, text, refused):
    idioms = [line for line in lines(text) if line not in NOT_PYTORCHS]
    found = {line: outcome for line in idioms if (outcome := run(line)) != "works"}
    assert not {line: outcome for line, outcome in found.items() if not outcome.startswith("refused")}
    assert len(found) <= refused, found


def test_the_examples_of_the_guide_run():
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    names = {}
    exec(compile("\n".join(blocks[:2]), str(GUIDE), "exec"), names)
    with pytest.raises(AttributeError) as found:
        names["np"].matrix
    assert str(found.value) in GUIDE.read_text(encoding="utf-8")


def test_the_guide_counts_the_names():
    text = GUIDE.read_text(encoding="utf-8")
    public = [name for name in dir(np) if not name.startswith("_")]
    have = sum(name in compat_numpy.__all__ for name in public)
    assert not set(compat_numpy.__all__) - set(public)
    if np.__version__.startswith("2.4"):
        assert f"`compat.numpy` has {have} of the {len(public)} public names of NumPy 2.4" in text
    modules = {"amp", "linalg", "fft", "special", "func", "autograd", "cuda", "nn", "optim", "distributions", "utils", "backends"}
    assert f"`compat.torch` has {len(set(compat_torch.__all__) - modules)} of the" in text
