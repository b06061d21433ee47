"""The stub of the ops: codegen's, without what the package has a function or a method for, and with what calls take beyond the entry."""

import ast
import copy


def assigned(module, name):
    for node in ast.parse(module).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == name:
            return ast.literal_eval(node.value)
    raise SystemExit(f"python/stubs: found no {name}, expected one in a module that __init__.py imports with *")


def imported(modules):
    """The names that the package's __init__.py imports from its modules."""
    names = set()
    body = ast.parse(modules["__init__"]).body
    later = [node for branch in body if isinstance(branch, ast.If) for node in branch.body]  # what checkers alone see
    for node in body + [node for node in later if getattr(node, "module", None) in modules]:
        if isinstance(node, ast.ImportFrom) and node.module:
            found = [alias.name for alias in node.names]
            names.update(assigned(modules[node.module], "__all__") if found == ["*"] else found)
    return names


def members(text, kind):
    """What a class defines."""
    body = [node for owner in ast.parse(text).body if isinstance(owner, ast.ClassDef) and owner.name == kind for node in owner.body]
    return {node.name if isinstance(node, ast.FunctionDef) else node.targets[0].id for node in body if isinstance(node, (ast.FunctionDef, ast.Assign))}


# What calls take beyond the entry: backplane/_calls/_other_forms.py.
MORE = {
    **dict.fromkeys(("arange", "eye", "full", "linspace", "ones", "zeros"), "requires_grad: bool = False"),
    **dict.fromkeys(("full_like", "ones_like", "zeros_like"), "requires_grad: bool = False, shape: int | Sequence[int] = ..."),
    **dict.fromkeys(("add", "subtract"), "alpha: float = 1"),
    **dict.fromkeys(("all", "any"), "where: _Data | None = None"),
    **dict.fromkeys(("max", "min", "nanmax", "nanmin", "nanprod", "nansum", "prod", "sum"), "where: _Data | None = None, initial: Tensor | float | None = None"),
    **dict.fromkeys(("log_softmax", "softmax"), "dtype: DType | None = None"),
    **dict.fromkeys(("argsort", "sort"), "kind: str | None = None"),
    "angle": "deg: bool = False",
    "clip": "a_min: Tensor | float | None = None, a_max: Tensor | float | None = None",
    "divide": "rounding_mode: str | None = None",
    "diagonal": "dim1: int = 0, dim2: int = 1",
    "flip": "dims: int | Sequence[int] = ...",
    "logit": "eps: float | None = None",
    "mean": "dtype: DType | None = None",
    "nan_to_num": "copy: bool = True",
    "nanmean": "where: _Data | None = None, dtype: DType | None = None",
    "normal": "size: int | Sequence[int] = ..., loc: Tensor | float = ..., scale: Tensor | float = ...",
    "permute_dims": "dims: Sequence[int] = ...",
    "reshape": 'order: str = "C"',
    "roll": "shifts: int | Sequence[int] = ..., dims: int | Sequence[int] | None = None",
    "take": 'mode: str = "raise"',
    **dict.fromkeys(("nanstd", "nanvar", "std", "var"), "ddof: float = 0, unbiased: bool = True"),
    **dict.fromkeys(("tril", "triu"), "diagonal: int = 0"),
}
NUMBERS = {"full": ("fill_value",), "full_like": ("fill_value",), "linspace": ("start", "stop"), "arange": ("start", "stop", "step")}
FLATTENED = ("argsort", "sort")  # where axis is None
# Of which a call with dim= gives a pair.
PAIRS = ("max", "min", "sort")
TYPES = """
class _Pair(NamedTuple):
    values: Tensor
    indices: Tensor

class _Array(Protocol):
    def __array__(self) -> Any: ...

_Data = Tensor | bool | int | float | complex | Sequence[Any] | _Array
"""


def arguments(text):
    return ast.parse(f"def f(*, {text}): ...").body[0].args


def add_keywords(node, text):
    more = arguments(text)
    node.args.kwonlyargs += more.kwonlyargs
    node.args.kw_defaults += more.kw_defaults


def default_of(args, place):
    """Makes the argument at a place, and those after it, optional."""
    after = len(args.posonlyargs) + len(args.args) - place
    while len(args.defaults) < after:
        args.defaults.insert(0, ast.Constant(...))


