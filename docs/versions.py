"""The versions of the site: one folder each, and the list that the theme's selector reads.

A site is a folder MAJOR.MINOR with the pages of that version, beside those of other versions. `versions.json` lists them in the format of the
tool mike, the newest first, and `index.html` leads to the newest. The folder is the only state, so a version is removed with its folder.
"""

import json
import pathlib
import re
import shutil

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAMED = re.compile(r"\d+\.\d+")
REDIRECT = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Backplane</title>
<meta http-equiv="refresh" content="0; url={0}/index.html">
<a href="{0}/index.html">Backplane {0}</a>
</html>
"""


def version_of_tree():
    """MAJOR.MINOR of project() in CMakeLists.txt."""
    return re.search(r"project\(Backplane VERSION (\d+\.\d+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")).group(1)


def versions_in(site):
    """The versions that are folders of `site`, the newest first."""
    found = [path.name for path in site.iterdir() if NAMED.fullmatch(path.name) and (path / "index.html").is_file()]
    return sorted(found, key=lambda name: [int(part) for part in name.split(".")], reverse=True)


def add_version(pages, site, version):
    """Moves the folder `pages` to `site`/`version`, which it replaces, and lists all versions. Returns them, the newest first."""
    if not NAMED.fullmatch(version):
        raise ValueError(f"the version of a site: found {version!r}, expected MAJOR.MINOR")
    site.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(site / version, ignore_errors=True)
    shutil.move(pages, site / version)
    versions = versions_in(site)
    listed = [{"version": name, "title": name, "aliases": ["latest"] if name == versions[0] else []} for name in versions]
    (site / "versions.json").write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    (site / "index.html").write_text(REDIRECT.format(versions[0]), encoding="utf-8")
    return versions
