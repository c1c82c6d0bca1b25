"""Placement policies of random runs: what is drawn, and what is wrong at rest."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from tests.faults import placement_acts
from tests.faults.plan import CROWD, WantedWorkload, Wish, WorkloadKind
from vnode.api import keys
from vnode.api.objects import Object
from vnode.placement.policies import decoding
from vnode.placement.status import accounts, counting
from vnode.planning import policy_node

WEB = WantedWorkload("deployment-1", WorkloadKind.DEPLOYMENT, 4)
NODES = ("admiralty-default-c2", "admiralty-default-c3")


def node(name: str) -> Object:
    labels = {keys.TARGET_NAME: name[-2:], keys.TARGET_NAMESPACE: "default"}
    ready = {"type": "Ready", "status": "True"}
    metadata = {"name": name, "labels": labels}
    return {"metadata": metadata, "spec": {}, "status": {"conditions": [ready]}}


def pod(number: int, where: str, **annotations: str) -> Object:
    owner = {"kind": "StatefulSet", "apiVersion": "apps/v1", "name": "w", "controller": True}
    return {
        "metadata": {
            "name": f"w-{number}",
            "namespace": "default",
            "uid": f"u{number}",
            "labels": {"app": "w"},
            "ownerReferences": [owner],
            "annotations": annotations,
        },
        "spec": {"nodeName": where, "schedulerName": keys.PROXY_SCHEDULER},
        "status": {"phase": "Running"},
    }


def policy(pods: list[Object], *, accepted: str = "True", **spec: Any) -> Object:
    """Build a policy with the status that an agent writes for these pods."""
    spec = {"selector": {"matchLabels": {"app": "w"}}, **spec}
    obj: Object = {"metadata": {"name": "w", "namespace": "default"}, "spec": spec}
    counts = counting.WorkloadCounts()
    decoded = decoding.decode(obj)
    for each in pods:
        counts.set(each["metadata"]["name"], counting.counted(each, lambda _pod: decoded))

    tallies = counts.of("default/w")
    known = [policy_node.planned_node(node(name)) for name in NODES]
    found = [accounts.account(decoded, key, tally, known) for key, tally in tallies.items()]
    conditions = [{"type": "Accepted", "status": accepted}]
    return {**obj, "status": {**accounts.status(tallies, found), "conditions": conditions}}


def wrong(obj: Object, pods: list[Object]) -> list[str]:
    group = placement_acts.group_of(obj, pods, [node(name) for name in NODES])
    return list(placement_acts.wrong_in(obj, group, is_rebalanced=True))


def spread(*minimums: int) -> list[Object]:
    return [
        {"cluster": name, "weight": 1, "minReplicas": minimum}
        for name, minimum in zip(("c2", "c3"), minimums, strict=True)
    ]


@pytest.mark.parametrize("seed", range(50))
def test_policies_are_drawn_for_what_may_have_one_and_go_with_it(seed: int) -> None:
    others = (
        WantedWorkload("pod-1", WorkloadKind.POD),
        WantedWorkload("deployment-2", WorkloadKind.DEPLOYMENT, CROWD, on="c2"),
    )
    wish = Wish({each.name: each for each in (WEB, *others)})
    acts = placement_acts.draw(random.Random(seed), wish, {"gone-1", WEB.name})
    assert [act.spec for act in acts if act.name == "gone-1"] == [None]
    assert {act.name for act in acts} <= {"gone-1", WEB.name}
    assert acts == placement_acts.draw(random.Random(seed), wish, {"gone-1", WEB.name})
    for act in acts:
        if act.spec is not None:
            decoding.decode(act.object("default"))


def test_all_is_drawn_sooner_or_later() -> None:
    found = Counter[str]()
    for seed in range(200):
        for act in placement_acts.draw(random.Random(seed), Wish({WEB.name: WEB}), {WEB.name}):
            found[act.spec["mode"] if act.spec else "delete"] += 1
            found.update(list(act.spec or ()))

    assert {"Spread", "Fill", "Single", "delete", "drain", "reschedule", "failback"} <= set(found)


def test_pods_at_their_plan_are_right_and_others_wrong() -> None:
    c2, c3 = NODES
    pods = [pod(0, c2), pod(1, c3)]
    assert wrong(policy(pods, targets=spread(0, 0)), pods) == []
    pods = [pod(0, c2), pod(1, c2)]
    [found] = wrong(policy(pods, targets=spread(0, 0)), pods)
    assert found.startswith("statefulset/default/w is in {'admiralty-default-c2': 2}, planned is")
    assert len(wrong(policy(pods, targets=spread(1, 1)), pods)) == 2
    pods = [pod(0, c2), pod(1, c3)]
    [found] = wrong(policy(pods, mode="Single"), pods)
    assert "is kept together" in found


def test_a_policy_that_does_not_count_and_one_that_counts_badly_are_wrong() -> None:
    c2, c3 = NODES
    pods = [pod(0, c2), pod(1, c3)]
    [found] = wrong(policy(pods, accepted="False", targets=spread(0, 0)), pods)
    assert "is not in force" in found
    [found] = wrong(policy(pods, targets=spread(0, 0)), pods[:1])[:1]
    assert "of 1 pods" in found


def test_a_placeholder_where_none_is_wanted_is_wrong() -> None:
    c2, c3 = NODES
    pods = [pod(0, c2, **{keys.PLACEHOLDERS: c3}), pod(1, c3)]
    [found] = wrong(policy(pods, targets=spread(0, 0)), pods)
    assert "and runs where it is planned" in found
