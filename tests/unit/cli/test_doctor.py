"""The checks of `vnode doctor` on made-up facts: what fails, what warns, and the cures."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.cli.doctor_facts import (
    ADMIRALTYS,
    CRDS,
    NOW,
    SELF_TARGET,
    WRONG,
    cluster,
    connection,
    crds,
    lease,
    not_renewed,
    pod,
    ready,
    summary,
    webhook,
    worst,
)
from vnode.api import keys, objects, saved_manifest
from vnode.api.objects import Object
from vnode.cli import manifests
from vnode.cli.doctor import cluster_checks, connection_checks, migration_checks
from vnode.cli.doctor.facts import ClusterFacts, ConnectionFacts, ProfileFacts
from vnode.cli.doctor.findings import Finding, Level, lines
from vnode.targets.expiry import CredentialExpiry, Renewal
from vnode.targets.profiles.profile_references import ProfileReference


@pytest.mark.parametrize(
    ("facts", "level", "text"),
    [
        ({"renewal": Renewal(NOW + timedelta(hours=1))}, Level.OK, "vnode renews it on 2026-01-02"),
        ({"renewal": Renewal(None, "no right")}, Level.FAIL, "cannot renew it: no right"),
        ({"renewal": Renewal(NOW), "target": not_renewed()}, Level.FAIL, "why"),
        ({"renewal": Renewal(NOW - timedelta(hours=1))}, Level.WARN, "has not renewed it since"),
        ({"renewal": None}, Level.WARN, "ends on"),
    ],
)
def test_a_token_that_renews_itself_may_end_soon(facts: Object, level: Level, text: str) -> None:
    end = CredentialExpiry("token", NOW + timedelta(hours=2))
    found = worst(connection_checks.check(connection(end=end, **facts)), "credentials")
    assert found.level is level
    assert text in found.text


def test_a_cluster_where_all_is_well_has_no_complaint() -> None:
    assert {finding.level for finding in cluster_checks.check(cluster())} == {Level.OK}
    assert {finding.level for finding in connection_checks.check(connection())} == {Level.OK}


@pytest.mark.parametrize(
    ("facts", "check", "level"),
    [
        (cluster(unreachable="refused"), "reachable", Level.FAIL),
        (cluster(skew=-90.0), "clock", Level.FAIL),
        (cluster(skew=7.0), "clock", Level.WARN),
        (cluster(skew=None), "clock", Level.SKIP),
        (cluster(crds=crds()[1:]), "CRDs", Level.FAIL),
        (cluster(crds=CRDS), "CRDs", Level.FAIL),
        (cluster(crds=[{**crd, "spec": {}} for crd in crds()]), "CRDs", Level.WARN),
        (cluster(crds=None), "CRDs", Level.SKIP),
        (cluster(roles=[]), "agent's rights", Level.FAIL),
        (cluster(policies=[]), "agent's policies", Level.WARN),
        (cluster(namespace="agents"), "agent's policies", Level.WARN),
        (cluster(agent_lease=None), "agent", Level.FAIL),
        (cluster(agent_lease=lease(120)), "agent", Level.FAIL),
        (cluster(agent_lease=lease(1, "")), "agent", Level.FAIL),
        (cluster(may_read_leases=False), "agent", Level.SKIP),
        (cluster(webhook=None), "webhook", Level.FAIL),
        (cluster(webhook=webhook("")), "webhook", Level.FAIL),
        (cluster(webhook=webhook("bm9uc2Vuc2U=")), "webhook", Level.FAIL),
        (cluster(webhook_denied=True), "webhook", Level.SKIP),
        (cluster(serving=NOW + timedelta(hours=2)), "webhook certificate", Level.FAIL),
        (cluster(serving=NOW + timedelta(days=60)), "webhook certificate", Level.OK),
        (cluster(admission="refused"), "admission", Level.FAIL),
        (cluster(admission=None), "admission", Level.WARN),
        (cluster(waiting=[pod(60)]), "candidate scheduler", Level.FAIL),
        (cluster(waiting=[pod(3)]), "candidate scheduler", Level.SKIP),
        (cluster(scheduler_lease=lease(90)), "candidate scheduler", Level.FAIL),
        (cluster(placed=[pod(60)], sources=[ready()]), "candidate scheduler", Level.OK),
        (cluster(kubelets={"n": "refused"}), "logs and exec", Level.FAIL),
        (cluster(kubelets={"n": "address not allowed"}), "logs and exec", Level.SKIP),
    ],
)
def test_what_is_wrong_with_a_cluster_is_found(
    facts: ClusterFacts, check: str, level: Level
) -> None:
    found = worst(cluster_checks.check(facts), check)
    assert found.level is level
    assert found.cure or level in (Level.OK, Level.SKIP)


SILENT = {keys.SCHEDULER_SILENT: "2026-01-01T00:00:00Z"}
IGNORING = {"metadata": {"name": "gpu", "annotations": {keys.NETWORK_POLICIES: "ignore"}}}


@pytest.mark.parametrize(
    ("facts", "check", "level"),
    [
        (connection(invalid="no Secret"), "credentials", Level.FAIL),
        (connection(end=CredentialExpiry("token", NOW)), "credentials", Level.FAIL),
        (
            connection(end=CredentialExpiry("token", NOW + timedelta(days=6))),
            "credentials",
            Level.WARN,
        ),
        (
            connection(end=CredentialExpiry("token", NOW + timedelta(days=60))),
            "credentials",
            Level.OK,
        ),
        (connection(failure="Unreachable: refused"), "connection", Level.FAIL),
        (connection(rights=WRONG), "rights", Level.FAIL),
        (connection(summary_missing=True), "its agent", Level.FAIL),
        (connection(summary=summary(179)), "its agent", Level.OK),
        (connection(summary=summary(181)), "its agent", Level.WARN),
        (connection(summary=summary(181), skew=-2.0), "its agent", Level.OK),
        (connection(summary=summary(1, **{keys.HEARTBEAT: "2026"})), "its agent", Level.WARN),
        (connection(summary=summary(1, **{keys.AGENT_VERSION: "0.0"})), "its agent", Level.WARN),
        (connection(summary={}), "its agent", Level.OK),
        (connection(summary=summary(1, **SILENT)), "its scheduler", Level.FAIL),
        (connection(summary={}, rights=ADMIRALTYS), "rights", Level.OK),
        (connection(summary={}, rights=ADMIRALTYS | WRONG), "rights", Level.FAIL),
        (connection(summary=summary(1), rights=ADMIRALTYS), "rights", Level.FAIL),
        (connection(target={"metadata": {"name": "gpu"}}), "its condition", Level.FAIL),
        (connection(node=None), "virtual node", Level.FAIL),
        (connection(node={"spec": {"unschedulable": True}}), "virtual node", Level.WARN),
        (connection(namespace_labels={}), "namespace", Level.WARN),
        (connection(target=IGNORING), "network policies", Level.WARN),
        (connection(target={"status": {"conditions": [SELF_TARGET]}}), "rights here", Level.WARN),
    ],
)
def test_what_is_wrong_with_a_connection_is_found(
    facts: ConnectionFacts, check: str, level: Level
) -> None:
    found = worst(connection_checks.check(facts), check)
    assert found.level is level
    assert found.cure or level is Level.OK


def test_a_failure_that_the_agent_sees_too_is_told_once() -> None:
    target = ready()
    target["status"]["conditions"][0] |= {
        "status": "False",
        "reason": "Unauthorized",
        "message": "run vnode connect again",
    }
    facts = connection(target=target, failure="Unauthorized: run vnode connect again")
    text = "\n".join(lines(connection_checks.check(facts)))
    assert text.count("run vnode connect again") == 1
    assert "not ready: Unauthorized: as above" in text
    assert "cure:" not in text


@pytest.mark.parametrize(("age", "told"), [(1, True), (181, False)])
def test_a_dead_scheduler_of_a_target_is_told_once_while_its_agent_lives(
    age: int, told: bool
) -> None:
    target = ready()
    message = "the target's candidate scheduler does not run"
    target["status"]["conditions"][0] |= {
        "status": "False",
        "reason": "SchedulerSilent",
        "message": message,
    }
    facts = connection(target=target, summary=summary(age, **SILENT))
    found = connection_checks.check(facts)
    assert any(each.check == "its scheduler" for each in found) is told
    assert "\n".join(lines(found)).count(message) == 1


CHART = {
    "labels": {"helm.sh/chart": "vnode-0.1.0"},
    "annotations": {
        "meta.helm.sh/release-name": "mine",
        "meta.helm.sh/release-namespace": "agents",
    },
}
AGENT = {"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]}}
ROLE = {"metadata": {"name": "vnode", **CHART}}


@pytest.mark.parametrize(
    ("facts", "check", "cure"),
    [
        (cluster(webhook=None, has_service=True), "webhook", "vnode install, as an"),
        (
            cluster(webhook=None, has_service=True, issuers=[manifests.self_targets("vnode")]),
            "webhook",
            "vnode install --self-targets, as an",
        ),
        (
            cluster(webhook=None, nodes=[AGENT], namespace="agents"),
            "webhook",
            "vnode install --namespace agents --webhook-url https://192.0.2.1:9443, as an",
        ),
        (cluster(webhook=None), "webhook", "vnode install --webhook-url https://HOST:9443, as an"),
        (
            cluster(
                crds=crds()[1:],
                webhook=manifests.webhook("agents", "https://192.0.2.1:9", timeout=7),
            ),
            "CRDs",
            "--namespace agents --webhook-url https://192.0.2.1:9 --webhook-timeout 7, as an",
        ),
        (
            cluster(webhook=None, roles=[ROLE]),
            "webhook",
            "helm upgrade mine charts/vnode --namespace agents --reset-then-reuse-values, as an",
        ),
        (
            cluster(roles=[], crds=[{**crds()[0], "metadata": CHART}], has_service=True),
            "agent's rights",
            "--reset-then-reuse-values (if helm list has it no more: vnode install), as an",
        ),
        (
            cluster(admission="timeout", webhook=manifests.webhook("vnode", "https://192.0.2.1:9")),
            "admission",
            "reaches the agent at https://192.0.2.1:9/mutate--v1-pod; vnode install --webhook-url",
        ),
    ],
)
def test_cures_name_the_flags_of_the_cluster_or_its_helm_release(
    facts: ClusterFacts, check: str, cure: str
) -> None:
    assert cure in worst(cluster_checks.check(facts), check).cure


def test_a_cluster_that_is_connected_to_none_is_told_how_it_would_be() -> None:
    found = worst(cluster_checks.check(cluster(targets=[], sources=[])), "connections")
    assert (found.level, found.cure) == (Level.WARN, "vnode connect makes one")


def test_a_lease_is_judged_by_the_clock_of_its_own_cluster() -> None:
    behind = cluster(skew=-100.0, agent_lease=lease(100))
    assert worst(cluster_checks.check(behind), "agent").level is Level.OK


def test_two_sources_of_one_name_are_found_by_their_chaperons() -> None:
    chaperons = [
        {
            "metadata": {
                "labels": {keys.PARENT_CLUSTER_NAME: "same"},
                "annotations": {keys.PARENT_CLUSTER_UID: uid},
            }
        }
        for uid in ("one", "two")
    ]
    facts = cluster(chaperons=chaperons, placed=[pod(60)])
    assert worst(cluster_checks.check(facts), "cluster names").level is Level.FAIL


def test_manifests_may_have_more_in_the_cluster_but_not_less() -> None:
    assert cluster_checks.contains({"a": 1, "b": [{"c": 2, "d": 3}]}, {"b": [{"c": 2}], "e": {}})
    assert not cluster_checks.contains({"a": 1}, {"a": 2})
    assert not cluster_checks.contains({"a": [1, 2]}, {"a": [1]})


def test_a_cure_stands_below_its_finding() -> None:
    printed = list(lines([Finding("here", "clock", Level.FAIL, "90 s behind", "use NTP")]))
    assert printed[0] == "here"
    assert printed[1].split() == ["FAIL", "clock", "90", "s", "behind"]
    assert printed[2].strip() == "cure: use NTP"


def by_profile(**more: Any) -> list[Finding]:
    """Return the findings about a Target that names a ClusterProfile."""
    facts = ProfileFacts(ProfileReference("fleet", "c2"), **more)
    return connection_checks.check(connection(profile=facts, tried=bool(facts.provider)))


def test_a_profile_that_is_not_there_is_a_failure() -> None:
    assert worst(by_profile(failure="there is none"), "profile").level is Level.FAIL


def test_without_the_agents_configuration_nothing_is_run() -> None:
    offered = {"status": {"accessProviders": [{"name": "reader"}]}}
    found = by_profile(profile=offered)
    assert worst(found, "profile").level is Level.OK
    assert worst(found, "provider").level is Level.SKIP
    assert "it offers reader" in worst(found, "provider").text
    assert worst(found, "plugin").level is Level.SKIP
    assert worst(found, "its condition").level is Level.OK
    assert worst(by_profile(profile={}), "provider").level is Level.FAIL


def test_provider_and_plugin_are_told_with_the_agents_configuration() -> None:
    found = by_profile(profile={}, provider="reader")
    assert {worst(found, check).level for check in ("provider", "plugin")} == {Level.OK}
    assert worst(found, "connection").level is Level.OK
    found = by_profile(profile={}, provider="reader", plugin_failure="exit 1")
    assert worst(found, "plugin").level is Level.FAIL
    assert worst(by_profile(profile={}, refusal="unknown"), "provider").level is Level.FAIL


def test_what_the_inventory_says_of_a_control_plane_is_a_warning() -> None:
    unwell = {"type": "ControlPlaneHealthy", "status": "False", "message": "no heartbeat"}
    found = worst(by_profile(profile={"status": {"conditions": [unwell]}}), "profile")
    assert found.level is Level.WARN
    assert "no heartbeat" in found.text


def held(name: str, message: str) -> Object:
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    return {
        "metadata": {"name": name, "namespace": "a"},
        "status": {"conditions": [condition]},
    }


def test_pods_whose_constraints_nobody_knows_are_named_with_the_cure() -> None:
    waiting = [held(f"p{n}", f"0/1 targets: c2: {saved_manifest.UNKNOWN}: it ...") for n in "1234"]
    other = held("full", "0/1 targets: c2: 0/1 nodes are available")
    [found] = migration_checks.check(cluster(unplaced=[*waiting, other]))
    assert found.level is Level.FAIL
    assert found.text.startswith("pod/a/p1, pod/a/p2, pod/a/p3 and 1 more: the pod waits")
    assert found.cure.startswith("vnode migrate")


def test_finalizers_that_admiralty_has_left_are_named_with_the_cure() -> None:
    [found] = migration_checks.check(cluster(finalized=["secret/a/b"]))
    assert (found.level, found.cure) == (Level.WARN, "vnode migrate")
    assert found.text.startswith("secret/a/b: a finalizer of Admiralty's")
    assert list(migration_checks.check(cluster())) == []


@pytest.mark.parametrize(
    ("granted", "level", "text"),
    [
        ({"a": True, "b": True}, Level.OK, "in 2 of 2 namespaces"),
        ({"a": True, "b": False}, Level.WARN, "in 1 of 2 namespaces that take part, not in b"),
        ({"a": False}, Level.FAIL, "not in a"),
    ],
)
def test_where_a_connection_may_run_pods_is_told(
    granted: dict[str, bool], level: Level, text: str
) -> None:
    found = worst(connection_checks.check(connection(granted=granted)), "namespaces")
    assert found.level is level
    assert text in found.text
    assert ("kubectl label namespace" in found.cure) is (level is not Level.OK)


def test_a_cluster_source_of_all_namespaces_is_told_for_what_it_is() -> None:
    source = ready()
    del source["metadata"]["namespace"]
    name = f"source {objects.key(source)}"
    found = worst(cluster_checks.check(cluster(sources=[source], placed=[pod(60)])), name)
    assert found.level is Level.WARN
    assert "as good as cluster-admin" in found.text
    source["spec"] = {"namespaceSelector": {}}
    found = worst(cluster_checks.check(cluster(sources=[source], placed=[pod(60)])), name)
    assert found.level is Level.OK
