"""Estimated step times: laws of the simulation, and published throughputs."""

import importlib.util
import pathlib

import pytest

import backplane as bp

d = bp.distributed
EXAMPLE = pathlib.Path(__file__).parents[3] / "examples" / "scaling.py"
SHAPE = d.TransformerShape(layers=4, width=64, heads=4, key_value_heads=2, hidden=160, vocabulary=100)
NETWORK = d.Network(bandwidth=1e9, latency=1e-6, local_ranks=4, local_bandwidth=8e9, local_latency=1e-7)


def estimate(ranks, network=NETWORK, **options):
    return d.estimate(SHAPE, ranks, network, **{"flops": 1e12, "tokens": 256, "length": 64, **options})


def test_counts_parameters_as_the_layers_do():
    head = 64 // 4
    linear = [(64, 64), (64, 2 * head), (64, 2 * head), (64, 64), (64, 160), (64, 160), (160, 64)]
    assert SHAPE.layer_parameters == sum(a * b for a, b in linear) + 2 * 64
    assert SHAPE.parameters == 4 * SHAPE.layer_parameters + 2 * 100 * 64 + 64


def test_one_rank_computes_alone():
    for strategy in ("sharded", "replicated"):
        e = estimate(1, strategy=strategy)
        flops = 3 * (4 * SHAPE.layer_flops(256, 64) + SHAPE.head_flops(256))
        assert e.exposed == pytest.approx(0, abs=1e-12) and e.bytes_sent == 0
        assert e.step == pytest.approx(flops / 1e12) and e.tokens_per_second == pytest.approx(256 / e.step)


def test_rings():
    """Within one machine (n - 1) / n of the bytes travel once; between machines each rank has a ring for its part."""
    assert NETWORK.all_gather(8e9, 4) == pytest.approx(3 * (2e9 / 8e9 + 1e-7))
    assert NETWORK.all_gather(8e9, 8) == pytest.approx(2e9 / 2 / 1e9 + 1e-6 + 3 * (2e9 / 8e9 + 1e-7))
    assert NETWORK.all_reduce(8e9, 8) == 2 * NETWORK.reduce_scatter(8e9, 8)


@pytest.mark.parametrize("strategy", ["sharded", "replicated"])
def test_more_ranks_and_slower_links_take_longer(strategy):
    steps = [estimate(n, strategy=strategy).step for n in (1, 2, 4, 8, 64, 4096)]
    assert steps == sorted(steps) and steps[-1] > steps[0]
    slow = d.Network(bandwidth=1e8, latency=1e-6, local_ranks=4, local_bandwidth=8e9, local_latency=1e-7)
    assert estimate(64, slow, strategy=strategy).step > estimate(64, strategy=strategy).step
    fast = d.Network(bandwidth=1e18, latency=0, local_ranks=4, local_bandwidth=1e18, local_latency=0)
    assert estimate(64, fast, strategy=strategy).exposed == pytest.approx(0, abs=1e-9)


def test_communication_hides_behind_computation():
    """The step is shorter than the sum of both, and at least as long as each."""
    e = estimate(8, tokens=1 << 16)
    exchanged = 4 * (2 * NETWORK.all_gather(2 * SHAPE.layer_parameters, 8) + NETWORK.reduce_scatter(4 * SHAPE.layer_parameters, 8))
    assert max(e.compute, exchanged) <= e.step < e.compute + exchanged


def test_tensor_parallel_and_recomputation():
    one, eight = estimate(8), estimate(8, tensor_parallel=8)
    assert eight.compute == pytest.approx(one.compute / 8) and eight.exposed > 0
    assert estimate(8, recompute=1).compute > one.compute


def test_refusals():
    for options in ({"ranks": 0}, {"flops": -1}, {"tensor_parallel": 3}, {"strategy": "pipeline"}):
        with pytest.raises(bp.ArgumentValueError):
            estimate(options.pop("ranks", 8), **options)


def test_published_throughputs():
    """From the throughput on 8 ranks, that on 128 to 5 %."""
    spec = importlib.util.spec_from_file_location("scaling", EXAMPLE)
    scaling = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scaling)
    network = d.Network(50e9, 10e-6, 8, 450e9, 3e-6)
    assert scaling.EIGHT.parameters == pytest.approx(8.03e9, rel=1e-3) and scaling.SEVEN.parameters == pytest.approx(6.74e9, rel=1e-3)
    for published in scaling.PUBLISHED.values():
        flops = scaling.achieved(scaling.EIGHT, network, 8, published[8])
        found = d.estimate(scaling.EIGHT, 128, network, flops=flops, tokens=scaling.TOKENS, length=scaling.LENGTH)
        assert found.tokens_per_second == pytest.approx(published[128], rel=0.05)
