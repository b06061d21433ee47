"""What a definition lacks is an error where it is needed; what is wrong in one is said when it is made."""

import backplane as bp
import pytest
from custom_op_toys import bare, name  # noqa: F401





def test_a_missing_vjp_is_an_error_that_names_the_line_to_add(name):
    op, base = bare(name), name.partition("::")[2]
    out = op(bp.asarray(1.0).requires_grad_())
    with pytest.raises(NotImplementedError, match=f'{name}.*"x".*no vjp rule is registered; add one with @{base}.register_vjp'):
        out.backward()


def test_a_missing_shape_rule_is_an_error_where_it_is_needed(name):
    op, base = bare(name), name.partition("::")[2]
    op(bp.ones(1))
    with pytest.raises(NotImplementedError, match=f"{name}: no shape rule is registered; add one with @{base}.register_shape"):
        op.infer(bp.ones(1))


def test_a_taken_name_names_both_owners(name):
    bare(name)
    with pytest.raises(ValueError, match=rf"{name}: the name is taken by the Python op of .*custom_op_toys.py:\d+; the one of .*custom_op_toys.py:\d+"):
        bare(name)
    with pytest.raises(ValueError, match="namespace bp is Backplane's"):
        bare("bp::add")


def test_replace_takes_the_place_of_a_python_op(name):
    old = bare(name)
    kept = bp.asarray(1.0).requires_grad_()

    @old.register_vjp
    def old_vjp(g):
        return g

    recorded = old(kept)

    @bp.custom_op(name, replace=True)
    def redefined(x: bp.Tensor) -> bp.Tensor:
        return bp.add(x, 10)

    assert redefined(bp.zeros(())).item() == 10 and old(bp.zeros(())).item() == 10
    recorded.backward()  # by the rule of the definition that recorded it
    assert kept.grad.item() == 1.0


def test_replacing_with_another_signature_leaves_the_old_handle_an_error(name):
    old = bare(name)

    @bp.custom_op(name, replace=True)
    def redefined(x: bp.Tensor, y: bp.Tensor) -> bp.Tensor:
        return bp.add(x, y)

    assert redefined(bp.ones(()), bp.ones(())).item() == 2
    with pytest.raises(NotImplementedError, match="redefined with another signature"):
        old(bp.ones(()))


@pytest.mark.parametrize(
    "define, message",
    [
        (lambda x: None, "the argument 'x': found no type hint"),
        (lambda: None, "the result: found no type hint"),
    ],
)
def test_missing_hints(name, define, message):
    with pytest.raises(TypeError, match=message):
        bp.custom_op(name)(define)


def test_wrong_signatures(name):
    base = name.partition("::")[2]
    for text, message in {
        "other(Tensor x) -> Tensor": f"the name in the signature: found 'other', expected '{base}'",
        f"{base}(Matrix x) -> Tensor": "an argument of the signature: found 'Matrix x'",
        f"{base}(Tensor x) -> int": "the results of the signature: found 'int'",
        f"{base} x": "expected the form name",
        f"{base}(Tensor g) -> Tensor": "the name of an argument: found 'g'",
        f"{base}(Tensor x, Scalar k=what) -> Tensor": "the default of 'k': found what",
    }.items():
        with pytest.raises(TypeError, match=message):
            bp.custom_op(name, text)
    with pytest.raises(TypeError, match="type hint of 'x': found dict"):

        @bp.custom_op(name)
        def f(x: dict) -> bp.Tensor: ...


def test_wrong_options(name):
    base = name.partition("::")[2]
    with pytest.raises(ValueError, match="mutates_args: found .'y',., expected the first argument"):
        bp.custom_op(name, f"{base}(Tensor x, Tensor y) -> ()", mutates_args=("y",))
    with pytest.raises(ValueError, match="mutates_args: found ...*returns tensors, or changes"):
        bp.custom_op(name, f"{base}(Tensor x) -> ()")
    with pytest.raises(ValueError, match="alias: found 'z'"):
        bp.custom_op(name, f"{base}(Tensor x) -> Tensor", alias="z")
    with pytest.raises(ValueError, match="no shape rule 'brodcast'"):
        bp.custom_op(name, f"{base}(Tensor x) -> Tensor", shape="brodcast(x)")
    bp.custom_op(name, f"{base}(Tensor x) -> Tensor")  # nothing of the above stayed


def test_rules_with_unknown_parameters_are_refused_when_registered(name):
    op = bare(name)
    with pytest.raises(ValueError, match="a parameter of its vjp rule: found y, expected one of x, out, g, needs"):
        op.register_vjp(lambda g, y: g)
    with pytest.raises(ValueError, match="a parameter of its jvp rule: found t_y"):
        op.register_jvp(lambda t_y: t_y)
    with pytest.raises(TypeError, match="does not take the op's arguments"):
        op.register_kernel("cpu")(lambda: None)
    with pytest.raises(TypeError, match="bp::add was not defined in Python"):
        bp.add.register_vjp(lambda g: g)


def test_wrong_results_of_rules(name):
    @bp.custom_op(name)
    def f(x: bp.Tensor, y: bp.Tensor) -> bp.Tensor:
        return bp.add(x, y)

    x = bp.ones((2, 3)).requires_grad_()
    for rule, message in [
        (lambda g: g, "what its vjp rule returned: found a Tensor, expected a tuple of 2: x, y"),
        (lambda g: (bp.ones((5,)), None), r"the cotangent of 'x' from its vjp rule: found shape \(5,\), expected \(2, 3\)"),
        (lambda g: {"x": g}, "found a dict of x, expected x, y"),
        (lambda g: (3, g), "found a value of type int, expected a Tensor or None"),
    ]:
        f.register_vjp(rule)
        with pytest.raises(ValueError, match=message):
            f(x, x).sum().backward()


