"""What `opcheck` returns and raises."""

from __future__ import annotations

from .. import _core

__all__ = ["CheckRow", "OpCheckError", "OpCheckReport"]

PASSED, FAILED, NOT_STATED = "passed", "failed", "not stated"


class OpCheckError(_core.BackplaneError, AssertionError):
    """An op is not what it declares; `report` has a row per check."""
    report: OpCheckReport

    def __init__(self, report):
        super().__init__(str(report))
        self.report = report


OpCheckError.__module__ = "backplane"


class Failure(Exception):
    """A failed check. The message states the found and the expected result."""


class NotStated(Exception):
    """There is nothing to check: the words say why."""


class CheckRow:
    """One check on one device: the verdict 'passed', 'failed' or 'not stated', and a description of the findings."""

    __slots__ = ("check", "device", "text", "verdict")
    device: str
    check: str
    verdict: str
    text: str

    def __init__(self, device, check, verdict, text=""):
        self.device, self.check, self.verdict, self.text = device, check, verdict, text

    def __str__(self):
        return f"{self.device:8} {self.check:14} {self.verdict}" + (f": {self.text}" if self.text else "")

    __repr__ = __str__


class OpCheckReport:
    """The rows of all checks, in order; true where none failed."""
    op: str
    rows: list[CheckRow]

    def __init__(self, op):
        self.op, self.rows = op, []

    def add(self, *row):
        self.rows.append(CheckRow(*row))

    @property
    def failed(self) -> list[CheckRow]:
        return [row for row in self.rows if row.verdict == FAILED]

    def __bool__(self) -> bool:
        return not self.failed

    def __str__(self):
        return "\n".join([f"opcheck {self.op}: {len(self.failed)} of {len(self.rows)} checks failed"]
                         + [f"  {row}" for row in self.rows])  # fmt: skip

    __repr__ = __str__
