"""What a check has found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final

from vnode.cli import terminal


class Level(Enum):
    """How bad it is; only FAIL changes the exit code."""

    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"
    SKIP = "skip"  # could not be looked at, with what we were given


IN_THE_TEXT: Final = "the text names it"
"""The cure of a finding whose text has it already; printed findings do not say so."""

_COLOURS: Final = {
    Level.OK: terminal.GOOD,
    Level.WARN: terminal.DOUBTFUL,
    Level.FAIL: terminal.BAD,
    Level.SKIP: terminal.FAINT,
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: `place` is a cluster or a connection, `check` two or three words."""

    place: str
    check: str
    level: Level
    text: str
    cure: str = ""


def lines(findings: Iterable[Finding]) -> Iterable[str]:
    """Each finding, and below it its cure; a heading where the place changes."""
    place = ""
    for finding in findings:
        if finding.place != place:
            place = finding.place
            yield terminal.styled(place, bold=True)

        level = terminal.styled(f"{finding.level.value:<4}", _COLOURS[finding.level])
        yield f"  {level}  {finding.check:<20} {finding.text}"
        if finding.cure and finding.cure != IN_THE_TEXT:
            yield f"        {'':<20} cure: {finding.cure}"


def in_days(end: datetime, now: datetime) -> str:
    """`2027-01-02, in 42 days`."""
    days = (end - now).days
    when = f"in {days} days" if days > 1 else "within two days" if end > now else "in the past"
    return f"{end:%Y-%m-%d %H:%M} UTC, {when}"
