"""Placeholders, from the binding of a pod that overflowed until nobody wants them any more."""

from __future__ import annotations

import asyncio

import pytest

from tests import computing
from tests.unit.pods.placeholder_sources import (
    PATIENCE,
    SETTLED,
    fill,
    fleet,
    overflowed,
)
from tests.unit.pods.policies import add_replicas, entry, places, spread
from tests.unit.pods.targets import is_silent
from tests.unit.scheduling import costs
from vnode.api import keys, kinds, objects, placeholders
from vnode.placement.placeholders.pods import PlaceholderPods, PlannedPods
from vnode.planning.policy import Mode

pytestmark = pytest.mark.looptime


async def test_better_candidates_stay_and_worse_ones_go(clock):
    source = fleet(clock, 6, 6, 14)
    async with source.keeping(clock):
        pods = await overflowed(source)
        assert source.waiting() == source.recorded(pods) == {"c1": 2, "c2": 2}
        for target in source.targets[:2]:
            for pod in source.kept_in(target):
                annotations = objects.annotations(target.candidate(pod))
                assert keys.PLACEHOLDER in annotations
                assert keys.IS_ALLOWED not in annotations


async def test_an_hour_of_steady_load_writes_nothing(clock):
    source = fleet(clock, 6, 6, 14)
    async with source.keeping(clock):
        await overflowed(source)
        patches = source.server.count("patch", kinds.PODS)
        written = sum(target.asked() for target in source.targets)
        await asyncio.sleep(3600)
        assert source.server.count("patch", kinds.PODS) == patches
        assert sum(target.asked() for target in source.targets) == written
        assert source.waiting() == {"c1": 2, "c2": 2}


async def test_a_policy_that_keeps_none_keeps_none(clock):
    source = fleet(clock, 6, 6, 14, keep_unschedulable=False)
    async with source.keeping(clock):
        pods = await overflowed(source)
        assert not source.waiting()
        assert not any(keys.PLACEHOLDERS in objects.annotations(source.pod(p)) for p in pods)


async def test_a_pod_that_finds_room_where_it_was_planned_leaves_none(clock):
    source = fill(clock, 0, 0)
    async with source.keeping(clock):
        pods = add_replicas(source, 1)
        await asyncio.sleep(90)
        assert all(target.find(pods[0]) for target in source.targets)
        source.targets[0].grow(1)
        await source.until_bound(*pods)
        await asyncio.sleep(SETTLED)
        assert places(source, pods) == {"c1": 1}
        assert not source.waiting()
        assert not source.recorded(pods)


async def test_a_candidate_that_was_never_answered_does_not_stay(clock):
    source = fill(clock, 0, 9, after=5)
    source.targets[0].answer = is_silent
    async with source.keeping(clock):
        pods = add_replicas(source, 1)
        await source.until_bound(*pods)
        await asyncio.sleep(SETTLED)
        assert places(source, pods) == {"c2": 1}
        assert not source.waiting()


@pytest.mark.parametrize(
    ("fields", "without_vnode", "leaves"),
    [
        ({"spec": {"priority": 100}}, False, True),
        ({"spec": {"priority": 100}}, True, False),
        ({"spec": {"priority": 100, "preemptionPolicy": "Never"}}, True, True),
        ({"spec": {"priority": 0}}, True, True),
        ({"annotations": {keys.FORWARD: ""}}, False, False),
    ],
)
async def test_pods_that_would_preempt_or_be_sent_on_leave_none(
    clock, fields, without_vnode, leaves
):
    source = fill(clock, 0, 9, after=10)
    source.targets[0].link.set_agent_silent(without_vnode)
    async with source.keeping(clock):
        pods = add_replicas(source, 1, **fields)
        await source.until_bound(*pods)
        await asyncio.sleep(SETTLED)
        assert source.waiting() == ({"c1": 1} if leaves else {})


async def test_in_fill_a_pod_waits_in_each_cluster_that_it_passed(clock):
    source = fill(clock, 1, 1, 9)
    async with source.keeping(clock):
        pods = add_replicas(source, 3)
        await source.until_bound(*pods)
        await asyncio.sleep(SETTLED)
        assert places(source, pods) == {"c1": 1, "c2": 1, "c3": 1}
        assert source.waiting() == {"c1": 2, "c2": 1}


async def test_the_end_of_a_pod_is_that_of_its_placeholder(clock):
    source = fleet(clock, 6, 6, 14)
    async with source.keeping(clock):
        await overflowed(source)
        (pod, *_) = source.kept_in(source.targets[0])
        finalizers = {"finalizers": ["example.com/hold"]}
        source.change(pod, metadata=finalizers)
        await source.server.client().delete(kinds.PODS, pod, "default")
        await asyncio.sleep(SETTLED)
        assert objects.is_terminating(source.pod(pod))
        assert source.waiting() == {"c1": 1, "c2": 2}
        (other, *_) = source.kept_in(source.targets[1])
        source.change(other, status={"phase": "Succeeded"})
        await asyncio.sleep(SETTLED)
        assert source.waiting() == {"c1": 1, "c2": 1}


