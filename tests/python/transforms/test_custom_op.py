"""Ops defined in Python are ops: called, explained and freed like ops of a registry file."""

import gc
import inspect
import subprocess
import sys
import textwrap
import threading
from typing import Optional

import backplane as bp
import pytest
from custom_op_toys import name, scaled, values  # noqa: F401


# ---- calling --------------------------------------------------------------------------------------------------------


def test_it_is_called_as_a_function(name):
    scale = scaled(name)
    x = bp.asarray([1.0, 2.0])
    assert values(scale(x)).tolist() == [2.0, 4.0]
    assert values(scale(x, factor=3)).tolist() == [3.0, 6.0]


def test_it_is_an_op_like_any_other(name):
    scale = scaled(name)
    namespace, base = name.split("::")
    assert isinstance(scale, bp.Op)
    assert getattr(getattr(bp.ops, namespace), base) is scale
    assert scale.full_name == name
    assert "Scales a tensor." in scale.__doc__
    assert list(inspect.signature(scale).parameters) == ["x", "factor"]
    text = bp.explain(scale)
    assert 'plugin "python"' in text and "custom_op_toys.py" in text and "scale_vjp" in text


def test_arguments_are_checked_as_those_of_any_op(name):
    scale = scaled(name)
    with pytest.raises(TypeError, match="argument 'factor': found a Tensor|argument 'factor': found a value of type backplane.Tensor"):
        scale(bp.asarray([1.0]), bp.asarray(2.0))
    with pytest.raises(TypeError, match="missing argument 'x'"):
        scale()
    with pytest.raises(TypeError, match="found an argument 'y', expected one of: x, factor"):
        scale(bp.asarray([1.0]), y=1)


def test_infer_says_shape_and_dtype_without_running(name):
    ran = []

    @bp.custom_op(name)
    def rows(x: bp.Tensor) -> bp.Tensor:
        ran.append(x)
        return bp.sum(x, axis=1).astype(bp.float64)

    @rows.register_shape
    def rows_shape(x):
        return bp.types.TensorSpec(x.shape[:1], bp.float64)

    assert rows.infer(bp.zeros((3, 4))) == [(bp.float64, (3,))]
    assert not ran
    assert rows(bp.zeros((3, 4))).shape == (3,)


@pytest.mark.parametrize("shape", [(0,), (), (2, 0, 3), (4, 5)])
def test_any_shape(name, shape):
    assert scaled(name)(bp.ones(shape)).shape == shape


def test_strided_arguments_reach_the_kernel_as_they_are(name):
    x = bp.reshape(bp.arange(12, dtype=bp.float32), (3, 4))
    assert values(scaled(name)(x.T)).tolist() == (2 * values(x).T).tolist()


def test_types_of_arguments_and_their_defaults(name):
    seen = {}

    @bp.custom_op(name)
    def everything(
        x: bp.Tensor,
        xs: list[bp.Tensor],
        y: Optional[bp.Tensor],
        axis: bp.types.Axis = -1,
        axes: Optional[bp.types.Axes] = None,
        *,
        shape: bp.types.Shape = (1, 2),
        size: bp.types.Size = 3,
        position: int = -4,
        factor: float = 0.5,
        phase: complex = 1j,
        flag: bool = True,
        word: str = "ab",
        dtype: Optional[bp.DType] = None,
        sizes: list[int] = (5, 6),
    ) -> bp.Tensor:
        seen.update(locals())
        return bp.zeros(())

    x = bp.asarray([1.0])
    everything(x, [x, x], None)
    del seen["seen"], seen["x"]
    assert len(seen.pop("xs")) == 2
    assert seen == dict(y=None, axis=-1, axes=None, shape=(1, 2), size=3, position=-4, factor=0.5, phase=1j, flag=True,
                        word="ab", dtype=None, sizes=(5, 6))  # fmt: skip
    everything(x, [], x, 0, 1, shape=7, dtype=bp.int8)
    assert seen["axes"] == (1,) and seen["shape"] == (7,) and seen["dtype"] is bp.int8 and seen["xs"] == ()
    with pytest.raises(TypeError, match="argument 'position': found a value of type float, expected an int"):
        everything(x, [], None, position=1.5)


def test_the_signature_may_be_a_string(name):
    base = name.partition("::")[2]
    op = bp.custom_op(name, f"{base}(Tensor x, Scalar factor=2, *, Axes? axes=none, Index[] at=[1, 2]) -> (Tensor low, Tensor high)")
    assert str(inspect.signature(op)).startswith("(x: 'Tensor', factor: 'Scalar' = 2, *, axes: 'Axes | None' = None, at:")

    @op.register_kernel("cpu")
    def kernel(x, factor, *, axes, at):
        return bp.subtract(x, factor), bp.add(x, factor)

    found = op(bp.asarray([1.0]))
    assert values(found.low).tolist() == [-1.0] and values(found.high).tolist() == [3.0]


def test_a_body_that_is_none_is_a_signature(name):
    @bp.custom_op(name)
    def stated(x: bp.Tensor) -> bp.Tensor:
        """Nothing here."""

    with pytest.raises(NotImplementedError, match=r'no kernel on device cpu(.|\n)*@op.register_kernel\("cpu"\)'):
        stated(bp.ones(2))

    @stated.register_kernel("cpu")
    def stated_kernel(x):
        return bp.add(x, 1)

    assert values(stated(bp.ones(2))).tolist() == [2.0, 2.0]


