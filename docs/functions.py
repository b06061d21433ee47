"""The pages of the public functions: one page per function, for the site that `./dev docs` builds.

In: the pages that codegen wrote per op (ops/NAME.md), the package that was built, and its samples.json. A function that is an op keeps the
page of the op; this program adds what codegen cannot know: the executed example, the names in other libraries, and the backends with a
kernel. A function in Python gets a page in functions/, from its signature and its docstring. functions/index.md lists all of them.

Every example of a page is executed here. A result that differs from the printed one is an error.
"""

import contextlib
import doctest
import importlib
import inspect
import io
import json
import pathlib
import re

import other_names

MODULES = ("", "linalg", "fft", "nn.functional")
TITLES = {"": "Functions of backplane", "linalg": "backplane.linalg", "fft": "backplane.fft", "nn.functional": "backplane.nn.functional"}
EXAMPLES = pathlib.Path(__file__).resolve().parent / "function_examples.txt"
SPELLED = "Accepted beside the names above"


class Broken(Exception):
    """An example fails, or prints something else than its page says."""


def executed(package, statements, name):
    """The statements as an interactive session, with the results that they have now."""
    names, lines = {"bp": package}, []
    for statement in statements:
        lines.append(f">>> {statement}")
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(statement + "\n", name, "single"), names)  # prints the value of an expression, as an interpreter does
        except Exception as error:
            raise Broken(f"{name}: {statement!r} raises {type(error).__name__}: {error}") from error
        lines += printed.getvalue().splitlines()
    return "\n".join(lines)


def checked(package, session, name):
    """The session, after a run that printed the same."""
    statements = [example.source.rstrip("\n").replace("\n", "\n... ") for example in doctest.DocTestParser().get_examples(session)]
    made = executed(package, statements, name)
    if made.split() != session.split():
        raise Broken(f"{name}: the example prints\n{made}\nand its entry says\n{session}")
    return session


class Registry:
    """The ops as samples.json describes them, by their name without the namespace."""

    def __init__(self, samples, kernels):
        self.ops = {entry["name"].partition("::")[2]: entry for entry in json.loads(samples.read_text(encoding="utf-8"))["ops"]}
        self.kernels = kernels  # op -> {backend: word of the table of coverage}

    def spellings(self, name):
        words = self.ops[name].get("spellings", {})
        return [f"`{word}`, for {meaning}" if "(" not in word else f"`{word}`, which is `{meaning}`" for word, meaning in words.items()]

    def backends(self, name):
        return self.kernels.get(f"bp::{name}", {})


def listed(names):
    return ", ".join(f"`{name}`" for name in sorted(names, key=lambda name: (len(name), name)))


def libraries(names):
    """The section with the names in other libraries; empty where no other library has the function."""
    if not names:
        return ""
    rows = [f"| {library} | {listed(names[library])} |" for library in other_names.TITLES.values() if library in names]
    return "\n## In other libraries\n\n| library | name |\n| --- | --- |\n" + "\n".join(rows) + "\n"


def kernels(backends):
    """The section with the backends."""
    if not backends:
        return ""
    rows = [f"| {backend} | {word} |" for backend, word in backends.items()]
    return ("\n## On devices\n\n| backend | runs as |\n| --- | --- |\n" + "\n".join(rows)
            + "\n\n[Backends](../reference/backends.md) explains the words.\n")  # fmt: skip


def op_page(package, registry, name, own_names, names, page):
    """Completes the page of an op: title, example, names and backends."""
    entry = registry.ops[name]
    text = page.read_text(encoding="utf-8")
    title = own_names[0]
    text = text.replace(f"# bp::{name}\n", f"# {title}\n", 1)
    if "example" in entry:
        checked(package, entry["example"], title)
    spelled = registry.spellings(name)
    if spelled:
        text = text.replace("\n## Entry\n", f"\n## Other spellings\n\n{SPELLED}:\n\n" + "\n".join(f"- {line}" for line in spelled) + "\n\n## Entry\n", 1)
    also = own_names[1:]
    if also:
        text = re.sub(r"\nIn Python also .*\n", "", text)
        text = text.replace("\n| argument |", f"\nThe same function: {listed(also)}.\n\n| argument |", 1)
    page.write_text(text.rstrip("\n") + "\n" + libraries(names) + kernels(registry.backends(name)), encoding="utf-8")
    return escaped(entry["doc"])


def signature_text(function, name):
    try:
        text = f"{name}{inspect.signature(function)}"
    except (TypeError, ValueError):  # a builtin without a signature
        text = f"{name}(...)"
    return re.sub(r"backplane(\._core)?\.(?=[A-Z])|collections\.abc\.|typing\.|'", "", text)


