"""What a type checker sees is what the package has, no more and no less, and stands once.

Python functions are annotated where they are defined; ops come from the registry (_registry.pyi), and what is written in
C++ from the C++ sources (_core.pyi). No stub repeats a Python source, and none is kept by hand.
"""

import ast
import builtins
import importlib
import inspect
import pathlib

import backplane as bp
import backplane.nn.functional as F
import pytest

PACKAGE = pathlib.Path(bp.__file__).parent


def body_of(name):
    path = PACKAGE / name
    if not path.exists():
        pytest.skip(f"{name} is not beside the package; build the target backplane_python_files")
    return ast.parse(path.read_text()).body


def names_in(body):
    """What a file or a class defines, and what a star import of it gives where it has __all__."""
    names = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if node.targets[0].id == "__all__":
                return set(ast.literal_eval(node.value))
            names.add(node.targets[0].id)
    return {name for name in names if not name.startswith("_")}


def imported_in(body):
    """What the imports of __init__.py bring, those for type checkers alone included."""
    names = set()
    for node in body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name):
            names |= imported_in(node.body)
        elif isinstance(node, ast.ImportFrom) and [alias.name for alias in node.names] == ["*"]:
            module = node.module.replace(".", "/")
            names |= names_in(body_of(f"{module}.pyi" if (PACKAGE / f"{module}.pyi").exists() else f"{module}.py"))
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.name for alias in node.names if alias.asname}  # `import x as x` is public to a type checker
    return {name for name in names if not name.startswith("_")}


def class_in(body, name):
    return next(node for node in body if isinstance(node, ast.ClassDef) and node.name == name).body


def test_no_stub_repeats_a_python_source():
    assert {path.name for path in PACKAGE.glob("**/*.pyi")} <= {"_core.pyi", "_registry.pyi"}


def given_to(owner):
    """(name of the class, names of its members, the class) of each that Python gives to a type: its bases in the stub."""
    body = body_of("_core.pyi")
    folders = {alias.name: node.module for node in body if isinstance(node, ast.ImportFrom) and node.level for alias in node.names}
    for base in next(node for node in body if isinstance(node, ast.ClassDef) and node.name == owner).bases:
        if isinstance(base, ast.Attribute):
            folder, file = folders[base.value.id], base.value.id
            module = importlib.import_module(f"backplane.{folder}.{file}")
            yield ast.unparse(base), names_in(class_in(body_of(f"{folder}/{file}.py"), base.attr)), getattr(module, base.attr)


def test_every_public_name_is_seen_by_a_type_checker():
    body = body_of("__init__.py")
    seen = imported_in(body) | names_in(body) - {"TYPE_CHECKING"}
    public = {name for name in (*dir(bp), *vars(bp)) if not name.startswith("_") and not isinstance(getattr(bp, name), type(bp))}
    modules = {"data", "debug", "distributed", "distributions", "fft", "linalg", "tree", "nn", "onnx", "optim", "random", "sparse", "types"}
    assert public <= seen, public - seen
    assert seen - public <= modules | {"Number", "TensorMethods"}, seen - public


def test_a_name_has_one_definition():
    ops = names_in(body_of("_registry.pyi"))
    functions = {name for name in dir(bp) if inspect.isfunction(getattr(bp, name))}
    assert ops & functions == set()


def functions_of(module):
    return [(f"{module.__name__}.{name}", value) for name, value in vars(module).items()
            if inspect.isfunction(value) and not name.startswith("_") and value.__module__.startswith("backplane")]


@pytest.mark.parametrize("module", [bp, bp.fft, bp.linalg, bp.tree, F], ids=lambda module: module.__name__)
def test_every_function_is_annotated(module):
    bare, functions = [], functions_of(module)
    for name, function in functions:
        signature = inspect.signature(function)
        bare += [f"{name}({parameter.name})" for parameter in signature.parameters.values() if parameter.annotation is parameter.empty]
        bare += [f"{name} ->"] if signature.return_annotation is signature.empty else []
    assert functions and bare == []


# PyTorch's and NumPy's words for arguments, which calls take beside the entry's: its spellings, and backplane/_calls/_other_forms.py.
SPELLINGS = {"dim", "keepdim", "dims", "shifts", "diagonal", "ddof", "unbiased", "requires_grad", "alpha", "deg", "a_min", "a_max", "rounding_mode", "order",
             "size", "where", "initial", "kind", "mode", "copy", "loc", "scale", "shape", "dim1", "dim2", "eps", "N", "M", "n", "m", "end", "elements",
             "test_elements", "sorted_sequence", "v", "values", "exponent", "reps", "other", "input"}  # fmt: skip

OF_DTYPE = {("mean", "dtype"), ("nanmean", "dtype"), ("softmax", "dtype"), ("log_softmax", "dtype")}


