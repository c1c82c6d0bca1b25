"""What came of the tests on a combination of versions, and its row in docs/versions.md. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as XML

from tests.versions.matrix import Combination, minor

_HEAD: Final = (
    "| Source | Targets | Passed | Left out | Failed | Took | On |",
    "|---|" + "---|" * 6,
)
_TABLE: Final = re.compile(rf"{re.escape(_HEAD[0])}\n.*?(?=\n\n|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SuiteOutcome:
    """How many tests passed, failed or were left out, in how many seconds, on which day."""

    passed: int
    left_out: int
    failed: int
    seconds: float
    day: str

    @property
    def passes(self) -> bool:
        """Tell whether tests were run and none failed."""
        return self.passed > 0 and not self.failed


def read(report: Path, code: int, seconds: float, day: str) -> SuiteOutcome:
    """Read pytest's report; where it wrote none, one failure stands for all."""
    if not report.exists():
        return SuiteOutcome(0, 0, 1, seconds, day)

    suites = XML.parse(report).getroot().iter("testsuite")  # noqa: S314 - written by pytest
    counts = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for suite in suites:
        for name in counts:
            counts[name] += int(suite.get(name, 0))

    failed = counts["failures"] + counts["errors"]
    passed = counts["tests"] - failed - counts["skipped"]
    return SuiteOutcome(
        passed, counts["skipped"], max(failed, int(code not in (0, 1))), seconds, day
    )


def row(combination: Combination, outcome: SuiteOutcome) -> str:
    """Write the row of a combination."""
    targets = dict.fromkeys(map(minor, (combination.target, combination.other_target)))
    minutes = f"{outcome.seconds / 60:.0f} min" if outcome.seconds >= 90 else "1 min"
    cells = (minor(combination.source), ", ".join(targets))
    counts = (str(outcome.passed), str(outcome.left_out), str(outcome.failed))
    return f"| {' | '.join((*cells, *counts, minutes, outcome.day))} |"


def table(found: Mapping[Combination, SuiteOutcome]) -> str:
    """Write the table of all that was run."""
    return "\n".join(
        (*_HEAD, *(row(combination, outcome) for combination, outcome in found.items()))
    )


def merged(page: str, found: Mapping[Combination, SuiteOutcome]) -> str:
    """Return the page with the rows of what was run in place of older ones of the same versions."""
    rows = {_versions(line): line for line in _rows(page)}
    for combination, outcome in found.items():
        line = row(combination, outcome)
        rows[_versions(line)] = line

    return _TABLE.sub(lambda _match: "\n".join((*_HEAD, *rows.values())), page, count=1)


def _rows(page: str) -> list[str]:
    match = _TABLE.search(page)
    return match.group().splitlines()[len(_HEAD) :] if match else []


def _versions(line: str) -> tuple[str, str]:
    cells = [cell.strip() for cell in line.split("|")]
    return cells[1], cells[2]
