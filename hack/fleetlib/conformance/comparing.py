"""Compares how specs ended through a virtual node and straight, and prints a table. Pure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hack.fleetlib.conformance.selection import ListedPattern
    from hack.fleetlib.conformance.suite import Outcome, Outcomes

Verdict = Literal["pass both", "fail both", "fails through only", "fails straight only", "skipped"]
COLUMNS: Final[tuple[Verdict, ...]] = (
    "pass both",
    "fail both",
    "fails through only",
    "fails straight only",
    "skipped",
)
_GROUP: Final = re.compile(r"^\[(sig-[a-z-]+)\]")
_TOTAL: Final = "all"
_ELSEWHERE: Final[tuple[Verdict, ...]] = ("fail both", "fails straight only")


@dataclass(frozen=True, slots=True)
class Comparison:
    """What became of each spec; `unexpected` and `expected` fail through the virtual node only."""

    verdicts: dict[str, Verdict]
    unexpected: list[str] = field(default_factory=list)
    expected: dict[str, str] = field(default_factory=dict)
    """The reason, by spec."""
    outdated: list[str] = field(default_factory=list)
    """Patterns of expected differences whose specs all pass."""

    @property
    def ok(self) -> bool:
        return not self.unexpected

    def named(self, verdict: Verdict) -> list[str]:
        return sorted(name for name, found in self.verdicts.items() if found == verdict)


def compare(through: Outcomes, straight: Outcomes, expected: Sequence[ListedPattern]) -> Comparison:
    """Compare two runs of the same specs."""
    names = sorted(through.keys() | straight.keys())
    verdicts = {name: _verdict(through.get(name), straight.get(name)) for name in names}
    reasons, unexpected = {}, []
    for name in (n for n in names if verdicts[n] == "fails through only"):
        entry = next((entry for entry in expected if entry.matches(name)), None)
        if entry is None:
            unexpected.append(name)
        else:
            reasons[name] = entry.reason
    return Comparison(verdicts, unexpected, reasons, _outdated(verdicts, expected))


def _verdict(through: Outcome | None, straight: Outcome | None) -> Verdict:
    match (through, straight):
        case ("passed", "passed"):
            return "pass both"
        case ("failed", "failed"):
            return "fail both"
        case ("failed", _):
            return "fails through only"
        case (_, "failed"):
            return "fails straight only"
        case (None | "skipped", "passed"):
            # It was not tried through the virtual node, though it could be on a real one.
            return "fails through only"
        case _:
            return "skipped"


def _outdated(verdicts: Mapping[str, Verdict], expected: Sequence[ListedPattern]) -> list[str]:
    found = []
    for entry in expected:
        meant = [verdict for name, verdict in verdicts.items() if entry.matches(name)]
        if meant and set(meant) == {"pass both"}:
            found.append(entry.pattern)
    return found


def table(comparison: Comparison) -> str:
    """Return a table of Markdown: a row for each special interest group, and one for all."""
    rows: dict[str, Counter[str]] = {}
    for name, verdict in comparison.verdicts.items():
        found = _GROUP.match(name)
        rows.setdefault(found[1] if found else "others", Counter())[verdict] += 1
    total = sum(rows.values(), Counter())
    lines = [("", "specs", *COLUMNS), ("---", *("---:" for _ in range(len(COLUMNS) + 1)))]
    for group, counts in (*sorted(rows.items()), (_TOTAL, total)):
        lines.append((group, str(counts.total()), *(str(counts[column]) for column in COLUMNS)))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def report(comparison: Comparison) -> str:
    """Return the table, and what is to be said of single specs."""
    reasons = [f"{name}\n    {reason}" for name, reason in comparison.expected.items()]
    outdated = "Pass by now: take them off differences.toml and docs/conformance.md:"
    parts = [
        table(comparison),
        _listed("Fail through the virtual node only:", comparison.unexpected),
        _listed("Expected to differ:", reasons),
        _listed(outdated, comparison.outdated),
        *(_listed(f"{verdict.capitalize()}:", comparison.named(verdict)) for verdict in _ELSEWHERE),
    ]
    return "\n\n".join(part for part in parts if part)


def _listed(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, *(f"  {line}" for line in lines)]) if lines else ""
