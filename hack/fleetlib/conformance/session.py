"""Runs specs on one fleet: through the virtual node and straight, and once more what differs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.fleetlib import progress
from hack.fleetlib.conformance import arrange, comparing, selection, suite
from hack.fleetlib.conformance.suite import PASSED, SuiteRun
from hack.fleetlib.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hack.fleetlib.conformance.comparing import Comparison
    from hack.fleetlib.conformance.selection import ListedPattern, SpecGroup
    from hack.fleetlib.conformance.suite import Outcomes
    from hack.fleetlib.fleet import LocalFleet


@dataclass(frozen=True, slots=True)
class SpecResults:
    """How the specs of a group have ended, each way."""

    through: Outcomes
    straight: Outcomes

    def compare(self, expected: Sequence[ListedPattern]) -> Comparison:
        return comparing.compare(self.through, self.straight, expected)


@dataclass(frozen=True, slots=True)
class SuiteSession:
    fleet: LocalFleet
    programs: dict[str, Path]
    processes: int
    expected: Sequence[ListedPattern]
    both: bool = True
    """False: specs are not run straight, and taken to pass there."""
    once: bool = False
    """True: what fails through only is not tried again."""

    def run(self, group: SpecGroup, folder: Path) -> SpecResults:
        """Run a group both ways; what fails through only is tried once more, one by one.

        Specs wait for seconds where a busy machine takes minutes.
        """
        through = SuiteRun("through", self._source, folder, group.minutes)
        straight = SuiteRun(
            "straight", self.fleet.kubeconfig(arrange.TARGET), folder, group.minutes
        )
        first = self._first(group, [through, straight] if self.both else [through])
        unexpected = first.compare(self.expected).unexpected
        if self.once or not unexpected:
            return first
        again = SuiteRun("again", self._source, folder, group.minutes)
        try:
            [second] = suite.run_all([again], selection.only(unexpected), 1, self.programs)
        except FleetError as error:
            progress.say(f"not tried again: {error}")
            return first
        return SpecResults(first.through | second, first.straight)

    @property
    def _source(self) -> Path:
        return self.fleet.kubeconfig(arrange.SOURCE)

    def _first(self, group: SpecGroup, ways: Sequence[SuiteRun]) -> SpecResults:
        """Run both ways at once; one after the other if the specs want the clusters for themselves.

        The delegates run on the node on which the specs are run straight.
        """
        if group.serial:
            [through], *others = [
                suite.run_all([way], group.selection, 1, self.programs) for way in ways
            ]
            straight = [outcomes for [outcomes] in others]
        else:
            through, *straight = suite.run_all(ways, group.selection, self.processes, self.programs)
        return SpecResults(through, straight[0] if straight else dict.fromkeys(through, PASSED))
