"""`./dev gpu`: everything that only a GPU can show, in one run of minutes: what the device is, conformance in every mode that judges, memory
errors as NVIDIA's compute-sanitizer sees them, the demo, and times beside PyTorch's.

    gpu.py --launch PROGRAM --out FOLDER [--peer PYTHON] [--steps NAME,...]

Wants `backplane` on the PATH and `import backplane` working, as `./dev exec` and a pack of `./dev gpu --pack` see to. PYTHON has PyTorch for
the GPU; without one the peer's times are left out. Writes FOLDER/gpu.json after every step, so that a run that is cut off keeps what it had,
and FOLDER/gpu-*.txt; prints a summary last. Exit status 1 where a step found something wrong.
"""

import argparse
import collections
import concurrent.futures
import datetime
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import gpu_report

HERE = pathlib.Path(__file__).resolve().parent
MODES = ("test", "grad", "stress")
WORKERS = 6
ONE_THREAD = {"BACKPLANE_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # processes beside each other
CHECKED = ["add", "sum", "matmul", "index*", "sort", "cumsum", "concat", "conv2d", "softmax", "attention*"]  # under compute-sanitizer: a family each


def run(command, seconds, **options):
    """(status, standard output, standard error, seconds); a command that outruns its time has status 124."""
    start = time.perf_counter()
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=seconds, errors="replace", **options)
        status, out, err = done.returncode, done.stdout, done.stderr
    except OSError as missing:
        status, out, err = 127, "", str(missing)
    except subprocess.TimeoutExpired as late:
        status, out, err = 124, *((part or b"").decode(errors="replace") for part in (late.stdout, late.stderr))
    return status, out, err, time.perf_counter() - start


def device(_):
    _, card, why, _ = run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"], 20)
    status, doctor, err, seconds = run(["backplane", "doctor"], 60)
    return {"card": card.strip().splitlines()[0] if card.strip() else "", "date": datetime.date.today().isoformat(),
            "seconds": seconds, "passed": status == 0 and bool(card.strip()), "text": doctor + err, "why": why.strip()}


def conformance_part(pattern, mode, seconds):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "outcome.json"
        status, out, err, took = run(["backplane", "conformance", "--device", "cuda", "--op", pattern, "--mode", mode, "--json", path], seconds,
                                     env={**os.environ, **ONE_THREAD})
        cases = json.loads(path.read_text())["cases"] if path.exists() else []
    counts = collections.Counter(case["verdict"] for case in cases)
    failures = [{key: case.get(key) for key in ("op", "check", "dtype", "sample", "text")} for case in cases if case["verdict"] == "fail"]
    said = "" if status == 0 or failures else (out[-600:] + err[-1500:])
    return {"pattern": pattern, "mode": mode, "status": status, "seconds": took, "counts": counts, "failures": failures, "said": said}


def conformance(options):
    """Processes beside each other, one per first letter and mode; the laws of the device alone, before. The device takes turns between
    processes, so that more of them end later."""
    _, listed, _, _ = run(["backplane", "ops"], 60)
    names = [line.split()[0].split("::")[-1] for line in listed.splitlines() if line.startswith("bp::")]
    first = [conformance_part("(device)", mode, 120) for mode in ("test", "stress")]
    patterns = sorted({name[0] + "*" for name in names})
    with concurrent.futures.ThreadPoolExecutor(min(WORKERS, os.cpu_count() or 1)) as pool:
        tried = [pool.submit(conformance_part, pattern, mode, options.limit) for mode in MODES for pattern in patterns]
        parts = first + [one.result() for one in tried]
    found = {"modes": {}, "parts": parts, "passed": all(part["status"] == 0 for part in parts)}
    for mode in MODES:
        counts = sum((part["counts"] for part in parts if part["mode"] == mode), collections.Counter())
        found["modes"][mode] = dict(counts)
    return found


def sanitizer(options):
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not pathlib.Path(tool).exists():
        return {"passed": True, "absent": "compute-sanitizer is not installed"}

    def part(op):
        command = [tool, "--tool", "memcheck", "--error-exitcode", "9", "--print-limit", "3", "backplane", "conformance", "--device", "cuda",
                   "--op", op, "--short"]
        status, out, err, seconds = run(command, options.limit, env={**os.environ, **ONE_THREAD, "BACKPLANE_CUDA_EXACT_MEMORY": "1"})
        return {"op": op, "status": status, "seconds": seconds, "said": "" if status == 0 else out[-1500:] + err[-500:]}

    with concurrent.futures.ThreadPoolExecutor(len(CHECKED)) as pool:
        parts = list(pool.map(part, CHECKED))
    return {"parts": parts, "passed": all(part["status"] == 0 for part in parts)}


def demo(options):
    for needed in ("sklearn", "matplotlib", "tqdm"):
        if importlib.util.find_spec(needed) is None:
            return {"passed": True, "said": f"left out: this Python has no {needed}"}
    script = HERE.parent / "examples/compare_devices.py"
    status, out, err, seconds = run([sys.executable, script, "--out", options.out / "demo", "--device", "cuda"], options.limit)
    return {"status": status, "seconds": seconds, "passed": status == 0, "said": out[-3000:] + ("" if status == 0 else err[-2000:])}


def times(python, kind, options):
    status, out, err, seconds = run([python, HERE / "gpu_times.py", kind, *options.words], 2 * options.limit)
    (options.out / f"gpu-times-{kind}.txt").write_text(err)
    found = json.loads(out) if status == 0 else {"device": "", "seconds": {}, "absent": {"all": err[-1500:]}}
    return {**found, "passed": status == 0, "took": seconds}


def launch(options):
    status, out, err, _ = run([options.launch], 60)
    return {**(json.loads(out) if status == 0 else {"absent": err[-300:]}), "passed": status == 0}


def ours(options):
    return times(sys.executable, "ours", options)


def peer(options):
    if not options.peer:
        return {"device": "", "seconds": {}, "absent": {"all": "no --peer"}, "passed": True}
    return times(options.peer, "torch", options)


STEPS = {step.__name__: step for step in (device, conformance, launch, ours, peer, demo, sanitizer)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--launch", type=pathlib.Path, required=True, help="gpu_launch.c, compiled")
    parser.add_argument("--peer", help="a Python with PyTorch for the GPU")
    parser.add_argument("--steps", default=",".join(STEPS), help="some of " + ", ".join(STEPS))
    parser.add_argument("--limit", type=float, default=150, help="seconds that one process may take")
    parser.add_argument("words", nargs="*", help="measure the cases whose names hold all of these")
    options = parser.parse_intermixed_args()
    options.out.mkdir(parents=True, exist_ok=True)
    found = {}
    for name in options.steps.split(","):
        start = time.perf_counter()
        found[name] = STEPS[name](options)
        found[name]["wall"] = time.perf_counter() - start
        print(f"gpu: {name}: {'passed' if found[name]['passed'] else 'FAILED'}, {found[name]['wall']:.0f} s", file=sys.stderr, flush=True)
        (options.out / "gpu.json").write_text(json.dumps(found, indent=1))
        if name == "device" and not found[name]["passed"]:
            break  # nothing else can run
    print(gpu_report.text(found))
    sys.exit(0 if all(step["passed"] for step in found.values()) else 1)


if __name__ == "__main__":
    main()
