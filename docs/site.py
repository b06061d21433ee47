"""`./dev docs`: the pages of build/docs as a site, with search and a dark mode.

In: --pages, the folder that assemble.py made; --out, the folder to make: pages/ with the sources, html/ with the site, which has a folder for
each version (versions.py). --site puts this version into another folder, beside those of earlier releases. --url is where the site will be:
with it the pages have canonical links, and the selector of versions stays on the page. The home page is README.md. A link that leaves docs/
leads to a copy of the file as plain text. Exit status 1 where MkDocs has a warning. Needs the Python package mkdocs-material.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

import versions
import yaml
from assemble import CODE, DOCS

ROOT = DOCS.parent
LINK = re.compile(r"(\[[^\]]*\]\()([^)\s]+)(\))")

FETCHED_WORKER = "https://unpkg.com/iframe-worker/shim"

SECTIONS = {
    "Start": ("start", ["README.md", "install.md", "five-minutes.md", "python.md", "cpp.md"]),
    "Tutorials": ("tutorials", ["numpy.md", "pytorch.md", "jax.md", "libtorch.md", "vendor.md"]),
    "Cookbook": ("cookbook", ["README.md"]),
    "Guides": ("guides", []),
    "Concepts": ("concepts", ["README.md", "call-path.md", "levels.md", "graphs.md", "devices.md", "threads.md", "plugins.md"]),
    "Functions": ("functions", ["index.md"]),
    "Headers": ("headers", ["index.md"]),
    "Ops": ("ops", ["index.md", "coverage.md"]),
    "Reference": ("reference", []),
    "Development": ("dev", ["README.md", "building.md"]),
}

CONFIG = {
    "site_name": "Backplane",
    "site_description": "A C++ SDK into which tensor backends and operators plug",
    "use_directory_urls": False,
    "theme": {
        "name": "material",
        "custom_dir": str(DOCS / "theme"),
        "font": False,
        "features": ["navigation.tabs", "navigation.sections", "navigation.top", "navigation.footer", "content.code.copy", "search.highlight", "search.suggest", "toc.follow"],
        "palette": [
            {"media": "(prefers-color-scheme: light)", "scheme": "default", "primary": "indigo", "toggle": {"icon": "material/weather-night", "name": "Dark mode"}},
            {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "primary": "indigo", "toggle": {"icon": "material/weather-sunny", "name": "Light mode"}},
        ],
    },
    "extra": {"version": {"provider": "mike", "default": "latest"}},  # the format of versions.json
    "extra_css": ["site.css"],
    "extra_javascript": ["site.js"],
    "plugins": ["search", "offline"],  # the search works for pages that are opened as files, too
    "markdown_extensions": ["tables", "admonition", "pymdownx.superfences", {"pymdownx.highlight": {"anchor_linenums": True}}, {"toc": {"permalink": True}}],
    "validation": {"nav": {"omitted_files": "ignore"}, "links": {"anchors": "warn", "unrecognized_links": "warn"}},
}  # fmt: skip


class Pages:
    """The sources of the site, in `folder`."""

    def __init__(self, folder):
        self.folder = folder

    def as_text(self, target):
        """A file of the tree, or the README of a folder, as plain text in the site; None where there is none."""
        if target.is_dir():
            target = target / "README.md"
        if not target.is_file():
            return None
        copy = self.folder / "tree" / f"{target.relative_to(ROOT)}.txt"
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(target, copy)
        return copy

    def moved(self, page, source, link):
        """The link of a page that came from `source`; None where it leads to nothing in the site."""
        path, hash_sign, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link) or not path:
            return link
        target = (source.parent / path).resolve()
        if target.is_relative_to(DOCS):
            found = self.folder / target.relative_to(DOCS)
            if found.is_dir():
                found = found / "README.md"
        else:
            found, hash_sign, anchor = self.as_text(target), "", ""
        if found is None:
            return None
        up = pathlib.Path(*[".."] * len(page.parent.relative_to(self.folder).parts))
        return f"{(up / found.relative_to(self.folder)).as_posix()}{hash_sign}{anchor}"

    def rewrite(self, page, source):
        text = page.read_text(encoding="utf-8")
        codes = CODE.findall(text)
        text = CODE.sub("\0", text)

        def replaced(match):
            moved = self.moved(page, source, match[2])
            return match[1][1:-2] if moved is None else match[1] + moved + match[3]

        text = LINK.sub(replaced, text)
        for code in codes:
            text = text.replace("\0", code, 1)
        page.write_text(text, encoding="utf-8")

    def write_index_of_ops(self):
        """A table of all ops with the first sentence of each page."""
        rows = []
        for page in sorted((self.folder / "ops").glob("*.md")):
            if page.name in ("coverage.md", "index.md"):
                continue
            name, _, doc = page.read_text(encoding="utf-8").partition("\n\n")
            rows.append(f"| [{name.removeprefix('# ')}]({page.name}) | {doc.partition(chr(10) * 2)[0].replace(chr(10), ' ').replace('|', chr(92) + '|')} |")
        lines = [*"---|search:|  boost: 0.1|---".split("|"), "", "# Ops", "", f"The {len(rows)} ops of the registry. [Coverage](coverage.md) shows what each has under each transform and on each backend.", "",
                 "| op | |", "| --- | --- |", *rows]  # fmt: skip
        (self.folder / "ops/index.md").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def section(self, folder, first):
        """The pages of a folder for the navigation, those of `first` before the others."""
        others = [] if folder in ("ops", "functions", "headers") else sorted(p.name for p in (self.folder / folder).glob("*.md") if p.name not in first)
        return [f"{folder}/{name}" for name in [*first, *others]]


def use_own_worker(folder):
    """Pages fetch nothing from other hosts: our script takes the place of the one that the offline search would fetch."""
    pages = list(folder.rglob("*.html"))
    for page in pages:
        up = "../" * len(page.parent.relative_to(folder).parts)
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(FETCHED_WORKER, f"{up}site_worker.js"), encoding="utf-8")
    fetched = [page.name for page in pages if re.search(r"<(script|link|img)[^>]+(src|href)=.?https?://(?!squidfunk)", page.read_text(encoding="utf-8"))]
    if fetched:
        sys.exit(f"docs: pages would fetch files from other hosts: {', '.join(fetched[:5])}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--site", type=pathlib.Path, help="a folder with other versions of the site; without it OUT/html")
    parser.add_argument("--url", default="", help="where the site will be, such as https://example.org/backplane")
    options = parser.parse_args()
    version = versions.version_of_tree()

    folder, html = options.out.resolve() / "pages", options.out.resolve() / "new"
    for made in (folder, html):
        shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(options.pages, folder)
    pages = Pages(folder)
    pages.write_index_of_ops()
    for page in sorted(folder.rglob("*.md")):
        pages.rewrite(page, DOCS / page.relative_to(folder))
    shutil.copyfile(ROOT / "README.md", folder / "index.md")
    pages.rewrite(folder / "index.md", ROOT / "README.md")

    sections = [{title: pages.section(*section)} for title, section in SECTIONS.items()]
    nav = [{"Home": "index.md"}, *sections[:3], {"Questions": ["faq.md", "comparison.md"]}, *sections[3:]]
    config = CONFIG | {"docs_dir": str(folder), "site_dir": str(html), "nav": nav}
    if options.url:
        config["site_url"] = f"{options.url.rstrip('/')}/{version}/"
    file = options.out / "mkdocs.yml"
    file.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "-f", file], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("\n".join(line for line in done.stderr.splitlines() if not line.startswith("INFO")))
    use_own_worker(html)
    site = options.site or options.out / "html"
    listed = versions.add_version(html, site.resolve(), version)
    print(f"the site: {site / version / 'index.html'}; versions: {', '.join(listed)}")


if __name__ == "__main__":
    main()
