"""The verdict on a pod, for each state that users meet, with its cures."""

from __future__ import annotations

import pytest

from tests.unit.cli.explained_pods import (
    ALLOWED,
    ENDING,
    GATES,
    NODE,
    at,
    chaperon,
    crash_loop,
    delegate,
    facts,
    lease,
    namespace,
    plain,
    proxy,
    refused,
    target,
)
from vnode.api import keys
from vnode.api.objects import Object
from vnode.api.saved_manifest import UNKNOWN
from vnode.insight import judging
from vnode.insight.facts import Facts, TargetFacts
from vnode.insight.verdicts import PodState


@pytest.mark.parametrize(
    ("known", "state", "expected"),
    [
        (facts(plain(), namespace=namespace()), PodState.NOT_ELECTED, "nothing asks for"),
        (
            facts(plain(annotations=(f"{keys.PREFIX}elct",)), namespace=namespace()),
            PodState.NOT_ELECTED,
            f"it has {keys.PREFIX}elct, and the annotation is {keys.ELECT}",
        ),
        (facts(plain(annotations=(keys.NO_ELECT,))), PodState.NOT_ELECTED, "opts out"),
        (facts(plain(owner="DaemonSet")), PodState.NOT_ELECTED, "DaemonSet"),
        (
            facts(plain(annotations=(keys.ELECT,)), namespace=namespace(enabled=False)),
            PodState.NOT_ELECTED,
            "does not have the label multicluster-scheduler=enabled",
        ),
        (
            facts(plain(), namespace=namespace(elected=True)),
            PodState.NOT_ELECTED,
            "was not elected when it was created",
        ),
        (facts(proxy(spec=GATES), target()), PodState.GATED, "example.com/gate"),
        (facts(proxy(), target(), lease=lease(600)), PodState.NO_AGENT, "does not run"),
        (facts(proxy()), PodState.NO_TARGET, "no Target"),
        (
            facts(proxy(), target(ready=False, why="gone")),
            PodState.UNREACHABLE,
            "c2 is not ready: gone",
        ),
        (facts(proxy(), target(), lease=lease(1)), PodState.WAITING, "in the queue"),
        (facts(proxy(), target(chaperon=chaperon())), PodState.WAITING, "answer of c2"),
        (
            facts(
                proxy(conditions=refused("0/1 targets: c2: Insufficient cpu")),
                target(chaperon=chaperon(message="0/3 nodes are available")),
            ),
            PodState.UNSCHEDULABLE,
            "c2: 0/3 nodes are available",
        ),
        (
            facts(proxy(conditions=refused(f"0/1 targets: c2: {UNKNOWN}: it ...")), target()),
            PodState.UNSCHEDULABLE,
            UNKNOWN,
        ),
        (
            facts(
                proxy(conditions=refused("0/1 targets: c2: no answer for 30 s")),
                target(chaperon=chaperon()),
            ),
            PodState.UNSCHEDULABLE,
            "c2: no answer for 30 s",
        ),
        (
            facts(proxy(node=NODE), target(chaperon=ALLOWED, delegate=delegate())),
            PodState.RUNNING,
            "runs in target c2",
        ),
        (facts(proxy(node=NODE, phase="Succeeded"), target()), PodState.FINISHED, "Succeeded"),
        (
            facts(proxy(node=NODE), target(chaperon=ALLOWED, delegate=delegate("Pending"))),
            PodState.STARTING,
            "on node worker-1",
        ),
        (
            facts(proxy(node=NODE), target(chaperon=ALLOWED)),
            PodState.NOT_STARTING,
            "no delegate pod yet",
        ),
        (facts(proxy(node="admiralty-default-c9"), target()), PodState.LOST, "is gone"),
        (facts(proxy(node=NODE), target(ready=False)), PodState.UNREACHABLE, "may be outdated"),
        (
            facts(proxy(node=NODE, metadata=ENDING), target(error="no answer")),
            PodState.STUCK_ENDING,
            "have ended is unknown",
        ),
        (
            facts(proxy(node=NODE, metadata=ENDING), target(chaperon=ALLOWED)),
            PodState.STUCK_ENDING,
            "waits for that cluster's agent",
        ),
        (
            facts(proxy(node=NODE, metadata=ENDING), target()),
            PodState.ENDING,
            "the agent removes",
        ),
        (
            facts(proxy(node=NODE, metadata=ENDING), target(), lease=lease(600)),
            PodState.STUCK_ENDING,
            "no agent is running to remove its finalizer",
        ),
        (
            facts(proxy(metadata={**ENDING, "finalizers": ["example.com/mine"]}), target()),
            PodState.STUCK_ENDING,
            "example.com/mine",
        ),
    ],
)
def test_each_state_is_found_and_bad_ones_have_a_cure(
    known: Facts, state: PodState, expected: str
) -> None:
    verdict = judging.judge(known)
    assert verdict.state is state
    assert expected in verdict.text
    assert state.is_good or verdict.cures or "opts out" in expected or "DaemonSet" in expected


