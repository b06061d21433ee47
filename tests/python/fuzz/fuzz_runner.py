"""Runs fuzzed cases of every op, each op in a child process: what `./dev fuzz ops` and `./dev fuzz transforms` share.

A case is made of an entry, its samples, a seed and a number, and is the same each time. `run` returns what is wrong, or None.
A child that dies, or does not answer within a case's time, is a finding too: its op, case and seed are known. Another child
goes on behind that case. Exit status 1 where anything was found.
"""

import argparse
import json
import mmap
import os
import pathlib
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "laws"))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import backplane as bp  # noqa: E402
import numpy as np  # noqa: E402
from law_registry import registry  # noqa: E402

CASE_SECONDS = 20  # of one case, on a busy machine
PAIRS_A_SECOND = 4_000_000  # of elements, by a kernel under a sanitizer on a busy machine
MOST_SECONDS = 100
MEMORY = 1 << 30  # what a child may take beside what it has; the sanitizer's own limit stands in `tests/verbs.sh`
FINDINGS = 3  # of one op; more would be the same ones
DEATHS = 3
NOTED = 2000  # bytes of a call in words


def entries():
    """Name -> (entry, its samples)."""
    found = {}
    for case in registry():
        found.setdefault(case.entry.name, (case.entry, []))[1].append(case)
    return found


def sanitized():
    return "libasan" in os.environ.get("LD_PRELOAD", "")


def limit_child():
    if not sanitized():  # the sanitizer's shadow is larger than any limit
        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * mmap.PAGESIZE
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def load_simulator():
    folder = os.environ.get("BACKPLANE_EXAMPLE_PLUGINS")
    if folder and pathlib.Path(folder, "simulator.so").is_file():
        bp.load_plugin(str(pathlib.Path(folder, "simulator.so")))


def note(progress, number, call):
    """Writes the case and the text of its call, which the parent reads if the child dies."""
    text = call.encode()[:NOTED]
    struct.pack_into(f"qi{len(text)}s", progress, 0, number, len(text), text)


