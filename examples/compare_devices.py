"""`./dev demo`: runs digits.py on the CPU, then the same script on other devices, and compares each run with the CPU's.

    python examples/compare_devices.py [--plugin FILE.so]... [--device NAME]... [--out FOLDER]

The other devices are those named, or the simulated accelerator; --plugin names what brings one that is not installed. One
that this machine lacks is left out, with the reason.
Exit status 0 where all read at least 97 % of the held-out digits, the first 20 losses agree with the CPU's within 1e-3
relative, the accuracies within 1.5 points, and no call of the others fell back to the host.
"""

import argparse
import json
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import backplane as bp

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


def accuracy_check(result: Any) -> tuple[str, bool]:
    return (f"{result['device']}: {result['accuracy']:.2%} of {result['held_out']} held-out digits "
            f"(wanted {WANTED_ACCURACY:.0%}), {result['seconds']:.0f} s", result["accuracy"] >= WANTED_ACCURACY)


def checks(cpu: Any, other: Any) -> Iterator[tuple[str, bool]]:
    """(an observation as text, whether it is correct)."""
    difference = worst_difference(cpu["losses"], other["losses"])
    apart = abs(cpu["accuracy"] - other["accuracy"])
    name = other["device"]
    yield accuracy_check(other)
    yield (f"{name}: the first {COMPARED} losses differ by at most {difference:.1e} relative (allowed {LOSS_TOLERANCE:g})",
           difference <= LOSS_TOLERANCE)
    yield (f"{name}: the accuracies differ by {apart * 100:.2f} points (allowed {ACCURACY_TOLERANCE * 100:g})",
           apart <= ACCURACY_TOLERANCE)
    fallbacks = other["calls"]["host_fallbacks"]
    yield f"{name}: {fallbacks} host fallbacks (allowed 0)", fallbacks == 0


def shortcoming(device: str) -> str:
    """Why this machine cannot run on a device; empty: it can."""
    try:
        bp.zeros(1, device=device)
    except (ValueError, bp.DeviceError) as error:
        return str(error).splitlines()[0]
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plugin", action="append", default=[], help="what brings a device; may be given again")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/demo"))
    parser.add_argument("--device", action="append", help="compare this one with the CPU; may be given again")
    options = parser.parse_args()
    plugins = {backend: path for path in options.plugin for backend in bp.load_plugin(path).backends}
    results = [run("cpu", options)]
    for device in options.device or ["sim"]:
        plugin = plugins.get(device.split(":")[0])
        if reason := shortcoming(device):
            print(f"{device} is left out: {reason}")
        else:
            results.append(run(device, options, *(["--plugin", plugin] if plugin else [])))

    print(f"\n{'device':8}{'kernels':>12}{'decompositions':>16}{'host fallbacks':>16}{'accuracy':>10}{'seconds':>9}")
    for result in results:
        calls = result["calls"]
        print(f"{result['device']:8}{calls['kernels']:12,}{calls['decompositions']:16,}{calls['host_fallbacks']:16,}"
              f"{result['accuracy']:10.2%}{result['seconds']:9.0f}")
    print()
    kept = True
    for text, passed in [accuracy_check(results[0]), *(line for other in results[1:] for line in checks(results[0], other))]:
        print(f"{'pass' if passed else 'FAIL'}  {text}")
        kept = kept and passed
    print(f"\npictures: {options.out}")
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
