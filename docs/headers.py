"""Pages of the C and C++ headers, for the site: one per public header, in headers/, and an index by what a reader needs them for.

A header's opening comment is the text of its page. Its declarations follow as code, with their comments, cut at blank lines of the outermost
level: each part gets the name of its first declaration as a heading, so that the search finds it.
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
GROUPS = {
    "For programs: namespace bp": ("sdk/include", ["backplane/bp.hpp", "backplane/bp/*.hpp", "backplane/bp/nn/*.hpp"]),
    "For programs: namespace backplane": ("dispatcher/include", ["backplane/*.hpp"]),
    "For plugins, in C++": ("dispatcher/include", ["backplane/plugin/*.hpp", "backplane/plugin/*.h"]),
    "The contract, in C": ("dispatcher/abi", ["backplane/abi/*.h"]),
}
NAMED = [
    re.compile(r"^\s*(?:typedef )?(?:struct|class|enum(?: class)?|union)\s+(?:\w+_API\s+)?(\w+)", re.MULTILINE),
    re.compile(r"^#define (\w+)", re.MULTILINE),
    re.compile(r"^\s*(?:using|concept)\s+(\w+)\s*=", re.MULTILINE),
    re.compile(r"\b([A-Za-z_]\w*)\s*\([^;{]*\)[^;{]*[;{]"),
    re.compile(r"\b(\w+)\s*(?:=[^;]*)?;"),
]
SKIPPED = re.compile(r"^\s*(#define \w+_H|#(ifndef|ifdef|if|endif|else|elif|include|pragma)\b.*|extern \"C\" \{|\}.*// namespace.*|namespace [\w:]+ \{|\}|)$")


def opening(text):
    """(the opening comment as prose, the rest)."""
    block = re.match(r"/\*(.*?)\*/\n", text, re.DOTALL)
    if block:
        lines = [re.sub(r"^\s*\*? ?", "", line) for line in block[1].splitlines()]
        return "\n".join(lines).strip(), text[block.end() :]
    lines = text.splitlines()
    count = next((i for i, line in enumerate(lines) if not line.startswith("//")), len(lines))
    return "\n".join(line[2:].removeprefix(" ") for line in lines[:count]).strip(), "\n".join(lines[count:])


def parts(body):
    """The declarations, each with its comment: cut at blank lines outside of braces."""
    found, current, depth = [], [], 0
    for line in body.splitlines():
        if not line.strip() and depth == 0:
            found.append(current)
            current = []
            continue
        if depth == 0 and not current and SKIPPED.match(line):
            continue
        current.append(line)
        code = re.sub(r'//.*|/\*.*?\*/|"(\\.|[^"\\])*"|\'(\\.|[^\'\\])\'', "", line)
        depth += code.count("{") - code.count("}")
        if depth < 0:  # the end of a namespace or of extern "C"
            current.pop()
            depth = 0
        elif SKIPPED.match(line) and line.strip().endswith("{"):  # their beginning
            current.pop()
            depth -= 1
    found.append(current)
    return ["\n".join(part) for part in found if any(not SKIPPED.match(line) for line in part)]


def heading(part):
    """The name of the first declaration; None where it has none that a reader would look for."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/", "", part, flags=re.DOTALL)
    first = min(((match.start(), order, match[1]) for order, pattern in enumerate(NAMED) if (match := pattern.search(code))), default=None)
    return first[2] if first else None


def page(path, name, escaped):
    prose, body = opening(path.read_text(encoding="utf-8"))
    lines = [f"# {name}", "", f'`#include "{name}"`', "", escaped(prose), ""]
    language, before = ("c" if path.suffix == ".h" else "cpp"), None
    for part in parts(body):
        title = heading(part)
        if title and title != before:
            lines += [f"## {title}", ""]
        before = title
        lines += [f"```{language}", part, "```", ""]
    return "\n".join(lines), re.split(r"(?<=[.:]) |\n\n", prose.replace("\n", " ").replace("Backplane binary contract: ", ""))[0]


def write_pages(out, escaped):
    """Writes headers/; returns how many headers have a page. escaped: makes Markdown of a sentence."""
    folder, count = out / "headers", 0
    folder.mkdir(exist_ok=True)
    index = ["# Headers", "", "The public headers of C and C++. [Functions](../functions/index.md) have their C++ signatures on their own pages.", ""]
    for title, (root, patterns) in GROUPS.items():
        index += [f"## {title}", "", "| header | |", "| --- | --- |"]
        for path in sorted({path for pattern in patterns for path in (ROOT / root).glob(pattern)}):
            name = path.relative_to(ROOT / root).as_posix()
            file = name.removeprefix("backplane/").replace("/", "-") + ".md"
            text, summary = page(path, name, escaped)
            (folder / file).write_text(text, encoding="utf-8")
            index.append(f"| [{name}]({file}) | {escaped(summary).replace('|', chr(92) + '|')} |")
            count += 1
        index.append("")
    (folder / "index.md").write_text("\n".join(index), encoding="utf-8")
    return count
