"""Looks at pages of the site in headless Chromium, in three widths, light and dark: nothing is wider than the window, axe-core finds no violation
of WCAG 2 A and AA, the tabs are reached with the keyboard, and the search finds a function, also in pages that are opened as files. Beside a newer
version, a page says that it is not the latest, and the selector leads to the newer one.

    check_site.py --html FOLDER --chromium PATH [--screenshots FOLDER] [PAGE...]

Exit status 1 with one line per finding.
"""

import argparse
import functools
import http.server
import pathlib
import shutil
import sys
import tempfile
import threading

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "docs"))
import versions  # noqa: E402

PAGES = ["index", "start/five-minutes", "tutorials/numpy", "cookbook/index", "faq", "comparison", "functions/index", "ops/softmax", "functions/bp.einsum",
         "headers/abi-backend.h", "concepts/devices", "guides/backend", "reference/performance"]  # fmt: skip
WIDTHS = (360, 800, 1400)  # a telephone, half a screen, a screen
RULES = {"runOnly": ["wcag2a", "wcag2aa"]}
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
FOCUSED = "document.activeElement.textContent.trim()"
RESULTS = "[...document.querySelectorAll('.md-search-result__item h1')].map(heading => heading.textContent)"


def findings_of(page, where):
    wide = page.evaluate(TOO_WIDE)
    if wide > 0:
        yield f"{where}: {wide} px wider than the window"
    for violation in Axe().run(page, options=RULES).response["violations"]:
        node = violation["nodes"][0]
        yield f"{where}: {violation['id']}, {len(violation['nodes'])} times: {' '.join(node['html'].split())[:120]}"


def reached_by_keyboard(page, count=20):
    texts = []
    for _ in range(count):
        page.keyboard.press("Tab")
        texts.append(page.evaluate(FOCUSED))
    return texts


def found_by_search(page, word):
    page.keyboard.press("s")
    page.wait_for_timeout(500)
    page.keyboard.type(word)
    page.wait_for_function("document.querySelectorAll('.md-search-result__item').length > 0", timeout=20000)
    return page.evaluate(RESULTS)


def check(browser, html, names, screenshots):
    for scheme in ("light", "dark"):
        for width in WIDTHS:
            context = browser.new_context(viewport={"width": width, "height": 1000}, color_scheme=scheme)
            page = context.new_page()
            for name in names:
                page.goto((html / f"{name}.html").as_uri())
                page.wait_for_timeout(300)
                yield from findings_of(page, f"{name}, {width} px, {scheme}")
                if screenshots:
                    page.screenshot(path=screenshots / f"{name.replace('/', '_')}-{width}-{scheme}.png")
            context.close()
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.goto((html / "index.html").as_uri())
    page.wait_for_timeout(1000)
    texts = reached_by_keyboard(page)
    yield from (f"keyboard: Tab does not reach {word!r}" for word in ("Skip to content", "Tutorials", "Functions") if word not in texts)
    page.reload()
    page.wait_for_timeout(1000)
    if "bp.softmax" not in found_by_search(page, "softmax"):
        yield "search: 'softmax' does not find bp.softmax"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def check_versions(browser, html):
    """With a copy of the site as a newer version: the theme reads the list of versions from a server only."""
    with tempfile.TemporaryDirectory() as place:
        site, newer = pathlib.Path(place) / "site", pathlib.Path(place) / "newer"
        shutil.copytree(html, newer)
        site.mkdir()
        (site / html.name).symlink_to(html)
        versions.add_version(newer, site, "999.0")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.goto(f"{url}/index.html")
        page.wait_for_url(f"{url}/999.0/index.html")
        page.wait_for_selector(".md-version", timeout=10000)
        if page.is_visible("[data-md-component=outdated]"):
            yield "versions: the latest says that it is not the latest"
        page.goto(f"{url}/{html.name}/faq.html")
        page.wait_for_selector(".md-version", timeout=10000)
        page.wait_for_timeout(300)
        if not page.is_visible("[data-md-component=outdated]"):
            yield "versions: an old version does not say that it is old"
        yield from findings_of(page, "an old version")
        page.focus(".md-version__current")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_timeout(1500)
        if "/999.0/" not in page.url:
            yield f"versions: the selector leads to {page.url}"
        server.shutdown()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--html", type=pathlib.Path, required=True)
    parser.add_argument("--chromium", required=True)
    parser.add_argument("--screenshots", type=pathlib.Path)
    parser.add_argument("pages", nargs="*", default=PAGES)
    options = parser.parse_args()
    if options.screenshots:
        options.screenshots.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
        findings = list(check(browser, options.html.resolve(), options.pages, options.screenshots))
        findings += check_versions(browser, options.html.resolve())
        browser.close()
    print("\n".join([*findings, f"{len(options.pages)} pages, {len(WIDTHS)} widths, light and dark: {len(findings)} findings"]))
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
