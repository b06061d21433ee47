"""What every law covered, printed after a run: entries, cases by outcome, entries exempted in writing, and what entries refuse."""

from collections import Counter, defaultdict

import law_registry
from law_numpy import REFERENCE

outcomes = defaultdict(Counter)  # law -> outcome -> cases
entries = defaultdict(set)  # law -> names of entries with a case that ran


def count(law, entry, outcome):
    outcomes[law][outcome] += 1
    if outcome != "skipped":
        entries[law].add(entry)


def write_laws(write_line):
    for law in law_registry.LAWS:
        counts = outcomes[law]
        line = f"{law:14} {len(entries[law]):4} entries  {counts['passed']:5} passed  {counts['failed']:4} failed"
        line += f"  {counts['skipped']} skipped" if counts["skipped"] else ""
        for outcome in ("refused", "unsized"):
            line += f"  {counts[outcome]} {outcome}" if counts[outcome] else ""
        excused = law_registry.exempted.get(law, {})
        write_line(line + (f"  {len(excused)} exempted" if excused else ""))
        for name, reason in sorted(excused.items()):
            write_line(f"{'':15} {name}: {reason}")


def write_refusals(write_line, found):
    """What entries refuse in writing, and those that batch by a loop."""
    refused = {(entry.name, rule): reason for entry in found for rule, reason in entry.rules["refusals"].items()}
    write_line(f"refused        {len(refused):4}, each with its reason")
    for (name, rule), reason in sorted(refused.items()):
        write_line(f"{'':15} {name}, {rule}: {reason}")
    batching = [entry for entry in found if entry.rules["batch"] != "none"]
    loops = sorted(entry.name for entry in batching if entry.rules["batch"] == "loop")
    write_line(f"batch: loop    {len(loops):4} of {len(batching)} entries that batch  {', '.join(loops)}")


def write_left_out(write_line, found):
    """Entries whose values no law compares with NumPy's, and those that do not concern the device."""
    without = sorted(entry.name for entry in found if entry.python_name not in REFERENCE)
    write_line(f"no reference in NumPy {len(without)} of {len(found)} entries  {', '.join(without)}")
    if law_registry.DEVICE != "cpu":
        host = sorted(entry.name for entry in found if "host" in entry.flags)
        write_line(f"host: true     {len(host):4} entries, which ran on the host, and so did what others reach of them  {', '.join(host)}")


def write(terminalreporter):
    cases = law_registry.registry()
    found = {case.entry.name: case.entry for case in cases}
    terminalreporter.section(f"laws over {len(found)} entries, {len(cases)} samples, on {law_registry.DEVICE}")
    write_laws(terminalreporter.write_line)
    write_refusals(terminalreporter.write_line, found.values())
    write_left_out(terminalreporter.write_line, found.values())
