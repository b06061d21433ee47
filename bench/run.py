"""`./dev bench`: measures, prints the table with its limits, and says by its exit status whether they were kept.

overhead      calls, ours beside NumPy's and PyTorch's in the same run, and the cost of importing
transforms    vmap, grad and per-sample gradients beside PyTorch's and JAX's, and what recording costs
compile       compiled functions beside our eager mode, PyTorch's, torch.compile, jax.jit, mlx.compile and loops written by hand, on 1 and 2
              threads, and what graphs of up to a million nodes cost; words choose cases, --quick leaves out the slow ones, --without names ways to leave out
torch         the bridge to PyTorch: operators of torch.ops.bp beside PyTorch's own, and a training step under torch.compile beside eager PyTorch
sources       time to compile a plugin source, and the size of the library
cpu           kernels beside NumPy's, PyTorch's and JAX's on 1 and 2 threads; words after it choose cases (cpu softmax "64 Ki"),
              --quick takes fewer sizes and turns
memory        the most memory that programs and their gradients take, eager and compiled, beside jax.jit and PyTorch; words choose programs
growth        writes and reads of a few elements of a large tensor, beside NumPy and PyTorch; words choose cases, --quick takes fewer turns
half          kernels in float16 and bfloat16 beside float32; words after it choose cases (half reductions sum)
vulkan        the Vulkan backend beside a copy's bandwidth and the CPU backend; what is counted (submissions, objects) is asserted by
              tests/backends/vulkan
collectives   all_reduce on two ranks over MPI, from C++ and from Python, beside MPI's own call in C; --quick takes fewer sizes and turns
instructions  instructions per call under callgrind, against bench/instructions.json (tolerance 3 %)
--write       overhead, transforms, torch, compile, sources, cpu, half, vulkan and collectives: into bench/figures/, from which docs/reference/performance.md
              is made; memory and growth: into docs/reference/memory.md; instructions: into bench/instructions.json
"""

import argparse
import datetime
import json
import pathlib
import platform
import sys

import compile_report
import cpu_report
import figures
import half_report
import measure
import memory_report
import report
import vulkan_report

KEPT = measure.ROOT / "bench/instructions.json"
MEMORY_PAGE = measure.ROOT / "docs/reference/memory.md"
TOLERANCE = 0.03
GRAPH_SIZES = [10_000, 100_000, 1_000_000]


def processor():
    """Its name, family and widest vectors: machines of one name differ in the latter two."""
    facts = dict(line.split(":", 1) for line in pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines() if ":" in line)
    facts = {name.strip(): value.strip() for name, value in facts.items()}
    vectors = next((name for flag, name in (("avx512f", "AVX-512"), ("avx2", "AVX2")) if flag in facts.get("flags", "").split()), "")
    family = f"family {facts['cpu family']}" if "cpu family" in facts else ""
    return f"{facts.get('model name') or platform.processor()} ({', '.join(filter(None, [family, vectors]))})"


def machine():
    import numpy
    import torch

    return (f"{processor()}, {platform.system()} {platform.machine()}, Python {platform.python_version()}, "
            f"NumPy {numpy.__version__}, PyTorch {torch.__version__}")


def write_page(sections):
    """Keeps the sections' figures of this processor, and renews the page."""
    for title, text in sections:
        figures.keep(processor(), title, f"Measured on {datetime.date.today().isoformat()}: {machine()}.", text)


def overhead(bench):
    cpp, node = measure.cpp_calls(bench)
    return report.overhead_rows(cpp, node, measure.python_calls(), *measure.imports())


def transforms(bench):
    return report.transform_rows(measure.transform_calls(), measure.cpp_calls(bench)[0])


def bridge(write):
    rows = report.bridge_rows(measure.bridge_times())
    if write:
        write_page([("Inside PyTorch", report.markdown_table(rows))])
    return rows


def sources(bench):
    return report.source_rows(measure.compiling(bench), measure.stripped_megabytes(bench))


COMPILED_TEXT = """Times in milliseconds, each the best of many turns; a first result includes tracing and compiling, in a process that has compiled
something else before. The loops written by hand are in `bench/compile_loops.cpp`, the cases in `bench/compile_cases.py`."""


def compiled(bench, options):
    results = []
    for threads in options.threads:
        results.append(measure.compiled(bench, threads, options.words, options.quick, options.without))
        print(compile_report.text(compile_report.cells_of(results[-1:])) + "\n", flush=True)  # it takes minutes: nothing is lost if it is stopped
    (bench.build / "bench/compile.json").write_text(json.dumps(results))
    graphs = None if options.words else measure.graphs(bench, GRAPH_SIZES[:2] if options.quick else GRAPH_SIZES)
    cells, rows = compile_report.cells_of(results), compile_report.rows_of(results, graphs)
    if options.write:
        write_page([("Compiled functions", f"{report.markdown_table(rows)}\n\n{COMPILED_TEXT}\n\n{compile_report.markdown(cells)}")])
    return rows


def instructions(bench, write):
    counts = measure.instructions(bench)
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if write:
        KEPT.write_text(json.dumps(counts, indent=2) + "\n")
    return report.instruction_rows(counts, kept, TOLERANCE)


CPU_TEXT = """Each cell of the table: our time, over the best peer's (named), and over the floor's where there is one: a plain
loop over the same bytes, or a direct call of OpenBLAS."""


