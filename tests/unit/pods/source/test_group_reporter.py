"""What PodGroups tell of their gangs, and who else may write there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.apiserver import requests, resources
from tests.apiserver.server import APIServer
from tests.unit.gangs.pods import pod
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Conflict
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.gangs.table import Gangs
from vnode.kube.events import EventRecorder
from vnode.pods.source.group_reporter import REWORDED, GroupReporter
from vnode.pods.source.pod_groups import PodGroups
from vnode.runtime.links import Links
from vnode.runtime.supervisor import supervise

pytestmark = pytest.mark.looptime

NODE = "admiralty-default-c2"
FIRST, LATER = kinds.NATIVE_GROUPS[-1], kinds.NATIVE_GROUPS[1]


class ReportedGroup:
    """A gang of two pods of a PodGroup of that kind, and what reports on it."""

    def __init__(self, clock: Clock, kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(resources, "ALL", (*resources.ALL, kind))
        monkeypatch.setitem(requests._KINDS, (kind.group, kind.version, kind.plural), kind)
        self.kind = kind
        self.server = APIServer("c1", clock)
        client = self.server.client()
        self.groups = PodGroups(client, clock)
        self.gangs = Gangs(self.groups.find)
        self.events = EventRecorder(client, "vnode", clock)
        links = Links()
        self.reporter = GroupReporter(client, self.gangs, self.groups, links, self.events, clock)
        is_native = kind in kinds.NATIVE_GROUPS
        policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
        spec = policy if is_native else {"minMember": 2}
        metadata = {"name": "train", "namespace": "default"}
        self.server.add(kind, {"metadata": metadata, "spec": spec})
        if not is_native:
            versions = [{"name": kind.version, "served": True}]
            established = {"conditions": [{"type": "Established", "status": "True"}]}
            crd = {"metadata": {"name": kind.resource}, "spec": {"versions": versions}}
            self.server.add(kinds.CRDS, {**crd, "status": established})

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with supervise() as tasks:
            tasks.start(self.events.run(), "events")
            self.groups.watch(tasks.keyed(), lambda _key: None, self.gangs.keys_of)
            self.put()
            await asyncio.sleep(2)
            [gang] = self.gangs.values()
            self.gang = gang
            yield
            tasks.stop()

    def put(self, node: str = "") -> None:
        for name in ("a", "b"):
            made = pod(name, node=node, spec={"schedulingGroup": {"podGroupName": "train"}})
            if self.kind not in kinds.NATIVE_GROUPS:
                made = pod(name, node=node, labels={keys.POD_GROUP: "train"})

            self.gangs.on_pod(None, made)

    def refuse(self, why: str) -> None:
        """Have no target take the gang."""
        self.gang.complete_since = 0.0
        self.gangs.saw_unplaced("a", why)

    def start(self) -> None:
        self.put(NODE)
        for name in ("a", "b"):
            self.gangs.saw_reserved(name, reserved=True)

    @property
    def group(self) -> Object:
        found = self.server.find(self.kind, "train", "default")
        assert found is not None
        return found

    def condition(self, name: str) -> tuple[str, str, str] | None:
        found = objects.condition(self.group, name)
        return None if found is None else (found["status"], found["reason"], found["message"])

    def told(self) -> list[tuple[str, str]]:
        return sorted(
            (each["reason"], each["message"])
            for each in self.server.all(kinds.EVENTS)
            if each["involvedObject"]["kind"] == "PodGroup"
        )

    def writes(self) -> int:
        return len([r for r in self.server.received(kind=self.kind) if r.subresource == "status"])


@pytest.mark.parametrize(
    ("kind", "name"),
    [(FIRST, "PodGroupScheduled"), (LATER, "PodGroupInitiallyScheduled")],
    ids=["v1alpha2", "v1beta1"],
)
async def test_kubernetes_own_groups_say_why_they_wait_and_that_they_were_placed(
    clock: Clock, kind: Kind, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = ReportedGroup(clock, kind, monkeypatch)
    async with env.running():
        assert await env.reporter.report(env.gang) is None
        assert env.condition(name) is None  # nobody has looked for a target yet
        env.refuse("0/1 targets: c2: 1 of 2 have a place")
        assert await env.reporter.report(env.gang) is None
        waits = ("False", "Unschedulable", "0/1 targets: c2: 1 of 2 have a place")
        assert env.condition(name) == waits
        await asyncio.sleep(REWORDED)
        env.start()
        assert await env.reporter.report(env.gang) is None
        message = f"2 pods, as many as start together, go to {NODE}"
        assert env.condition(name) == ("True", "Scheduled", message)
        await asyncio.sleep(1)
        assert env.told() == [("FailedScheduling", waits[2]), ("Scheduled", message)]


async def test_a_group_is_written_seldom_and_what_was_placed_stays_so(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = ReportedGroup(clock, LATER, monkeypatch)
    async with env.running():
        for number in range(4):
            env.refuse(f"for reason {number}")
            assert bool(await env.reporter.report(env.gang)) == (number > 0)

        assert env.writes() == 1
        env.start()
        assert 0 < (await env.reporter.report(env.gang) or 0) <= 1
        await asyncio.sleep(1)
        await env.reporter.report(env.gang)
        assert env.writes() == 2
        for name in ("a", "b"):
            env.gangs.on_pod(pod(name), None)

        env.reporter.forget(env.gang.key)
        env.put()
        await asyncio.sleep(1)
        [env.gang] = env.gangs.values()
        env.refuse("for reason 5")
        await env.reporter.report(env.gang)
        assert env.writes() == 2  # True is final


async def test_a_condition_of_another_scheduler_is_left_alone(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = ReportedGroup(clock, LATER, monkeypatch)
    async with env.running():
        conflict = Conflict(409, "Conflict", 'conflict with "kube-scheduler"')
        env.server.fail(conflict, kind=LATER, subresource="status", times=None)
        for number in range(2):
            env.refuse(f"for reason {number}")
            await env.reporter.report(env.gang)
            await asyncio.sleep(REWORDED)

        assert env.condition("PodGroupInitiallyScheduled") is None
        assert env.writes() == 2


async def test_the_status_of_other_groups_has_an_owner_so_that_only_events_tell(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = ReportedGroup(clock, kinds.COSCHEDULING_GROUPS, monkeypatch)
    async with env.running():
        env.refuse("no room")
        await env.reporter.report(env.gang)
        await asyncio.sleep(1)
        env.start()
        await env.reporter.report(env.gang)
        await asyncio.sleep(1)
        assert [reason for reason, _ in env.told()] == ["FailedScheduling", "Scheduled"]
        assert env.writes() == 0
        assert "status" not in env.group


async def test_a_gang_that_ran_before_this_agent_knew_of_it_is_no_news(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = ReportedGroup(clock, LATER, monkeypatch)
    async with env.running():
        env.put(NODE)
        env.gangs.saw_allowed("a")
        await env.reporter.report(env.gang)
        await asyncio.sleep(1)
        assert env.told() == []
        assert (env.condition("PodGroupInitiallyScheduled") or ())[0] == "True"
