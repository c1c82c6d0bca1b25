"""Pods that are named together, or by what owns them: how they stand, and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.server import APIServer
from tests.unit.cli.explained_pods import proxy, refused
from vnode.api import kinds, objects
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.cli.explain import rendering, several
from vnode.insight import named_pods
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


async def told(server, clock, *words: str) -> several.PodStories:
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

    found = await told(server, clock, "deployment/web")
    states = [story.verdict.state for story in found.stories]
    assert states == [PodState.UNSCHEDULABLE] * 2 + [PodState.RUNNING] * 2
    text = rendering.as_summary(found.stories, found.notes)
    assert text.startswith("2 pods: a, b\n  Unschedulable: c2: 0/3 nodes are available: 3 Ins")
    assert "add nodes in the target" in text
    assert "2 pods: c, d\n  Running: the pod runs on node n" in text
    assert text.endswith("vnode explain NAME tells the whole story of a pod")
    assert server.count("list", kinds.TARGETS) == 2


async def test_one_pod_that_runs_is_told_whole(server, clock):
    server.add(kinds.PODS, running("c"))
    (story,) = (await told(server, clock, "c")).stories
    assert story.chapters


async def test_of_very_many_pods_some_are_looked_at_and_it_is_said(server, clock):
    for number in range(several.MOST + 3):
        server.add(kinds.PODS, owned(f"p{number}", conditions=refused(FULL)))

    found = await told(server, clock, "deployment", "web")
    assert len(found.stories) == several.MOST
    assert found.notes == ("3 more pods are not fine, and were not looked at",)


@pytest.mark.parametrize(
    ("spec", "events", "expected"),
    [
        ({"replicas": 0}, [], "it is scaled to 0"),
        ({"replicas": 2}, [], "default"),
        (
            {"replicas": 2},
            [("ReplicaSet", "web-abc", "exceeded quota: pods"), ("ReplicaSet", "other", "x")],
            "exceeded quota: pods",
        ),
    ],
)
async def test_why_an_owner_has_no_pods_is_told(server, clock, spec, events, expected):
    deployment = {"metadata": {"name": "web", "namespace": "default"}, "spec": spec}
    server.add(kinds.DEPLOYMENTS, deployment)
    for number, (kind, name, message) in enumerate(events):
        about = {"kind": kind, "name": name, "namespace": "default"}
        event = {"type": "Warning", "message": message, "involvedObject": about}
        metadata = {"name": f"e{number}", "namespace": "default"}
        server.add(kinds.EVENTS, {"metadata": metadata, **event})

    (note,) = (await told(server, clock, "deployment/web")).notes
    assert note.startswith("deployment/web has no pods in namespace default")
    assert note.endswith(expected)


@pytest.mark.parametrize("words", [["deployment/none"], ["none"], ["none", "other"]])
async def test_what_is_not_there_is_an_error(server, clock, words):
    with pytest.raises(ConfigError, match="there is no"):
        await told(server, clock, *words)


async def test_pods_of_a_kind_that_is_not_known_are_found_by_their_owner(server, clock):
    server.add(kinds.PODS, running("r", kind="RayCluster", owner="ray"))
    (story,) = (await told(server, clock, "raycluster/ray")).stories
    assert story.pod == "default/r"