@pytest.mark.parametrize("keeps", [None, False])
async def test_a_policy_that_changes_or_ends_takes_them_along(clock, keeps):
    source = fleet(clock, 6, 6, 14)
    other = None if keeps is None else fleet(clock, 6, 6, 14, keep_unschedulable=False)
    async with source.keeping(clock):
        pods = await overflowed(source)
        source.change_policy(other and other.policy.policy)
        await asyncio.sleep(SETTLED)
        assert not source.waiting()
        assert not source.recorded(pods)
        assert places(source, pods) == {"c1": 6, "c2": 6, "c3": 8}


async def test_a_plan_that_has_no_gap_any_more_takes_them_along(clock):
    source = fleet(clock, 6, 6, 14)
    async with source.keeping(clock):
        pods = await overflowed(source)
        weights = zip(source.targets, (30, 40, 40), strict=True)
        source.change_policy(spread(*(entry(t.node, weight=w) for t, w in weights)))
        await asyncio.sleep(PATIENCE + SETTLED)  # planned 6/7/7, or 5/8/7
        assert source.waiting().get("c1", 0) == 0
        assert sum(source.waiting().values()) == 1
        for pod in [pod for pod in pods if source.node_of(pod) == source.targets[2].node][:2]:
            source.remove(pod)

        await asyncio.sleep(PATIENCE + SETTLED)
        assert not source.waiting()


async def test_a_gap_that_a_waiting_pod_is_planned_for_takes_them_along(clock):
    source = fleet(clock, 6, 6, 8)
    async with source.keeping(clock):
        await overflowed(source)
        (waits,) = add_replicas(source, 1, first=20)
        await asyncio.sleep(10 * PATIENCE)
        assert source.waiting() == {"c1": 2, "c2": 2}
        workload = source.cache.workloads.of(source.pod(waits), "")
        member = workload.members[objects.uid(source.pod(waits))]
        c1, c2, _ = (target.node for target in source.targets)
        assert member.aim == c2
        workload.plan(member, c1, ())
        await asyncio.sleep(2 * PATIENCE + SETTLED)
        assert (member.aim, source.waiting()) == (c1, {"c1": 1, "c2": 2})


async def test_pods_that_are_missing_for_a_moment_leave_the_placeholders_of_others(clock):
    source = fleet(clock, 6, 6, 14)
    async with source.keeping(clock):
        pods = await overflowed(source)
        kept = source.waiting()
        for gone in [pod for pod in pods if not placeholders.of(source.pod(pod))][:8]:
            source.remove(gone)

        await asyncio.sleep(PATIENCE - SETTLED)
        add_replicas(source, 8, first=20)
        await asyncio.sleep(10 * PATIENCE)
        assert source.waiting() == kept


async def test_placeholders_count_towards_the_maximum_of_their_cluster(clock):
    source = fill(clock, 2, 99, after=30)
    first, second = (target.node for target in source.targets)
    source.policy.policy = spread(entry(first, maximum=4), entry(second), mode=Mode.FILL, after=30)
    async with source.keeping(clock):
        pods = add_replicas(source, 4)
        await source.until_bound(*pods)
        await asyncio.sleep(SETTLED)
        assert source.waiting() == {"c1": 2}
        more = add_replicas(source, 2, first=4)
        await asyncio.sleep(5)
        assert places(source, more) == {"c2": 2}
        assert len(source.targets[0].server.all(kinds.POD_CHAPERONS)) == 4


async def test_a_pod_that_waits_for_the_maximum_goes_when_a_placeholder_does(clock):
    source = fill(clock, 1, 1, after=20)
    nodes = [target.node for target in source.targets]
    source.policy.policy = spread(
        *(entry(node, maximum=2) for node in nodes), mode=Mode.FILL, after=20
    )
    async with source.keeping(clock):
        pods = add_replicas(source, 2)
        await source.until_bound(*pods)
        await asyncio.sleep(SETTLED)
        assert source.waiting() == {"c1": 1}
        (behind,) = source.kept_in(source.targets[0])
        source.remove(behind)
        await asyncio.sleep(SETTLED)
        assert not source.waiting()
        more = add_replicas(source, 1, first=2)
        await asyncio.sleep(5)
        assert source.targets[0].find(more[0])


async def test_names_without_a_target_have_nothing_done(clock):
    """Users can write the annotation, and the names of nodes that do not exist."""
    source = fill(clock, 9, 9)
    async with source.keeping(clock):
        [pod] = add_replicas(source, 1)
        await source.until_bound(pod)
        await asyncio.sleep(SETTLED)

        async def callbacks(value):
            with computing.steps() as steps:
                source.change(pod, metadata={"annotations": {keys.PLACEHOLDERS: value}})
                await asyncio.sleep(1)

            return len(steps)

        few = await callbacks("nowhere")
        assert await callbacks(",".join(f"n{n}" for n in range(placeholders.MOST))) < few + 30


def test_what_is_known_of_pods_goes_with_them():
    pods, group = PlaceholderPods(), PlannedPods("", "deployment/default/web", "")
    for number in range(3):
        annotations = {keys.PLACEHOLDERS: "a,b" if number else "b"}
        pods.put(
            f"p{number}", {"metadata": {"annotations": annotations}, "spec": {"nodeName": "c"}}
        )
        pods.join(f"p{number}", group)

    assert (pods.at("a"), pods.count("b"), len([*pods.of(group)])) == (("p1", "p2"), 3, 3)
    for number in range(3):
        pods.pop(f"p{number}")

    assert costs.entries(pods) == costs.entries(PlaceholderPods())
