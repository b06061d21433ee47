"""`./dev demo`: runs digits.py on the CPU, then the same script on the simulated accelerator, and compares the two runs.

    python examples/compare_devices.py --plugin SIMULATOR.so [--out FOLDER]

Exit status 0 where both read at least 97 % of the held-out digits, the first 20 losses agree within 1e-3 relative, the
accuracies within 1.5 points, and no call of the simulator fell back to the host.
"""

import argparse
import json
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

COMPARED = 20
LOSS_TOLERANCE = 1e-3
ACCURACY_TOLERANCE = 0.015
WANTED_ACCURACY = 0.97


def run(device: str, options: argparse.Namespace, *arguments: str) -> Any:
    script = pathlib.Path(__file__).with_name("digits.py")
    command = [sys.executable, str(script), "--device", device, "--out", str(options.out), *arguments]
    print("+", *command, flush=True)
    subprocess.run(command, check=True)
    return json.loads((options.out / f"{device}.json").read_text())


def worst_difference(first: list[float], second: list[float]) -> float:
    return max(abs(a - b) / abs(a) for a, b in zip(first[:COMPARED], second[:COMPARED]))


def checks(cpu: Any, simulated: Any) -> Iterator[tuple[str, bool]]:
    """(what was seen, was it as promised), in words for people."""
    difference = worst_difference(cpu["losses"], simulated["losses"])
    apart = abs(cpu["accuracy"] - simulated["accuracy"])
    yield (f"the first {COMPARED} losses differ by at most {difference:.1e} relative (allowed {LOSS_TOLERANCE:g})",
           difference <= LOSS_TOLERANCE)
    yield (f"the accuracies differ by {apart * 100:.2f} points (allowed {ACCURACY_TOLERANCE * 100:g})",
           apart <= ACCURACY_TOLERANCE)
    for run_result in (cpu, simulated):
        yield (f"{run_result['device']}: {run_result['accuracy']:.2%} of {run_result['held_out']} held-out digits "
               f"(wanted {WANTED_ACCURACY:.0%}), {run_result['seconds']:.0f} s", run_result["accuracy"] >= WANTED_ACCURACY)
    fallbacks = simulated["calls"]["host_fallbacks"]
    yield f"{simulated['device']}: {fallbacks} host fallbacks (allowed 0)", fallbacks == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plugin", required=True, help="the simulated accelerator")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/demo"))
    options = parser.parse_args()
    cpu = run("cpu", options)
    simulated = run("sim", options, "--plugin", options.plugin)

    print(f"\n{'device':8}{'kernels':>12}{'decompositions':>16}{'host fallbacks':>16}")
    for result in (cpu, simulated):
        calls = result["calls"]
        print(f"{result['device']:8}{calls['kernels']:12,}{calls['decompositions']:16,}{calls['host_fallbacks']:16,}")
    print()
    kept = True
    for text, passed in checks(cpu, simulated):
        print(f"{'pass' if passed else 'FAIL'}  {text}")
        kept = kept and passed
    print(f"\npictures: {options.out}")
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
