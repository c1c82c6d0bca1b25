"""Situations of whole clusters that support engineers meet: what `vnode doctor` fails, and only
that."""

from __future__ import annotations

from typing import Final, NamedTuple

import pytest

from tests.unit.cli.doctor_facts import cluster, connection, lease, pod, ready, summary, webhook
from vnode.api.objects import Object
from vnode.cli.doctor import cluster_checks, connection_checks, shared_clusters
from vnode.cli.doctor.facts import ClusterFacts, ConnectionFacts
from vnode.cli.doctor.findings import Finding, Level


def target(namespace: str, name: str, uid: str) -> Object:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"metadata": metadata, "status": {"clusterUID": uid}}


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ([target("a", "c2", "u"), target("b", "c2", "u")], ""),
        ([target("a", "c2", "u"), target("a", "c3", "v")], ""),
        ([target("a", "c2", ""), target("a", "c3", "")], ""),
        (
            [target("a", "new", "u"), target("a", "c2", "u")],
            "a/c2 and a/new are one cluster: its room counts twice for pods of namespace a",
        ),
        (
            [target("", "c2", "u"), target("a", "c2", "u")],
            "a/c2 and c2 are one cluster: its room counts twice for pods of namespace a",
        ),
        (
            [target("", "c2", "u"), target("", "c3", "u")],
            "c2 and c3 are one cluster: its room counts twice for all pods",
        ),
    ],
)
def test_targets_of_one_cluster_are_told_where_pods_may_use_both(
    targets: list[Object], expected: str
) -> None:
    found = list(shared_clusters.check(cluster(targets=targets)))
    assert [(each.level, each.text) for each in found] == (
        [(Level.WARN, expected)] if expected else []
    )
    assert all("vnode disconnect" in each.cure for each in found)


def unready(reason: str, message: str) -> Object:
    found = ready()
    condition = found["status"]["conditions"][0]
    condition |= {"status": "False", "reason": reason, "message": message}
    return found


class Case(NamedTuple):
    """What is known, and the checks that must fail, in this order, with a part of each cure."""

    facts: ClusterFacts | ConnectionFacts
    failing: dict[str, str]
    texts: tuple[str, ...]


AUTHORITY: Final = "Unreachable: the target's certificate is not one that its authority vouches for"
EXPIRED: Final = "Unauthorized: the target does not accept the credentials: run vnode connect again"
CASES: Final = {
    "another authority": Case(
        connection(failure=AUTHORITY, target=unready(*AUTHORITY.split(": ", 1)), rights={}),
        {"connection": "", "its condition": ""},
        ("the target's certificate", "not ready: Unreachable: as above"),
    ),
    "a token that has expired": Case(
        connection(failure=EXPIRED, target=unready(*EXPIRED.split(": ", 1)), rights={}),
        {"connection": "", "its condition": ""},
        ("run vnode connect again", "not ready: Unauthorized: as above"),
    ),
    "no agent in the target": Case(
        connection(summary_missing=True, target=unready("NoSummary", "no ClusterSummary")),
        {"its agent": "start vnode agent in the target", "its condition": ""},
        ("its agent has never run", "no ClusterSummary"),
    ),
    "a candidate scheduler that is dead": Case(
        cluster(targets=[], sources=[ready()], scheduler_lease=lease(90), waiting=[pod(60)]),
        {"candidate scheduler": "vnode scheduler-config"},
        ("1 candidates wait for it",),
    ),
    "a webhook that is not reached": Case(
        cluster(admission="connection refused"),
        {"admission": "points it elsewhere"},
        ("a trial pod: connection refused",),
    ),
    "an agent that is dead, and what it serves": Case(
        cluster(agent_lease=lease(90), admission="refused", kubelets={"n": "refused"}),
        {"agent": "start vnode agent"},
        ("it does not run",),
    ),
    "logs of a target that is not connected": Case(
        cluster(
            targets=[unready("Unreachable", "refused")],
            kubelets={"admiralty-a-gpu": "500: HTTP 500, and the answer is no Kubernetes Status"},
        ),
        {},
        (),
    ),
    "a webhook that trusts nobody": Case(
        cluster(webhook=webhook("")), {"webhook": "start the agent"}, ("no caBundle",)
    ),
    "an old agent in the target": Case(
        connection(summary=summary(1, **{"vnode.dev/agent-version": "0.1.0"})), {}, ()
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_fails_is_the_cause_and_its_cure_and_nothing_else(name: str) -> None:
    case = CASES[name]
    if isinstance(case.facts, ClusterFacts):
        found = cluster_checks.check(case.facts)
    else:
        found = connection_checks.check(case.facts)

    failing: list[Finding] = [each for each in found if each.level is Level.FAIL]
    assert [each.check for each in failing] == list(case.failing)
    for each, text in zip(failing, case.texts, strict=True):
        assert text in each.text
        assert each.cure
        assert case.failing[each.check] in each.cure
