"""The story of a pod: what is looked for, each target's word, and the order in which it is told."""

from __future__ import annotations

import pytest

from tests.apiserver.server import APIServer
from tests.unit.cli.explained_pods import (
    ALLOWED,
    NODE,
    NOW,
    at,
    chaperon,
    delegate,
    facts,
    namespace,
    proxy,
    refused,
    target,
)
from vnode.api import keys, kinds
from vnode.api.clock import Clock
from vnode.api.target_key import TargetKey
from vnode.cli.explain import rendering
from vnode.insight import collecting, story, target_chapters
from vnode.insight.facts import TargetFacts


def test_targets_that_were_not_asked_have_the_verdict_of_the_pods_condition() -> None:
    message = "0/3 targets: c1, c2: Insufficient cpu; c3: takes only pods; of namespace x"
    known = facts(
        proxy(conditions=refused(message)), target("c1"), target("c2"), target("c3"), target("c4")
    )
    verdicts = {other.name: target_chapters.verdict_of(known, other) for other in known.targets}
    assert verdicts == {
        "c1": "Insufficient cpu",
        "c2": "Insufficient cpu",
        "c3": "takes only pods; of namespace x",
        "c4": "",
    }


def test_a_target_and_a_cluster_target_of_one_name_have_each_their_own_words() -> None:
    cordoned = "the virtual node was unschedulable (cordoned)"
    message = f"0/2 targets: c2: {cordoned}; default/c2: Insufficient cpu"
    ours = target(label="default/c2")
    everyones = TargetFacts(TargetKey("", "c2"), {"metadata": {"name": "c2"}})
    known = facts(proxy(conditions=refused(message)), everyones, ours)
    assert target_chapters.verdict_of(known, everyones) == cordoned
    assert target_chapters.verdict_of(known, ours) == "Insufficient cpu"


def test_what_a_target_lacks_is_told_once() -> None:
    why = "there is no Secret 'x'"
    there = target(ready=False, why=why, error=why)
    known = facts(proxy(conditions=refused(f"0/1 targets: c2: {why}")), there)
    assert rendering.as_text(story.build(known), NOW, 200).count(why) == 2  # there, and in the cure


def test_what_a_target_would_preempt_is_told_and_that_it_does() -> None:
    asking = chaperon(message="Insufficient cpu")
    asking["metadata"]["annotations"][keys.VICTIMS] = '{"pods":2,"highest":50}'
    preempting = chaperon(message="Insufficient cpu")
    preempting["status"]["nominatedNodeName"] = "worker-1"
    known = facts(proxy(), target("c1", chaperon=asking), target("c2", chaperon=preempting))
    rendered = rendering.as_text(story.build(known), NOW, 200)
    assert "would preempt 2 pods of priority 50 or lower, and has not been allowed to" in rendered
    assert "preempts other pods, and waits for their end" in rendered


def test_a_value_that_is_not_read_is_named() -> None:
    built = story.build(facts(proxy(metadata={"annotations": {keys.ELECT: "false"}}), target()))
    assert "whose value is not read (it is 'false')" in rendering.as_text(built, NOW, 200)


def test_the_story_is_told_in_the_order_of_events() -> None:
    there = target(
        chaperon=ALLOWED, delegate=delegate(container={"running": {"startedAt": at(10)}})
    )
    built = story.build(facts(proxy(node=NODE), there, namespace=namespace()))
    assert [chapter.title for chapter in built.chapters] == [
        "Admission",
        "Target default/c2",
        "Decision",
        "Delegate",
        "Feedback",
    ]
    text = rendering.as_text(built, NOW)
    assert "10s ago    container main: running" in text
    assert text.endswith("Now\n  Running: the pod runs in target c2")
    assert rendering.as_object(built)["state"] == "Running"


