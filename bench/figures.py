"""The figures that `./dev bench --write` keeps: one JSON file per processor in bench/figures/, and the pages that are made from them.

A file holds {"processor": its name, "sections": {title: {"measured": when and with what, "parts": [text, or a table]}}}. A table is
{"columns": [...], "rows": [[...]]}, whose cells are text. `python bench/figures.py` writes docs/reference/performance.md again; the site has
a page with the whole tables of each file.
"""

import collections
import json
import math
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "bench/figures"
PAGE = ROOT / "docs/reference/performance.md"
COLUMNS = ["what", "ours", "peer", "ratio", "limit", ""]  # of a table whose rows have limits, as report.py writes it
CALLS = "Overhead of a call"
PEERS = {"numpy": "NumPy", "torch": "PyTorch", "jax": "JAX"}  # the other peers share a column
PEER = re.compile(r"\((numpy|torch|jax)\)$")
WAYS = {"torch.compile": "torch", "jax.jit": "jax"}  # columns of the table of compiled functions, beside "ours"
CELL = re.compile(r" µs, ([\d.e+-]+) (numpy|torch|jax)\b")  # of a kernel's table: our time over the best peer's, which is named
HEAD = """# Performance

`./dev bench` measures Backplane and its peers in turns, in one run. A ratio below 1 means that Backplane is faster. Times change from machine to machine. Ratios change less.
`./dev bench NAME --write` keeps the results of this machine in `bench/figures/` and writes this page again.

Memory, and the time of writes into large tensors: [memory.md](memory.md).
"""


def slug(processor):
    return "-".join(re.findall("[a-z0-9]+", processor.lower()))


def read():
    """All files, by processor."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))]
    return {one["processor"]: one["sections"] for one in found}


def keep(processor, title, measured, text):
    """Renews a section, given as Markdown, and the page."""
    path = FOLDER / f"{slug(processor)}.json"
    sections = json.loads(path.read_text(encoding="utf-8"))["sections"] if path.exists() else {}
    sections[title] = {"measured": measured, "parts": parts_of(text)}
    path.write_text(as_json(processor, sections), encoding="utf-8")
    PAGE.write_text(page(read()), encoding="utf-8")


def as_json(processor, sections):
    """A row of a table takes a line, so that a change of it is one."""
    rows = []

    def marked(part):
        if isinstance(part, str):
            return part
        rows.extend(part["rows"])
        return {"columns": part["columns"], "rows": [f"row {number}" for number in range(len(rows) - len(part["rows"]), len(rows))]}

    written = {title: {"measured": section["measured"], "parts": [marked(part) for part in section["parts"]]} for title, section in sections.items()}
    text = json.dumps({"processor": processor, "sections": written}, indent=1, ensure_ascii=False)
    return re.sub(r'"row (\d+)"', lambda mark: json.dumps(rows[int(mark[1])], ensure_ascii=False), text) + "\n"


def parts_of(markdown):
    """Texts and tables, in their order."""
    parts = []
    for block in re.split(r"\n{2,}", markdown.strip()):
        lines = block.splitlines()
        if len(lines) > 1 and lines[0].startswith("|") and set(lines[1]) <= set("|- "):
            rows = [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in lines]
            parts.append({"columns": rows[0], "rows": rows[2:]})
        else:
            parts.append(block)
    return parts


def table(columns, rows):
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def tables(section):
    return [part for part in section["parts"] if isinstance(part, dict)]


def limited(section):
    """The rows of the section's tables whose columns are COLUMNS."""
    return [row for part in tables(section) if part["columns"] == COLUMNS for row in part["rows"]]


def ratios(section):
    """Peer -> our times over its times."""
    found = collections.defaultdict(list)
    for part in tables(section):
        columns = part["columns"]
        for way, peer in WAYS.items() if "ours" in columns and WAYS.keys() <= set(columns) else ():
            ours, theirs = columns.index("ours"), columns.index(way)
            found[peer] += [float(row[ours]) / float(row[theirs]) for row in part["rows"] if row[theirs]]
    for row in limited(section) if not found else ():
        if row[3] and float(row[3]) > 0:
            peer = PEER.search(row[2])
            found[peer[1] if peer else "others"].append(float(row[3]))
    for part in tables(section):
        for row in part["rows"] if part["columns"] != COLUMNS else ():
            for ratio, peer in CELL.findall(" | ".join(row)):
                found[peer].append(float(ratio))
    return found


def mean(values):
    return f"{math.exp(sum(map(math.log, values)) / len(values)):.2g}" if values else ""


def summary(figures):
    """A line per section and processor."""
    titles = list(dict.fromkeys(title for sections in figures.values() for title in sections))
    lines = []
    for title in titles:
        for processor, sections in figures.items():
            if title in sections:
                found, rows = ratios(sections[title]), limited(sections[title])
                judged = [row[5] for row in rows if row[5]]
                link = f"[{processor}](../../bench/figures/{slug(processor)}.json)"
                kept = f"{judged.count('pass')} of {len(judged)}" if judged else ""
                lines.append([title, link, date(sections[title]), *(mean(found[peer]) for peer in (*PEERS, "others")), kept])
    columns = ["what", "processor", "date", *(f"of {name}" for name in PEERS.values()), "of others", "limits kept"]
    return table(columns, lines)


def date(section):
    return match[0] if (match := re.search(r"\d{4}-\d\d-\d\d", section["measured"])) else ""


def missed(figures):
    rows = [[row[0], processor, row[3] or row[1], row[4]]
            for processor, sections in figures.items() for section in sections.values() for row in limited(section) if row[5] == "FAIL"]
    return table(["what", "processor", "found", "limit"], rows)


def page(figures):
    """The page: the measurements, the calls, and every limit that is missed."""
    processor = max((name for name in figures if CALLS in figures[name]), key=lambda name: date(figures[name][CALLS]))
    calls = figures[processor][CALLS]
    parts = [HEAD.rstrip(), "## All measurements",
             "A number is the geometric mean of our times over the peer's. *Others* are loops written by hand, libraries that kernels call, and other modes of Backplane.",
             summary(figures), f"## Calls: {processor}", calls["measured"], table(COLUMNS, limited(calls)),
             "## Limits that are missed", "Each limit stands in `bench/report.py` or beside the cases. `./dev bench` exits with an error while one is missed.",
             missed(figures), (FOLDER / "notes.md").read_text(encoding="utf-8").strip()]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def details(processor, sections):
    """The page with the whole tables of a processor."""
    parts = [f"# Performance: {processor}", "All tables of `./dev bench` on this processor. The [summary](performance.md) has the others."]
    for title, section in sections.items():
        parts += [f"## {title}", section["measured"], *(table(part["columns"], part["rows"]) if isinstance(part, dict) else part for part in section["parts"])]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(read()), encoding="utf-8")
