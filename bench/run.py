"""`./dev bench`: measures, prints the table with its limits, and says by its exit status whether they were kept.

overhead      calls, ours beside NumPy's and PyTorch's in the same run, and the cost of importing
transforms    vmap, grad and per-sample gradients beside PyTorch's and JAX's, and what recording costs
compile       time to compile a plugin source, and the size of the library
instructions  instructions per call under callgrind, against bench/instructions.json (tolerance 3 %)
--write       overhead, transforms and compile: into docs/reference/performance.md; instructions: into bench/instructions.json
"""

import argparse
import datetime
import json
import pathlib
import platform
import sys

import measure
import report

KEPT = measure.ROOT / "bench/instructions.json"
PAGE = measure.ROOT / "docs/reference/performance.md"
TOLERANCE = 0.03


def machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    import numpy
    import torch

    return (f"{model or platform.processor()}, {platform.system()} {platform.machine()}, Python {platform.python_version()}, "
            f"NumPy {numpy.__version__}, PyTorch {torch.__version__}")


def write_page(sections):
    """Renews these sections of the page, and keeps its others."""
    kept = dict(part.split("\n", 1) for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]) if PAGE.exists() else {}
    measured = f"Measured on {datetime.date.today().isoformat()}: {machine()}."
    kept.update({title: f"\n{measured}\n\n{report.markdown_table(rows)}\n" for title, rows in sections})
    head = """# Performance

What `./dev bench` measured. Each figure is the best of repeated runs on one thread, ours and the peer's in turns in one run; absolute
times drift from machine to machine, ratios less. `./dev bench NAME --write` renews its section.
"""
    PAGE.write_text(head + "".join(f"\n## {title}\n{text.rstrip()}\n" for title, text in kept.items()), encoding="utf-8")


def overhead(bench):
    cpp, node = measure.cpp_calls(bench)
    return report.overhead_rows(cpp, node, measure.python_calls(), *measure.imports())


def transforms(bench):
    return report.transform_rows(measure.transform_calls(), measure.cpp_calls(bench)[0])


def compiling(bench):
    return report.compile_rows(measure.compiling(bench), measure.stripped_megabytes(bench))


def instructions(bench, write):
    counts = measure.instructions(bench)
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if write:
        KEPT.write_text(json.dumps(counts, indent=2) + "\n")
    return report.instruction_rows(counts, kept, TOLERANCE)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", default="overhead", choices=["overhead", "transforms", "compile", "instructions"])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    bench = measure.Bench(options.build)

    if options.name == "instructions":
        rows = instructions(bench, options.write)
    elif options.name == "compile":
        rows = compiling(bench)
    elif options.name == "transforms":
        rows = transforms(bench)
        if options.write:
            write_page([("Transforms", rows)])
    else:
        rows = overhead(bench)
        if options.write:
            sizes = compiling(bench)
            write_page([("Overhead of a call", rows), ("Compiling, and size", sizes)])
            rows += sizes
    print(report.text_table(rows))
    sys.exit(0 if all(row.passed for row in rows) else 1)


if __name__ == "__main__":
    main()
