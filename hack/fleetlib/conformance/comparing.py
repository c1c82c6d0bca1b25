"""Compares how specs ended through a virtual node and straight, and prints a table. Pure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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
_CONFORMANCE: Final = "[Conformance]"
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
    needed: list[str] = field(default_factory=list)
    """Patterns of expected differences of which a spec does not pass."""

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
    return Comparison(verdicts, unexpected, reasons, *_used(verdicts, expected))


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


def _used(
    verdicts: Mapping[str, Verdict], expected: Sequence[ListedPattern]
) -> tuple[list[str], list[str]]:
    """Return the patterns whose specs all pass, and those of which one does not."""
    passed: list[str] = []
    needed: list[str] = []
    for entry in expected:
        meant = {verdict for name, verdict in verdicts.items() if entry.matches(name)}
        if meant:
            (passed if meant == {"pass both"} else needed).append(entry.pattern)
    return passed, needed


def table(comparison: Comparison) -> str:
    """Return a table of Markdown: a row for each special interest group, and one for all."""
    rows: dict[str, Counter[str]] = {}
    for name, verdict in comparison.verdicts.items():
        found = _GROUP.match(name)
        rows.setdefault(found[1] if found else "others", Counter())[verdict] += 1
    return _table([*sorted(rows.items()), (_TOTAL, sum(rows.values(), Counter()))])


def table_of_groups(groups: Mapping[str, Comparison]) -> str:
    """Return a table of Markdown: a row for each group, for all, and for Kubernetes' own choice."""
    rows = [(name, Counter(found.verdicts.values())) for name, found in groups.items()]
    named = [pair for found in groups.values() for pair in found.verdicts.items()]
    chosen = Counter(verdict for name, verdict in named if _CONFORMANCE in name)
    total = Counter(verdict for _, verdict in named)
    return _table([*rows, (_TOTAL, total), (f"of them {_CONFORMANCE}", chosen)])


def _table(rows: Iterable[tuple[str, Counter[Any]]]) -> str:
    lines = [("", "specs", *COLUMNS), ("---", *("---:" for _ in range(len(COLUMNS) + 1)))]
    for group, counts in rows:
        lines.append((group, str(counts.total()), *(str(counts[column]) for column in COLUMNS)))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def report(comparison: Comparison) -> str:
    """Return the table, and what is to be said of single specs."""
    return _joined([table(comparison), singled_out(comparison), outdated([comparison])])


def report_of_groups(groups: Mapping[str, Comparison], not_run: Mapping[str, str]) -> str:
    """Return one table of all groups, and for each what is to be said of its specs."""
    reasons = [f"{name}: {reason}" for name, reason in not_run.items()]
    told = {name: singled_out(found) for name, found in groups.items()}
    return _joined(
        [
            table_of_groups(groups),
            _listed("Groups that were not run:", reasons),
            *(f"## {name}\n\n{text}" for name, text in told.items() if text),
            outdated(groups.values()),
        ]
    )


def singled_out(comparison: Comparison) -> str:
    """Return the specs that did not pass both ways, by how they ended."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in comparison.expected.items():
        by_reason.setdefault(reason, []).append(name)
    reasons = ["\n    ".join([reason, *names]) for reason, names in by_reason.items()]
    return _joined(
        [
            _listed("Fail through the virtual node only:", comparison.unexpected),
            _listed("Expected to differ:", reasons),
            *(_listed(f"{way.capitalize()}:", comparison.named(way)) for way in _ELSEWHERE),
        ]
    )


def outdated(comparisons: Iterable[Comparison]) -> str:
    """Return the expected differences whose specs all pass, in each group that has some."""
    comparisons = list(comparisons)
    needed = {pattern for found in comparisons for pattern in found.needed}
    passed = {pattern for found in comparisons for pattern in found.outdated} - needed
    title = "Pass by now: take them off differences.toml and docs/conformance.md:"
    return _listed(title, sorted(passed))


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part)


def _listed(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, *(f"  {line}" for line in lines)]) if lines else ""
