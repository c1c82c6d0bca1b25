"""Placement policies, from pending pods to targets: plans, modes, and what changes them."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.clusters import apart
from tests.unit.pods.planned_sources import clouds, message, weighted
from tests.unit.pods.policies import Planned, add_replicas, entry, places, spread
from vnode.api import keys, kinds
from vnode.planning.policy import Mode

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize(
    ("count", "expected"),
    [(10, {"c1": 4, "c2": 4, "c3": 2}), (15, {"c1": 6, "c2": 6, "c3": 3})],
)
async def test_pods_of_a_burst_are_divided_by_weight(clock, count, expected):
    targets = clouds(clock, 6, 6, 14)
    source = Planned(clock, weighted(targets, (40, 40, 20)), *targets)
    async with source.running():
        pods = add_replicas(source, count)
        await source.until_bound(*pods)
        assert places(source, pods) == expected
        assert sum(target.asked("create") for target in targets) == count
        assert clock.monotonic() < 2


@pytest.mark.parametrize(("answers", "expected"), [(True, {"c1": 2, "c2": 2}), (False, {"c1": 4})])
async def test_a_plan_waits_for_a_cluster_that_is_being_connected(clock, answers, expected):
    targets = clouds(clock, 9, 9)
    source = Planned(clock, weighted(targets, (1, 1), each={"minimum": 0}), *targets)
    async with source.running():
        targets[1].connect()
        pods = add_replicas(source, 4)
        await asyncio.sleep(10)
        assert places(source, pods) == {"c1": 2, "": 2}
        targets[1].set_healthy(answers)
        await asyncio.sleep(10)
        assert places(source, pods) == expected


async def test_pods_that_come_one_by_one_are_divided_alike(clock):
    targets = clouds(clock, 20, 20, 20)
    source = Planned(clock, weighted(targets, (40, 40, 20)), *targets)
    async with source.running():
        for number in range(10):
            pods = add_replicas(source, 1, first=number)
            await source.until_bound(*pods)

        pods = [f"web-1-{number}" for number in range(10)]
        assert places(source, pods) == {"c1": 4, "c2": 4, "c3": 2}


@pytest.mark.no_cover
async def test_an_hour_of_steady_load_moves_nothing(clock):
    targets = clouds(clock, 6, 6, 7)
    source = Planned(clock, weighted(targets, (40, 40, 20), max_candidates=2), *targets)
    async with source.running():
        pods = add_replicas(source, 20)
        await asyncio.sleep(600)
        assert places(source, pods) == {"c1": 6, "c2": 6, "c3": 7, "": 1}
        patches = source.server.count("patch", kinds.PODS)
        written = sum(target.asked() for target in targets)
        await asyncio.sleep(3600)
        assert sum(target.asked() for target in targets) == written
        assert source.server.count("patch", kinds.PODS) == patches
        assert places(source, pods) == {"c1": 6, "c2": 6, "c3": 7, "": 1}


async def test_four_pods_over_three_equal_clusters_are_two_one_one(clock):
    targets = clouds(clock, 9, 9, 9)
    source = Planned(clock, spread(*(entry(t.node, weight=1) for t in targets)), *targets)
    async with source.running():
        pods = add_replicas(source, 4)
        await source.until_bound(*pods)
        assert sorted(places(source, pods).values()) == [1, 1, 2]


async def test_fill_takes_one_cluster_after_the_other_up_to_its_maximum(clock):
    targets = clouds(clock, 99, 99, 99)
    first, second, third = (target.node for target in targets)
    entries = entry(third, maximum=3), entry(first, maximum=4), entry(second)
    source = Planned(clock, spread(*entries, mode=Mode.FILL), *targets)
    async with source.running():
        pods = add_replicas(source, 10)
        await source.until_bound(*pods)
        assert places(source, pods) == {"c3": 3, "c1": 4, "c2": 3}


async def test_maximums_hold_in_a_burst_and_pods_beyond_them_wait_until_one_leaves(clock):
    targets = clouds(clock, 99, 99)
    entries = (entry(target.node, weight=1, maximum=5) for target in targets)
    source = Planned(clock, spread(*entries, after=5), *targets)
    async with source.running():
        pods = add_replicas(source, 30)
        await asyncio.sleep(100)
        assert places(source, pods) == {"c1": 5, "c2": 5, "": 20}
        waiting = next(pod for pod in pods if not source.node_of(pod))
        assert (
            message(source, waiting)
            == "0/2 targets: c1, c2: at its maximum of 5 by placementpolicy/web"
        )
        gone = next(pod for pod in pods if source.node_of(pod))
        source.remove(gone)
        await asyncio.sleep(15)
        pods.remove(gone)
        assert places(source, pods) == {"c1": 5, "c2": 5, "": 19}


async def test_single_keeps_all_pods_in_the_cluster_of_the_first(clock):
    targets = clouds(clock, 99, 99, 99)
    source = Planned(clock, spread(mode=Mode.SINGLE), *targets)
    async with source.running():
        pods = add_replicas(source, 20)
        await source.until_bound(*pods)
        assert len(places(source, pods)) == 1
        later = add_replicas(source, 3, first=20)
        others = add_replicas(source, 1, owner="db-1") + add_replicas(source, 1, owner="api-1")
        await source.until_bound(*later, *others)
        assert places(source, [*pods, *later]).keys() == places(source, pods).keys()


async def test_single_settles_on_one_cluster_that_has_room(clock):
    targets = clouds(clock, 0, 0, 9)
    source = Planned(clock, spread(mode=Mode.SINGLE), *targets)
    async with source.running():
        pods = add_replicas(source, 5)
        await source.until_bound(*pods)
        assert places(source, pods) == {"c3": 5}
        assert clock.monotonic() < 15


async def test_any_leaves_the_choice_among_its_clusters_to_scores(clock):
    targets = clouds(clock, 99, 99, 99)
    entries = (entry(target.node) for target in targets[:2])
    source = Planned(clock, spread(*entries, mode=Mode.ANY), *targets)
    async with source.running():
        pods = add_replicas(source, 6)
        await source.until_bound(*pods)
        assert places(source, pods) == {"c1": 3, "c2": 3}


async def test_a_lost_cluster_has_no_share_until_it_returns(clock):
    targets = clouds(clock, 99, 99, 99)
    source = Planned(clock, weighted(targets, (40, 40, 20)), *targets)
    async with source.running():
        pods = add_replicas(source, 10)
        await source.until_bound(*pods)
        targets[0].set_healthy(False)
        more = add_replicas(source, 3, first=10)
        await source.until_bound(*more)
        assert places(source, pods) == {"c1": 4, "c2": 4, "c3": 2}
        assert places(source, more) == {"c2": 2, "c3": 1}
        for pod in (pod for pod in pods if source.node_of(pod) == targets[0].node):
            source.remove(pod)  # evicted

        pods = [pod for pod in pods if source.server.find(kinds.PODS, pod, "default")]
        pods += [*more, *add_replicas(source, 4, first=13)]
        await source.until_bound(*pods)
        assert places(source, pods) == {"c2": 9, "c3": 4}
        targets[0].set_healthy(True)
        await asyncio.sleep(300)
        assert places(source, pods) == {"c2": 9, "c3": 4}
        pods += add_replicas(source, 2, first=17)
        await source.until_bound(*pods)
        assert places(source, pods) == {"c1": 2, "c2": 9, "c3": 4}


async def test_pods_that_wait_for_a_cluster_go_elsewhere_when_it_is_cordoned_or_lost(clock):
    for close in (lambda s, t: s.cordon(t), lambda _s, t: t.set_healthy(False)):
        targets = clouds(clock, 1, 99)
        source = Planned(clock, weighted(targets, (1, 1), each={"minimum": 0}), *targets)
        async with source.running():
            pods = add_replicas(source, 6)
            await asyncio.sleep(30)
            assert places(source, pods) == {"c1": 1, "c2": 3, "": 2}
            close(source, targets[0])
            await source.until_bound(*pods)
            assert places(source, pods) == {"c1": 1, "c2": 5}


async def test_a_changed_policy_sends_waiting_pods_elsewhere_and_moves_no_others(clock):
    targets = clouds(clock, 2, 99)
    source = Planned(clock, weighted(targets, (1, 1)), *targets)
    async with source.running():
        pods = add_replicas(source, 8)
        await asyncio.sleep(30)
        assert places(source, pods) == {"c1": 2, "c2": 4, "": 2}
        source.change_policy(weighted(targets, (0, 1)))
        await source.until_bound(*pods)
        assert clock.monotonic() < 50
        assert places(source, pods) == {"c1": 2, "c2": 6}


async def test_a_policy_that_is_deleted_lets_waiting_pods_go_anywhere(clock):
    targets = clouds(clock, 0, 99)
    source = Planned(clock, spread(entry(targets[0].node)), *targets)
    async with source.running():
        pods = add_replicas(source, 2)
        await source.until_said(pods[0], "didn't match placementpolicy/web")
        source.change_policy(None)
        await source.until_bound(*pods)
        assert places(source, pods) == {"c2": 2}


async def test_a_pending_pod_names_policy_plan_and_until_when_it_waits(clock):
    targets = clouds(clock, 1, 9, 9)
    entries = entry(targets[0].node, weight=2), entry(targets[1].node, weight=1)
    source = Planned(clock, spread(*entries, after=60), *targets)
    async with source.running():
        pods = add_replicas(source, 3)
        await asyncio.sleep(20)
        (waiting,) = (pod for pod in pods if not source.node_of(pod))
        assert message(source, waiting) == (
            "0/3 targets: c1: no room here; c2: planned elsewhere by placementpolicy/web: "
            "1 of 3 here, by weight 1; waiting for c1 until 2026-01-01T00:01:00Z; "
            "c3: didn't match placementpolicy/web"
        )


async def test_clusters_that_a_pod_itself_excludes_have_no_share_in_its_plan(clock):
    targets = clouds(clock, 99, 99)
    source = Planned(clock, spread(), *targets)
    async with source.running():
        for number in range(4):
            source.add(f"p{number}", spec={"nodeSelector": {"target": targets[1].node}})

        await source.until_bound(*(f"p{number}" for number in range(4)))
        assert clock.monotonic() < 2


async def test_pods_that_keep_each_other_off_do_not_wait_for_a_cluster_that_has_one(clock):
    targets = clouds(clock, 99, 99, 99)
    source = Planned(clock, weighted(targets, (98, 1, 1)), *targets)
    async with source.running():
        pods = add_replicas(source, 3, spec=apart("web"))
        await source.until_bound(*pods)
        assert places(source, pods) == {"c1": 1, "c2": 1, "c3": 1}
        assert clock.monotonic() < 5


async def test_weights_that_are_left_out_come_from_free_capacity(clock):
    targets = clouds(clock, 99, 99)
    targets[0].set_room(cpu="30")
    targets[1].set_room(cpu="10")
    source = Planned(clock, spread(), *targets)
    async with source.running():
        pods = add_replicas(source, 8)
        await source.until_bound(*pods)
        assert places(source, pods) == {"c1": 6, "c2": 2}
        targets[0].set_room(cpu="24")
        targets[1].set_room(cpu="8")
        pods += add_replicas(source, 8, first=8)
        await source.until_bound(*pods)
        assert places(source, pods) == {"c1": 12, "c2": 4}


async def test_pods_without_a_reservation_follow_the_plan(clock):
    targets = clouds(clock, 99, 99, 99)
    source = Planned(clock, weighted(targets, (40, 40, 20)), *targets)
    async with source.running():
        for number in range(10):
            labels = {"app": "web"}
            reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j"}
            source.add(
                f"p{number}",
                labels=labels,
                annotations={keys.NO_RESERVATION: ""},
                ownerReferences=[{**reference, "controller": True}],
            )

        pods = [f"p{number}" for number in range(10)]
        await source.until_bound(*pods)
        assert places(source, pods) == {"c1": 4, "c2": 4, "c3": 2}
