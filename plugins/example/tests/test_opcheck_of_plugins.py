"""opcheck on the op of ops.yaml, and on one that is defined here in Python, on the CPU and on the simulated devices."""

import backplane as bp
import pytest

DEVICES = ["cpu", "sim", "sim:1", "simh"]


@pytest.fixture(scope="module")
def half(simulator):
    @bp.custom_op("example::half")
    def half(x: bp.Tensor) -> bp.Tensor:
        """Half of a tensor."""
        return bp.multiply(x, 0.5)

    half.register_shape(lambda x: x)
    half.register_vjp(lambda g: bp.multiply(g, 0.5))
    half.register_jvp("linear")
    half.register_batch(lambda x: half(x))
    return half


def stated(report, device):
    return {row.check for row in report.rows if row.device == device and row.verdict == "passed"}


@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((3, 1), (4,)), ((), (2,))], ids=str)
def test_axpby_is_what_its_entry_says(shapes, axpby):
    x, y = (bp.multiply(bp.add(bp.ones(shape), 0.5), 1.5) for shape in shapes)
    report = bp.opcheck(axpby, (x, y), {"alpha": -2, "beta": 0.5}, devices=DEVICES)
    for device in DEVICES:
        assert {"call", "mutation", "shape", "out", "gradient", "second order", "forward", "batch"} <= stated(report, device)
    assert "decomposition" in stated(report, "cpu")


def test_an_op_of_python_runs_on_every_device(half):
    report = bp.opcheck(half, (bp.asarray([[1.0, 2.0], [3.0, 4.0]]),), devices=DEVICES)
    for device in DEVICES:
        assert {"call", "aliasing", "shape", "layouts", "gradient", "forward", "batch"} <= stated(report, device)


def test_a_kernel_for_one_device_comes_first(half, simulator):
    @bp.custom_op("example::where_am_i")
    def where_am_i(x: bp.Tensor) -> bp.Tensor:
        return bp.add(x, 1)

    where_am_i.register_kernel("sim")(lambda x: bp.add(x, 2))
    found = {device: where_am_i(bp.zeros((), device=device)).to("cpu").item() for device in DEVICES}
    assert found == {"cpu": 1, "sim": 2, "sim:1": 2, "simh": 1}


def test_the_result_must_be_on_the_device_of_the_call(simulator):
    @bp.custom_op("example::elsewhere")
    def elsewhere(x: bp.Tensor) -> bp.Tensor:
        return bp.zeros(x.shape, device="cpu")

    with pytest.raises(ValueError, match="its kernel for sim made result 0 on cpu"):
        elsewhere(bp.zeros(2, device="sim"))
