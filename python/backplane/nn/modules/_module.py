"""Module, the base class of layers and models: its contents, and access to them, moves and changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Self

import backplane as bp
from backplane import DType, Device, Tensor

from . import _module_repr, _module_state, _module_tree
from ._module_hooks import HookHandle, Hooks
from ._module_state import LoadResult
from .._parameter import Buffer, is_frozen, is_plain, moved, outside

__all__ = ["Module"]


class _Forward:
    """A module's forward, as what its call wraps: `dynamic`, `donate` and inspect.signature read the names of its arguments. A class has none."""

    def __get__(self, module: Any, owner: type) -> Any:
        if module is None:
            raise AttributeError("__wrapped__")
        return module.forward


class _Signature:
    """Of a class, that of its __init__: Python before 3.11.4 takes that of an inherited __new__. Of a module, that of its forward."""

    def __get__(self, module: Any, owner: type) -> Any:
        import inspect

        if module is not None:
            return inspect.signature(module.forward)
        whole = inspect.signature(owner.__init__)
        return whole.replace(parameters=list(whole.parameters.values())[1:])


class Module(_module_tree.Base):
    """The base class of layers and models. A subclass sets attributes in `__init__` and computes in `forward`.

    Tensors that require a gradient (Parameter makes them) are parameters. Other tensors are buffers, which state_dict
    contains too; register_buffer(…, persistent=False) leaves one out. Both are found in attributes, and in lists,
    tuples and dicts there, as submodules are. A module is a container for transforms: bp.grad(loss)(model) returns a
    module of the gradients of its parameters, bp.vmap maps over all its tensors, bp.compile takes it as an argument.

    Example:
        >>> class Net(bp.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layers = [bp.nn.Linear(3, 8), bp.nn.Linear(8, 1)]
        ...     def forward(self, x):
        ...         return self.layers[1](bp.relu(self.layers[0](x)))
        >>> [name for name, _ in Net().named_parameters()]
        ['layers.0.weight', 'layers.0.bias', 'layers.1.weight', 'layers.1.bias']
    """

    training: bool
    _hooks: Hooks | None = None
    _origin: Module | None = None  # of a copy inside grad, vjp and jvp: the module that takes the buffers and numbers that it sets

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _module_tree.register(cls)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = object.__new__(cls)
        vars(self).update(training=True, _roles={})
        return self

    def __init__(self) -> None:
        pass

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: forward is not defined; define it in the subclass")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._hooks is None:
            return self.forward(*args, **kwargs)
        return self._hooks.call(self, args, kwargs)

    __wrapped__ = _Forward()
    __signature__: ClassVar[Any] = _Signature()

    # ---- attributes -------------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Buffer):
            self.register_buffer(name, value.tensor, value.persistent)
        elif isinstance(value, Tensor):
            vars(self)[name] = value
            self._role(name, value)
        else:
            object.__setattr__(self, name, value)
        if self._origin is not None and self._roles.get(name) not in ("parameter", "frozen"):
            beside = vars(self._origin).get(name)
            if not isinstance(value, Tensor) or isinstance(beside, Tensor):
                setattr(self._origin, name, outside(value, beside))

    def _role(self, path: str, x: Tensor) -> str:
        """'parameter', 'frozen', 'buffer' or 'temporary', a buffer that state_dict leaves out."""
        role = self._roles.get(path)
        if role is None or (role in ("buffer", "temporary") and is_plain(x)):
            computed = "temporary" if x.requires_grad or not is_plain(x) else "buffer"  # a result that forward keeps is not state
            found = "parameter" if x.requires_grad and x.is_leaf else "frozen" if is_frozen(x) else role or computed
            if found != role:
                role = self._roles[path] = found
        return role

    def register_parameter(self, name: str, param: Tensor | None) -> None:
        """Adds a parameter under a name; None: the name alone, as of a layer without bias."""
        vars(self)[name] = param
        if param is not None:
            self._roles[name] = "frozen" if is_frozen(param) else "parameter"

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is not trained. persistent: whether state_dict contains it."""
        vars(self)[name] = tensor
        self._roles[name] = "buffer" if persistent else "temporary"

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a submodule under a name. Errors: ArgumentTypeError, ArgumentValueError for an empty name, one with a dot, or one in use."""
        if module is not None and not isinstance(module, Module):
            raise bp.ArgumentTypeError(f"add_module: argument module: found {type(module).__name__}, expected a Module or None")
        if not name or "." in name or (hasattr(self, name) and not isinstance(getattr(self, name), (Module, type(None)))):
            raise bp.ArgumentValueError(f"add_module: argument name: found {name!r}, expected a name without dots that is not in use")
        vars(self)[name] = module

    register_module = add_module

    # ---- traversal --------------------------------------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, module) of the direct submodules, each once."""
        seen: set[Any] = set()
        for path, x in _module_tree.contents(self):
            if isinstance(x, Module) and x not in seen:
                seen.add(x)
                yield path, x

    def children(self) -> Iterator[Module]:
        return (module for _, module in self.named_children())

    def named_modules(self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """(name, module) of this module, whose name is prefix, and of all below it, in order."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for path, x in _module_tree.contents(self):
            if isinstance(x, Module):
                yield from x.named_modules(memo, f"{prefix}.{path}" if prefix else path, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        return (module for _, module in self.named_modules())

    def _named_tensors(self, kinds: tuple[str, ...], prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        seen: set[Any] = set()
        for start, module in self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]:
            if not module.is_sized:
                module.refuse_unsized()
            for path, x in _module_tree.own_tensors(module):
                if module._role(path, x) not in kinds or (remove_duplicate and x in seen):
                    continue
                seen.add(x)
                yield f"{start}.{path}" if start else path, x

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """(name, tensor) of every parameter, each once; recurse: those of submodules too."""
        return self._named_tensors(("parameter", "frozen"), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        return (x for _, x in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """(name, tensor) of every buffer, each once; recurse: those of submodules too."""
        return self._named_tensors(("buffer", "temporary"), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        return (x for _, x in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The module of this name, as named_modules gives it. Errors: AttributeError."""
        return _module_state.found(self, "module", dict(self.named_modules(remove_duplicate=False)), target)

    def get_parameter(self, target: str) -> Tensor:
        """The parameter of this name. Errors: AttributeError."""
        return _module_state.found(self, "parameter", dict(self.named_parameters(remove_duplicate=False)), target)

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of this name. Errors: AttributeError."""
        return _module_state.found(self, "buffer", dict(self.named_buffers(remove_duplicate=False)), target)

    # ---- modes ------------------------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Sets training, which dropout and batch norm read, here and below."""
        if not isinstance(mode, bool):
            raise bp.ArgumentTypeError(f"train: argument mode: found {mode!r}, expected True or False")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Whether the parameters here and below get gradients; without, transforms too take them as constants."""
        for module in self.modules():
            if not module.is_sized:
                module.refuse_unsized()
            for path, x in _module_tree.own_tensors(module):
                if module._role(path, x) in ("parameter", "frozen"):
                    x.requires_grad_(requires_grad)
                    module._roles[path] = "parameter" if requires_grad else "frozen"
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the gradients of the parameters, or fills them with 0."""
        for x in self.parameters():
            if set_to_none or x.grad is None:
                x.grad = None
            else:
                x.grad = bp.zeros_like(x.grad)

    # ---- changes ----------------------------------------------------------------------------------------------------

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Calls fn with each module below, then with this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, change: Callable[[Tensor], Tensor]) -> Self:
        """Puts change(x) in the place of each tensor, the same for the same one, and of its gradient."""
        made: dict[Any, Tensor] = {}
        for module in list(self.modules()):
            for path, x in _module_tree.own_tensors(module):
                role = module._role(path, x)
                if x not in made:
                    made[x] = new = change(x)
                    if new is not x and x.grad is not None:
                        new.grad = change(x.grad)
                if made[x] is not x:
                    _module_tree.place(module, path, made[x])
                    module._roles[path] = role
        return self

    def to(self, *args: Any, device: Device | str | None = None, dtype: DType | str | None = None, non_blocking: bool = False) -> Self:
        """Moves every tensor: to(device), to(dtype), to(device, dtype) or to(other_tensor). Only floating tensors change their dtype.

        The module itself changes and is returned. Optimisers that hold its parameters take the moved ones.
        """
        device, dtype = _module_state.read_target(args, device, dtype)
        return self._apply(lambda x: moved(x, dtype, device))

    def float(self) -> Self:
        return self.to(bp.float32)

    def double(self) -> Self:
        return self.to(bp.float64)

    def half(self) -> Self:
        return self.to(bp.float16)

    def bfloat16(self) -> Self:
        return self.to(bp.bfloat16)

    def cpu(self) -> Self:
        return self.to("cpu")

    def cuda(self, device: int | str | None = None) -> Self:
        return self.to("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)

    # ---- state ------------------------------------------------------------------------------------------------------

    def state_dict(self, destination: dict[str, Tensor] | None = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Tensor]:
        """The parameters and persistent buffers by name, detached: they share the module's memory.

        keep_vars: the tensors themselves. The names are those of PyTorch.
        """
        return _module_state.state_dict(self, {} if destination is None else destination, prefix, keep_vars)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> LoadResult:
        """Copies tensors or arrays by name into the module's own, in their dtypes; assign: takes the tensors themselves.

        Returns (missing_keys, unexpected_keys). Nothing changes where an error is raised.
        Errors: ArgumentValueError for other shapes and, with strict, for missing and unexpected names.
        """
        return _module_state.load_state_dict(self, state_dict, strict, assign)

    # ---- hooks and text ---------------------------------------------------------------------------------------------

    def _own_hooks(self) -> Hooks:
        if self._hooks is None:
            vars(self)["_hooks"] = Hooks()
        return self._hooks

    def register_forward_pre_hook(self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False) -> HookHandle:
        """hook(module, args) before each call; what it returns, if anything, takes the place of the arguments."""
        return self._own_hooks().add("before", hook, prepend, with_kwargs)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> HookHandle:
        """hook(module, args, output) after each call; what it returns, if anything, takes the place of the output."""
        return self._own_hooks().add("after", hook, prepend, with_kwargs, always_call)

    def extra_repr(self) -> str:
        """What repr shows between the parentheses."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        return _module_repr.text(self)


_module_tree.register(Module)
