"""Scores are published when they change, seldom otherwise, and end when a target is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from tests import background
from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.unit.scores import served
from vnode.api import keys, kinds, objects
from vnode.api.cluster_scores import ScoreObject
from vnode.api.errors import Denied
from vnode.api.identity import Identity
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.events import EventRecorder
from vnode.runtime.links import Links
from vnode.scores import config, published
from vnode.scores.publisher import ScorePublisher
from vnode.scores.room import ReportedRoom

pytestmark = pytest.mark.looptime

GPU = "nvidia.com/gpu"
KEYS = {name: TargetKey("ns", name) for name in ("a", "b")}
WRITES = ("create", "patch", "delete")


class PublishingHub:
    """A source with two targets, which report as a test says."""

    def __init__(self, clock: Any, *publish: config.ScoreKind) -> None:
        self.clock = clock
        self.server = APIServer("hub", clock)
        self.server.add(kinds.NAMESPACES, {"metadata": {"name": "ns"}})
        for name in KEYS:
            self.server.add(kinds.NAMESPACES, {"metadata": {"name": f"ocm-{name}"}})

        served.serve(self.server)
        self.links = Links()
        self.gpus = {"a": 4, "b": 8}
        self.lost: set[str] = set()
        self.targets: dict[TargetKey, Object] = {
            key: {"metadata": {"name": key.name, "namespace": "ns", "uid": key.name}}
            for key in KEYS.values()
        }
        self.config = config.ScoresConfig(publish or ("ClusterScore",))
        self.made = {
            name: links.link_to(APIServer(name, clock), key, Identity("hub", "us"), clock)
            for name, key in KEYS.items()
        }

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        for link in self.made.values():
            self.links.add(link)

        events = EventRecorder(self.server.client(), "vnode", self.clock)
        publisher = ScorePublisher(
            self.server.client(),
            self.links,
            self.config,
            report_of=lambda link: self._report(link.target.name),
            cluster_of=lambda link: f"ocm-{link.target.name}",
            find_target=self.targets.get,
            events=events,
            clock=self.clock,
        )
        async with background.running(events.run(), publisher.run()):
            yield

    def _report(self, name: str) -> ReportedRoom | None:
        gpus = {GPU: self.gpus[name]}
        return None if name in self.lost else ReportedRoom(gpus, gpus)

    def report(self, name: str, gpus: int) -> None:
        """Have a target report another number of free GPUs."""
        self.gpus[name] = gpus
        self.wake(name)

    def lose(self, name: str) -> None:
        self.lost.add(name)
        self.wake(name)

    def wake(self, name: str) -> None:
        healthy = self.made[name].health.healthy
        links.set_healthy(self.made[name], not healthy, self.clock)

    def writes(self, kind: Kind = kinds.CLUSTER_SCORES) -> list[tuple[str, str | None]]:
        return [
            (each.verb, each.name)
            for each in self.server.requests
            if each.kind is kind and each.verb in WRITES
        ]

    def own(self, name: str) -> Object:
        found = self.server.find(kinds.CLUSTER_SCORES, f"vnode-usage-{KEYS[name].node_name}")
        return found or {}

    def score(self, name: str, score: str = "gpuNodeAvailable") -> int | None:
        return published.said(kinds.CLUSTER_SCORES, self.own(name)).values.get(score)

    def left(self, name: str) -> float:
        """Return for how many seconds the scores of a target are valid still."""
        until = objects.parse_timestamp(objects.spec(self.own(name))["validUntil"])
        assert until
        return (until - self.clock.now()).total_seconds()

    @property
    def told(self) -> list[str]:
        return [event["message"] for event in self.server.all(kinds.EVENTS)]


async def test_scores_are_written_as_both_kinds(clock: Any) -> None:
    hub = PublishingHub(clock, "AddOnPlacementScore", "ClusterScore")
    async with hub.running():
        await asyncio.sleep(10)
        assert (hub.score("a"), hub.score("b")) == (-60, -20)
        assert hub.score("b", "gpuNodeAvailableRelative") == 100
        assert objects.spec(hub.own("a"))["target"] == {"namespace": "ns", "name": "a"}
        assert 290 < hub.left("a") <= 300
        add_on = hub.server.find(kinds.ADDON_PLACEMENT_SCORES, "vnode-usage", "ocm-b")
        assert add_on
        said = published.said(kinds.ADDON_PLACEMENT_SCORES, add_on)
        assert said.values["gpuClusterAvailable"] == -20


async def test_what_changes_is_written_soon_and_not_too_often(clock: Any) -> None:
    hub = PublishingHub(clock)
    async with hub.running():
        await asyncio.sleep(60)
        before = len(hub.writes())
        for gpus in range(9, 20):
            hub.report("b", gpus)
            await asyncio.sleep(1)

        await asyncio.sleep(30)
        assert hub.score("b") == 90
        written = [name for _, name in hub.writes()[before:]]
        assert 1 <= sum(str(name).endswith("b") for name in written) <= 3
        assert hub.score("a", "gpuNodeAvailableRelative") == -100


async def test_what_stays_is_renewed_before_it_ends(clock: Any) -> None:
    hub = PublishingHub(clock)
    async with hub.running():
        await asyncio.sleep(10)
        for _ in range(30):
            await asyncio.sleep(60)
            assert hub.left("a") > 100

        assert len(hub.writes()) <= 2 * (1 + 1810 // 175)


async def test_a_lost_target_is_written_no_more_and_others_are(clock: Any) -> None:
    hub = PublishingHub(clock)
    async with hub.running():
        await asyncio.sleep(10)
        hub.lose("a")
        await asyncio.sleep(600)
        assert hub.left("a") < 0
        assert hub.left("b") > 100
        hub.lost.clear()
        hub.wake("a")
        await asyncio.sleep(40)
        assert hub.left("a") > 100


async def test_the_score_of_a_target_that_is_gone_goes(clock: Any) -> None:
    hub = PublishingHub(clock)
    async with hub.running():
        await asyncio.sleep(10)
        hub.links.remove(hub.made["b"])
        await asyncio.sleep(10)
        assert hub.own("b")  # it may only be connected anew
        del hub.targets[KEYS["b"]]
        await asyncio.sleep(310)
        assert not hub.own("b")
        assert hub.own("a")


async def test_a_new_leader_writes_what_differs_only(clock: Any) -> None:
    hub = PublishingHub(clock)
    async with hub.running():
        await asyncio.sleep(10)

    for link in hub.made.values():
        hub.links.remove(link)

    before = len(hub.writes())
    async with hub.running():
        await asyncio.sleep(60)
        assert len(hub.writes()) == before
        hub.report("a", 0)
        await asyncio.sleep(60)
        assert hub.score("a") == -100


async def test_objects_of_others_are_left_alone(clock: Any) -> None:
    hub = PublishingHub(clock)
    name = f"vnode-usage-{KEYS['a'].node_name}"
    spec = {"target": {"name": "a"}, "scores": [{"name": "x", "value": 1}]}
    hub.server.add(kinds.CLUSTER_SCORES, {"metadata": {"name": name}, "spec": spec})
    async with hub.running():
        await asyncio.sleep(30)
        assert objects.spec(hub.own("a")) == spec
        assert hub.score("b") == -20
        why = "it is not vnode's: delete it, and it is made anew"
        assert hub.told == [f"clusterscore/{name} is not written: {why}"]
        hub.server.remove(kinds.CLUSTER_SCORES, name)
        await asyncio.sleep(310)
        assert hub.score("a") == -60


async def test_what_somebody_has_changed_meanwhile_is_written_again(clock: Any) -> None:
    hub = PublishingHub(clock)
    async with hub.running():
        await asyncio.sleep(60)
        name = objects.name(hub.own("a"))
        hub.server.change(kinds.CLUSTER_SCORES, name, "", lambda o: o["spec"].update(scores=[]))
        hub.report("a", 5)
        await asyncio.sleep(60)
        assert hub.score("a") == -50
        hub.server.remove(kinds.CLUSTER_SCORES, name)
        hub.report("a", 6)
        await asyncio.sleep(90)
        assert hub.score("a") == -40
        assert keys.PUBLISHED_SCORES in objects.labels(hub.own("a"))


@pytest.mark.parametrize("fault", ["right", "kind"])
async def test_why_nothing_is_written_is_told(clock: Any, fault: str) -> None:
    hub = PublishingHub(clock)
    if fault == "kind":
        hub.server.remove(kinds.CRDS, kinds.CLUSTER_SCORES.resource)
    else:
        denied = Denied(403, "Forbidden", "no")
        hub.server.fail(denied, verb="create", kind=kinds.CLUSTER_SCORES, times=None)

    async with hub.running():
        await asyncio.sleep(30)
        assert len(hub.told) == 2
        wanted = "does not serve clusterscores" if fault == "kind" else "bind ClusterRole"
        assert all(wanted in text for text in hub.told)
        assert not hub.own("a")
        if fault == "kind":
            served.serve(hub.server, kinds.CLUSTER_SCORES)
            await asyncio.sleep(20)
            assert hub.score("a") == -60


def test_moments_of_writes() -> None:
    now = objects.parse_timestamp("2026-01-01T00:00:00Z")
    assert now
    written = ScoreObject("x", {"x": 1}, {}, now + timedelta(seconds=300))
    assert published.wait(None, {"x": 1}, now) == 0
    assert published.wait(written, {"x": 2}, now) == 0
    assert published.wait(written, {"x": 1}, now) == 180
    assert published.wait(written, {"x": 1}, now + timedelta(seconds=200)) == 0


def test_an_add_on_score_needs_the_name_of_its_cluster_and_others_a_name_that_fits() -> None:
    assert published.place("AddOnPlacementScore", KEYS["a"], "") is None
    long = TargetKey("n" * 63, "t" * 253)
    place = published.place("ClusterScore", long, "")
    assert place is not None
    assert len(place.name) <= 253
