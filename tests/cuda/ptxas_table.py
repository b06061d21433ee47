"""Assembles every kernel of the CUDA backend for each target, as the driver would at run time, and says what it takes.

In: --ptx FOLDER of the build, --ptxas PROGRAM, targets (compute capabilities without the dot). Out: a table in Markdown, a row per
module: kernels, the most registers of a thread, the most shared memory of a block, the most stack, per target that the module is for.
Exit status 1 where a kernel spills more than --spills bytes, or a module is not assembled. `./dev check cuda` runs it; it needs no
GPU."""

import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys

KERNEL = re.compile(r"Compiling entry function '(\w+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")
OLDEST = re.compile(r"^\.target sm_(\d+)", re.M)


def kernels_of(text):
    """What ptxas -v says of each kernel: its name, and bytes and registers by word."""
    kernels = {}
    for part in text.split("Compiling entry function")[1:]:
        name = KERNEL.match("Compiling entry function" + part).group(1)
        stack, stores, loads = map(int, FRAME.search(part).groups())
        shared = SHARED.search(part)
        kernels[name] = {
            "registers": int(USED.search(part).group(1)),
            "shared": int(shared.group(1)) if shared else 0,
            "stack": stack,
            "spills": stores + loads,
        }
    return kernels


def assemble(ptxas, file, target):
    if int(target) < int(OLDEST.search(file.read_text()).group(1)):
        return file.stem, target, None  # the module is for later devices
    done = subprocess.run([ptxas, f"-arch=sm_{target}", "-v", file, "-o", "/dev/null"], capture_output=True, text=True)
    return file.stem, target, kernels_of(done.stderr) if done.returncode == 0 else done.stderr.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ptx", type=pathlib.Path, required=True)
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--spills", type=int, default=32, help="bytes that a kernel may store and load for want of registers")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("targets", nargs="+")
    given = parser.parse_args()
    files = sorted(given.ptx.glob("*.ptx"))
    if not files:
        sys.exit(f"ptxas: no PTX in {given.ptx}. Fix: ./dev build where nvcc is")
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        made = list(pool.map(lambda pair: assemble(given.ptxas, *pair), [(f, t) for f in files for t in given.targets]))
    rows, broken = {}, []
    for module, target, kernels in made:
        cells = rows.setdefault(module, [0])
        if kernels is None:
            cells.append("")
            continue
        if isinstance(kernels, str) or not kernels:
            broken.append(f"{module} for {target}: {kernels or 'no kernels'}")
            continue
        most = {word: max(kernel[word] for kernel in kernels.values()) for word in ("registers", "shared", "stack")}
        cells[0] = len(kernels)
        cells.append(f"{most['registers']}, {most['shared']}, {most['stack']}")
        for name, kernel in kernels.items():
            if kernel["spills"] > given.spills:
                broken.append(f"{module}: {name} for {target} spills {kernel['spills']} bytes, expected at most {given.spills}")
    print("| module | kernels | " + " | ".join(f"{target[:-1]}.{target[-1]}" for target in given.targets) + " |")
    print("| --- " * (2 + len(given.targets)) + "|")
    for module, row in rows.items():
        print(f"| `{module}` | " + " | ".join(map(str, row)) + " |")
    for one in broken:
        print(f"ptxas: {one}", file=sys.stderr)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
