"""What doctor says of pods that wait in silence, and nothing of what only follows from a cause."""

from __future__ import annotations

import pytest

from tests.apiserver.server import APIServer
from tests.unit.cli.doctor_facts import cluster, lease
from tests.unit.cli.explained_pods import proxy, refused
from vnode.api import keys, kinds
from vnode.api.objects import Object
from vnode.cli.doctor import all_checks, examining, pod_checks
from vnode.cli.doctor.findings import Level
from vnode.targets import model

SILENT = "no answer for 30 s (check that the agent and the candidate scheduler of the target run)"
C2: Object = {"metadata": {"name": "c2", "namespace": "default"}, "spec": {}}
C3: Object = {"metadata": {"name": "c3", "namespace": "default"}, "spec": {}}


def waiting(line: str) -> Object:
    return proxy(conditions=refused(line))


def test_pods_of_which_a_target_says_nothing_are_its_failure_and_no_others() -> None:
    pods = [waiting(f"0/2 targets: c2: {SILENT}; c3: Insufficient cpu"), waiting("0/2 targets: c3")]
    facts = cluster(targets=[C2, C3], unplaced=pods)
    found = pod_checks.unanswered(facts)
    key, other = model.key_of(C2), model.key_of(C3)
    (finding,) = pod_checks.silence(key, found[key])
    assert (finding.place, finding.level) == ("target default/c2", Level.FAIL)
    assert finding.text == "it has not answered about 1 pods: default/web"
    assert "candidate scheduler of c2 run" in finding.cure
    assert other not in found
    assert not list(pod_checks.silence(other, []))


def test_an_agent_that_does_not_run_is_the_only_failure_of_what_it_serves() -> None:
    dead = {"admission": "500", "kubelets": {"n": "refused", "m": "refused"}}
    found = all_checks.check(cluster(agent_lease=lease(120), **dead), [])
    assert [each.check for each in found if each.level is Level.FAIL] == ["agent"]
    skipped = [each for each in found if each.level is Level.SKIP]
    assert {each.check for each in skipped} == {"admission", "logs and exec"}
    assert not any(each.cure for each in skipped)
    alive = all_checks.check(cluster(**dead), [])
    assert sum(each.level is Level.FAIL for each in alive) == 3


def test_a_webhook_that_is_missing_is_told_though_the_agent_does_not_run() -> None:
    found = all_checks.check(cluster(agent_lease=None, webhook=None), [])
    assert [each.check for each in found if each.level is Level.FAIL] == ["agent", "webhook"]


@pytest.mark.looptime
async def test_elected_pods_outside_are_named_with_their_namespaces(clock) -> None:
    server = APIServer("c1", clock)
    elected = {keys.ELECT: ""}
    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    for name, labels, marks in (
        ("in", {label: value}, {}),
        ("out", {}, {}),
        ("asking", {}, elected),
        ("plain", {}, {}),
    ):
        metadata = {"name": name, "labels": labels, "annotations": marks}
        server.add(kinds.NAMESPACES, {"metadata": metadata})

    for space, marks in (
        ("in", elected),
        ("out", elected),
        ("asking", {}),
        ("asking", {keys.NO_ELECT: ""}),
        ("plain", {}),
    ):
        name = f"p{len(server.all(kinds.PODS))}"
        metadata = {"name": name, "namespace": space, "annotations": marks}
        server.add(kinds.PODS, {"metadata": metadata, "spec": {}})

    found = await examining.outside(server.client())
    assert sorted(found) == ["asking/p2", "out/p1"]
    (finding,) = pod_checks.check(cluster(outside=found))
    assert finding.level is Level.WARN
    assert finding.cure.startswith("kubectl label namespace asking out multicluster-scheduler=")
