"""Runs the suite group after group, and keeps what each has come to: it takes hours.

A run that ends early loses the group that it was at; another one goes on from there.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from hack.fleetlib import progress
from hack.fleetlib.conformance import comparing
from hack.fleetlib.conformance.session import SpecResults
from hack.fleetlib.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hack.fleetlib.conformance.comparing import Comparison
    from hack.fleetlib.conformance.selection import SpecGroup
    from hack.fleetlib.conformance.session import SuiteSession

_KEPT: Final = "outcomes.json"
_WAITS: Final = "not yet run"


@dataclass(slots=True)
class WholeReport:
    """What is known so far: a comparison for each group, or why there is none."""

    groups: dict[str, Comparison] = field(default_factory=dict)
    not_run: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return not self.not_run and all(found.ok for found in self.groups.values())

    def text(self) -> str:
        return comparing.report_of_groups(self.groups, self.not_run)


def run(
    session: SuiteSession, groups: Sequence[SpecGroup], output: Path, *, resume: bool
) -> WholeReport:
    """Run all groups, or with `resume` those that have no outcomes in `output` yet.

    The report there is written anew after each. A group of which no spec could be run is told.
    """
    report = WholeReport(not_run={group.name: _WAITS for group in groups})
    for group in groups:
        folder = output / group.name
        kept = folder / _KEPT
        if resume and kept.exists():
            results = SpecResults(**json.loads(kept.read_text()))
        else:
            kept.unlink(missing_ok=True)
            progress.say(f"group {group.name}")
            try:
                results = session.run(group, folder)
            except FleetError as error:
                report.not_run[group.name] = str(error)
                continue
            kept.write_text(json.dumps(dataclasses.asdict(results), indent=1))
        del report.not_run[group.name]
        report.groups[group.name] = results.compare(session.expected)
        (output / "report.md").write_text(f"{report.text()}\n")
    return report
