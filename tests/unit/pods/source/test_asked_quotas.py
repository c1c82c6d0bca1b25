"""Pods that seem not to fit into quotas and limits of a target: it is asked, for all of a kind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.apiserver.store import Change
from tests.unit.pods.clusters import SourceCluster
from tests.unit.pods.targets import AT_ONCE, Target, prefer
from vnode.api import keys, kinds, objects, quantities, resources
from vnode.api.kinds import Kind
from vnode.api.objects import Object

pytestmark = pytest.mark.looptime

OWNER = {"kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": True}
Mutate = Callable[[Object], int | None]
"""What admission in a target makes of a pod's request of CPU, in thousandths; None for none."""


def as_it_is(candidate: Object) -> int | None:
    amount = resources.in_nano(objects.spec(candidate), resources.REQUESTS).get("cpu")
    return None if amount is None else amount * 1000 // quantities.NANO


class CPUQuota:
    """A quota on requests.cpu, and an API server that counts what its policies make of a pod.

    A refused pod is tried again every 30 s, as the target's agent does.
    """

    def __init__(self, target: Target, cpu: int, mutate: Mutate = as_it_is) -> None:
        self.target, self.mutate, self.hard = target, mutate, cpu * 1000
        self.counted: dict[str, int] = {}
        self.refused: list[str] = []
        self._scheduler, target.answer = target.answer, self._admit
        amounts = {"hard": {"requests.cpu": str(cpu)}, "used": {"requests.cpu": "0"}}
        target.server.add(
            kinds.RESOURCE_QUOTAS,
            {
                "metadata": {"name": "few", "namespace": "default"},
                "spec": {"hard": amounts["hard"]},
                "status": amounts,
            },
        )
        target.server.store.changed.add(self._on_change)

    def free(self, name: str) -> None:
        """Have a pod that counts end, of whomever it is."""
        del self.counted[name]
        self._publish()

    def _admit(self, target: Target, candidate: Object) -> None:
        name, wanted = objects.name(candidate), self.mutate(candidate)
        used = sum(self.counted.values())
        why = ""
        if wanted is None:
            why = "failed quota: few: must specify requests.cpu for: main"
        elif used + wanted > self.hard:
            why = (
                f"exceeded quota: few, requested: requests.cpu={wanted}m, used: "
                f"requests.cpu={used}m, limited: requests.cpu={self.hard}m"
            )

        if why:
            self.refused.append(name)
            message = f'pods "{name}" is forbidden: {why}'
            entry = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            target.report(candidate, {"conditions": [{**entry, "message": message}]})
            asyncio.get_running_loop().call_later(30, self._again, objects.key(candidate))
            return

        assert wanted is not None
        self.counted[name] = wanted
        self._publish()
        target.report(candidate, {"conditions": []})
        self._scheduler(target, candidate)

    def _again(self, key: str) -> None:
        namespace, name = objects.split_key(key)
        found = self.target.server.find(kinds.POD_CHAPERONS, name, namespace)
        if found is not None:
            self._admit(self.target, found)

    def _on_change(self, kind: Kind, change: Change) -> None:
        if kind is kinds.POD_CHAPERONS and change.new is None and change.old is not None:
            self.counted.pop(objects.name(change.old), None)
            self._publish()

    def _publish(self) -> None:
        used = f"{sum(self.counted.values())}m"

        def change(quota: Object) -> None:
            quota["status"]["used"] = {"requests.cpu": used}

        if self.target.server.find(kinds.RESOURCE_QUOTAS, "few", "default"):
            self.target.server.change(kinds.RESOURCE_QUOTAS, "few", "default", change)


def add(source: SourceCluster, count: int, **pod: Any) -> list[str]:
    names = [f"p{number}" for number in range(count)]
    for name in names:
        source.add(name, ownerReferences=[OWNER], **pod)

    return names


async def test_a_pod_whose_requests_a_policy_of_the_target_fills_in_runs(clock):
    target = Target("c2", clock, cpu="1000")
    CPUQuota(target, 10, lambda _candidate: 100)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await source.until_bound("p")
        assert clock.monotonic() < AT_ONCE


async def test_many_of_one_kind_that_a_policy_makes_fit_run_soon(clock):
    target = Target("c2", clock, cpu="1000")
    quota = CPUQuota(target, 10, lambda _candidate: 100)
    source = SourceCluster(clock, target)
    async with source.running():
        names = add(source, 100)
        await source.until_bound(*names)
        assert clock.monotonic() < 10
        assert not quota.refused


async def test_a_pod_whose_requests_a_policy_lowers_runs(clock):
    target = Target("c2", clock, cpu="1000")
    quota = CPUQuota(target, 2, lambda _candidate: 500)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p", cpu="16")
        await source.until_bound("p")
        assert clock.monotonic() < AT_ONCE
        assert not quota.refused


@pytest.mark.no_cover
async def test_a_target_is_asked_once_for_all_pods_of_a_kind_that_it_refuses(clock):
    target = Target("c2", clock, cpu="1000")
    quota = CPUQuota(target, 10)
    source = SourceCluster(clock, target)
    async with source.running():
        names = add(source, 200, cpu="1")
        await source.server.until(lambda: len(source.bound) == 10)
        await asyncio.sleep(600)
        assert len(source.bound) == 10
        assert target.asked("create") <= 12
        assert len(quota.refused) <= 2 * 600 / 30 + 2
        waiting = [name for name in names if name not in source.bound]
        words = "exceeded quota: few, requested: requests.cpu=1000m"
        assert sum(f'pods "{name}-' in str(source.pod(name)) for name in waiting) <= 2
        assert all(words in str(source.pod(name)) for name in waiting)
        assert sum("which is like this one" in str(source.pod(name)) for name in waiting) >= 188


