"""Situations that support engineers meet: the cause first, its cure, and nothing false.

Each is made in two clusters in memory, and scored by what `vnode explain web` says under "Now" and
"What to do": how it begins, a part of each cure in their order, and words that must not be there.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.unit.cli.ending_situations import ENDING
from tests.unit.cli.event_situations import TOLD
from tests.unit.cli.failing_situations import FAILING
from tests.unit.cli.held_situations import HELD
from tests.unit.cli.lacking_situations import LACKING
from tests.unit.cli.misleading_situations import MISLEADING
from tests.unit.cli.node_situations import NODES
from tests.unit.cli.placed_situations import PLACED
from tests.unit.cli.planned_situations import PLANNED
from tests.unit.cli.refused_situations import REFUSED
from tests.unit.cli.runtime_situations import RUNTIME
from tests.unit.cli.situation_cases import Case
from tests.unit.cli.situations import Situation
from tests.unit.cli.unelected_situations import UNELECTED
from tests.unit.cli.unread_situations import UNREAD
from tests.unit.cli.unready_situations import UNREADY
from tests.unit.cli.unsent_situations import UNSENT
from vnode.api.clock import Clock

pytestmark = pytest.mark.looptime

CASES: Final[dict[str, Case]] = {
    **REFUSED,
    **LACKING,
    **PLANNED,
    **UNREADY,
    **HELD,
    **PLACED,
    **FAILING,
    **TOLD,
    **UNELECTED,
    **UNREAD,
    **MISLEADING,
    **UNSENT,
    **ENDING,
    **RUNTIME,
    **NODES,
}


@pytest.mark.parametrize("name", CASES)
async def test_the_cause_comes_first_with_its_cure_and_nothing_false(
    name: str, clock: Clock
) -> None:
    case, here = CASES[name], Situation(clock)
    case.make(here)
    verdict = await here.explain()
    assert verdict.state is case.state
    assert verdict.text.startswith(case.headline)
    assert len(verdict.cures) == len(case.cures), verdict.cures
    for part, cure in zip(case.cures, verdict.cures, strict=True):
        assert part in cure

    for unsaid in case.unsaid:
        assert unsaid not in " ".join((verdict.text, *verdict.cures))
