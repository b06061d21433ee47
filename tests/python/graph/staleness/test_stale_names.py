"""Kinds of staleness: names. Globals, modules, imports and builtins."""

import builtins
import sys
import types

from staleness_kinds import GUARDED, X, kind


def module(name="stale_config", **values):
    made = sys.modules[name] = types.ModuleType(name)
    made.__dict__.update(values)
    return made


def in_namespace(function, **names):
    """The function with these globals, and its namespace."""
    return types.FunctionType(function.__code__, names), names


@kind(GUARDED)
def test_global(run):
    global gain
    f = run(lambda x: x * gain)
    for gain in (2.0, 3.0, 2.0):
        yield f(X)


@kind(GUARDED)
def test_global_of_the_same_value_and_another_type(run):
    global gain
    f = run(lambda x: (x * gain, gain))
    for gain in (2.0, 2, True, 1, 2.0):
        yield f(X)


@kind(GUARDED)
def test_constant_of_a_module(run):
    config = module(scale=2.0)
    f = run(lambda x: x * config.scale)
    for config.scale in (2.0, 3.0, 2.0):
        yield f(X)


@kind(GUARDED)
def test_global_of_a_function_of_another_module(run):
    helper, names = in_namespace(lambda x: x * scale, scale=2.0)  # noqa: F821
    f = run(lambda x: helper(x))
    for names["scale"] in (2.0, 3.0, 2.0):
        yield f(X)


@kind(GUARDED)
def test_constant_of_a_submodule(run):
    package = module("stale_package", sub=module("stale_package.sub", scale=2.0))
    f = run(lambda x: x * package.sub.scale)
    yield f(X)
    package.sub.scale = 3.0
    yield f(X)
    package.sub = types.SimpleNamespace(scale=4.0)
    yield f(X)


@kind(GUARDED)
def test_name_that_the_function_imports(run):
    config = module(scale=2.0)

    @run
    def f(x):
        from stale_config import scale

        return x * scale

    for config.scale in (2.0, 3.0):
        yield f(X)


@kind
def test_module_that_the_function_imports(run):
    @run
    def f(x):
        import stale_config

        return x * stale_config.scale

    for scale in (2.0, 3.0):
        module(scale=scale)
        yield f(X)


@kind
def test_attribute_from_a_modules_getattr(run):
    config, held = module(), {"scale": 2.0}
    config.__getattr__ = lambda name: held[name]
    f = run(lambda x: x * config.scale)
    yield f(X)
    held["scale"] = 3.0
    yield f(X)
    config.scale = 4.0
    yield f(X)


@kind
def test_module_in_sys_modules(run):
    f = run(lambda x: x * sys.modules["stale_config"].scale)
    for scale in (2.0, 3.0):
        module(scale=scale)
        yield f(X)


@kind(GUARDED)
def test_function_of_a_module_that_is_replaced(run):
    tools = module(scale=lambda x: x * 2.0)
    f = run(lambda x: tools.scale(x))
    yield f(X)
    tools.scale = lambda x: x * 3.0
    yield f(X)


@kind
def test_global_that_hides_a_builtin(run):
    function, names = in_namespace(lambda x: x * max(2.0, 3.0))
    f = run(function)
    yield f(X)
    names["max"] = min
    yield f(X)
    del names["max"]
    yield f(X)


@kind
def test_builtin_that_is_replaced(run):
    f = run(lambda x: x * stale_gain)  # noqa: F821
    for builtins.stale_gain in (2.0, 3.0):
        yield f(X)
    del builtins.stale_gain


@kind
def test_global_that_is_missing(run):
    def read(x):
        try:
            return x * gain
        except NameError:
            return x

    function, names = in_namespace(read)
    f = run(function)
    yield f(X)
    names["gain"] = 2.0
    yield f(X)
    del names["gain"]
    yield f(X)


@kind
def test_global_that_is_deleted(run):
    function, names = in_namespace(lambda x: x * gain, gain=2.0)
    f = run(function)
    yield f(X)
    del names["gain"]
    try:
        yield f(X)
    except NameError as error:
        yield str(error)


@kind
def test_globals_as_a_dict(run):
    global gain
    f = run(lambda x: x * globals()["gain"])
    for gain in (2.0, 3.0):
        yield f(X)


@kind
def test_get_of_globals(run):
    function, names = in_namespace(lambda x: x * globals().get("gain", 1.0))
    f = run(function)
    yield f(X)
    names["gain"] = 2.0
    yield f(X)


@kind
def test_vars_of_a_module(run):
    config = module(scale=2.0)
    f = run(lambda x: x * vars(config)["scale"] + config.__dict__["scale"])
    for config.scale in (2.0, 3.0):
        yield f(X)


@kind(GUARDED)
def test_constant_of_a_module_reached_by_another_name(run):
    config = module(scale=2.0)
    alias = {"config": [config]}
    f = run(lambda x: x * alias["config"][0].scale)
    for config.scale in (2.0, 3.0):
        yield f(X)
