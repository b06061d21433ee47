"""Namespace bp of C++ against an installed SDK: its laws, the code of its guide, the examples, and that models, optimisers and files are
those of Python.

Needs an installed SDK (BACKPLANE_PREFIX, set by ./dev).
"""

import os
import pathlib
import re
import subprocess

import backplane as bp
import pytest
from backplane import nn, optim

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PREFIX = os.environ.get("BACKPLANE_PREFIX", "")
BUILD = pathlib.Path(os.environ.get("BACKPLANE_BUILD", ""))

pytestmark = [pytest.mark.skipif(not PREFIX, reason="needs an installed SDK (BACKPLANE_PREFIX): ./dev test sdk"),
              pytest.mark.skipif(BUILD.name in ("asan", "tsan"), reason="a program without the sanitizer cannot load a library with it")]  # fmt: skip


def run(*command, cwd=None):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def guide_blocks():
    text = (ROOT / "docs/guides/cpp.md").read_text(encoding="utf-8")
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def guide_program():
    """The blocks of the guide as one program, each `#include` at its top."""
    lines = [line for language, block in guide_blocks() if language == "cpp" for line in block.splitlines()]
    includes = [line for line in lines if line.startswith(("#include", "namespace"))]
    body = "\n".join(line for line in lines if line not in includes)
    return "\n".join([*includes, "int main() {", body, "}\n"])


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cpp")
    (folder / "guide.cpp").write_text(guide_program(), encoding="utf-8")
    run("cmake", "-S", HERE / "cpp", "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={PREFIX}", f"-DGUIDE={folder / 'guide.cpp'}")
    run("cmake", "--build", folder / "build", "--parallel", len(os.sched_getaffinity(0)))
    return folder / "build"


def test_the_laws_hold(programs, tmp_path):
    run(programs / "laws", tmp_path)


def test_the_code_of_the_guide_prints_what_the_guide_says(programs, tmp_path):
    printed = run(programs / "guide", cwd=tmp_path)
    assert printed == "".join(block for language, block in guide_blocks() if language == "text")


def test_the_digits_example_learns(programs, tmp_path):
    """On eight-by-eight pictures of ten kinds with noise; scikit-learn's digits have the same form."""
    bp.manual_seed(0)
    labels = bp.arange(600) % 10
    images = bp.uniform((10, 64))[labels] + 0.1 * bp.normal((600, 64))
    bp.save({"images": images, "labels": labels}, tmp_path / "digits.safetensors")
    printed = run(programs / "digits", "digits.safetensors", 8, cwd=tmp_path)
    assert float(printed.split()[-1]) > 0.8
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    state = bp.load(tmp_path / "digits_model.safetensors")
    model.load_state_dict({name.replace("fc1", "0").replace("fc2", "2"): x for name, x in state.items()})
    assert float((model(images).argmax(1) == labels).astype(bp.float32).mean()) > 0.8


def test_the_character_transformer_learns(programs):
    printed = run(programs / "char_transformer", ROOT / "README.md", 30)
    assert "step 29/30" in printed


OPTIMIZERS = {
    "SGD": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "Adam": lambda p: optim.Adam(p, lr=0.01, weight_decay=0.1, amsgrad=True),
    "AdamW": lambda p: optim.AdamW(p, lr=0.01, betas=(0.8, 0.9)),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
}


@pytest.fixture(scope="module")
def trained(programs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("training")
    bp.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 2)).to(bp.float64)
    start = {f"model.{name}": x for name, x in model.state_dict().items()}
    start |= {"x": bp.normal((16, 3), dtype=bp.float64), "y": bp.normal((16, 2), dtype=bp.float64)}
    start |= {"images": bp.normal((3, 2, 9, 8)), "sequence": bp.normal((2, 5, 8))}
    bp.save(start, folder / "start.safetensors")
    run(programs / "training", folder)
    return folder, start


def close(a, b, tolerance):
    assert a.shape == b.shape
    assert float(abs(a - b).max()) <= tolerance


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimisers_follow_those_of_python(trained, name):
    folder, start = trained
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 2)).to(bp.float64)
    model.load_state_dict({key.removeprefix("model."): x for key, x in start.items() if key.startswith("model.")})
    optimizer = OPTIMIZERS[name](model.parameters())
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
    for _ in range(20):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(start["x"]), start["y"]).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        schedule.step()
    found = bp.load(folder / f"{name}.safetensors")
    assert found.keys() == model.state_dict().keys()
    for key, x in model.state_dict().items():
        close(found[key], x, 1e-9)


def test_layers_and_their_state_are_those_of_python(trained):
    folder, start = trained
    layers = nn.Sequential(nn.Conv2d(2, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    layers.load_state_dict(bp.load(folder / "layers_state.safetensors"))
    found = bp.load(folder / "layers.safetensors")
    close(found["evaluated"], layers.eval()(start["images"]).detach(), 1e-5)
    close(found["training"], layers.train()(start["images"]).detach(), 1e-5)
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    attention.load_state_dict(bp.load(folder / "attention_state.safetensors"))
    mask = bp.triu(bp.ones((5, 5)), 1) > 0
    x = start["sequence"]
    close(bp.load(folder / "attention.safetensors")["out"], attention(x, x, x, attn_mask=mask)[0].detach(), 1e-5)