@pytest.mark.parametrize(
    ("reason", "cure"),
    [
        ("ImagePullBackOff", "app:1"),
        ("ErrImagePull", "pull secret"),
        ("InvalidImageName", "app:1"),
        ("CreateContainerConfigError", "target's namespace"),
    ],
)
def test_a_container_that_cannot_start_is_told_in_the_kubelets_words(
    reason: str, cure: str
) -> None:
    waiting = {"waiting": {"reason": reason, "message": "the details"}}
    there = target(chaperon=ALLOWED, delegate=delegate("Pending", container=waiting))
    verdict = judging.judge(facts(proxy(node=NODE), there))
    assert verdict.state is PodState.NOT_STARTING
    assert verdict.text == f"container main: {reason}: the details"
    assert cure in verdict.cures[0]


@pytest.mark.parametrize(
    ("container", "state", "expected", "cure"),
    [
        (
            crash_loop(exitCode=137, reason="OOMKilled"),
            PodState.CRASHING,
            "container main: CrashLoopBackOff: OOMKilled, exit code 137, 4 restarts",
            "raise the memory limit of container main, which is 64Mi",
        ),
        (
            crash_loop(exitCode=3, reason="Error"),
            PodState.CRASHING,
            "container main: CrashLoopBackOff: Error, exit code 3, 4 restarts",
            "kubectl logs web -n default -c main --previous",
        ),
        (
            {"state": {"terminated": {"exitCode": 127, "reason": "Error"}}},
            PodState.CRASHING,
            "container main: Error, exit code 127",
            "its command was not found",
        ),
        (
            {"ready": False, "state": {"running": {"startedAt": at(3700)}}},
            PodState.NOT_READY,
            "container main is not ready, 61m after its start: probe failed: 503",
            "kubectl logs web -n default -c main",
        ),
    ],
)
def test_a_pod_that_fails_while_it_runs_is_told_with_exit_code_and_cure(
    container: Object, state: PodState, expected: str, cure: str
) -> None:
    pod = proxy(node=NODE, phase="Running")
    limits = {"resources": {"limits": {"memory": "64Mi"}}}
    pod["spec"]["containers"][0].update(limits)
    shown = delegate()
    shown["status"]["containerStatuses"] = [{"name": "main", **container}]
    unhealthy = [{"type": "Warning", "reason": "Unhealthy", "message": "probe failed: 503"}]
    there = target(chaperon=ALLOWED, delegate=shown, events=unhealthy)
    verdict = judging.judge(facts(pod, there))
    assert (verdict.state, verdict.text) == (state, expected)
    assert any(cure in line for line in verdict.cures)
    assert not state.is_good


