"""Situations of whole clusters that support engineers meet: what `vnode doctor` fails, and only
that."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, NamedTuple

import pytest

from tests.unit.cli.doctor_facts import (
    NOW,
    WRONG,
    cluster,
    connection,
    lease,
    pod,
    ready,
    summary,
    unready,
    webhook,
)
from vnode.api.objects import Object
from vnode.cli.doctor import all_checks, connection_checks, shared_clusters
from vnode.cli.doctor.facts import ClusterFacts, ConnectionFacts
from vnode.cli.doctor.findings import Finding, Level
from vnode.targets.expiry import CredentialExpiry


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


class Case(NamedTuple):
    """What is known, and the checks that must fail, in this order, with a part of each cure."""

    facts: ClusterFacts | ConnectionFacts
    failing: dict[str, str]
    texts: tuple[str, ...]


AUTHORITY: Final = "Unreachable: the target's certificate is not one that its authority vouches for"
EXPIRED: Final = "Unauthorized: the target does not accept the credentials: run vnode connect again"
NOT_INSTALLED: Final = "NotInstalled: the target does not know PodChaperons: run vnode install"
FORBIDDEN: Final = "Forbidden: the target refuses: no list; create a Source there in namespace 'a'"
NO_NAMESPACE: Final = "NamespaceNotFound: the target has no namespace 'a': create it there"
UNTRUSTED: Final = (
    'failed calling webhook "vnode.multicluster.admiralty.io": x509: certificate signed by unknown '
    "authority"
)
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
    "no webhook, and so nothing to try": Case(
        cluster(webhook=None, admission=None), {"webhook": "vnode install"}, ("missing",)
    ),
    "a webhook that trusts nobody, and so fails": Case(
        cluster(webhook=webhook(""), admission=UNTRUSTED),
        {"webhook": "start the agent"},
        ("no caBundle",),
    ),
    "a webhook whose certificate has ended": Case(
        cluster(serving=NOW, admission=UNTRUSTED),
        {"webhook certificate": "see its log"},
        ("in the past",),
    ),
    "a webhook of others that does not answer": Case(
        cluster(admission='500: failed calling webhook "validate.kyverno.svc": refused'),
        {"admission": "see why webhook validate.kyverno.svc does not answer"},
        ("validate.kyverno.svc",),
    ),
    "a webhook of others that refuses the trial pod": Case(
        cluster(admission='admission webhook "validate.kyverno.svc" denied the request: no tag'),
        {},
        (),
    ),
    "a candidate scheduler that does not know the profile": Case(
        cluster(scheduler_lease=lease(1), waiting=[pod(60)], sources=[ready()]),
        {"candidate scheduler": "has the profile admiralty-candidate"},
        ("though it runs",),
    ),
    "a target without vnode": Case(
        connection(
            failure=NOT_INSTALLED,
            target=unready(*NOT_INSTALLED.split(": ", 1)),
            rights=WRONG,
            summary_missing=True,
        ),
        {"connection": "", "its condition": ""},
        ("run vnode install", "not ready: NotInstalled: as above"),
    ),
    "a target without a Source": Case(
        connection(failure=FORBIDDEN, target=unready(*FORBIDDEN.split(": ", 1)), rights=WRONG),
        {"connection": "", "its condition": ""},
        ("create a Source there", "not ready: Forbidden: as above"),
    ),
    "a target without the namespace": Case(
        connection(failure=NO_NAMESPACE, target=unready("NamespaceNotFound", "x"), rights=WRONG),
        {"connection": "", "its condition": ""},
        ("create it there", "not ready: NamespaceNotFound: as above"),
    ),
    "a trial pod for which no namespace has room": Case(
        cluster(admission=None, refused_trial='namespace a: pods "x" is forbidden: exceeded quota'),
        {},
        (),
    ),
    "a clock that is wrong, by which a certificate has ended": Case(
        cluster(skew=180.0, agent_lease=lease(-178), admission="x509: certificate has expired"),
        {"clock": "let NTP set the clocks"},
        ("180 s ahead",),
    ),
    "a token that has ended, and is refused": Case(
        connection(
            end=CredentialExpiry("token", NOW - timedelta(days=1)),
            failure=EXPIRED,
            target=unready(*EXPIRED.split(": ", 1)),
        ),
        {"credentials": "run vnode connect again", "its condition": ""},
        ("in the past", "not ready: Unauthorized: as above"),
    ),
    "an old agent in the target": Case(
        connection(summary=summary(1, **{"vnode.dev/agent-version": "0.1.0"})), {}, ()
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_fails_is_the_cause_and_its_cure_and_nothing_else(name: str) -> None:
    case = CASES[name]
    if isinstance(case.facts, ClusterFacts):
        found = all_checks.check(case.facts, [])
    else:
        found = connection_checks.check(case.facts)

    failing: list[Finding] = [each for each in found if each.level is Level.FAIL]
    assert [each.check for each in failing] == list(case.failing)
    for each, text in zip(failing, case.texts, strict=True):
        assert text in each.text
        assert each.cure
        assert case.failing[each.check] in each.cure