def test_only_what_a_pod_cannot_start_without_is_looked_for() -> None:
    pod = {
        "spec": {
            "volumes": [
                {"configMap": {"name": "a"}},
                {"secret": {"secretName": "b"}},
                {"projected": {"sources": [{"secret": {"name": "c"}}]}},
                {"configMap": {"name": "no", "optional": True}},
            ],
            "initContainers": [{"envFrom": [{"configMapRef": {"name": "d"}}]}],
            "containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "e", "key": "k"}}}]}],
        }
    }
    assert collecting.references(pod) == {
        (kinds.CONFIG_MAPS, "a"),
        (kinds.SECRETS, "b"),
        (kinds.SECRETS, "c"),
        (kinds.CONFIG_MAPS, "d"),
        (kinds.SECRETS, "e"),
    }


def test_a_placeholder_says_whether_there_is_room() -> None:
    full = chaperon(keys.PLACEHOLDER, message="0/3 nodes are available")
    open_again = chaperon(keys.PLACEHOLDER, keys.IS_RESERVED)
    new = chaperon(keys.PLACEHOLDER)
    for there, expected in (
        (full, "no room: 0/3 nodes are available"),
        (open_again, "there is room now"),
        (new, "no answer yet"),
    ):
        known = facts(
            proxy(node=NODE), target("c2", chaperon=ALLOWED), target("c3", chaperon=there)
        )
        rendered = rendering.as_text(story.build(known), NOW, 200)
        assert f"a placeholder waits there: {expected}" in rendered


def test_network_policies_that_do_not_hold_are_told() -> None:
    there = target(chaperon=chaperon(*ALLOWED), delegate=delegate(), unenforced=("deny",))
    known = facts(proxy(phase="Running", spec={"nodeName": NODE}), there)
    rendered = rendering.as_text(story.build(known), NOW, 200)
    assert "networkpolicy/deny of this cluster selects this pod and is not enforced" in rendered


@pytest.mark.looptime
async def test_a_network_policy_without_a_copy_is_found(clock: Clock) -> None:
    source, there = APIServer("c1", clock), APIServer("c2", clock)
    spec = {"podSelector": {"matchLabels": {"app": "web"}}}
    for name in ("copied", "missing", "other"):
        labels = {"app": "x"} if name == "other" else {"app": "web"}
        metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}"}
        policy = {"metadata": metadata, "spec": {"podSelector": {"matchLabels": labels}}}
        source.add(kinds.NETWORK_POLICIES, policy)

    labels = {keys.PARENT_UID: "uid-copied"}
    copy = {"metadata": {"name": "copied", "namespace": "ns", "labels": labels}, "spec": spec}
    there.add(kinds.NETWORK_POLICIES, copy)
    pod = {"metadata": {"name": "web", "namespace": "ns", "labels": {"app": "web"}}}
    found = await collecting._unenforced(source.client(), there.client(), pod)
    assert found == ("missing",)


@pytest.mark.looptime
async def test_the_devices_of_a_delegate_are_told(clock: Clock) -> None:
    there = APIServer("c2", clock)
    results = [{"driver": "gpu.example.com", "pool": "n1", "device": f"gpu-{n}"} for n in (0, 3)]
    status = {"allocation": {"devices": {"results": results}}}
    there.add(
        kinds.RESOURCE_CLAIMS,
        {"metadata": {"name": "x-gpu", "namespace": "ns"}, "spec": {}, "status": status},
    )
    claims = [{"name": "gpu", "resourceClaimName": "x-gpu"}, {"name": "nic"}]
    pod = {"metadata": {"name": "x", "namespace": "ns"}, "spec": {"resourceClaims": claims}}
    found = await collecting._devices(there.client(), pod)
    assert found == ("gpu: gpu.example.com/n1/gpu-0, gpu.example.com/n1/gpu-3",)
    known = facts(proxy(node=NODE), target(chaperon=ALLOWED, delegate=delegate(), devices=found))
    rendered = rendering.as_text(story.build(known), NOW, 200)
    assert "devices of claim gpu: gpu.example.com/n1/gpu-0, gpu.example.com/n1/gpu-3" in rendered