def test_the_kernel_of_a_device_comes_before_that_of_all(name):
    @bp.custom_op(name)
    def which(x: bp.Tensor) -> bp.Tensor:
        return bp.zeros(())

    assert which(bp.ones(1)).item() == 0

    @which.register_kernel("cpu")
    def which_cpu(x):
        return bp.ones(())

    assert which(bp.ones(1)).item() == 1


def rows_of(name):
    @bp.custom_op(name)
    def rows(x: bp.Tensor) -> list[bp.Tensor]:
        return [bp.add(x[i], 0) for i in range(x.shape[0])]

    return rows


def test_a_list_of_tensors_is_a_list(name):
    rows = rows_of(name)
    found = rows(bp.asarray([[1.0, 2.0], [3.0, 4.0]]))
    assert isinstance(found, list) and [values(row).tolist() for row in found] == [[1.0, 2.0], [3.0, 4.0]]
    assert rows(bp.zeros((0, 2))) == []
    with pytest.raises(NotImplementedError, match="no shape rule"):
        rows.infer(bp.ones((1, 1)))


def test_a_list_is_followed_by_transforms_through_a_decomposition_alone(name):
    rows = rows_of(name)
    x = bp.asarray([[1.0, 2.0], [3.0, 4.0]])
    for use in (
        lambda: rows(bp.copy(x).requires_grad_()),
        lambda: bp.grad(lambda v: bp.sum(rows(v)[1]))(x),
        lambda: bp.jvp(lambda v: rows(v)[1], (x,), (x,)),
    ):
        with pytest.raises(NotImplementedError, match="differentiates a list of tensors only through a decomposition"):
            use()
    rows.register_decomposition(lambda x: [x[i] for i in range(x.shape[0])])
    assert values(bp.grad(lambda v: bp.sum(rows(v)[1]))(x)).tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert values(bp.jvp(lambda v: rows(v)[1], (x,), (x,))[1]).tolist() == [3.0, 4.0]
    assert values(bp.vmap(lambda v: rows(v)[1])(bp.reshape(x, (2, 2, 1)))).tolist() == [[2.0], [4.0]]
    assert bp.opcheck(rows, (x,))


def test_wrong_elements_of_a_list(name):
    @bp.custom_op(name)
    def rows(x: bp.Tensor) -> list[bp.Tensor]:
        return [x]

    with pytest.raises(ValueError, match="its kernel returned memory of 'x'"):
        rows(bp.ones(2))
    rows.register_kernel("cpu")(lambda x: [bp.add(x, 1), 2])
    with pytest.raises(TypeError, match="returned a value of type int as result 0; expected a Tensor"):
        rows(bp.ones(2))


def test_several_results(name):
    @bp.custom_op(name)
    def halves(x: bp.Tensor) -> tuple[bp.Tensor, bp.Tensor]:
        return bp.add(x, 0), bp.multiply(x, 2)

    low, high = halves(bp.ones(2))
    assert values(low).tolist() == [1, 1] and values(high).tolist() == [2, 2]


def test_random_numbers_come_from_the_generator(name):
    @bp.custom_op(name)
    def noise(x: bp.Tensor, *, generator: bp.Generator) -> bp.Tensor:
        return bp.add(x, bp.uniform(x.shape, generator=generator))

    bp.manual_seed(3)
    first = values(noise(bp.zeros(4)))
    second = values(noise(bp.zeros(4)))
    bp.manual_seed(3)
    assert (values(noise(bp.zeros(4))) == first).all() and (first != second).any()


# ---- lives ----------------------------------------------------------------------------------------------------------


def test_calls_from_threads(name):
    scale = scaled(name)
    failures = []

    def work():
        try:
            for i in range(50):
                x = bp.asarray([float(i)]).requires_grad_()
                scale(x, 3).sum().backward()
                assert values(x.grad).tolist() == [3.0]
        except Exception as failure:  # noqa: BLE001
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_large_calls_which_give_up_the_interpreter_lock(name):
    x = bp.ones(1 << 18).requires_grad_()
    scaled(name)(x).sum().backward()
    assert x.grad[0].item() == 2.0


def test_kernels_may_call_custom_ops(name):
    inner = scaled(name + "_inner")

    @bp.custom_op(name)
    def outer(x: bp.Tensor) -> bp.Tensor:
        return inner(inner(x))

    assert outer(bp.ones(())).item() == 4.0


def test_the_interpreter_ends_cleanly_with_custom_ops_alive():
    script = textwrap.dedent("""
        import backplane as bp

        @bp.custom_op("end::grow")
        def grow(x: bp.Tensor) -> bp.Tensor:
            return bp.add(x, 1)

        @grow.register_vjp
        def grow_vjp(g):
            return g

        kept = grow(bp.asarray([1.0]).requires_grad_())
        handle = bp.ops.end.grow
        print(kept.tolist())
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[2.0]\n", "")


def test_results_are_freed(name):
    scale = scaled(name)
    gc.collect()
    x = bp.ones(4)
    before = sys.getrefcount(x)
    for _ in range(100):
        scale(x)
    assert sys.getrefcount(x) == before


def test_a_word_of_python_is_called_with_an_underscore():
    op = bp.custom_op("words::class", "class(Tensor x) -> Tensor", shape="same(x)", replace=True)
    op.register_kernel(lambda x: x * 2)
    assert bp.ops.words.class_(bp.ones(2)).tolist() == [2, 2]
    assert bp.ops.words.class_ is bp.ops.words.class_ and "class_" in dir(bp.ops.words)
    with pytest.raises(AttributeError, match="no op 'words::def_' is registered"):
        bp.ops.words.def_