async def test_those_that_wait_behind_a_refused_one_go_as_soon_as_there_is_room(clock):
    target = Target("c2", clock, cpu="1000")
    quota = CPUQuota(target, 2)
    source = SourceCluster(clock, target)
    async with source.running():
        add(source, 6, cpu="1")
        await source.server.until(lambda: len(source.bound) == 2)
        await asyncio.sleep(100)
        for bound in (3, 4, 5):
            quota.free(next(iter(quota.counted)))
            began = clock.monotonic()
            await source.server.until(lambda bound=bound: len(source.bound) == bound)
            assert clock.monotonic() - began < 25  # back-offs of ten seconds


async def test_a_policy_that_comes_later_is_noticed_by_all_of_the_kind(clock):
    target = Target("c2", clock, cpu="1000")
    quota = CPUQuota(target, 100)
    source = SourceCluster(clock, target)
    async with source.running():
        names = add(source, 50)
        await source.until_said("p7", "must specify requests.cpu")
        await asyncio.sleep(300)
        quota.mutate = lambda _candidate: 100
        began = clock.monotonic()
        await source.until_bound(*names)
        assert clock.monotonic() - began < 60


async def test_a_pod_of_another_kind_is_asked_for_though_one_was_refused(clock):
    target = Target("c2", clock, cpu="1000")

    def only_marked(candidate: Object) -> int | None:
        return 100 if "fill" in objects.annotations(candidate) else as_it_is(candidate)

    CPUQuota(target, 10, only_marked)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await source.until_said("p", "must specify")
        source.add("q", annotations={"fill": "yes"})
        began = clock.monotonic()
        await source.until_bound("q")
        assert clock.monotonic() - began < AT_ONCE


async def test_a_target_that_refuses_what_seems_to_fit_is_not_asked_by_each_pod_of_the_kind(clock):
    """An injector there makes pods larger than they seem."""
    target = Target("c2", clock, cpu="1000")
    CPUQuota(target, 10, lambda candidate: (as_it_is(candidate) or 0) + 2000)
    source = SourceCluster(clock, target)
    async with source.running():
        for number in range(60):
            source.add(f"p{number}", cpu="10m", ownerReferences=[OWNER])
            await asyncio.sleep(1)

        await asyncio.sleep(200)
        assert len(source.bound) == 4
        assert target.asked("create") <= 6


async def test_a_pod_goes_on_to_another_target_when_the_first_refuses_it(clock):
    first, other = Target("c2", clock, cpu="1000"), Target("c3", clock, cpu="1000")
    CPUQuota(first, 1)
    prefer(first, other)
    source = SourceCluster(clock, first, other)
    async with source.running():
        names = add(source, 20, cpu="2")
        await source.until_bound(*names)
        assert clock.monotonic() < 10
        assert {source.node_of(name) for name in names} == {other.node}
        assert first.asked("create") <= 3


async def test_others_ask_again_once_the_pod_that_was_refused_is_gone(clock):
    target = Target("c2", clock, cpu="1000")
    quota = CPUQuota(target, 10)
    source = SourceCluster(clock, target)
    async with source.running():
        add(source, 3)
        await source.until_said("p1", "must specify")
        await asyncio.sleep(5)
        asker = next(name for name in ("p0", "p1", "p2") if target.find(name) is not None)
        quota.mutate = lambda _candidate: 100
        source.remove(asker)
        target.remove(target.candidate(asker))
        await source.server.until(lambda: len(source.bound) == 2, seconds=200)


async def test_a_limit_that_the_target_may_mend_is_asked_for_and_told_in_its_words(clock):
    target = Target("c2", clock, cpu="1000")
    quota = CPUQuota(target, 10, lambda _candidate: 20_000)
    limits = [{"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "1"}}]
    target.server.add(
        kinds.LIMIT_RANGES,
        {"metadata": {"name": "small", "namespace": "default"}, "spec": {"limits": limits}},
    )
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p", cpu="2")
        await source.until_said("p", "is forbidden: exceeded quota: few")
        assert "LimitRange small" not in str(source.pod("p"))
        quota.mutate = lambda _candidate: 1000
        await source.until_bound("p")


async def test_a_pod_without_a_reservation_goes_where_it_seems_to_fit(clock):
    first, other = Target("c2", clock, cpu="1000"), Target("c3", clock, cpu="1000")
    CPUQuota(first, 1)
    prefer(first, other)
    source = SourceCluster(clock, first, other)
    async with source.running():
        source.add("p", cpu="2", annotations={keys.NO_RESERVATION: ""})
        await source.until_bound("p")
        assert source.node_of("p") == other.node
        assert first.asked("create") == 0


async def test_a_pod_that_was_refused_is_asked_for_anew_as_soon_as_it_seems_to_fit(clock):
    target = Target("c2", clock, cpu="1000")
    quota = CPUQuota(target, 10)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p", cpu="20")
        await source.until_said("p", "exceeded quota: few")
        await asyncio.sleep(31)
        quota.hard = 30_000

        def change(found: Object) -> None:
            found["spec"]["hard"] = found["status"]["hard"] = {"requests.cpu": "30"}

        target.server.change(kinds.RESOURCE_QUOTAS, "few", "default", change)
        began = clock.monotonic()
        await source.until_bound("p")
        assert clock.monotonic() - began < 15


async def test_a_pod_that_seems_to_fit_and_is_refused_is_not_asked_for_again_and_again(clock):
    target = Target("c2", clock, cpu="1000")
    CPUQuota(target, 10, lambda _candidate: 20_000)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p", cpu="1")
        await source.until_said("p", "exceeded quota: few")
        await asyncio.sleep(300)
        assert target.asked("create") == 1
