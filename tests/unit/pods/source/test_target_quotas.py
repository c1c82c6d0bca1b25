"""Pods and the quotas of their targets: they go where there is room, and nowhere else."""

from __future__ import annotations

import asyncio

import pytest

from tests.apiserver.store import Change
from tests.unit.pods.clusters import SourceCluster
from tests.unit.pods.targets import AT_ONCE, Target, is_silent, prefer, rejects, reserves
from vnode.api import keys, kinds, objects, quantities
from vnode.api.errors import Denied
from vnode.api.kinds import Kind
from vnode.api.objects import Object

pytestmark = pytest.mark.looptime


class KeptQuota:
    """The ResourceQuota of a target, and the API server and controller there that keep it.

    A candidate's pod is counted, or refused, before the target's scheduler answers.
    """

    def __init__(self, target: Target, pods: int, *, name: str = "few", **spec: object) -> None:
        self.target, self.name = target, name
        self.counted: set[str] = set()
        self.refused: list[str] = []
        self.most = 0
        self._scheduler, target.answer = target.answer, self._admit
        target.server.add(
            kinds.RESOURCE_QUOTAS,
            {
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"hard": {"pods": str(pods)}, **spec},
                "status": {"hard": {"pods": str(pods)}, "used": {"pods": "0"}},
            },
        )
        target.server.store.changed.add(self._on_change)

    def set(self, pods: int) -> None:
        """Change the limit, as an administrator and the controller do."""
        self._change(hard=pods)

    def remove(self) -> None:
        self.target.server.remove(kinds.RESOURCE_QUOTAS, self.name, "default")

    @property
    def _hard(self) -> int:
        found = self.target.server.find(kinds.RESOURCE_QUOTAS, self.name, "default")
        hard = objects.status(found)["hard"]["pods"] if found else "1000"
        return quantities.value(hard)

    def _admit(self, target: Target, candidate: Object) -> None:
        name = objects.name(candidate)
        if len(self.counted) >= self._hard:
            self.refused.append(name)
            message = f'pods "{name}" is forbidden: exceeded quota: {self.name}'
            entry = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            target.report(candidate, {"conditions": [{**entry, "message": message}]})
            return

        self.counted.add(name)
        self.most = max(self.most, len(self.counted))
        self._change(used=len(self.counted))
        self._scheduler(target, candidate)

    def _on_change(self, kind: Kind, change: Change) -> None:
        if kind is kinds.POD_CHAPERONS and change.new is None and change.old is not None:
            self.counted.discard(objects.name(change.old))
            self._change(used=len(self.counted))

    def _change(self, **amounts: int) -> None:
        def change(quota: Object) -> None:
            for field, amount in amounts.items():
                quota["status"][field] = {"pods": str(amount)}

        if self.target.server.find(kinds.RESOURCE_QUOTAS, self.name, "default"):
            self.target.server.change(kinds.RESOURCE_QUOTAS, self.name, "default", change)


async def test_a_pod_goes_to_a_target_with_quota_and_no_candidate_to_one_without(clock):
    full, other = Target("c2", clock, cpu="1000"), Target("c3", clock, cpu="1000")
    KeptQuota(full, 0)
    prefer(full, other)
    source = SourceCluster(clock, full, other)
    async with source.running():
        source.add("p")
        await source.until_bound("p")
        assert source.node_of("p") == other.node
        assert clock.monotonic() < AT_ONCE
        assert full.asked("create") == 0


async def test_a_pod_waits_with_the_quota_named_and_is_tried_as_soon_as_that_grows(clock):
    target = Target("c2", clock, cpu="1000")
    quota = KeptQuota(target, 0)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await source.until_said("p", "no room in ResourceQuota few for pods 1, and 0 of 0 are used")
        await asyncio.sleep(5)
        assert target.asked("create") == 0
        began = clock.monotonic()
        quota.set(1)
        await source.until_bound("p")
        assert clock.monotonic() - began < AT_ONCE


async def test_a_quota_that_is_deleted_keeps_nobody_away(clock):
    target = Target("c2", clock, cpu="1000")
    quota = KeptQuota(target, 0)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await source.until_said("p", "no room in ResourceQuota few")
        await asyncio.sleep(5)
        quota.remove()
        await source.until_bound("p")
        assert clock.monotonic() < 7


async def test_a_burst_fills_quotas_to_the_last_pod_and_no_further(clock):
    targets = [Target(name, clock, cpu="1000") for name in ("c2", "c3", "c4")]
    quotas = [KeptQuota(target, pods) for target, pods in zip(targets, (7, 20, 33), strict=True)]
    prefer(*targets)
    source = SourceCluster(clock, *targets)
    async with source.running():
        for number in range(100):
            source.add(f"p{number}")

        await source.server.until(lambda: len(source.bound) == 60)
        await asyncio.sleep(30)
        assert len(source.bound) == 60
        assert [quota.most for quota in quotas] == [7, 20, 33]
        assert not any(quota.refused for quota in quotas)
        assert sum(target.asked("create") for target in targets) == 60
        quotas[0].set(47)
        began = clock.monotonic()
        await source.server.until(lambda: len(source.bound) == 100)
        assert clock.monotonic() - began < 30
        assert not quotas[0].refused