def test_every_op_is_stubbed_with_its_arguments():
    for node in body_of("_registry.pyi"):
        if isinstance(node, ast.FunctionDef) and "_Pair" not in ast.unparse(node.returns):
            op = getattr(bp.ops.bp, node.name)
            own = [row[0] for row in op.parameters]
            stated = [arg.arg for arg in node.args.posonlyargs + node.args.args + node.args.kwonlyargs if arg.arg in own or arg.arg not in SPELLINGS]
            assert [name for name in stated if (node.name, name) not in OF_DTYPE] == own, node.name


def test_every_member_of_tensor_is_stubbed():
    stubbed = names_in(class_in(body_of("_core.pyi"), "Tensor")) | names_in(class_in(body_of("_registry.pyi"), "TensorMethods"))
    stubbed |= {name for _, names, _ in given_to("Tensor") for name in names}
    public = {name for name in dir(bp.Tensor) if not name.startswith("_") and hasattr(bp.ones((1, 1)), name)}  # the others say what to write instead
    assert public <= stubbed, public - stubbed
    assert stubbed <= public, stubbed - public


@pytest.mark.parametrize("owner", ["DType", "Device", "Generator", "Op", "Graph", "GraphNode", "GraphValue", "Model", "Structure"])
def test_every_member_of_the_other_types_is_stubbed(owner):
    stubbed = names_in(class_in(body_of("_core.pyi"), owner)) | {name for _, names, _ in given_to(owner) for name in names}
    kind = getattr(bp._core, owner)
    one = {bp.Op: bp.add, bp.Generator: bp.default_generator}.get(kind, kind)  # which has not what its type says what to write for
    assert {name for name in dir(kind) if not name.startswith("_") and hasattr(one, name)} == stubbed


@pytest.mark.parametrize("owner", ["Tensor", "Device", "Op"])
def test_what_python_gives_to_a_type_is_a_base_of_its_stub(owner):
    found = list(given_to(owner))
    assert found
    for base, names, members in found:
        assert names, base
        for name in names:
            assert vars(getattr(bp, owner))[name] is vars(members)[name], f"{base}.{name}"


@pytest.mark.parametrize("owner", ["Tensor", "Device", "Op"])
def test_a_member_of_a_type_is_stubbed_once(owner):
    stubs = [(owner, names_in(class_in(body_of("_core.pyi"), owner))), *((base, names) for base, names, _ in given_to(owner))]
    if owner == "Tensor":
        stubs.append(("_registry", names_in(class_in(body_of("_registry.pyi"), "TensorMethods"))))
    for place, (one, names) in enumerate(stubs):
        for other, others in stubs[place + 1 :]:
            assert names & others == set(), (one, other)


def test_functions_of_the_extension_module_have_the_stubs_parameters():
    body, checked = body_of("_core.pyi"), 0
    for owner, nodes in [(bp, body), *((getattr(bp, name), class_in(body, name)) for name in ("Tensor", "Generator", "Op"))]:
        for node in nodes:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("__") or node.decorator_list:
                continue
            try:
                found = list(inspect.signature(getattr(owner, node.name)).parameters)
            except ValueError:  # pybind11's functions say no signature
                continue
            arguments = node.args
            rest = [arg for arg in (arguments.vararg, arguments.kwarg) if arg]
            stated = [arg.arg for arg in arguments.posonlyargs + arguments.args + arguments.kwonlyargs + rest]
            own = 0 if owner is bp else 1  # the object itself, whatever its name
            assert sorted(stated[own:]) == sorted(found[own:]), node.name
            checked += 1
    assert checked >= 15


def documented_in(body, owner):
    """(place, documented object, its text in the stub), the members of classes included."""
    for node in body:
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        name = node.name
        if isinstance(node, ast.ClassDef):
            yield from ((f"{name}.{inner}", found, text) for inner, found, text in documented_in(node.body, getattr(owner, name)))
        if (text := ast.get_docstring(node)) is not None:
            yield name, owner if name == "__init__" else getattr(owner, name), text


def test_documentation_in_stubs_is_that_of_the_object():
    documented = list(documented_in(body_of("_core.pyi"), bp._core))
    assert len(documented) >= 70
    for where, found, text in documented:
        own = inspect.cleandoc(found.__doc__)
        assert own.endswith(text), where  # behind its type, where it is an attribute
        assert own == text or isinstance(found, property) or inspect.isgetsetdescriptor(found), where


def module_names(body):
    names = set()
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {inner.id for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)}
        elif isinstance(node, ast.If):
            names |= module_names(node.body) | module_names(node.orelse)
    return names


def annotations_in(tree):
    for node in ast.walk(tree):
        for written in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if written is not None:
                yield from (inner for inner in ast.walk(written) if isinstance(inner, ast.Name))


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("**/*.py")), ids=lambda path: path.stem)
def test_an_annotation_names_what_its_module_has(path):
    """They are not evaluated, so nothing but a type checker would miss the name."""
    tree = ast.parse(path.read_text())
    known = module_names(tree.body) | set(dir(builtins))
    assert [f"{name.id}, line {name.lineno}" for name in annotations_in(tree) if name.id not in known] == []
