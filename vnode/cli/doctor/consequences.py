"""Takes failures back that only follow from another, whose cure is theirs, too. Pure.

They are told as skipped: what is behind them shows once the cause is gone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

from vnode.cli.doctor import endpoint_checks
from vnode.cli.doctor.facts import ClusterFacts
from vnode.cli.doctor.findings import Finding, Level

AGENT: Final = "agent"
WEBHOOK: Final = "webhook"
CONDITION: Final = "its condition"
"""What the agent has last said of a Target, which may be long ago."""

_NO_AGENT: Final = "the agent does not run"
_OF_AGENTS: Final = frozenset((*endpoint_checks.OF_RUNNING_AGENTS, CONDITION))
_START: Final = re.compile(r"start the agent\b(?! in )|see that the agent (of the source )?runs")
"""How cures begin of which an agent that does not run is the cause."""


def skipped(facts: ClusterFacts, found: list[Finding]) -> list[Finding]:
    """Return findings about a cluster and its connections, consequences as skipped."""
    failed = {each.check for each in found if each.level is Level.FAIL}
    return [_skipped(facts, failed, each) for each in found]


def _skipped(facts: ClusterFacts, failed: Collection[str], finding: Finding) -> Finding:
    why = next(_reasons(facts, failed, finding), "") if finding.level is Level.FAIL else ""
    return Finding(finding.place, finding.check, Level.SKIP, why) if why else finding


def _reasons(facts: ClusterFacts, failed: Collection[str], finding: Finding) -> Iterator[str]:
    """Yield what a failure follows from; `failed` are the checks that have failed."""
    is_its = finding.check in _OF_AGENTS or _START.match(finding.cure)
    if AGENT in failed and finding.check != AGENT and is_its:
        yield _NO_AGENT

    if finding.check != endpoint_checks.ADMISSION or not endpoint_checks.is_untrusted(facts):
        return

    if WEBHOOK in failed:
        yield "the webhook's configuration is not right"

    if endpoint_checks.CLOCK in failed and endpoint_checks.is_of_another_time(facts):
        yield "the clocks differ"

    if facts.serving is not None and facts.serving <= facts.now:
        yield "the webhook's certificate has ended"