async def test_a_pod_that_counted_twice_for_a_moment_keeps_others_away_for_that_moment(clock):
    """Its delegate is in the target's sum while nothing is known of its candidate."""
    target = Target("c2", clock, is_silent, cpu="1000")
    quota = KeptQuota(target, 2)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await target.server.until(lambda: len(quota.counted) == 1)
        await asyncio.sleep(0.1)
        source.add("q")
        await asyncio.sleep(0.1)
        await source.until_said("q", "2 of 2 are used")
        await asyncio.sleep(5)
        reserves(target, target.candidate("p"))
        await target.server.until(lambda: len(quota.counted) == 2)
        assert clock.monotonic() < 6


async def test_a_place_that_a_pod_leaves_is_the_next_ones(clock):
    target = Target("c2", clock, cpu="1000")
    KeptQuota(target, 1)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await source.until_bound("p")
        source.add("q")
        await source.until_said("q", "1 of 1 are used")
        await asyncio.sleep(5)
        source.remove("p")
        target.remove(target.candidate("p"))
        began = clock.monotonic()
        await source.until_bound("q")
        assert clock.monotonic() - began < AT_ONCE


async def test_a_candidate_that_counts_already_stays_and_wins_where_the_quota_is_full(clock):
    """The target's scheduler has no room yet, and the pod's own delegate fills the quota."""
    target = Target("c2", clock, rejects_pod, cpu="1000")
    quota = KeptQuota(target, 1)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await source.until_said("p", "no room here")
        await asyncio.sleep(100)
        assert (target.asked("create"), target.asked("delete")) == (1, 0)
        assert "no room here" in str(source.pod("p"))
        reserves(target, target.candidate("p"))
        await source.until_bound("p")
        assert quota.most == 1


def rejects_pod(target: Target, candidate: Object) -> None:
    """Find no place for the pod, which is there."""
    rejects(target, candidate)
    found = target.candidate("p")
    target.report(candidate, {**objects.status(found), "phase": "Pending"})


async def test_a_pod_that_a_quota_refuses_after_all_goes_elsewhere_and_leaves_nothing(clock):
    """Somebody else takes the last place at the same moment."""
    first, other = Target("c2", clock, cpu="1000"), Target("c3", clock, cpu="1000")
    quota = KeptQuota(first, 1)
    prefer(first, other)
    source = SourceCluster(clock, first, other)
    async with source.running():
        quota.counted.add("somebody's")  # and no watch has said so yet
        source.add("p")
        await source.until_bound("p")
        assert source.node_of("p") == other.node
        assert clock.monotonic() < AT_ONCE
        assert len(quota.refused) == 1


async def test_a_pod_that_a_quota_refuses_and_nobody_else_takes_leaves_and_comes_back(clock):
    target = Target("c2", clock, cpu="1000")
    quota = KeptQuota(target, 1)
    source = SourceCluster(clock, target)
    async with source.running():
        quota.counted.add("somebody's")
        source.add("p")
        await source.until_said("p", "forbidden: exceeded quota: few")
        quota._change(used=1)
        await source.until_said("p", "1 of 1 are used")
        await target.server.until(lambda: target.find("p") is None)
        quota.counted.clear()
        quota._change(used=0)
        await source.until_bound("p")
        assert len(quota.refused) == 1


async def test_quotas_that_may_not_be_read_change_nothing_and_are_asked_for_rarely(clock, caplog):
    target = Target("c2", clock, cpu="1000")
    for kind in (kinds.RESOURCE_QUOTAS, kinds.LIMIT_RANGES):
        denied = Denied(403, "Forbidden", f"{kind.plural} is forbidden")
        target.server.fail(denied, verb="list", kind=kind, times=None)

    source = SourceCluster(clock, target)
    running = asyncio.gather(*(informer.run() for informer in target.link.quotas))
    quotas, target.link.quotas = target.link.quotas, ()
    async with source.running():
        source.add("p")
        await source.until_bound("p")
        await asyncio.sleep(1000)
        assert all(informer.answered.is_set() for informer in quotas)
        assert 10 <= target.server.count("list", kinds.RESOURCE_QUOTAS) <= 16
        await asyncio.sleep(1000)
        assert target.server.count("list", kinds.RESOURCE_QUOTAS) <= 23
        assert target.link.health.healthy
        assert max(informer.silence for informer in quotas) < 300
        assert [r for r in caplog.records if r.levelname == "WARNING"] == []

    running.cancel()


async def test_quotas_cost_no_request_of_a_pod(clock):
    requests = []
    for limited in (False, True):
        target = Target("c2", clock, cpu="1000")
        if limited:
            KeptQuota(target, 10)

        source = SourceCluster(clock, target)
        async with source.running():
            for number in range(10):
                source.add(f"p{number}")

            await source.until_bound(*(f"p{number}" for number in range(10)))
            requests.append(
                [target.asked()]
                + [source.server.count(verb, kinds.PODS) for verb in ("create", "patch", "get")]
                + [target.server.count("list", kinds.RESOURCE_QUOTAS)]
            )

    assert requests[0] == requests[1]


async def test_a_pod_without_a_reservation_keeps_to_quotas_too(clock):
    target = Target("c2", clock, cpu="1000")
    KeptQuota(target, 1)
    source = SourceCluster(clock, target)
    async with source.running():
        for name in ("p", "q"):
            source.add(name, annotations={keys.NO_RESERVATION: ""})

        await source.until_bound("p")
        await source.until_said("q", "1 of 1 are used")
        await asyncio.sleep(5)
        assert list(source.bound) == ["p"]
