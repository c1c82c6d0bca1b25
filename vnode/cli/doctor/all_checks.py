"""Makes all findings of what was read of a cluster and its connections. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from vnode.cli.doctor import (
    cluster_checks,
    connection_checks,
    consequences,
    migration_checks,
    neighbour_checks,
    pod_checks,
    policy_checks,
    set_checks,
    shared_clusters,
    token_checks,
)
from vnode.cli.doctor.facts import ClusterFacts, ConnectionFacts
from vnode.cli.doctor.findings import Finding, Level
from vnode.targets import model


def check(facts: ClusterFacts, connections: Iterable[ConnectionFacts]) -> list[Finding]:
    """Return all findings; what only follows from others is skipped, or left out."""
    found = cluster_checks.check(facts)
    found += token_checks.check(facts)
    found += set_checks.check(facts)
    found += neighbour_checks.check(facts)
    found += migration_checks.check(facts)
    found += pod_checks.check(facts)
    found += policy_checks.check(facts)
    found += shared_clusters.check(facts)
    unanswered = pod_checks.unanswered(facts)
    for connection in connections:
        key = model.key_of(connection.target)
        of_target = connection_checks.check(connection)
        found += of_target
        if not any(each.level is Level.FAIL for each in of_target):
            found += pod_checks.silence(key, unanswered.get(key, []))

    return consequences.skipped(facts, found)