def run_child(entry, samples, options, first, progress, report):
    """Cases from `first` on; each number is noted in `progress` before its call."""
    limit_child()
    load_simulator()
    findings = 0
    with open(report, "a", encoding="utf-8") as file, np.errstate(all="ignore"):
        for number in range(first, options.cases):
            note(progress, number, "while its arguments were made")
            signal.alarm(CASE_SECONDS)
            case = options.case_type(entry, samples, options.seed, number)
            shown = str(case)
            note(progress, number, shown)
            signal.alarm(min(CASE_SECONDS + case.pairs() // PAIRS_A_SECOND, MOST_SECONDS))
            wrong = case.run()
            if wrong:
                file.write(json.dumps({"case": number, "call": shown, "wrong": wrong}) + "\n")
                findings += 1
                if findings == FINDINGS:
                    break
    note(progress, options.cases, "")


class Child:
    """The process that fuzzes one op."""

    def __init__(self, entry, samples, options, first=0, deaths=0):
        self.entry, self.samples, self.options, self.deaths = entry, samples, options, deaths
        self.progress = mmap.mmap(-1, NOTED + 16)
        self.errors = tempfile.TemporaryFile()
        handle, self.report = tempfile.mkstemp(suffix=".jsonl")
        os.close(handle)
        self.pid = os.fork()
        if self.pid == 0:
            self._be(first)

    def _be(self, first):
        status = 1
        try:
            os.dup2(self.errors.fileno(), 2)
            run_child(self.entry, self.samples, self.options, first, self.progress, self.report)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)  # neither the parent's exit handlers nor its buffers are the child's

    def done(self):
        return struct.unpack_from("q", self.progress)[0]

    def call(self):
        size = struct.unpack_from("i", self.progress, 8)[0]
        return struct.unpack_from(f"{size}s", self.progress, 12)[0].decode(errors="replace")

    def ended(self):
        pid, self.status = os.waitpid(self.pid, os.WNOHANG)
        return pid != 0

    def findings(self):
        """The findings that it reported, and the way it died if it did."""
        with open(self.report, encoding="utf-8") as file:
            found = [json.loads(line) for line in file]
        os.unlink(self.report)
        code = os.waitstatus_to_exitcode(self.status)
        if code != 0:
            self.errors.seek(0)
            lines = self.errors.read().decode(errors="replace").strip().splitlines()
            said = [line for line in lines if "failed to allocate" not in line]  # which is refused in good order
            how = "did not end" if code == -signal.SIGALRM else f"killed the process ({code})"
            found.append({"case": self.done(), "call": self.call(), "wrong": "\n    ".join([how, *said[:30]])})
        return found, code != 0

    def successor(self):
        if self.deaths + 1 < DEATHS and self.done() + 1 < self.options.cases:
            return Child(self.entry, self.samples, self.options, self.done() + 1, self.deaths + 1)
        return None


class Bar:
    """Ops done, cases done and the time left, on one line of a terminal; a line per tenth elsewhere."""

    def __init__(self, ops, cases):
        self.ops, self.cases, self.start, self.tenth = ops, ops * cases, time.monotonic(), 0

    def show(self, ops, cases, names):
        part = cases / self.cases if self.cases else 1.0
        passed = time.monotonic() - self.start
        left = passed / part - passed if part else 0
        text = f"{ops} of {self.ops} ops, {cases:,} of {self.cases:,} cases, {passed:.0f} s, {left:.0f} s left"
        if sys.stderr.isatty():
            filled = int(30 * part)
            print(f"\r[{'#' * filled}{' ' * (30 - filled)}] {text}  {' '.join(names):40.40}", end="", file=sys.stderr, flush=True)
        elif int(part * 10) > self.tenth:
            self.tenth = int(part * 10)
            print(text, file=sys.stderr, flush=True)


def fuzz(chosen, options):
    """Runs the ops, `options.jobs` at a time; returns (op, finding) and the number of cases made."""
    waiting, running, found, made, ended = list(chosen), [], [], 0, 0
    bar = Bar(len(waiting), options.cases)
    while waiting or running:
        while waiting and len(running) < options.jobs:
            running.append(Child(*waiting.pop(0), options))
        time.sleep(0.02)
        for child in [child for child in running if child.ended()]:
            running.remove(child)
            findings, died = child.findings()
            found += [(child.entry.name, finding) for finding in findings]
            successor = child.successor() if died else None
            if successor:
                running.append(successor)
            else:
                ended += 1
                made += child.done()
        bar.show(ended, made + sum(child.done() for child in running), [child.entry.python_name for child in running])
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return found, made


def replay(entry, samples, options):
    load_simulator()
    case = options.case_type(entry, samples, options.seed, options.case)
    print(case, flush=True)
    print(case.run() or "as it should be")


def parsed(verb, about, cases):
    parser = argparse.ArgumentParser(prog=f"./dev fuzz {verb}", description=about.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=cases, help="per op")
    parser.add_argument("--op", action="append", help="this op alone, by its name in the registry; may be repeated")
    parser.add_argument("--part", help="I/N: every Nth op from the Ith on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="makes this case alone, in this process")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    return parser.parse_args()


def main(verb, about, case_type, cases):
    """The command of a fuzzer. `cases`: how many it makes per op where the user does not say."""
    options, known = parsed(verb, about, cases), entries()
    options.case_type = case_type
    names = [name if "::" in name else f"bp::{name}" for name in options.op or known]
    if options.part:
        first, step = map(int, options.part.split("/"))
        names = names[first::step]
    missing = [name for name in names if name not in known]
    if missing:
        sys.exit(f"fuzz: no op {missing[0]!r} in the registry")
    bp.zeros(1)  # opens the host's plugin: once, for all children
    if options.case is not None:
        return replay(*known[names[0]], options)
    found, made = fuzz([known[name] for name in names], options)
    for name, finding in found:
        print(f"{name}, case {finding['case']}, seed {options.seed}: {finding['call']}\n    {finding['wrong']}")
    print(f"{len(names)} ops, {made:,} cases, seed {options.seed}: {len(found)} findings")
    sys.exit(1 if found else 0)
