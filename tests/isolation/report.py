"""Judges what a bystander has measured, and writes the table of docs/security.md. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tests.isolation.bystander import STEPS, Times

MOST: Final = 2.0  # times as long as in peace
SHORT: Final = 0.25  # seconds more that nobody notices, whatever the ratio is


@dataclass(frozen=True)
class AttackTimes:
    """What the bystander's pods took during one attack, and in peace."""

    name: str
    times: Times
    peace: Times

    def has_noticed(self, step: str) -> bool:
        """Tell whether a step took longer than a bystander should have to wait."""
        usual, now = self.peace.p99(step), self.times.p99(step)
        return now > max(MOST * usual, usual + SHORT)

    @property
    def is_isolated(self) -> bool:
        """Whether the bystander has noticed nothing."""
        return not any(self.has_noticed(step) for step in STEPS)


def table(measured: Iterable[AttackTimes]) -> str:
    """Return a table in Markdown: the 99th percentile of each step under attack and in peace."""
    head = ["attack", *STEPS]
    lines = [head, ["---", *("---:" for _ in STEPS)]]
    lines += [[each.name, *(_cell(each, step) for step in STEPS)] for each in measured]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(each: AttackTimes, step: str) -> str:
    mark = " **!**" if each.has_noticed(step) else ""
    return f"{each.times.p99(step):.2f} / {each.peace.p99(step):.2f} s{mark}"
