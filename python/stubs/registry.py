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


# What calls take beyond the entry and its spellings: backplane/_calls/_other_forms.py.
MORE = {
    **dict.fromkeys(("arange", "eye", "full", "linspace", "ones", "zeros"), "requires_grad: bool = False"),
    **dict.fromkeys(("full_like", "ones_like", "zeros_like"), "requires_grad: bool = False, shape: int | Sequence[int] = ..."),
    **dict.fromkeys(("all", "any"), "where: _Data | None = None"),
    **dict.fromkeys(("max", "min", "nanmax", "nanmin", "nanprod", "nansum", "prod", "sum"), "where: _Data | None = None, initial: Tensor | float | None = None"),
    **dict.fromkeys(("argsort", "sort"), "kind: str | None = None"),
    "angle": "deg: bool = False",
    "divide": "rounding_mode: str | None = None",
    "logit": "eps: float | None = None",
    "mean": "dtype: DType | None = None",
    "nan_to_num": "copy: bool = True",
    "nanmean": "where: _Data | None = None, dtype: DType | None = None",
    "normal": "size: int | Sequence[int] = ..., loc: Tensor | float = ..., scale: Tensor | float = ...",
    "reshape": 'order: str = "C"',
    "take": 'mode: str = "raise"',
}
NUMBERS = {"full": ("fill_value",), "full_like": ("fill_value",), "linspace": ("start", "stop"), "arange": ("start", "stop", "step")}
FLATTENED = ("argsort", "sort")  # where axis is None
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


def names_of(node):
    return [arg.arg for arg in node.args.posonlyargs + node.args.args + node.args.kwonlyargs]


def take_assigned(module, name):
    """The value of an assignment of the stub, which is removed; an empty list where it has none."""
    for node in module.body:
        if isinstance(node, ast.Assign) and node.targets[0].id == name:
            module.body.remove(node)
            return ast.literal_eval(node.value)
    return []


class Spellings:
    """Further words and signatures of the ops, as codegen states them."""

    def __init__(self, module):
        self.words = dict(take_assigned(module, "spelled_words"))
        self.signatures = [ast.parse(text).body[0] for text in take_assigned(module, "spelled_signatures")]

    def add_words(self, node):
        """The words of the op, and what signatures with its result take beyond its own."""
        annotations = {arg.arg: ast.unparse(arg.annotation) for arg in node.args.posonlyargs + node.args.args + node.args.kwonlyargs if arg.annotation}
        for (op, word), own in self.words.items():
            if op != node.name or own not in annotations:
                continue
            positional = [arg.arg for arg in node.args.posonlyargs + node.args.args]
            if own in positional:
                default_of(node.args, positional.index(own))
            add_keywords(node, f"{word}: {annotations[own]} = ...")
        for signature in self.of(node):
            if ast.unparse(signature.returns) != ast.unparse(node.returns):
                continue
            for arg in signature.args.args[1:] + signature.args.kwonlyargs:
                if arg.arg not in (*names_of(node), "dim", "keepdim"):
                    add_keywords(node, f"{arg.arg}: {ast.unparse(arg.annotation)} = ...")

    def of(self, node):
        return [signature for signature in self.signatures if signature.name == node.name]

    def pairs(self, node):
        """The signatures of the op whose result is another one, by keywords but for the first operand, which stands as in the op."""
        for signature in self.of(node):
            if ast.unparse(signature.returns) == ast.unparse(node.returns):
                continue
            pair = copy.deepcopy(signature)
            others = pair.args.args[1:]
            defaults = [None] * (len(others) - len(pair.args.defaults)) + pair.args.defaults
            pair.args.kwonlyargs, pair.args.kw_defaults = others + pair.args.kwonlyargs, defaults + pair.args.kw_defaults
            own = node.args.posonlyargs or node.args.args
            pair.args.posonlyargs, pair.args.args, pair.args.defaults = [copy.deepcopy(own[0])], [], []
            pair.args.kw_defaults[names_of(pair).index("dim") - 1] = None  # it selects the signature
            pair.returns, pair.body = ast.Name("_Pair"), node.body
            yield pair


def spelled(node, spellings):
    """The function with its arguments beyond its entry: dim and keepdim for axis and keepdims, where they mean the same, and MORE."""
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
    pairs = list(spellings.pairs(node))
    spellings.add_words(node)
    if len(axes) == 1 and not pairs:
        if axes[0] in positional:
            default_of(args, positional.index(axes[0]))
        add_keywords(node, f"dim: {ast.unparse(axes[0].annotation)} = ...")
    if "keepdims" in names and not pairs:
        add_keywords(node, "keepdim: bool = False")
    if node.name in MORE and not pairs:
        add_keywords(node, MORE[node.name])
    return [ast.parse(f"@overload\n{ast.unparse(one)}").body[0] for one in (node, *pairs)] if pairs else [node]


def stub(text, modules, core):
    """A type checker takes either the first or the last of two definitions, so the ops' give way to the package's."""
    module, own = ast.parse(text), imported(modules)
    spellings = Spellings(module)
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
                body += spelled(node, spellings) if isinstance(node, ast.FunctionDef) else [node]
        owner.body = body
    last_import = max(place for place, node in enumerate(module.body) if isinstance(node, ast.ImportFrom))
    module.body[last_import + 1 : last_import + 1] = ast.parse(f"from typing import Any, NamedTuple, Protocol, overload\n{TYPES}").body
    banner = "".join(line + "\n" for line in text.split("\n\n")[0].split("\n") if line.startswith("#"))
    return banner + ast.unparse(ast.fix_missing_locations(module)) + "\n"
