"""`./dev docs`: the pages of docs/, those that codegen writes from the registry, and those of the functions, in one folder, links checked.

In: --build, a build folder with codegen's pages, the package, and the `backplane` command, whose coverage table becomes a page; --out,
the folder to make. Exit status 1 where a link leads nowhere, an example fails, or an op has neither a rule nor a refusal.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parent
sys.path.append(str(DOCS.parent / "bench"))

import figures  # noqa: E402
import functions  # noqa: E402
import headers  # noqa: E402
import plots  # noqa: E402

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
GENERATED = ("ops", "functions", "headers")  # folders of docs/ that exist only in a build


def anchors(page):
    """Headings as the common Markdown viewers name them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+\s+(.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def dead_links(page, ignored=lambda target: False):
    """The relative links of a page that lead to no file, or to no heading of one."""
    dead = []
    for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if ignored(target):
            continue
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            dead.append(link)
    return dead


def write_coverage(build, page):
    """The table of `backplane ops --coverage` as Markdown. Returns op -> {backend: how it runs there}."""
    done = subprocess.run([build / "bin/backplane", "ops", "--coverage"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"docs: an op has a hole in `backplane ops --coverage`:\n{done.stdout}{done.stderr}")
    table, _, counts = done.stdout.partition("\n\n")
    rows = [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()]
    backends = range(rows[0].index("trace") + 1, len(rows[0]))
    kernels = {row[0]: {rows[0][i]: row[i] for i in backends} for row in rows[1:]}
    rows.insert(1, ["---"] * len(rows[0]))
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    page.write_text("# Coverage\n\nWhat each op has under each transform and on each backend: `backplane ops --coverage`.\n\n"
                    + "\n".join(lines) + f"\n\n```\n{counts.strip()}\n```\n", encoding="utf-8")
    return kernels


def write_performance(folder):
    """A page with the whole tables and plots of each processor, to which the summary's links lead."""
    page = folder / "performance.md"
    text = page.read_text(encoding="utf-8")
    for processor, sections in figures.read().items():
        name = f"performance-{figures.slug(processor)}"
        (folder / f"{name}.md").write_text(figures.details(processor, sections), encoding="utf-8")
        plots.write_plots(folder / f"{name}.md", folder, name)
        text = text.replace(f"](../../bench/figures/{figures.slug(processor)}.json)", f"]({name}.md)")
    page.write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()

    generated = options.build / "dispatcher/generated/docs"
    if not generated.is_dir():
        sys.exit(f"docs: codegen's pages are missing: there is no {generated}. Fix: ./dev build")
    shutil.rmtree(options.out, ignore_errors=True)
    shutil.copytree(DOCS, options.out, ignore=shutil.ignore_patterns("*.py", "__pycache__", "other_names.txt", "function_examples.txt", "theme"))
    shutil.copytree(generated, options.out, dirs_exist_ok=True)
    kernels = write_coverage(options.build, options.out / "ops/coverage.md")
    failures = functions.write_pages(options.build, options.out, kernels)
    headers.write_pages(options.out, functions.escaped)
    write_performance(options.out / "reference")
    print("\n".join(failures), end="\n" if failures else "")

    root, pages, broken = DOCS.parent, 0, len(failures)
    for page in sorted(options.out.rglob("*.md")):
        pages += 1
        # Links out of docs/ lead into the tree itself, and are checked there.
        for link in dead_links(page, ignored=lambda target: not target.is_relative_to(options.out.resolve())):
            broken += 1
            print(f"{page.relative_to(options.out)}: {link} leads nowhere")
    print(f"{pages} pages in {options.out.relative_to(root) if options.out.is_relative_to(root) else options.out}")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
