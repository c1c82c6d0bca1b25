"""Checks what virtual nodes do to the source's own pods, Services and controllers. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from vnode.cli.doctor.facts import ClusterFacts
from vnode.cli.doctor.findings import Finding, Level
from vnode.cli.neighbours import checks


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield findings about a source; nothing of a cluster without Targets."""
    if not facts.targets:
        return

    found = list(checks.disturbances(facts.own))
    for each in found:
        yield Finding(facts.name, each.what, Level.WARN, each.text, each.cure)

    if not found:
        text = "virtual nodes disturb none of this cluster's own workloads"
        yield Finding(facts.name, "own workloads", Level.OK, text)

    if daemons := checks.tolerant_daemons(facts.own):
        yield Finding(facts.name, "DaemonSets", Level.OK, daemons)
