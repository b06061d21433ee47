"""The stubs name what the package has, no more and no less."""

import ast
import inspect
import pathlib

import backplane as bp
import pytest

PACKAGE = pathlib.Path(bp.__file__).parent


def body_of(name):
    path = PACKAGE / name
    if not path.exists():
        pytest.skip(f"{name} is not beside the package; build the target backplane_python_files")
    return ast.parse(path.read_text()).body


def names_in(body):
    names = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
        elif isinstance(node, ast.Assign):
            names.add(node.targets[0].id)
    return {name for name in names if not name.startswith("_")}


def members_of(body, name):
    return names_in(next(node for node in body if isinstance(node, ast.ClassDef) and node.name == name).body)


def test_every_public_name_is_in_a_stub():
    stubbed = names_in(body_of("__init__.pyi")) | names_in(body_of("_registry.pyi"))
    public = {name for name in dir(bp) if not isinstance(getattr(bp, name), type(bp))}
    assert public <= stubbed
    assert stubbed - public <= {"Number", "TensorMethods", "HookHandle"}


def test_every_op_is_stubbed_with_its_arguments():
    for node in body_of("_registry.pyi"):
        if isinstance(node, ast.FunctionDef):
            op = getattr(bp.ops.bp, node.name)
            stated = [arg.arg for arg in node.args.posonlyargs + node.args.args + node.args.kwonlyargs]
            assert stated == [row[0] for row in op.parameters], node.name


def test_every_member_of_tensor_is_stubbed():
    stubbed = members_of(body_of("__init__.pyi"), "Tensor") | members_of(body_of("_registry.pyi"), "TensorMethods")
    public = {name for name in dir(bp.Tensor) if not name.startswith("_")}
    assert public <= stubbed, public - stubbed
    assert stubbed <= public, stubbed - public


def test_documentation_in_stubs_is_that_of_the_function():
    documented = [node for node in body_of("__init__.pyi") if isinstance(node, ast.FunctionDef) and ast.get_docstring(node)]
    assert len(documented) >= 5
    for node in documented:
        assert ast.get_docstring(node) == inspect.cleandoc(getattr(bp, node.name).__doc__), node.name