WRONG = [(), [], [bp.ones(2)], [None], 3, 2.5, 1j, "x", True, bp.float32, {"x": bp.ones(2)}, slice(None)]


def len_of(value):
    return len(value) if isinstance(value, (list, tuple, dict)) else None


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_a_rule_gives_a_tensor_where_a_tensor_is(name, wrong):
    """Whatever else a rule returns is an error that says so, never a value that is read as something else."""

    @bp.custom_op(name)
    def f(x: bp.Tensor) -> bp.Tensor:
        return bp.add(x, 1)

    f.register_shape(lambda x: x)
    f.register_jvp(lambda t_x: wrong)
    f.register_batch(lambda x: wrong)
    f.register_vjp(lambda g: wrong)
    x = bp.ones(2)
    attempts = [lambda: bp.jvp(f, (x,), (x,))]
    if len_of(wrong) != 1:  # the other rules may give one result in these
        attempts += [lambda: bp.vjp(f, x)[1](x), lambda: bp.vmap(f)(bp.ones((3, 2)))]
    for attempt in attempts:
        with pytest.raises((ValueError, TypeError), match=f"{name}.* (expected|returned|gives) "):
            attempt()
    bare_of_rules = bp.custom_op(f"{name}d", f"{name.partition('::')[2]}d(Tensor x) -> Tensor")
    bare_of_rules.register_shape(lambda x: x)
    bare_of_rules.register_decomposition(lambda x: wrong)
    for attempt in [lambda: bare_of_rules(x), lambda: bp.jvp(bare_of_rules, (x,), (x,))] if len_of(wrong) != 1 else []:
        with pytest.raises((ValueError, TypeError), match=f"{name}d: .*its decomposition .*expected "):
            attempt()


def test_a_rule_gives_a_list_where_a_list_is(name):
    base = name.partition("::")[2]
    f = bp.custom_op(name, f"{base}(Tensor[] xs) -> Tensor")
    f.register_shape(lambda xs: xs[0])
    f.register_kernel("cpu")(lambda xs: bp.add(xs[0], xs[1]))
    x = bp.ones(2)
    for wrong in [x, [x], [x] * 3, [x] * 300, (), 3]:
        f.register_vjp(lambda g: wrong)
        with pytest.raises((ValueError, TypeError), match=f"{name}: .*expected "):
            bp.vjp(lambda a, b: f([a, b]), x, x)[1](x)


def test_wrong_results_of_kernels(name):
    base = name.partition("::")[2]
    f = bp.custom_op(name, f"{base}(Tensor x, Tensor y) -> Tensor", shape="broadcast(x, y)")
    x = bp.ones((2, 3))
    for kernel, error, message in [
        (lambda x, y: 1, TypeError, "its kernel returned a value of type int as result 0; expected a Tensor"),
        (lambda x, y: (x, y), TypeError, "its kernel returned a value of type tuple"),
        (lambda x, y: bp.zeros((3, 2)), ValueError, r"made result 0 float32 of shape \(3, 2\); its shape rule says float32 of shape \(2, 3\)"),
        (lambda x, y: bp.zeros((2, 3), dtype=bp.int8), ValueError, "made result 0 int8 of shape"),
        (lambda x, y: x, ValueError, "its kernel returned memory of 'x', which its definition does not declare"),
        (lambda x, y: bp.zeros_like(x.add_(1)), ValueError, "its kernel changed 'x' in place, which its definition does not declare"),
    ]:
        f.register_kernel("cpu")(kernel)
        with pytest.raises(error, match=message):
            f(x, bp.ones((2, 3)))


class Stop(Exception):
    pass


def test_exceptions_of_kernels_and_rules_arrive_as_they_are(name):
    @bp.custom_op(name)
    def fails(x: bp.Tensor) -> bp.Tensor:
        if x.ndim:
            raise Stop("kernel")
        return bp.add(x, 0)

    @fails.register_vjp
    def fails_vjp(g):
        raise Stop("vjp")

    with pytest.raises(Stop, match="kernel"):
        fails(bp.ones(1))
    with pytest.raises(Stop, match="vjp"):
        fails(bp.asarray(1.0).requires_grad_()).backward()
    assert fails(bp.asarray(1.0)).item() == 1.0  # the next call works


@pytest.mark.parametrize("size", ["wide", 1.5, None], ids=repr)
def test_a_shape_rule_that_gives_no_ints_says_so(name, size):
    op = bare(name)
    op.register_shape(lambda x: (2, size))
    with pytest.raises(bp.BackplaneError, match=f"{name}: its shape rule gave a value of type {type(size).__name__} as size 1 of result 0"):
        op.infer(bp.ones(1))


@pytest.mark.parametrize("inside", [lambda f: f, lambda f: lambda x: bp.grad(lambda y: f(y).sum())(x)], ids=["plain", "grad"])
def test_a_trace_names_the_missing_shape_rule(inside):
    @bp.custom_op("traced::unshaped", replace=True)
    def unshaped(x: bp.Tensor) -> bp.Tensor:
        return bp.copy(x)

    with pytest.raises(bp.MissingRuleError, match=r"traced::unshaped: no shape rule is registered; add one with @unshaped.register_shape"):
        bp.compile(inside(unshaped))(bp.ones(3))
