"""Pods that are named together, or by what owns them: how they stand, and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.server import APIServer
from tests.unit.cli.explained_pods import NODE, crash_loop, proxy, refused
from vnode.api import kinds, objects
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.cli.explain import rendering, several
from vnode.insight import named_pods, owners
from vnode.insight.named_pods import NamedResource
from vnode.insight.verdicts import PodState

FULL = "0/1 targets: c2: 0/3 nodes are available: 3 Insufficient cpu"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["web-1"], ["pod/web-1"]),
        (["deployment"], ["pod/deployment"]),
        (["pod", "web-1"], ["pod/web-1"]),
        (["web-1", "web-2"], ["pod/web-1", "pod/web-2"]),
        (["deploy", "web", "api"], ["deployment/web", "deployment/api"]),
        (["deployments/web", "po/x", "RayCluster/r"], ["deployment/web", "pod/x", "raycluster/r"]),
        (["deployment.apps/web", "job.batch/x"], ["deployment/web", "job/x"]),
        (["statefulsets.apps", "db"], ["statefulset/db"]),
        (["ds/agent", "deployment.v1.apps/web"], ["daemonset/agent", "deployment/web"]),
    ],
)
def test_names_are_taken_as_kubectl_takes_them(words: list[str], expected: list[str]) -> None:
    assert [str(each) for each in named_pods.parse(words)] == expected


@pytest.mark.parametrize("words", [["deployment/"], ["/web"], ["a/b/c"], ["deployment/web", "x"]])
def test_a_name_that_makes_no_sense_is_refused_with_an_example(words: list[str]) -> None:
    with pytest.raises(ConfigError, match="write pod/web-1, deployment/web"):
        named_pods.parse(words)


def owned(name: str, *, kind: str = "ReplicaSet", owner: str = "web-abc", **more: Any) -> Object:
    group = "batch" if kind == "Job" else "apps"
    reference = {"apiVersion": f"{group}/v1", "kind": kind, "name": owner, "uid": "u"}
    pod = proxy(**more)
    pod["metadata"] |= {
        "name": name,
        "uid": name,
        "labels": {"pod-template-hash": "abc"} if kind == "ReplicaSet" else {},
        "ownerReferences": [{**reference, "controller": True}],
    }
    return pod


def running(name: str, **more: Any) -> Object:
    ready = [{"type": "Ready", "status": "True"}]
    return owned(name, node="n", phase="Running", conditions=ready, **more)


def test_pods_are_found_by_controller_and_by_the_maker_of_their_replica_set() -> None:
    pods = [owned("a"), owned("b", owner="api-abc"), owned("c", kind="Job", owner="web")]
    for text, expected in {
        "deployment/web": ["a"],
        "replicaset/web-abc": ["a"],
        "deployment/api": ["b"],
        "job/web": ["c"],
        "deployment/other": [],
    }.items():
        kind, _, name = text.partition("/")
        found = named_pods.of_owner(pods, NamedResource(kind, name))
        assert [objects.name(pod) for pod in found] == expected


@pytest.fixture
async def server(clock):
    server = APIServer("c1", clock)
    target = {
        "metadata": {"name": "c2", "namespace": "default"},
        "spec": {"kubeconfigSecret": {"name": "c2"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    server.add(kinds.TARGETS, target)
    server.add(kinds.NAMESPACES, {"metadata": {"name": "default"}})
    return server


async def told_of(server, clock, *words: str) -> several.PodStories:
    client = server.client()
    return await several.explain(
        client, named_pods.parse(words), "default", agent_namespace="vnode", clock=clock
    )


async def test_pods_that_stand_alike_are_told_together_and_those_that_run_are_not_looked_at(
    server, clock
):
    for name in ("a", "b"):
        server.add(kinds.PODS, owned(name, conditions=refused(FULL)))

    for name in ("c", "d"):
        server.add(kinds.PODS, running(name))

    found = await told_of(server, clock, "deployment/web")
    states = [story.verdict.state for story in found.stories]
    assert states == [PodState.UNSCHEDULABLE] * 2 + [PodState.RUNNING] * 2
    text = rendering.as_summary(found.stories, found.notes)
    assert text.startswith("2 pods: a, b\n  Unschedulable: c2: 0/3 nodes are available: 3 Ins")
    assert "add nodes in the target" in text
    assert "2 pods: c, d\n  Running: the pod runs on node n" in text
    assert text.endswith("vnode explain NAME tells the whole story of a pod")
    assert server.count("list", kinds.TARGETS) == 2


async def test_pods_that_crash_alike_are_told_together_whatever_their_restarts(server, clock):
    for number, code in enumerate((1, 1, 2)):
        crashed = {**crash_loop(exitCode=code, reason="Error"), "name": "main"}
        status = [{**crashed, "restartCount": number + 3}]
        pod = owned(f"p{number}", node=NODE, phase="Running", containerStatuses=status)
        server.add(kinds.PODS, pod)

    found = await told_of(server, clock, "deployment/web")
    lines = rendering.as_summary(found.stories, found.notes).splitlines()
    assert [line for line in lines if not line.startswith(" ") and line] == [
        "2 pods: p0, p1",
        "p2",
        "vnode explain NAME tells the whole story of a pod",
    ]
    assert "  - kubectl logs p0 -n default -c main --previous" in lines


async def test_one_pod_that_runs_is_told_whole(server, clock):
    server.add(kinds.PODS, running("c"))
    (story,) = (await told_of(server, clock, "c")).stories
    assert story.chapters


async def test_of_very_many_pods_some_are_looked_at_and_it_is_said(server, clock):
    for number in range(several.MOST + 3):
        server.add(kinds.PODS, owned(f"p{number}", conditions=refused(FULL)))

    found = await told_of(server, clock, "deployment", "web")
    assert len(found.stories) == several.MOST
    assert found.notes == ("3 more pods are not fine, and were not looked at",)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("deploymnet/web",), "'deployment/web'"),
        (("podz/web-1",), "'pod/web-1'"),
        (("deploymnet", "web"), "'deployment'"),
    ],
)
async def test_of_a_mistyped_kind_it_is_said_which_was_meant(server, clock, words, meant):
    with pytest.raises(ConfigError, match=rf"Did you mean {meant}\?$"):
        await told_of(server, clock, *words)


async def test_a_kind_of_somebody_else_is_no_mistake(server, clock):
    for kind in ("jobset", "rayjob", "rollout"):
        found = await told_of(server, clock, f"{kind}/web")
        nothing = f"{kind}/web has no pods in namespace default"
        assert found.notes == (f"{nothing}: none has it as its controller",)

    with pytest.raises(ConfigError, match=r"there is no pod 'web-1' in namespace 'default'$"):
        await told_of(server, clock, "web-1", "web-2")


QUOTA = 'pods "web-abc-x" is forbidden: exceeded quota: team, requested: pods=1'
DOWN = 'failed calling webhook "mutate.vnode.dev": connection refused'


@pytest.mark.parametrize(
    ("kind", "spec", "warning", "expected"),
    [
        ("deployment", {"replicas": 2}, "", ""),
        ("deployment", {"replicas": 2}, "some reason", ": some reason"),
        (
            "deployment",
            {"replicas": 0},
            "",
            ": it is scaled to 0: kubectl scale deployment/web -n default --replicas 1",
        ),
        (
            "deployment",
            {"replicas": 2, "paused": True},
            "",
            ": it is paused: kubectl rollout resume deployment/web -n default",
        ),
        (
            "deployment",
            {"replicas": 2},
            QUOTA,
            (
                f": {QUOTA}; free what is used, or raise it, in this cluster: kubectl edit "
                "resourcequota team -n default"
            ),
        ),
        (
            "deployment",
            {"replicas": 2},
            DOWN,
            f": {DOWN}; that is vnode's webhook: vnode doctor says why",
        ),
        (
            "deployment",
            {"replicas": 2},
            'error looking up service account default/b: serviceaccount "b" not found',
            "; kubectl create serviceaccount b -n default (in this cluster)",
        ),
        (
            "job",
            {"suspend": True},
            "",
            (
                ": it is suspended: kubectl patch job/web -n default --type merge --patch "
                """'{"spec":{"suspend":false}}'"""
            ),
        ),
        ("cronjob", {"suspend": True}, "", ": it is suspended: kubectl patch cronjob/web -n"),
    ],
)
async def test_why_an_owner_has_no_pods_is_told_with_the_cure(
    server, clock, kind, spec, warning, expected
):
    metadata = {"name": "web", "namespace": "default"}
    server.add(owners.KINDS[kind], {"metadata": metadata, "spec": spec})
    about = ("ReplicaSet", "web-abc") if kind == "deployment" else (kind.title(), "web")
    for number, (told, message) in enumerate([(about, warning), (("ReplicaSet", "other"), "x")]):
        involved = {"kind": told[0], "name": told[1], "namespace": "default"}
        event = {"type": "Warning", "message": message, "involvedObject": involved}
        if message:
            metadata = {"name": f"e{number}", "namespace": "default"}
            server.add(kinds.EVENTS, {"metadata": metadata, **event})

    (note,) = (await told_of(server, clock, f"{kind}/web")).notes
    assert note.startswith(f"{kind}/web has no pods in namespace default")
    assert expected in note
    assert expected or note.endswith("default")


async def test_an_owner_that_lacks_some_pods_says_why(server, clock):
    metadata = {"name": "web", "namespace": "default"}
    server.add(kinds.DEPLOYMENTS, {"metadata": metadata, "spec": {"replicas": 3}})
    server.add(kinds.PODS, running("a"))
    assert not (await told_of(server, clock, "deployment/web")).notes
    about = {"kind": "ReplicaSet", "name": "web-abc", "namespace": "default"}
    event = {"type": "Warning", "message": QUOTA, "involvedObject": about}
    server.add(kinds.EVENTS, {"metadata": {"name": "e", "namespace": "default"}, **event})
    (note,) = (await told_of(server, clock, "deployment/web")).notes
    assert note.startswith(f"deployment/web has 1 of 3 pods: {QUOTA}; free what is used")


async def test_a_job_of_kueue_is_resumed_by_its_queue(server, clock):
    metadata = {"name": "web", "labels": {"kueue.x-k8s.io/queue-name": "q"}}
    server.add(kinds.JOBS, {"metadata": metadata, "spec": {"suspend": True}})
    (note,) = (await told_of(server, clock, "job/web")).notes
    assert note.endswith(
        "Kueue resumes it once its queue has room: kubectl get workloads -n default"
    )


async def test_pods_of_a_cron_job_are_those_of_its_jobs(server, clock):
    server.add(owners.KINDS["cronjob"], {"metadata": {"name": "nightly"}, "spec": {}})
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "u"}
    metadata = {"name": "nightly-1", "ownerReferences": [{**owner, "controller": True}]}
    server.add(kinds.JOBS, {"metadata": metadata, "spec": {}})
    server.add(kinds.PODS, running("p", kind="Job", owner="nightly-1"))
    found = await told_of(server, clock, "cronjob", "nightly")
    assert [story.pod for story in found.stories] == ["default/p"]
    assert not found.notes


@pytest.mark.parametrize("kind", ["deployment", "statefulset", "cronjob"])
async def test_the_name_of_an_owner_alone_is_understood(server, clock, kind):
    server.add(owners.KINDS[kind], {"metadata": {"name": "web"}, "spec": {}})
    with pytest.raises(ConfigError, match=rf"'default', but there is {kind}/web: vnode explain"):
        await told_of(server, clock, "web")


@pytest.mark.parametrize("words", [["deployment/none"], ["none"], ["none", "other"]])
async def test_what_is_not_there_is_an_error(server, clock, words):
    with pytest.raises(ConfigError, match="there is no"):
        await told_of(server, clock, *words)


async def test_pods_of_a_kind_that_is_not_known_are_found_by_their_owner(server, clock):
    server.add(kinds.PODS, running("r", kind="RayCluster", owner="ray"))
    (story,) = (await told_of(server, clock, "raycluster/ray")).stories
    assert story.pod == "default/r"
