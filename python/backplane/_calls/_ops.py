"""The registry's ops as Python functions and as methods of Tensor, made from the records that are loaded.

An op `bp::name` is `backplane.name`; one of another namespace is `backplane.ops.namespace.name`, and `name_` beside it its in-place
form. An op of `bp` whose first argument is a tensor called `x` is a method too, as is its in-place form. An entry's aliases name the same
objects, but for two.
"""

import keyword

from .. import _core

NAMESPACE = "bp"
_OWN_MEANING = ("amax", "amin")  # aliases that mean something else than the op's name where a call says dim=: values alone


def split(full_name):
    """The namespace and the Python name of an op: 'bp::sum' -> ('bp', 'sum')."""
    namespace, _, name = full_name.partition("::")
    return namespace, name.replace(".", "_") if "." in name else name


def _python_word(name):
    """The name of an op where it is written in Python: class_ of an op called class."""
    return f"{name}_" if keyword.iskeyword(name) else name


def functions(rows):
    """Name -> Op, of the ops in our own namespace. rows: what _core.ops() gives."""
    found = {}
    for full_name, _, _, aliases in rows:
        namespace, name = split(full_name)
        if namespace == NAMESPACE:
            op = _core.Op(full_name, name)
            found.update(dict.fromkeys([name, *aliases], op))
            found.update({alias: _core.Op(full_name, alias) for alias in aliases if alias in _OWN_MEANING})
    return found


# Beside what writes a piece back or is a derivative: parts of other ops, and what functions of the package call.
_HELPER_ENDS = ("_grad", "_put", "_columns", "_gates", "_others", "_slope")
_HELPERS = frozenset(
    "adaptive_max_pool_with_indices adjugate argsort_flat attention_scores attention_weights attention_with_lse col2im complex_from conv "
    "conv_transpose fft_c2c fft_c2r fft_r2c im2col iota isin_complex isin_vector linear_recurrence matmul_add max_pool2d_with_indices "
    "max_pool_with_indices max_with_indices min_with_indices overlap_add pad_edges qr_complete qr_reduced random_bits repeat_all repeat_each resample_cubic resample_linear resample_nearest "
    "resample_smooth run_starts sort_with_indices sum_to svd_full svd_reduced".split()
)


def is_helper(name):
    """Is the op of that name, bp::relu_grad or repeat_all, no function for users?"""
    own = name.removeprefix(f"{NAMESPACE}::")
    return own in _HELPERS or (own != name and own.endswith(_HELPER_ENDS))


def helpers(functions):
    """The names of the ops that are not public functions."""
    return {name for name in functions if is_helper(f"{NAMESPACE}::{name}")}


def add_methods(tensor_type, rows, functions):
    """Gives Tensor its methods; what the type already has stays."""
    for full_name, inplace, first_argument, aliases in rows:
        namespace, name = split(full_name)
        if namespace != NAMESPACE or first_argument != "x":
            continue
        changing = _core.Op(full_name, name + "_", inplace=True) if inplace else None
        for word in (name, *aliases):
            if not hasattr(tensor_type, word):
                setattr(tensor_type, word, functions[word])
            if inplace:
                setattr(tensor_type, word + "_", changing)


def refuse_names(module):
    """The `__getattr__` of a module of the package: an error that says what to write for the name."""

    def refused(name):
        import sys

        from ._hints import no_attribute

        raise no_attribute(sys.modules[module], name)

    return refused


def _of_manifests(states):
    """(full name, plugin) of each op in the manifests of the plugins whose state is in `states`."""
    return [(full_name, plugin) for plugin in _core.plugins() if plugin["state"] in states for full_name in plugin["ops"]]


def _refusals(namespace):
    """Why there is no such namespace, or not all of its ops: what its refused plugins say, or a question."""
    refused = {plugin["name"]: plugin["why"] for full_name, plugin in _of_manifests(("refused",)) if split(full_name)[0] == namespace}
    reasons = "; ".join(f"plugin '{name}' is refused: {why}" for name, why in refused.items())
    return f": {reasons}" if reasons else "; is its plugin loaded?"


class _Namespace:
    """The ops of one namespace, found when they are asked for."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        op = None if name.startswith("__") else self._registered(name)
        if op is None:
            raise AttributeError(f"no op '{self._name}::{name}' is registered{_refusals(self._name)}")
        setattr(self, name, op)
        return op

    def _registered(self, name):
        try:
            return _core.Op(f"{self._name}::{name}", name)
        except _core.ArgumentValueError:  # no op's own name
            pass
        # An alias, or name_, is known once the plugin is open, which looking its ops up makes it.
        for full_name, _ in _of_manifests(("found",)):
            if split(full_name)[0] != self._name:
                continue
            try:
                _core.Op(full_name, name)
            except _core.ArgumentValueError:  # refused, which says so in what follows
                continue
        for full_name, inplace, _, aliases in _core.ops():
            namespace, own = split(full_name)
            if namespace != self._name:
                continue
            words = {own, *aliases, *map(_python_word, (own, *aliases))}
            if name in words:
                return _core.Op(full_name, name if name in _OWN_MEANING else own)
            if inplace and name.endswith("_") and name[:-1] in words:
                return _core.Op(full_name, own + "_", inplace=True)
        return None

    def __dir__(self):
        unopened = [split(full_name) for full_name, _ in _of_manifests(("found",))]  # first: another thread may open their plugin now
        rows = ((*split(full_name), inplace, aliases) for full_name, inplace, _, aliases in _core.ops())
        words = [(_python_word(word), inplace) for space, name, inplace, aliases in rows if space == self._name for word in (name, *aliases)]
        words += [(_python_word(name), False) for space, name in unopened if space == self._name]
        return sorted({word for word, _ in words} | {f"{word}_" for word, inplace in words if inplace})

    def __repr__(self):
        return f"<ops of {self._name}>"

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return getattr, (ops, self._name)


class _Ops:
    """`backplane.ops`: a namespace per attribute."""

    def __getattr__(self, name):
        if name.startswith("__") or (name != NAMESPACE and name not in dir(self)):
            raise AttributeError(f"no ops of a namespace '{name}' are registered{_refusals(name)}")
        namespace = _Namespace(name)
        setattr(self, name, namespace)
        return namespace

    def __dir__(self):
        unopened = _of_manifests(("found",))  # first: another thread may open their plugin now
        return sorted({split(row[0])[0] for row in (*unopened, *_core.ops())})

    def __repr__(self):
        return f"<ops of {', '.join(dir(self))}>"

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return "ops"  # the module's own


ops = _Ops()
