"""Estimates how a language model's training scales to thousands of ranks, from the figures of a processor and of a network.

    python examples/scaling.py [--out FOLDER] [--bandwidth 50] [--local-bandwidth 450] [--latency 10]

Prints the step time of a 7-billion model on 8 to 4,096 ranks, and the published throughputs that the estimate was compared with. Writes
FOLDER/scaling.png where matplotlib is installed. It needs no rank but its own.
"""

import argparse
import pathlib
import time

import backplane as bp

d = bp.distributed
SEVEN = d.TransformerShape(layers=32, width=4096, heads=32, key_value_heads=32, hidden=11008, vocabulary=32000)
EIGHT = d.TransformerShape(layers=32, width=4096, heads=32, key_value_heads=8, hidden=14336, vocabulary=128256)
TOKENS, LENGTH = 16384, 8192
# torchtitan, benchmarks/llama3_h100_202412_torchtitan.md, tables 1 and 3: tokens per second of one H100, Llama 3.1 8B under FSDP with two
# sequences of 8,192 tokens each; machines of 8 with NVLink, 400 Gb/s per GPU between them.
PUBLISHED = {"FSDP": {8: 5762, 128: 5605}, "FSDP + torch.compile": {8: 6667, 128: 6514}}


def achieved(shape: d.TransformerShape, network: d.Network, ranks: int, throughput: float) -> float:
    """The operations per second at which the estimate gives a measured throughput on so many ranks."""
    low, high = 1e12, 1e16
    for _ in range(80):
        middle = (low * high) ** 0.5
        found = d.estimate(shape, ranks, network, flops=middle, tokens=TOKENS, length=LENGTH).tokens_per_second
        low, high = (middle, high) if found < throughput else (low, middle)
    return low


def plot(path: pathlib.Path, rows: dict[str, list[tuple[int, float]]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4))
    for name, points in rows.items():
        axes.plot([n for n, _ in points], [s for _, s in points], "o-", label=name)
    axes.set(xscale="log", xlabel="ranks", ylabel="step, seconds", title="7 billion parameters, 16,384 tokens per rank")
    axes.set_ylim(bottom=0)
    axes.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/demo"))
    parser.add_argument("--bandwidth", type=float, default=50, help="GB/s between machines, per rank and direction")
    parser.add_argument("--local-bandwidth", type=float, default=450, help="GB/s within a machine")
    parser.add_argument("--latency", type=float, default=10, help="µs between machines")
    given = parser.parse_args()
    started = time.time()
    network = d.Network(given.bandwidth * 1e9, given.latency * 1e-6, 8, given.local_bandwidth * 1e9, 3e-6)
    print("Llama 3.1 8B, tokens per second and rank on 128 ranks, from the published figure on 8:")
    for name, published in PUBLISHED.items():
        flops = achieved(EIGHT, network, 8, published[8])
        found = d.estimate(EIGHT, 128, network, flops=flops, tokens=TOKENS, length=LENGTH).tokens_per_second
        print(f"  {name}: estimated {found:,.0f}, published {published[128]:,} ({found / published[128] - 1:+.1%})")
    rows: dict[str, list[tuple[int, float]]] = {}
    print("\n7 billion parameters, 16,384 tokens per rank, at the same rate:")
    print(f"{'ranks':>6}  {'strategy':<28} {'step s':>7} {'waits s':>8} {'GB sent':>8} {'tokens/s':>13}")
    for ranks in [2**k for k in range(3, 13)]:
        for name, options in {"sharded": {}, "replicated": {"strategy": "replicated"}, "sharded, tensor parallel 8": {"tensor_parallel": 8}}.items():
            tokens = TOKENS * options.get("tensor_parallel", 1)
            e = d.estimate(SEVEN, ranks, network, flops=flops, tokens=tokens, length=LENGTH, **options)
            rows.setdefault(name, []).append((ranks, e.step))
            if ranks in (8, 64, 512, 4096):
                print(f"{ranks:>6}  {name:<28} {e.step:>7.3f} {e.exposed:>8.3f} {e.bytes_sent / 1e9:>8.1f} {e.tokens_per_second * ranks:>13,.0f}")
    try:
        given.out.mkdir(parents=True, exist_ok=True)
        plot(given.out / "scaling.png", rows)
        print(f"wrote {given.out / 'scaling.png'} in {time.time() - started:.1f} s")
    except ImportError:
        print("matplotlib is not installed: no picture")


if __name__ == "__main__":
    main()
