"""Judges what a bystander has measured, and writes the table of docs/security.md. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from tests.isolation.bystander import PLAIN, STEPS, Times
from tests.isolation.processes import ADMISSION, AGENT, MemoryUse, Processes

MOST: Final = 2.0  # times as long as in peace
_SHOWN: Final = 8  # processes for each attack
SHORT: Final = 0.25  # seconds more that nobody notices, whatever the ratio is


@dataclass(frozen=True)
class AttackTimes:
    """What the bystander's pods took during one attack, and in peace."""

    name: str
    times: Times
    peace: Times
    processes: Processes = field(default_factory=lambda: Processes({}, {}))

    def is_slower(self, step: str) -> bool:
        """Tell whether a step took longer than a bystander should have to wait."""
        usual, now = self.peace.p99(step), self.times.p99(step)
        return now > max(MOST * usual, usual + SHORT)

    def has_noticed(self, step: str) -> bool:
        """Tell whether a step was slower, and by more than the same step of plain pods."""
        return self.is_slower(step) and self._ratio(step) > self._ratio(PLAIN[step])

    def _ratio(self, step: str) -> float:
        return self.times.p99(step) / self.peace.p99(step)

    @property
    def is_isolated(self) -> bool:
        """Whether the bystander has noticed nothing."""
        return not any(self.has_noticed(step) for step in STEPS)


def table(measured: Iterable[AttackTimes]) -> str:
    """Return a table in Markdown: the 99th percentile of each step under attack and in peace.

    What is slower is marked, in brackets where plain pods are as well.
    """
    head = [each.capitalize() for each in ("attack", *STEPS, *PLAIN.values())]
    lines = [head, ["---", *("---:" for _ in head[1:])]]
    lines += [
        [each.name, *(_cell(each, step) for step in STEPS), *_plain(each)] for each in measured
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def memory_table(measured: Iterable[AttackTimes]) -> str:
    """Return a table of the memory of agent and admission before, at most during, and after."""
    lines = [["MiB before / at most / after", AGENT, ADMISSION], ["---", "---:", "---:"]]
    lines += [
        [each.name, *(_memory(each.processes.memory[name]) for name in (AGENT, ADMISSION))]
        for each in measured
        if each.processes.memory
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cores_table(measured: Iterable[AttackTimes]) -> str:
    """Return a table of the processes that took most of the processor, for each attack."""
    lines = [["attack", "cores"], ["---", "---"]]
    for each in measured:
        most = sorted(each.processes.cores.items(), key=lambda entry: -entry[1])[:_SHOWN]
        lines.append([each.name, ", ".join(f"{name} {share:.2f}" for name, share in most)])

    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _memory(use: MemoryUse) -> str:
    return f"{use.before:.0f} / {use.peak:.0f} / {use.after:.0f}"


def _cell(each: AttackTimes, step: str) -> str:
    mark = " **!**" if each.has_noticed(step) else " (!)" if each.is_slower(step) else ""
    return f"{_seconds(each, step)}{mark}"


def _plain(each: AttackTimes) -> list[str]:
    return [_seconds(each, step) for step in PLAIN.values()]


def _seconds(each: AttackTimes, step: str) -> str:
    return f"{each.times.p99(step):.2f} / {each.peace.p99(step):.2f} s"
