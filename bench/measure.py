"""The measurements of `./dev bench`: each function runs the programs that it needs and returns plain numbers.

In: a Bench, which knows the build folder. Out: nanoseconds, milliseconds, bytes or instruction counts, by name. Nothing is kept
in files here; report.py judges, run.py is the command.
"""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
CPP_CASES = ["direct", "noop", "add", "add_recording", "mul", "mul_recording", "inplace", "view", "backward"]


@dataclasses.dataclass
class Bench:
    build: pathlib.Path

    @property
    def ours(self):
        return [str(self.build / "bench/bench_overhead"), str(self.build / "bench/bench_noop.so")]


def run(command, **options):
    return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def google_benchmark(command):
    """Case -> best nanoseconds of several repetitions, and the context that the program states."""
    output = json.loads(run([*command, "--benchmark_format=json", "--benchmark_repetitions=5",
                             "--benchmark_min_time=0.1"], stderr=subprocess.DEVNULL))
    best = {}
    for row in output["benchmarks"]:
        if row.get("run_type") == "iteration":
            best[row["run_name"]] = min(row["cpu_time"], best.get(row["run_name"], row["cpu_time"]))
    return best, output["context"]


def torch_program(bench):
    """The peer, compiled where its source or the package changed."""
    import torch

    source = ROOT / "bench/torch_overhead.cpp"
    program = bench.build / f"bench/torch_overhead-{torch.__version__}"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        package = pathlib.Path(torch.__file__).parent
        run(["g++", "-O2", "-std=c++20", source, "-o", program, f"-I{package}/include",
             f"-I{package}/include/torch/csrc/api/include", f"-L{package}/lib", f"-Wl,-rpath,{package}/lib",
             f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
             "-ltorch_cpu", "-lc10", "-lbenchmark", "-lpthread"])
    return [str(program)]


def cpp_calls(bench, rounds=3):
    """{case: {library: nanoseconds}}, the two programs in turns, and the size of an autograd node."""
    best = {case: {} for case in CPP_CASES}
    peer = torch_program(bench)
    for _ in range(rounds):
        for library, command in (("backplane", bench.ours), ("torch", peer)):
            times, context = google_benchmark(command)
            if library == "backplane":
                node = int(context["bytes_per_node"])
            for case, nanoseconds in times.items():
                best[case][library] = min(nanoseconds, best[case].get(library, nanoseconds))
    return best, node


def python_calls():
    return json.loads(run([sys.executable, ROOT / "bench/python_calls.py"]))


def transform_calls():
    return json.loads(run([sys.executable, ROOT / "bench/transform_calls.py"]))


def bridge_times():
    run([sys.executable, "-m", "backplane.torch", "build"])
    return json.loads(run([sys.executable, ROOT / "bench/bridge_times.py"]))


def imports(rounds=9):
    """Median milliseconds and megabytes of `import backplane` over a bare interpreter."""
    # The kernel's own high-water mark: getrusage's survives exec, and would show this process's.
    report = "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    milliseconds, megabytes = [], []
    for _ in range(rounds):
        measured = []
        for code in (report, "import backplane; " + report):
            start = time.perf_counter()
            memory = int(run([sys.executable, "-c", code]))
            measured.append((time.perf_counter() - start, memory))
        milliseconds.append((measured[1][0] - measured[0][0]) * 1e3)
        megabytes.append((measured[1][1] - measured[0][1]) / 1024)
    return statistics.median(milliseconds), statistics.median(megabytes)


def compile_seconds(command, rounds=3):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run(command)
        times.append(time.perf_counter() - start)
    return min(times)


def compiling(bench):
    """Seconds for a plugin source in C and in C++, each from its text to its object, without a cache."""
    flags = ["-O2", "-fPIC", f"-I{ROOT}/dispatcher/abi", f"-I{ROOT}/dispatcher/include"]
    c = compile_seconds(["gcc", "-std=c11", *flags, "-c", ROOT / "bench/plugins/noop_plugin.c", "-o", os.devnull])
    cpp = compile_seconds(["g++", "-std=c++20", *flags, "-c", ROOT / "bench/plugins/typed_plugin.cpp", "-o", os.devnull])
    return {"c": c, "cpp": cpp}


