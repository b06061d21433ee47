"""What other libraries call the functions of Backplane, for the pages of functions.

Sources: the lists of names of backplane.compat (python/spellings), and other_names.txt for the array API standard, JAX and PyTorch's functional.
"""

import functools
import pathlib
import re
import runpy

DOCS = pathlib.Path(__file__).resolve().parent
SPELLINGS = DOCS.parent / "python/spellings"
TITLES = {"array_api": "array API", "numpy": "NumPy", "torch": "PyTorch", "jax": "JAX"}
CALL = re.compile(r"_bp\.([A-Za-z_][\w.]*)\(")


@functools.cache
def listed(package):
    return frozenset(dir(package))


def found(package, path):
    """The public function at a dotted path, or None. Only names that `dir` shows: asking for another one may add it to the package."""
    for name in path.split("."):
        package = getattr(package, name) if name in listed(package) else None
    return package if callable(package) and not isinstance(package, type) else None


def of_line(line):
    """(the names that a line of python/spellings defines, the dotted name in Backplane that its expression calls or None)."""
    head, _, expression = line.partition(" = ")
    if head.startswith("same: "):
        return [], None
    names = head.partition(": ")[2] if head.startswith("ufunc(") else head.partition("(")[0]
    call = CALL.match(expression.strip())
    return names.split(), call[1] if call else None


def of_spellings(package):
    """(function, library, name) of the functions of backplane.compat."""
    joined = runpy.run_path(str(SPELLINGS / "__main__.py"), run_name="spellings")["joined"]
    for library in ("numpy", "torch"):
        section = ""
        for _, line in joined((SPELLINGS / f"{library}.txt").read_text(encoding="utf-8")):
            if line.startswith("["):
                section = line.strip("[]")
            elif not line.startswith("%"):
                names, called = of_line(line)
                for name in names:
                    prefix = f"{section}." if section else ""
                    function = found(package, prefix + (called or name))
                    if function is not None:
                        yield function, library, f"{library}.{prefix}{name}"


def of_list(package):
    """(function, library, name) of the names in other_names.txt."""
    module = ""
    for line in (DOCS / "other_names.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        if not line.startswith(" "):
            module = line.rstrip(":")
            continue
        library, _, inner = module.partition(".")
        home = {"nn.functional": "nn.functional.", "numpy.linalg": "linalg.", "numpy.fft": "fft.", "linalg": "linalg.", "fft": "fft."}.get(inner, "")
        for name in line.split():
            function = found(package, home + name)
            if function is not None:
                yield function, library, f"{inner + '.' if inner else ''}{name}" if library == "array_api" else f"{module}.{name}"


def other_names(package):
    """{id of a function: {title of a library: its names}}"""
    names = {}
    for function, library, name in [*of_spellings(package), *of_list(package)]:
        names.setdefault(id(function), {}).setdefault(TITLES[library], set()).add(name)
    return names
