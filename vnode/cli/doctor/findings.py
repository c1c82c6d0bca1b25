"""Defines findings, the results of checks, and prints them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final

from vnode.api import visible
from vnode.cli import terminal, wrapping


class Level(Enum):
    """The severity of a finding; only FAIL changes the exit code."""

    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"
    SKIP = "skip"  # could not be checked with these credentials


Result = tuple[Level, str, str]
"""Level, text and cure of a finding."""

IN_THE_TEXT: Final = "the text names it"
"""The cure of a finding whose text names it already; it is not printed."""

_COLOURS: Final = {
    Level.OK: terminal.GOOD,
    Level.WARN: terminal.DOUBTFUL,
    Level.FAIL: terminal.BAD,
    Level.SKIP: terminal.FAINT,
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One result: `place` is a cluster or a connection, `check` two or three words."""

    place: str
    check: str
    level: Level
    text: str
    cure: str = ""


def lines(findings: Iterable[Finding]) -> Iterable[str]:
    """Yield each finding, and below it its cure; a heading where the place changes.

    Cures are one line each, which the terminal wraps: they have commands to copy.
    """
    place, width = "", terminal.width()
    for finding in findings:
        if finding.place != place:
            place = finding.place
            yield terminal.styled(place, bold=True)

        level = f"{finding.level.value:<4}"
        first, *rest = wrapping.hanging(f"  {level}  {finding.check:<20} ", finding.text, width)
        yield first.replace(level, terminal.styled(level, _COLOURS[finding.level]), 1)
        yield from rest
        if finding.cure and finding.cure != IN_THE_TEXT:
            yield f"        {'':<20} cure: {visible.line(finding.cure)}"


def in_days(end: datetime, now: datetime) -> str:
    """Format a date with the days until then: `2027-01-02 12:00 UTC, in 42 days`."""
    days = (end - now).days
    when = f"in {days} days" if days > 1 else "within two days" if end > now else "in the past"
    return f"{end:%Y-%m-%d %H:%M} UTC, {when}"
