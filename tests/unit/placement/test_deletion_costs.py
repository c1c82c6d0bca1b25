"""Costs of pods of planned ReplicaSets: who goes first when they shrink."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from tests import background
from tests.apiserver import links
from tests.unit.placement.indexed import indexed
from tests.unit.pods.policies import Planned, Room, add_replicas, entry, places, spread
from vnode.api import keys, kinds, objects
from vnode.api.errors import Unreachable
from vnode.kube.informer import Informer
from vnode.placement import deletion_costs
from vnode.placement.deletion_costs import DeletionCosts
from vnode.planning.policy import Mode

pytestmark = pytest.mark.looptime


def fleet(clock, *rooms, **fields):
    targets = [Room(f"c{number}", clock, places) for number, places in enumerate(rooms, 1)]
    weights = (40, 40, 20)
    entries = (entry(t.node, weight=w, minimum=2) for t, w in zip(targets, weights, strict=True))
    return Planned(clock, spread(*entries, **fields), *targets)


@asynccontextmanager
async def running(source, clock):
    client = source.server.client()
    proxies, nodes = Informer(client, kinds.PODS), Informer(client, kinds.NODES)
    async with source.running(), links.following(proxies, nodes):
        index = indexed(proxies, source.policy, clock)
        costs = DeletionCosts(client, proxies, nodes, source.cache, source.policy, index, clock)
        async with background.running(index.run(), costs.run()):
            yield


def cost_of(source, pod):
    return objects.annotations(source.pod(pod)).get(keys.POD_DELETION_COST)


def scale_in(source, pods, count):
    """Delete pods as a ReplicaSet controller does: pending ones first, then by cost."""
    order = sorted(
        pods, key=lambda pod: (bool(source.node_of(pod)), int(cost_of(source, pod) or 0))
    )
    for pod in order[: len(pods) - count]:
        source.remove(pod)

    return order[len(pods) - count :]


async def test_twenty_pods_after_overflow_shrink_to_the_plan_of_ten(clock):
    source = fleet(clock, 6, 6, 14)
    async with running(source, clock):
        pods = add_replicas(source, 20)
        await source.until_bound(*pods)
        await asyncio.sleep(5)
        assert places(source, pods) == {"c1": 6, "c2": 6, "c3": 8}
        left = scale_in(source, pods, 10)
        assert places(source, left) == {"c1": 4, "c2": 4, "c3": 2}
        await asyncio.sleep(10)
        assert places(source, scale_in(source, left, 6)) == {"c1": 2, "c2": 2, "c3": 2}


async def test_fill_shrinks_by_its_plan_however_large_clusters_are(clock):
    targets = [Room(name, clock, 9) for name in ("c1", "c2")]
    targets[0].set_room(cpu="10")
    entries = [entry(targets[0].node, maximum=2), entry(targets[1].node)]
    source = Planned(clock, spread(*entries, mode=Mode.FILL), *targets)
    async with running(source, clock):
        pods = add_replicas(source, 4)
        await source.until_bound(*pods)
        await asyncio.sleep(5)
        assert places(source, pods) == {"c1": 2, "c2": 2}
        assert places(source, scale_in(source, pods, 2)) == {"c1": 2}


async def test_pods_that_wait_go_first(clock):
    source = fleet(clock, 1, 6, 14, after=1000)
    async with running(source, clock):
        pods = add_replicas(source, 10)
        await asyncio.sleep(60)
        assert places(source, pods) == {"c1": 1, "c2": 4, "c3": 2, "": 3}
        left = scale_in(source, pods, 7)
        assert places(source, left) == {"c1": 1, "c2": 4, "c3": 2}


async def test_costs_are_written_once(clock):
    source = fleet(clock, 9, 9, 9)
    async with running(source, clock):
        pods = add_replicas(source, 10)
        await source.until_bound(*pods)
        await asyncio.sleep(60)
        assert source.server.count("patch", kinds.PODS) == 10
        await asyncio.sleep(3600)
        more = add_replicas(source, 1, first=10)
        await source.until_bound(*more)
        await asyncio.sleep(60)
        assert source.server.count("patch", kinds.PODS) == 11


async def test_a_cost_of_the_user_is_left_alone(clock):
    source = fleet(clock, 9, 9, 9)
    async with running(source, clock):
        pods = add_replicas(source, 3)
        own = {keys.POD_DELETION_COST: "-7"}
        source.change(pods[0], metadata={"annotations": own})
        await source.until_bound(*pods)
        await asyncio.sleep(10)
        theirs = {**objects.annotations(source.pod(pods[1])), keys.POD_DELETION_COST: "5"}
        source.change(pods[1], metadata={"annotations": theirs})
        source.change_policy(None)
        await asyncio.sleep(10)
        assert [cost_of(source, pod) for pod in pods] == ["-7", "5", None]


async def test_a_policy_that_ends_or_plans_no_more_takes_its_costs_along(clock):
    source = fleet(clock, 9, 9, 9)
    planned = source.policy.policy
    async with running(source, clock):
        pods = add_replicas(source, 4)
        await source.until_bound(*pods)
        for other in (None, spread(mode=Mode.ANY)):
            source.change_policy(planned)
            await asyncio.sleep(10)
            assert all(cost_of(source, pod) for pod in pods)
            source.change_policy(other)
            await asyncio.sleep(10)
            for pod in pods:
                present = objects.annotations(source.pod(pod)).keys()
                assert not present & {keys.POD_DELETION_COST, keys.DELETION_COST}


async def test_pods_of_other_owners_have_no_cost(clock):
    source = fleet(clock, 9, 9, 9)
    async with running(source, clock):
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j"}
        source.add("p", ownerReferences=[{**reference, "controller": True}])
        await source.until_bound("p")
        await asyncio.sleep(10)
        assert cost_of(source, "p") is None


@pytest.mark.no_cover
async def test_a_burst_is_written_at_a_bounded_rate(clock):
    source = fleet(clock, 999, 999, 999)
    count = deletion_costs.BURST + 200
    async with running(source, clock):
        pods = add_replicas(source, count)
        await source.until_bound(*pods)
        bound = clock.monotonic()
        await asyncio.sleep(bound + 3 - clock.monotonic())
        assert source.server.count("patch", kinds.PODS) < deletion_costs.BURST + 150
        await source.server.until(lambda: all(cost_of(source, pod) for pod in pods))
        assert clock.monotonic() > 8


async def test_a_namespace_does_not_wait_for_the_writes_of_another(clock):
    source = fleet(clock, 999, 999, 999)
    bound = {"nodeName": source.targets[0].node}
    async with running(source, clock):
        for number in range(60):
            add_replicas(source, 8, owner=f"app{number}-1", spec=bound)

        others = add_replicas(source, 3, owner="web-2", namespace="quiet", spec=bound)
        began = clock.monotonic()

        def have_costs():
            found = [source.server.find(kinds.PODS, name, "quiet") for name in others]
            return all(keys.POD_DELETION_COST in objects.annotations(pod) for pod in found)

        await source.server.until(have_costs)
        assert clock.monotonic() - began < 3


async def test_writes_that_fail_are_tried_again(clock):
    source = fleet(clock, 9, 9, 9)
    async with running(source, clock):
        pods = add_replicas(source, 3)
        await source.until_bound(*pods)
        source.server.fail(Unreachable("away"), verb="patch", kind=kinds.PODS)
        await source.server.until(lambda: all(cost_of(source, pod) for pod in pods))


def resize(source, target, cpu):
    """Have a Node of that size, as its target has told."""

    def change(node):
        node["status"] = {**objects.status(node), "allocatable": {"cpu": cpu}}

    source.server.change(kinds.NODES, target.node, "", change)


async def test_without_weights_costs_go_by_the_sizes_that_nodes_have(clock):
    """Nodes keep them while targets do not answer, also when an agent starts anew."""
    small, large = targets = [Room(name, clock, 12) for name in ("c1", "c2")]
    source = Planned(clock, spread(), *targets)
    async with running(source, clock):
        for target, cpu in ((small, "100"), (large, "500")):
            resize(source, target, cpu)
            target.server.remove(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME, "")

        pods = add_replicas(source, 24)
        await source.until_bound(*pods)
        assert places(source, pods) == {"c1": 12, "c2": 12}
        for size, places_left in ((None, {"c1": 1, "c2": 5}), ("2500", {"c1": 5, "c2": 1})):
            if size:
                resize(source, small, size)

            await asyncio.sleep(10)
            order = sorted(pods, key=lambda pod: -int(cost_of(source, pod)))
            assert places(source, order[:6]) == places_left


async def test_each_replica_set_of_a_rollout_has_costs_of_its_own(clock):
    source = fleet(clock, 9, 9, 9)
    async with running(source, clock):
        old = add_replicas(source, 10)
        await source.until_bound(*old)
        await asyncio.sleep(10)
        before = [cost_of(source, pod) for pod in old]
        new = add_replicas(source, 6, owner="web-2")
        await source.until_bound(*new)
        await asyncio.sleep(10)
        assert places(source, new) == {"c1": 2, "c2": 2, "c3": 2}
        assert [cost_of(source, pod) for pod in old] == before


@pytest.mark.parametrize("text", ["9" * 5000, "\u00b2", "-1", "x"])
def test_a_cost_that_is_no_number_was_not_written_by_us(text):
    assert deletion_costs._written({"metadata": {"annotations": {keys.DELETION_COST: text}}}) == 0