def cpu(bench, options):
    results = [measure.cpu(bench, threads, options.words, options.quick) for threads in options.threads]
    (bench.build / "bench/cpu.json").write_text(json.dumps(results))
    cells = cpu_report.cells_of(results)
    rows = cpu_report.rows_of(cells)
    print(cpu_report.markdown(cells).replace("|", " ") if options.words else "The worst cells\n", flush=True)
    if worst := cpu_report.worst_cells(cells):
        print(report.text_table(worst) + "\n")
    if options.write:
        plot = figures.PAGE.with_name(f"performance-cpu-{figures.slug(processor())}.svg")
        cpu_report.plot(cells, plot)
        picture = f"![Our time over the best peer's]({plot.name})"
        write_page([("Kernels on the CPU", "\n\n".join([report.markdown_table(rows), CPU_TEXT, picture, cpu_report.markdown(cells)]))])
    return rows


HALF_TEXT = "Time over that of float32, for 64 Ki elements on one thread, group by group; then each case above the limit."


def half(options):
    cells = measure.half(options.words)
    rows, above = half_report.rows_of(cells), half_report.rows_above(cells)
    if above:
        print(report.text_table(above) + "\n", flush=True)
    if options.write:
        tables = [report.markdown_table(rows), HALF_TEXT, half_report.markdown(cells)]
        write_page([("Half floats on the CPU", "\n\n".join([*tables, *([report.markdown_table(above)] if above else [])]))])
    return rows


MEMORY_HEAD = """# Memory

This page shows the results of `./dev bench memory` and `./dev bench growth`. The [performance page](performance.md) has the other figures.
"""
MEMORY_TEXT = """The table shows the peak memory of a loss and its gradients, in megabytes, without the input arrays. Each library's own counts are used:

- Backplane: the host allocator's statistics. For a compiled function, they include the memory that it keeps between calls.
- JAX: the buffers that XLA assigns.
- PyTorch: the profiler's record of allocations.

The programs are in `bench/memory_cases.py`."""
GROWTH_TEXT = """The table shows microseconds on one thread. The time of a write depends on the number of elements that it touches. For the same number, a write into a tensor of 10^7 elements takes as long as a write into one of 2·10^5,
except for cache effects. The cases are in `bench/growth_cases.py`."""


def write_memory_page(title, text):
    """Renews one section of the memory page."""
    kept = dict(part.split("\n", 1) for part in MEMORY_PAGE.read_text(encoding="utf-8").split("\n## ")[1:]) if MEMORY_PAGE.exists() else {}
    kept[title] = f"\nMeasured on {datetime.date.today().isoformat()}: {machine()}.\n\n{text}\n"
    MEMORY_PAGE.write_text(MEMORY_HEAD + "".join(f"\n## {title}\n{part.rstrip()}\n" for title, part in kept.items()), encoding="utf-8")


def memory(options):
    cells = measure.memory(options.words)
    if options.write:
        write_memory_page("Peaks of programs", f"{MEMORY_TEXT}\n\n{memory_report.memory_table(cells)}")
    return memory_report.memory_rows(cells)


def growth(options):
    results = measure.growth(options.words, options.quick)
    if options.write:
        tables = [GROWTH_TEXT, memory_report.growth_table(results), "Calls that process the whole tensor:", memory_report.whole_table(results)]
        write_memory_page("Growth with the elements touched", "\n\n".join(tables))
    return memory_report.growth_rows(results)


def vulkan(write):
    rows = vulkan_report.rows_of(measure.vulkan("vulkan"))
    if write:
        write_page([("Vulkan", report.markdown_table(rows))])
    return rows


def collectives(bench, options):
    rows = report.collective_rows(measure.collectives(bench, options.quick))
    if options.write:
        write_page([("Collectives", report.markdown_table(rows))])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", default="overhead", choices=["overhead", "transforms", "torch", "compile", "sources", "cpu", "half", "memory", "growth", "vulkan", "collectives", "instructions"])
    parser.add_argument("words", nargs="*", help="of compile, cpu, half, memory and growth: measure the cases whose names hold all of these")
    parser.add_argument("--quick", action="store_true", help="of compile, cpu, growth and collectives: fewer sizes and turns")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="of compile and cpu")
    parser.add_argument("--without", nargs="+", default=[], help="of compile: ways to leave out")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_intermixed_args()
    if options.write and (options.words or options.quick or options.without):
        parser.error("--write takes all cases; leave out the words, --quick and --without")
    bench = measure.Bench(options.build)

    if options.name == "instructions":
        rows = instructions(bench, options.write)
    elif options.name == "compile":
        rows = compiled(bench, options)
    elif options.name == "sources":
        rows = sources(bench)
    elif options.name == "cpu":
        rows = cpu(bench, options)
    elif options.name == "torch":
        rows = bridge(options.write)
    elif options.name == "vulkan":
        rows = vulkan(options.write)
    elif options.name == "half":
        rows = half(options)
    elif options.name == "memory":
        rows = memory(options)
    elif options.name == "growth":
        rows = growth(options)
    elif options.name == "collectives":
        rows = collectives(bench, options)
    elif options.name == "transforms":
        rows = transforms(bench)
        if options.write:
            write_page([("Transforms", report.markdown_table(rows))])
    else:
        rows = overhead(bench)
        if options.write:
            sizes = sources(bench)
            write_page([("Overhead of a call", report.markdown_table(rows)),
                        ("Compiling, and size", report.markdown_table(sizes))])
            rows += sizes
    print(f"{report.text_table(rows)}\n\nOn {machine()}.")
    sys.exit(0 if all(row.passed for row in rows) else 1)


if __name__ == "__main__":
    main()
