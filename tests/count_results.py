"""Adds up JUnit files of ctest and pytest, and ends with the one line that people and CI read.

In: the files. Out: the names of what failed, before them what ended a process of tests (crash-*, beside the files), then
`N passed, N failed, N skipped`; exit status 1 where a test failed, where a runner broke without naming a test (--broken NAME), or
where nothing ran at all.
"""

import argparse
import collections
import pathlib
import sys
import xml.etree.ElementTree as ElementTree

LINES_OF_CRASH = 60


def outcome(case):
    """passed, failed or skipped, as ctest (status) and pytest (children) say it."""
    tags = {child.tag for child in case}
    if tags & {"failure", "error"} or case.get("status") == "fail":
        return "failed"
    if "skipped" in tags or case.get("status") in ("notrun", "disabled"):
        return "skipped"
    return "passed"


def count(files):
    counts = collections.Counter()
    failures = []
    for file in files:
        for case in ElementTree.parse(file).getroot().iter("testcase"):
            result = outcome(case)
            counts[result] += 1
            if result == "failed":
                failures.append(f"{case.get('classname') or 'ctest'}: {case.get('name')}")
    return counts, failures


def print_crashes(files):
    for folder in sorted({pathlib.Path(file).parent for file in files}):
        for report in sorted(folder.glob("crash-*")):
            if lines := report.read_text(errors="replace").splitlines():
                print(f"{report}:", *lines[:LINES_OF_CRASH], sep="\n  ")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--broken", action="append", default=[], help="a runner that exited with an error")
    options = parser.parse_args()
    counts, failures = count(options.files)
    if not failures:
        failures = [f"{name}: the runner failed outside any test" for name in options.broken]
        counts["failed"] += len(failures)
    if failures:  # the files hold warnings too
        print_crashes(options.files)
    for failure in failures:
        print(f"FAILED {failure}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    sys.exit(1 if counts["failed"] or not counts["passed"] else 0)


if __name__ == "__main__":
    main()
