"""The registry as the laws see it: every entry of `samples.json`, which codegen writes beside the op records.

Found by the environment variable BACKPLANE_SAMPLES, beside the package, or in a build tree above it. Read once, never
changed. A `Case` is one sample of one entry; `cases(law, applies)` gives the parameters of a law's test, less the
entries that `except:` exempts, which are counted by conftest.py.
"""

import functools
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

LAWS = (
    "gradient",
    "second_order",
    "reverse",
    "forward",
    "jvp_grad",
    "vmap",
    "vmap_grad",
    "grad_vmap",
    "meta",
    "dtypes",
    "layout",
    "broadcast",
    "decompose",
    "inplace",
    "out",
    "zeros",
    "alias",
    "native",
    "numpy",
    "zero_size",
    "errors",
    "range",
    "imaginary",
    "trace",
    "dynamic",
    "edges",
    "half",
    "expect",
    "padding",
)
INEXACT = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
# What an op that computes in floating point takes beside the dtypes that it computes in.
MADE_FLOATING = ("bool", *(sign + width for sign in ("int", "uint") for width in ("8", "16", "32", "64")))
LACKS = frozenset(filter(None, os.environ.get("BACKPLANE_LAW_LACKS", "").split(",")))  # dtypes that the device has not
DEVICE = os.environ.get("BACKPLANE_LAW_DEVICE", "cpu")
exempted = {}  # law -> {op: reason}; filled while tests are collected


@dataclass(frozen=True)
class Arg:
    name: str
    type: str
    is_list: bool
    optional: bool
    accepts: tuple
    promote: bool

    @property
    def is_tensor(self):
        return self.type == "Tensor"

    @property
    def differentiable(self):
        return self.is_tensor and any(name in self.accepts for name in INEXACT)


@dataclass(frozen=True)
class Entry:
    name: str
    args: tuple
    results: tuple  # (name, dtype rule, nondiff)
    flags: frozenset
    tolerance: float
    compare: str
    exempt: dict = field(hash=False)
    rules: dict = field(hash=False)  # vjp, jvp: {argument: kind}; batch: kind; refusals: {"vjp x": reason}; native: ["vjp x"]
    alias: str | None = None
    padded: tuple = ()  # per result but the count: are its rows from the count on padding?

    def arg(self, name):
        return next(arg for arg in self.args if arg.name == name)

    @property
    def python_name(self):
        return self.name.partition("::")[2].replace(".", "_")

    @property
    def differentiable(self):
        """Arguments whose gradient is a value: those with a formula, and all of a composite."""
        stated = self.rules["vjp"]
        return tuple(
            arg for arg in self.args if arg.differentiable and ("composite" in self.flags or stated.get(arg.name) in ("formula", "zero"))
        )


@dataclass(frozen=True)
class Case:
    entry: Entry
    number: int
    sample: dict = field(hash=False)  # argument -> value, as codegen writes it
    error: str = ""
    expect: tuple = ()  # per result: its shape and values, where the sample states them

    def __str__(self):
        return f"{self.entry.python_name}-{self.number}"


def samples_path():
    stated = os.environ.get("BACKPLANE_SAMPLES")
    if stated:
        return Path(stated)
    from backplane import _core

    package = Path(_core.__file__).resolve().parent  # the extension: in a build tree the package's files are links
    places = [package / "samples.json", *(above / "share" / "backplane" / "samples.json" for above in package.parents)]
    places += [above / "dispatcher" / "generated" / "samples.json" for above in package.parents]
    for place in places:
        if place.is_file():
            return place
    raise FileNotFoundError(f"samples.json is at none of {', '.join(map(str, places))}; set BACKPLANE_SAMPLES to its path")


# The order in which a law chooses the one dtype in which it tries a case.
WIDEST = ("float64", "int64", "complex128", "float32", "int32", "complex64", "bool", "float16", "bfloat16")


def widest(accepted):
    """The first of those that are accepted; where no tensor's dtype matters, one that the device computes in."""
    return next((name for name in WIDEST if name in accepted), next(name for name in WIDEST if name not in LACKS))


def read_arg(arg, to_floating):
    accepts = tuple(arg["accepts"]) + (MADE_FLOATING if to_floating and arg["promote"] else ())
    accepts = tuple(name for name in accepts if name not in LACKS)
    return Arg(arg["name"], arg["type"], arg["list"], arg["optional"], accepts, arg["promote"])


def read_entry(row):
    args = tuple(read_arg(arg, "to_floating" in row["flags"]) for arg in row["args"])
    results = tuple((result["name"], result["dtype"], result.get("nondiff", False)) for result in row["results"])
    rules = {key: row[key] for key in ("vjp", "jvp", "batch", "refusals", "decompose", "native")}
    return Entry(
        row["name"], args, results, frozenset(row["flags"]), row["tolerance"], row["compare"], row["except"], rules, row["alias"],
        tuple(row.get("padded", ())),
    )


def within_device(case):
    """Has the device dtypes for every tensor of the sample, and for the results?"""
    for name, value in case.sample.items():
        specs = value.get("tensors") or [value.get("tensor")]
        if any(spec and (spec["dtype"] in LACKS or not case.entry.arg(name).accepts) for spec in specs):
            return False
    return not (LACKS and any(rule == "complex" for _, rule, _ in case.entry.results))


@functools.cache
def registry():
    """All cases, in the order of the registry file."""
    rows = json.loads(samples_path().read_text())["ops"]
    found = []
    for row in rows:
        entry = read_entry(row)
        found += [
            Case(entry, number, sample["args"], sample["error"], tuple(sample.get("expect", ()))) for number, sample in enumerate(row["samples"])
        ]
    return found


def cases(law, applies, errors=False):
    """The parameters of a law's test: every case to which it applies."""
    assert law in LAWS, law
    found = []
    for case in registry():
        if bool(case.error) != errors or not within_device(case) or not applies(case):
            continue
        why = case.entry.exempt.get(law)
        if why:
            exempted.setdefault(law, {})[case.entry.name] = why
        else:
            found.append(pytest.param(case, id=str(case), marks=pytest.mark.law(law)))
    return found