def spelled(node):
    """The function with what it takes beyond its entry: dim and keepdim for axis and keepdims, where they mean the same, and MORE."""
    args = node.args
    positional = args.posonlyargs + args.args
    names = [arg.arg for arg in positional + args.kwonlyargs]
    if positional and ast.unparse(positional[-1].annotation or ast.Constant(None)).startswith("int | Sequence[int]"):
        args.vararg = ast.arg("more", ast.Name("int | DType" if node.name in ("ones", "zeros") else "int"))  # reshape(x, 2, 3), zeros(3, dtype)
    for arg in positional + args.kwonlyargs:
        if ast.unparse(arg.annotation or ast.Constant(None)) == "Tensor | Number":
            arg.annotation = ast.Name("_Data")
        if ast.unparse(arg.annotation or ast.Constant(None)) == "Sequence[int]":
            arg.annotation = ast.parse("int | Sequence[int]", mode="eval").body
        if arg.arg == "axis" and node.name in FLATTENED:
            arg.annotation = ast.parse("int | None", mode="eval").body
        if arg.arg in NUMBERS.get(node.name, ()):
            arg.annotation = ast.parse(f"Tensor | {ast.unparse(arg.annotation)}", mode="eval").body
    axes = [arg for arg in positional + args.kwonlyargs if arg.arg in ("axis", "axes")]
    for place, arg in enumerate(args.kwonlyargs):
        if arg.arg == "generator" and args.kw_defaults[place] is None:
            arg.annotation, args.kw_defaults[place] = ast.parse("Generator | None", mode="eval").body, ast.Constant(None)
    before = ast.unparse(node)
    if len(axes) == 1:
        if axes[0] in positional:
            default_of(args, positional.index(axes[0]))
        add_keywords(node, f"dim: {ast.unparse(axes[0].annotation)} = ...")
    if "keepdims" in names:
        add_keywords(node, "keepdim: bool = False")
    if node.name in MORE:
        add_keywords(node, MORE[node.name])
    if node.name not in PAIRS:
        return [node]
    paired = ast.parse(before).body[0]
    axis = next(arg for arg in paired.args.posonlyargs + paired.args.args if arg.arg == "axis")
    paired.args.args = [arg for arg in paired.args.args if arg is not axis]
    paired.args.defaults = []
    kept = [(arg, default) for arg, default in zip(paired.args.kwonlyargs, paired.args.kw_defaults) if arg.arg not in ("keepdims", "out")]
    paired.args.kwonlyargs, paired.args.kw_defaults = [arg for arg, _ in kept], [default for _, default in kept]
    add_keywords(paired, "dim: int" + (", keepdim: bool = False" if node.name != "sort" else ""))
    paired.args.kw_defaults[[arg.arg for arg in paired.args.kwonlyargs].index("dim")] = None
    paired.returns = ast.Name("_Pair")
    plain = ast.parse(before).body[0]
    return [ast.parse(f"@overload\n{ast.unparse(one)}").body[0] for one in (plain, paired)]


def stub(text, modules, core):
    """A type checker takes either the first or the last of two definitions, so the ops' give way to the package's."""
    module, own = ast.parse(text), imported(modules)
    methods = members(core, "Tensor").union(*(members(of, "TensorMembers") for of in modules.values()))
    for owner in [module, *(node for node in module.body if isinstance(node, ast.ClassDef))]:
        taken = own if owner is module else methods
        ops = {node.name: copy.deepcopy(node) for node in owner.body if isinstance(node, ast.FunctionDef)}
        body = []
        for node in owner.body:
            if isinstance(node, ast.Assign) and getattr(node.value, "id", None) in ops:
                name, op = node.targets[0].id, node.value.id
                if op in taken or name in ("amax", "amin"):  # whose op is not here, or which over dim= give values alone
                    node = copy.deepcopy(ops[op])
                    node.name = name
            name = node.name if isinstance(node, ast.FunctionDef) else getattr(node.targets[0], "id", None) if isinstance(node, ast.Assign) else None
            if name not in taken:
                body += spelled(node) if isinstance(node, ast.FunctionDef) else [node]
        owner.body = body
    last_import = max(place for place, node in enumerate(module.body) if isinstance(node, ast.ImportFrom))
    module.body[last_import + 1 : last_import + 1] = ast.parse(f"from typing import Any, NamedTuple, Protocol, overload\n{TYPES}").body
    banner = "".join(line + "\n" for line in text.split("\n\n")[0].split("\n") if line.startswith("#"))
    return banner + ast.unparse(ast.fix_missing_locations(module)) + "\n"