def test_a_failed_pod_is_not_called_finished() -> None:
    ended = {"state": {"terminated": {"exitCode": 1, "reason": "Error", "message": "no disk"}}}
    pod = proxy(node=NODE, phase="Failed", containerStatuses=[{"name": "main", **ended}])
    verdict = judging.judge(facts(pod, target()))
    assert verdict.state is PodState.FAILED
    assert verdict.text == "the pod has failed: container main: Error, exit code 1: no disk"
    assert verdict.cures[0] == "kubectl logs web -n default -c main"


@pytest.mark.parametrize(
    ("message", "cure"),
    [
        ("the virtual node was unschedulable (cordoned)", "vnode uncordon c2"),
        ("0/4 nodes are available: 4 node(s) were unschedulable", "uncordon the nodes of c2"),
        ("0/1 nodes are available: 1 node(s) had untolerated taint {a: b}", "nodes of c2"),
        ("had untolerated taint {a: b}", "taint of the virtual node"),
        ("didn't match pod anti-affinity rules (topologyKey zone)", "affinity between pods"),
        ("didn't satisfy existing pods anti-affinity rules", "affinity between pods"),
        ("didn't match pod topology spread constraints (skew ...)", "topologySpreadConstraints"),
    ],
)
def test_reasons_are_cured_in_the_cluster_that_they_come_from(message: str, cure: str) -> None:
    known = facts(proxy(conditions=refused(f"0/1 targets: c2: {message}")), target())
    first, *others = judging.judge(known).cures
    assert cure in first
    assert len(others) == 1


def test_what_the_target_lacks_comes_first_and_is_made_where_it_follows_from() -> None:
    lacking = ('ConfigMap "settings"', 'Secret "key"')
    here = frozenset(lacking[:1])
    there = target(
        chaperon=ALLOWED, delegate=delegate("Pending"), missing=lacking, missing_in_source=here
    )
    verdict = judging.judge(facts(proxy(node=NODE), there))
    assert 'ConfigMap "settings", Secret "key"' in verdict.text
    made, followed = verdict.cures
    assert made.startswith('create ConfigMap "settings" in namespace default of this cluster')
    assert followed.startswith(
        'Secret "key" has not followed to c2: kubectl describe pod web -n default'
    )


@pytest.mark.parametrize(("asked", "state"), [(5, PodState.ENDING), (600, PodState.STUCK_ENDING)])
def test_a_delegate_has_its_grace_period_and_a_minute_to_end(asked: float, state: PodState) -> None:
    deadline = at(asked - 30)
    ending = delegate(deletionTimestamp=deadline, deletionGracePeriodSeconds=30)
    there = target(chaperon=ALLOWED, delegate=ending)
    assert judging.judge(facts(proxy(node=NODE, metadata=ENDING), there)).state is state


@pytest.mark.parametrize(
    ("there", "where"),
    [
        (target(), f"kubectl get nodes -l {keys.PROVIDER_LABEL}={keys.PROVIDER} --show-labels"),
        (
            target(
                chaperon=chaperon(message="2 node(s) didn't match Pod's node affinity/selector")
            ),
            "the labels of the nodes in the target",
        ),
    ],
)
def test_labels_are_to_be_compared_in_the_cluster_that_compared_them(
    there: TargetFacts, where: str
) -> None:
    expected = there.rejection or "didn't match Pod's node affinity/selector"
    known = facts(proxy(conditions=refused(f"0/1 targets: c2: {expected}")), there)
    first, *_others = judging.judge(known).cures
    assert where in first
    assert len(_others) == 1


def test_a_pod_whose_gang_is_not_complete_waits_for_the_others() -> None:
    why = "waiting for 4 of 16 pods of the gang training"
    gang = {"annotations": {keys.ELECT: "", keys.GANG: "training"}}
    verdict = judging.judge(facts(proxy(metadata=gang, conditions=refused(why)), target()))
    assert (verdict.state, verdict.text) == (PodState.WAITING, why)
