"""Secrets and the like that a pod needs in one target only, because overrides refer to them."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.following.fleet import CPU, GPU, SOON, US, FollowingFleet
from vnode.api import keys, kinds, names
from vnode.api.errors import ConfigError

pytestmark = pytest.mark.looptime
EXTRA = {"containers": [{"name": "main", "envFrom": [{"secretRef": {"name": "web"}}]}]}
PLAIN = {"containers": [{"name": "main"}]}


class Overridden(FollowingFleet):
    """A fleet in which records of chaperons are believed if they say `ours`."""

    def __init__(self, clock, **options):
        super().__init__(clock, **options)
        introduced = self.following._introduced
        introduced._find_pod = self.proxies.store.get
        introduced._introduced = lambda _pod, chaperon, _link: (
            [("secrets", "web")]
            if chaperon["metadata"]["annotations"][keys.OVERRIDES] == "ours"
            else []
        )

    def successor(self, clock, **options):
        return Overridden(clock, servers=(self.source, self.gpu, self.cpu), **options)

    def add_plain(self, node=""):
        metadata = {"name": "web", "namespace": "ns", "uid": "web", "labels": {"app": "web"}}
        spec = {**PLAIN, "nodeName": node} if node else PLAIN
        return self.source.add(
            kinds.PODS, {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
        )

    def add_chaperon(self, target, record="ours"):
        metadata = {
            "name": names.chaperon("web", "web"),
            "namespace": "ns",
            "labels": {keys.PARENT_UID: "web", keys.PARENT_CLUSTER_NAME: US.name},
            "annotations": {
                keys.OVERRIDES: record,
                keys.PARENT_NAMESPACE: "ns",
                keys.PARENT_NAME: "web",
                keys.PARENT_CLUSTER_UID: US.uid,
            },
        }
        return target.add(kinds.POD_CHAPERONS, {"metadata": metadata, "spec": EXTRA})

    def bind(self, node):
        self.source.change(kinds.PODS, "web", "ns", lambda pod: pod["spec"].update(nodeName=node))

    @property
    def secrets(self):
        """The targets that have the Secret."""
        return [t.name for t in (self.gpu, self.cpu) if self.copy(kinds.SECRETS, t)]


async def test_a_secret_goes_to_the_target_whose_override_refers_to_it_and_stays(clock):
    fleet = Overridden(clock)
    fleet.add_original(kinds.SECRETS)
    async with fleet.running():
        pod = fleet.add_plain()
        await asyncio.sleep(SOON)
        await fleet.following.ensure({**pod, "spec": EXTRA}, fleet.link)
        await fleet.following.ensure(pod, fleet.other)
        assert fleet.secrets == ["gpu"]
        fleet.add_chaperon(fleet.gpu)
        fleet.bind(GPU.node_name)
        await asyncio.sleep(200)
        assert fleet.secrets == ["gpu"]
        fleet.remove_pod()
        fleet.gpu.remove(kinds.POD_CHAPERONS, names.chaperon("web", "web"), "ns")
        await asyncio.sleep(60)
        assert fleet.secrets == []


async def test_a_loser_takes_the_secret_of_its_override_away(clock):
    fleet = Overridden(clock)
    fleet.add_original(kinds.SECRETS)
    async with fleet.running():
        pod = fleet.add_plain()
        await asyncio.sleep(SOON)
        await fleet.following.ensure({**pod, "spec": EXTRA}, fleet.link)
        fleet.add_chaperon(fleet.gpu)
        await asyncio.sleep(SOON)
        fleet.bind(CPU.node_name)
        fleet.gpu.remove(kinds.POD_CHAPERONS, names.chaperon("web", "web"), "ns")
        await asyncio.sleep(60)
        assert fleet.secrets == []


@pytest.mark.parametrize("record", ["ours", "forged"])
async def test_a_new_leader_keeps_what_a_record_of_ours_says_and_nothing_else(clock, record):
    fleet = Overridden(clock)
    fleet.add_original(kinds.SECRETS)
    fleet.add_plain(GPU.node_name)
    fleet.add_chaperon(fleet.gpu, record)
    async with fleet.running():
        await asyncio.sleep(SOON)
        assert fleet.secrets == (["gpu"] if record == "ours" else [])

    later = fleet.successor(clock)
    async with later.running():
        await asyncio.sleep(60)
        assert later.secrets == (["gpu"] if record == "ours" else [])


async def test_a_chaperon_that_is_seen_before_its_pod_counts_once_the_pod_is_there(clock):
    fleet = Overridden(clock)
    fleet.add_original(kinds.SECRETS)
    async with fleet.running():
        fleet.add_chaperon(fleet.gpu)
        await asyncio.sleep(SOON)
        fleet.add_plain(GPU.node_name)
        await asyncio.sleep(SOON)
        assert fleet.secrets == ["gpu"]


async def test_a_token_that_only_an_override_refers_to_keeps_the_pod_away(clock, monkeypatch):
    fleet = Overridden(clock)
    fleet.add_original(kinds.SECRETS)

    async def admit(_pod, _link):
        return {"web": object()}, ""

    monkeypatch.setattr(fleet.following._token_secrets, "admit", admit)
    async with fleet.running():
        pod = fleet.add_plain()
        await asyncio.sleep(SOON)
        with pytest.raises(ConfigError, match="cannot give a pod"):
            await fleet.following.ensure({**pod, "spec": EXTRA}, fleet.link)
