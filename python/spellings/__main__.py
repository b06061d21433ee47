"""Writes backplane.compat.numpy and backplane.compat.torch, modules of functions, from the lists of names beside this file.

    python spellings FOLDER LIST...    FOLDER/compat/NAME/__init__.py, and a module for each [section], of each list NAME.txt

A list says how a library spells calls of Backplane's functions, one name a line; a line that begins with spaces continues the one before:

    max(a, axis=None, out=None, keepdims=False)           the function of the same name, called with these arguments
    sort(input, dim=-1, descending=False) = EXPRESSION    what the call means: _bp is the package, _own compat/_NAME_forms.py, {name} the name
    concat concatenate(arrays, /, axis=0)                 the same for several names
    float64 = _bp.float64                                 a value
    same: pi inf nan                                      Backplane's values of these names
    ufunc(x1, x2): add subtract                           elementwise functions that are NumPy's ufuncs
    %float float64                                        the dtype of floats that name none, for all functions of the list
    %python_floats                                        Python's float and complex as `dtype` are float64 and complex128
    %takes order None 'C' 'K'                             where an expression does not use this argument, it takes these values alone
    %synonym dim axis                                     optional arguments that the library takes by another name too
    %modules nn nn.functional                             modules of backplane that can be imported by these names too
    host: numpy.testing                                   all names of this section are those of the library's own module
    [linalg]                                              what follows goes into a module of that name; _bp is then backplane.linalg

An argument that defaults to None is handed on where the call gives it; one with another default always is, so that the library's default holds.
`out` is written into after the call.
"""

import ast
import pathlib
import sys


class List:
    """One file: its lines by section, its default dtype, and the arguments that take few values."""

    def __init__(self, path):
        self.python_floats = False
        self.library, self.float, self.takes, self.modules, self.synonyms, self.sections = path.stem, None, {}, [], {}, {"": []}
        section = ""
        for number, line in joined(path.read_text(encoding="utf-8")):
            if line.startswith("["):
                section = line.strip("[]")
                self.sections.setdefault(section, [])
            elif line.startswith("%float "):
                self.float = line.split()[1]
            elif line == "%python_floats":
                self.python_floats = True
            elif line.startswith("%synonym "):
                _, argument, self.synonyms[argument] = line.split()
            elif line.startswith("%modules "):
                self.modules = line.split()[1:]
            elif line.startswith("%takes "):
                _, argument, *values = line.split()
                self.takes[argument] = values
            else:
                self.sections[section].append((f"{path.name}:{number}", line))


def joined(text):
    """The lines without comments, each with those that continue it."""
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(" ") and lines:
            lines[-1] = (lines[-1][0], f"{lines[-1][1]} {line.strip()}")
        elif line and not line.startswith("#"):
            lines.append((number, line))
    return lines


