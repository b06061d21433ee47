"""Every public function has a page: the ops state the meanings of their arguments and an example, and every example prints what its page says."""

import importlib.util
import inspect
import json
import pathlib
import sys

import pytest

import backplane as bp
from backplane._calls._ops import is_helper

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
OPS = {entry["name"].partition("::")[2]: entry for entry in json.loads((pathlib.Path(bp.__file__).parent / "samples.json").read_text())["ops"]}
PUBLIC = sorted(name for name in OPS if not is_helper(f"bp::{name}"))


@pytest.fixture(scope="module")
def functions():
    sys.path.insert(0, str(DOCS))
    try:
        spec = importlib.util.spec_from_file_location("functions", DOCS / "functions.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(DOCS))


def called_by_users(functions):
    """The names of the ops that are public functions themselves."""
    return sorted({function.full_name.partition("::")[2] for function, _ in functions.public().values() if isinstance(function, type(bp.sin))})


def test_every_argument_of_a_public_op_has_a_meaning():
    assert [f"{name}: {argument['name']}" for name in PUBLIC for argument in OPS[name]["args"] if not argument.get("doc")] == []


def test_every_op_that_users_call_has_an_example(functions):
    names = called_by_users(functions)
    assert len(names) > 200 and [name for name in names if not is_helper(f"bp::{name}") and "example" not in OPS[name]] == []


def test_examples_of_ops_print_what_their_entries_say(functions):
    for name, entry in OPS.items():
        if "example" in entry:
            assert functions.checked(bp, entry["example"], name) == entry["example"]


def test_a_wrong_result_is_found(functions):
    with pytest.raises(functions.Broken, match="the example prints"):
        functions.checked(bp, ">>> bp.add(bp.asarray([1]), 1)\ntensor([3])", "add")
    with pytest.raises(functions.Broken, match="raises ShapeError"):
        functions.executed(bp, ["bp.ones(2) + bp.ones(3)"], "add")


def test_help_shows_the_text_of_the_entry():
    text = bp.softmax.__doc__
    entry = OPS["softmax"]
    assert entry["doc"] in text and f"    axis: Axes. {entry['args'][1]['doc']}\n" in text
    assert "\n    " + entry["example"].replace("\n", "\n    ").rstrip() in text
    assert text.index("Arguments:") < text.index("Result:") < text.index("Gradient:") < text.index("Example:")


def test_pages_are_complete(functions, tmp_path):
    for name in OPS:
        (tmp_path / "ops").mkdir(exist_ok=True)
        (tmp_path / f"ops/{name}.md").write_text(f"# bp::{name}\n\n| argument | x |\n\n## Entry\n")
    build = tmp_path / "dispatcher/generated"
    build.mkdir(parents=True)
    (build / "samples.json").write_text(json.dumps({"ops": list(OPS.values())}))
    assert functions.write_pages(tmp_path, tmp_path, {"bp::add": {"cpu": "kernel"}}) == []
    add = (tmp_path / "ops/add.md").read_text()
    assert add.startswith("# bp.add\n") and "| NumPy | `numpy.add` |" in add and "| JAX | `jax.numpy.add` |" in add and "| cpu | kernel |" in add
    assert "`torch.einsum`" in (tmp_path / "functions/bp.einsum.md").read_text()
    index = (tmp_path / "functions/index.md").read_text()
    assert all(f"[bp.{name}](" in index for name in dir(bp) if inspect.isfunction(getattr(bp, name)) and not name.startswith("_"))