def floor_library(bench):
    """cpu_floor.c, compiled for this machine where its source changed."""
    source, library = ROOT / "bench/cpu_floor.c", bench.build / "bench/cpu_floor.so"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        library.parent.mkdir(exist_ok=True)
        include = run(["pkg-config", "--cflags", "openblas"]).split()
        run(["gcc", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", *include, source, "-o", library,
             *run(["pkg-config", "--libs", "openblas"]).split()])
    return library


def threads_environment(threads):
    """In which each library uses at most this many threads."""
    count = str(threads)
    environment = {**os.environ, "BACKPLANE_NUM_THREADS": count, "OMP_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count,
                   "MKL_NUM_THREADS": count, "NPROC": count, "OPENBLAS_THREAD_TIMEOUT": "20"}
    if threads == 1:
        environment["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    return environment


def cpu(bench, threads, words, quick):
    """What cpu_times.py measures in a process where each library may use this many threads."""
    command = [sys.executable, ROOT / "bench/cpu_times.py", "--threads", threads, "--floor", floor_library(bench)]
    return json.loads(run([*command, *(["--quick"] if quick else []), *words], env=threads_environment(threads)))


def loops_library(bench):
    """compile_loops.cpp, compiled for this machine where its source changed."""
    source, library = ROOT / "bench/compile_loops.cpp", bench.build / "bench/compile_loops.so"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        library.parent.mkdir(exist_ok=True)
        run(["g++", "-O3", "-march=native", "-ffast-math", "-fopenmp", "-shared", "-fPIC", source, "-o", library])
    return library


def compiled(bench, threads, words, quick, without):
    """What compile_times.py measures in a process where each library may use this many threads."""
    command = [sys.executable, ROOT / "bench/compile_times.py", "--threads", threads, "--loops", loops_library(bench), *words]
    options = [*(["--quick"] if quick else []), *(["--without", *without] if without else [])]
    return json.loads(run([*command, *options], env=threads_environment(threads)))


def graphs(bench, sizes):
    """What bench_graph says of graphs of these many nodes."""
    plugin = next((bench.build / "lib/backplane/plugins").glob("*cpu*.so"))
    return json.loads(run([bench.build / "bench/bench_graph", plugin, *sizes], env=threads_environment(1)))


def half(words):
    """What half_times.py measures, in a process of one thread."""
    return json.loads(run([sys.executable, ROOT / "bench/half_times.py", *words], env={**os.environ, "BACKPLANE_NUM_THREADS": "1"}))


def memory(words):
    """What memory_peaks.py measures, in a process of one thread."""
    return json.loads(run([sys.executable, ROOT / "bench/memory_peaks.py", *words], env=threads_environment(1)))["cells"]


def growth(words, quick):
    """What growth_times.py measures, in a process of one thread."""
    command = [sys.executable, ROOT / "bench/growth_times.py", *(["--quick"] if quick else []), *words]
    return json.loads(run(command, env=threads_environment(1)))


def vulkan(device):
    return json.loads(run([sys.executable, ROOT / "bench/vulkan_times.py", device]))


def stripped_megabytes(bench):
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "libbackplane.so"
        shutil.copy((bench.build / "lib/libbackplane.so").resolve(), copy)
        run(["strip", copy])
        return copy.stat().st_size / 1e6


def instructions(bench):
    """Case -> instructions of one call: counted within the case's function alone, as the difference of two runs, so that
    neither start-up nor making the arguments shows."""
    counts = {}
    for case in CPP_CASES:
        function = case.removesuffix("_recording")
        totals = []
        for iterations in (1000, 3000):
            done = subprocess.run(
                ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                 f"--toggle-collect=*::{function}(benchmark::State&*", *bench.ours, f"--benchmark_filter=^{case}(/|$)"],
                env={**os.environ, "BENCH_ITERATIONS": str(iterations)}, capture_output=True, text=True, check=True)
            totals.append(int(re.search(r"Collected : (\d+)", done.stderr)[1]))
        counts[case] = round((totals[1] - totals[0]) / 2000, 1)
    return counts


def collectives(bench, quick):
    """Seconds of all_reduce on two ranks, per size and way; see collective_times.py."""
    library = bench.build / "bench/bench_collectives.so"
    if not library.exists():
        raise SystemExit("bench collectives: the build has no MPI. Fix: as root, apt-get install libopenmpi-dev openmpi-bin")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "backplane.distributed.launch", "-n", "2", "--logs", folder, ROOT / "bench/collective_times.py", library]
        run([*command, *(["--quick"] if quick else [])])
        return json.loads(pathlib.Path(folder, "rank.0.log").read_text().splitlines()[-1])