def closing(text):
    """Where the bracket closes that the text begins with."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0:
            return place
    raise SystemExit(f"python/spellings: found no closing bracket in {text!r}")


def parts(where, line):
    """(names, signature or None, meaning or None) of a line."""
    head, _, _ = line.partition(" = ")
    opening = head.find("(")
    if opening < 0:
        names, _, meaning = line.partition(" = ")
        return names.split(), None, meaning
    close = opening + closing(line[opening:])
    meaning = line[close + 1 :].strip()
    if meaning and not meaning.startswith("= "):
        raise SystemExit(f"{where}: found {meaning!r} after the signature, expected '= EXPRESSION'")
    return line[:opening].split(), line[opening + 1 : close], meaning[2:] or None


def handed_on(arguments):
    """The arguments of a call of the function of the same name."""
    positional = arguments.posonlyargs + arguments.args
    required = len(positional) - len(arguments.defaults)
    words = [arg.arg for arg in positional[:required]]
    optional = list(zip(positional[required:], arguments.defaults)) + list(zip(arguments.kwonlyargs, arguments.kw_defaults))
    if arguments.vararg:
        words.append(f"*{arguments.vararg.arg}")
    given = []
    for arg, default in optional:
        is_none = isinstance(default, ast.Constant) and default.value is None
        (given if is_none else words).append(f"{arg.arg}={arg.arg}")
    return words, given, arguments.kwarg


def used(text):
    return {node.id for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)}


def with_synonyms(listed, name, signature):
    """The signature with the further names of its optional arguments, and the statements that read them."""
    arguments = ast.parse(f"def f({signature}): ...").body[0].args
    positional = arguments.posonlyargs + arguments.args
    defaults = dict(zip((arg.arg for arg in positional[len(positional) - len(arguments.defaults) :]), arguments.defaults))
    defaults.update({arg.arg: default for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults) if default})
    known = {arg.arg for arg in positional + arguments.kwonlyargs}
    found = {argument: ast.unparse(default) for argument, default in defaults.items() if argument in listed.synonyms and listed.synonyms[argument] not in known}
    for argument in found:
        arguments.kwonlyargs.append(ast.arg(listed.synonyms[argument]))
        arguments.kw_defaults.append(ast.Constant(None))
    words = [(argument, listed.synonyms[argument], default) for argument, default in found.items()]
    read = "{0} = {0} if {1} is None else _calls.renamed({3!r}, {0!r}, {0}, {2}, {1!r}, {1})"
    return ast.unparse(arguments), [read.format(argument, word, default, name) for argument, word, default in words]


def body(listed, name, signature, meaning):
    """The statements of a function."""
    arguments = ast.parse(f"def f({signature}): ...").body[0].args
    every = [arg.arg for arg in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
    needed = used(meaning) if meaning else set()
    fixed = [arg for arg in every if arg in listed.takes and arg not in needed]
    lines = [f"_calls.require_one_of({name!r}, {arg!r}, {arg}, ({', '.join(listed.takes[arg])},))" for arg in fixed]
    lines += ["dtype = _calls.library_dtype(dtype)"] if listed.python_floats and "dtype" in every else []
    call = meaning
    if not meaning:
        words, given, rest = handed_on(arguments)
        words = [word for word in words if word.partition("=")[0] not in (*fixed, "out")]
        given = [word for word in given if word.partition("=")[0] not in (*fixed, "out")]
        words += [f"**_calls.given({', '.join(given)})"] if given else []
        words += [f"**{rest.arg}"] if rest else []
        call = f"_bp.{name}({', '.join(words)})"
    if "out" in every and "out" not in needed:
        call = f"_calls.written({name!r}, {call}, out)"
    return lines + ([f"with _calls.{listed.float}:", f"    return {call}"] if listed.float else [f"return {call}"])


def function(listed, name, signature, meaning):
    written, renamed = with_synonyms(listed, name, signature)
    lines = [f"    {line}\n" for line in renamed + body(listed, name, signature, meaning)]
    return f"\n\ndef {name}({written}) -> _Any:\n{''.join(lines)}\n\n_calls.describe({name}, {name!r}, _bp)\n"


def source(listed, section):
    """The text of a module."""
    if len(listed.sections[section]) == 1 and listed.sections[section][0][1].startswith("host: "):
        return hosted(listed.sections[section][0][1].removeprefix("host: "))
    values, functions, names = [], [], []
    for where, line in listed.sections[section]:
        kind, colon, listed_names = line.partition(": ")
        if colon and kind == "same":
            names += listed_names.split()
            values += [f"{name} = _bp.{name}" for name in listed_names.split()]
        elif colon and kind.startswith("ufunc("):
            count = kind.count(",") + 1
            names += listed_names.split()
            values += [f"{name} = _own.Elementwise{count}(_bp.{name}, {name!r})" for name in listed_names.split()]
        else:
            found, signature, meaning = parts(where, line)
            names += found
            meanings = {name: meaning and meaning.replace("{name}", name) for name in found}
            if signature is None:
                values += [f"{name} = {meanings[name]}" for name in found]
            else:
                functions += [function(listed, name, signature, meanings[name]) for name in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SystemExit(f"{listed.library}.txt: found {', '.join(twice)} twice in section [{section}]")
    return header(listed, section) + "\n".join(values) + "\n" + "".join(functions) + footer(listed, section, names)


def hosted(module):
    """The text of a module with all names of a module of the library, which is imported at the first use."""
    text = f'"""The names of {module}, which are that module\'s own: they take tensors and give its own objects."""\n\nimport importlib as _importlib\n'
    text += "\n\ndef __getattr__(name):\n    if name.startswith('__'):\n        raise AttributeError(name)\n"
    text += f"    return getattr(_importlib.import_module({module!r}), name)\n"
    return text + f"\n\ndef __dir__():\n    return dir(_importlib.import_module({module!r}))\n"


def header(listed, section):
    module = f"backplane.compat.{listed.library}" + (f".{section}" if section else "")
    title = f"{listed.library}.{section}" if section else listed.library
    text = f'"""Functions under the names of {title}, with its signatures and defaults. Generated from python/spellings/{listed.library}.txt."""\n\n'
    text += "from typing import Any as _Any\n\nimport backplane as _backplane\n"
    text += f"from backplane.compat import _calls, _{listed.library}_forms as _own\n"
    text += f"\n_bp = getattr(_backplane, {section!r}, _backplane)\n" if section else "\n_bp = _backplane\n__version__ = _bp.__version__\n"
    return text + f"_module = {module!r}\n\n"


def footer(listed, section, names):
    places = [name for name in listed.sections if name and not section]
    text = "".join(f"\nfrom . import {name} as {name}" for name in places) + "\n" if places else ""
    text += f"\n_calls.share_modules(_module, {listed.modules!r})\n" if listed.modules and not section else ""
    text += f"\n__all__ = {sorted(set(names) | set(places))!r}\n"
    return text + (
        "\n\ndef __getattr__(name):\n    raise _calls.no_name(_module, name)\n"
        "\n\ndef __dir__():\n    return __all__\n"
    )


if __name__ == "__main__":
    folder, *lists = map(pathlib.Path, sys.argv[1:])
    for path in lists:
        listed = List(path)
        module = folder / "compat" / listed.library
        module.mkdir(parents=True, exist_ok=True)
        for section in listed.sections:
            (module / f"{section or '__init__'}.py").write_text(source(listed, section), encoding="utf-8")