def escaped(text):
    """A sentence as Markdown: outside of code, no `*` marks emphasis, and no `](` a link."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"\*|(?<=\])\(", r"\\\g<0>", part) for part in parts)


def prose(docstring):
    """(the summary, the rest of a docstring as Markdown): indented blocks become lists of definitions, and sessions become code."""
    summary, _, rest = inspect.cleandoc(docstring or "").partition("\n\n")
    out, session = [], False
    for line in rest.splitlines():
        starts = line.lstrip().startswith(">>> ")
        if starts and not session:
            out.append("\n```python")
        if session and not line.strip():
            out.append("```")
        session = (starts or session) and bool(line.strip())
        argument = None if session else re.match(r"(\w[\w, *]*): (.*)", line)
        text = line if session else escaped(line.strip())
        out.append(f"\n- `{argument[1]}`: {escaped(argument[2])}" if argument else text)
    return escaped(" ".join(summary.split())), "\n".join(out + (["```"] if session else [])).strip()


def python_page(package, function, own_names, names, examples, page):
    """The page of a function that is written in Python."""
    summary, rest = prose(function.__doc__)
    title = own_names[0]
    parts = [f"# {title}", summary, f"```python\n{signature_text(function, title)}\n```"]
    if own_names[1:]:
        parts.append(f"The same function: {listed(own_names[1:])}.")
    if rest:
        parts.append(rest)
    statements = next((examples[name] for name in own_names if name in examples), None)
    if statements:
        parts.append(f"## Example\n\n```python\n{executed(package, statements, title)}\n```")
    page.parent.mkdir(exist_ok=True)
    page.write_text("\n\n".join(parts) + "\n" + libraries(names), encoding="utf-8")
    return summary


def public():
    """{id: (function, its public names, the module of each)}, the shortest name of the first module first."""
    found, backplane = {}, importlib.import_module("backplane")
    for module in MODULES:
        home = importlib.import_module(f"backplane.{module}" if module else "backplane")
        for name in dir(home):
            function = getattr(home, name, None)
            if name.startswith("_") or not callable(function) or isinstance(function, (type, backplane.DType)):
                continue
            if not getattr(function, "__module__", "backplane").startswith("backplane"):
                continue
            _, names = found.setdefault(id(function), (function, []))
            names.append((f"bp.{module}.{name}" if module else f"bp.{name}", module))
    return found


def read_examples():
    """`bp.NAME: statement ;; statement` -> {name: statements}"""
    lines = [line for line in EXAMPLES.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {name: code.split(" ;; ") for name, _, code in (line.partition(": ") for line in lines)}


def write_pages(build, out, coverage):
    """Writes and completes the pages below `out`; returns the texts of what is broken. coverage: op -> {backend: word}."""
    package = importlib.import_module("backplane")
    registry = Registry(build / "dispatcher/generated/samples.json", coverage)
    elsewhere = other_names.other_names(package)
    examples, rows, broken = read_examples(), {module: [] for module in MODULES}, []
    own_name = type(package.sin)
    taken = set()
    for function, named in public().values():
        names = [name for name, _ in named]
        op = function.full_name.partition("::")[2] if isinstance(function, own_name) else None
        if op and f"bp.{op}" in names:  # the entry's own name leads
            names.insert(0, names.pop(names.index(f"bp.{op}")))
        is_page_of_op = op in registry.ops and op not in taken
        taken.add(op)
        page = out / f"ops/{op}.md" if op else out / f"functions/{names[0]}.md"
        try:
            known = elsewhere.get(id(function), {})
            if is_page_of_op:
                summary = op_page(package, registry, op, names, known, page)
            elif op:  # an alias with its own object, as amax
                summary = escaped(registry.ops[op]["doc"])
            else:
                summary = python_page(package, function, names, known, examples, page)
        except Broken as error:
            broken.append(str(error))
            continue
        for name, module in named:
            rows[module].append((name, f"../ops/{op}.md" if op else f"{names[0]}.md", summary))
    unused = set(examples) - {name for names in rows.values() for name, _, _ in names}
    broken += [f"{EXAMPLES.name}: there is no function {name}" for name in sorted(unused)]
    write_index(rows, out / "functions/index.md")
    return broken


def write_index(rows, page):
    """The list of all functions, one table per module."""
    count = len({link for module in rows.values() for _, link, _ in module})
    lines = [*"---|search:|  boost: 0.1|---".split("|"), "", "# Functions", "", f"The {count} public functions, under all of their names. Each page shows the signatures in Python and C++, the arguments,",
             "an executed example, the derivative, and what other libraries call the function. `help(bp.softmax)` shows the text of the page."]  # fmt: skip
    for module, found in rows.items():
        lines += ["", f"## {TITLES[module]}", "", "| function | |", "| --- | --- |"]
        for name, link, summary in sorted(found, key=lambda row: row[0].lower()):
            lines.append(f"| [{name}]({link}) | {summary.replace('|', chr(92) + '|')} |")
    page.parent.mkdir(exist_ok=True)
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
