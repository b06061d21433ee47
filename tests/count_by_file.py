"""A table of a pytest run's counts, one row per test file, from its JUnit file.

In: the file. Out: rows of passed, failed, skipped and xfailed, their sum last; exit status 1 where a test failed or none ran.
"""

import collections
import sys
import xml.etree.ElementTree as ElementTree

from count_results import outcome

COLUMNS = ("passed", "failed", "skipped", "xfailed")


def column(case):
    """The outcome, with expected failures apart: pytest writes them as skips of a type of their own."""
    if any(child.tag == "skipped" and child.get("type") == "pytest.xfail" for child in case):
        return "xfailed"
    return outcome(case)


def test_file(case):
    """The module's last name: 'array_api_tests.test_fft.TestFft' -> 'test_fft'; where collection failed, its name."""
    for name in f"{case.get('classname')}.{case.get('name')}".split("."):
        if name.startswith("test_"):
            return name
    return case.get("name")


def main():
    counts = collections.defaultdict(collections.Counter)
    for case in ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
        counts[test_file(case)][column(case)] += 1
    total = sum(counts.values(), collections.Counter())
    width = max(map(len, [*counts, "total"]))
    print(f"{'file':{width}}" + "".join(f"{name:>9}" for name in COLUMNS))
    for name, row in [*sorted(counts.items()), ("total", total)]:
        print(f"{name:{width}}" + "".join(f"{row[column]:9}" for column in COLUMNS))
    sys.exit(1 if total["failed"] or not total["passed"] else 0)


if __name__ == "__main__":
    main()
