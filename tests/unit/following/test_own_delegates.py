"""Copies select the delegates of their own source, and lose none of those that run already."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests import background
from tests.apiserver import links
from tests.unit.following.fleet import GPU, SOON, US, FollowingFleet
from vnode.api import keys, kinds, names, selectors
from vnode.api.clock import Clock
from vnode.api.objects import Object

pytestmark = pytest.mark.looptime
WEB = {keys.PREFIX + "app": "web"}
NAME = {keys.PARENT_CLUSTER_NAME: US.name}
UID = {keys.PARENT_CLUSTER_UID: US.uid}
DENY = {"podSelector": {}, "policyTypes": ["Ingress"]}


class Shared(FollowingFleet):
    """A fleet with a Service and a NetworkPolicy, and chaperons of more than one source."""

    def add_all(self) -> None:
        self.add_original(kinds.SERVICES)
        self.source.add(
            kinds.NETWORK_POLICIES, {"metadata": {"name": "web", "namespace": "ns"}, "spec": DENY}
        )
        self.add_pod()

    def add_chaperon(self, name: str, labels: dict[str, str], *, uid: str = "") -> None:
        """Store a chaperon of a pod; without `uid` of its cluster it is one of Admiralty."""
        annotations = {keys.PARENT_NAMESPACE: "ns", keys.PARENT_NAME: name}
        metadata: Object = {
            "name": names.chaperon(name, name),
            "namespace": "ns",
            "labels": {keys.PARENT_UID: name, **labels},
            "annotations": annotations | ({keys.PARENT_CLUSTER_UID: uid} if uid else {}),
        }
        self.gpu.add(kinds.POD_CHAPERONS, {"metadata": metadata, "spec": {}})

    def remove_chaperon(self, name: str) -> None:
        self.gpu.remove(kinds.POD_CHAPERONS, names.chaperon(name, name), "ns")

    @property
    def selected(self) -> tuple[Any, Any]:
        """By which labels the copies of the Service and of the NetworkPolicy select pods."""
        service = self.gpu.find(kinds.SERVICES, "web", "ns") or {"spec": {"selector": None}}
        policy = self.gpu.find(kinds.NETWORK_POLICIES, "web", "ns") or {}
        chosen = (policy.get("spec") or {}).get("podSelector") or {}
        return service["spec"]["selector"], chosen.get("matchLabels")


async def test_a_copy_selects_by_name_and_uid_of_its_source(clock: Clock) -> None:
    fleet = Shared(clock)
    fleet.add_all()
    fleet.add_chaperon("web", NAME | UID, uid=US.uid)
    async with fleet.running():
        assert fleet.selected == (WEB | NAME | UID, NAME | UID)
        theirs = [NAME | {keys.PARENT_CLUSTER_UID: "them"}, {keys.PARENT_CLUSTER_NAME: "c9"}, {}]
        for labels in theirs:  # another of the name, another name, and a pod of the target itself
            for selected in fleet.selected:
                selector = selectors.from_label_selector({"matchLabels": selected})
                assert selector is not None
                assert not selector.matches(WEB | labels)


async def test_delegates_of_before_an_upgrade_stay_until_they_have_ended(clock: Clock) -> None:
    fleet = Shared(clock)
    fleet.add_all()
    fleet.add_chaperon("web", NAME | UID, uid=US.uid)
    fleet.add_chaperon("old", NAME, uid=US.uid)
    fleet.add_chaperon("admiraltys", NAME)
    async with fleet.running():
        assert fleet.selected == (WEB, NAME)
        fleet.remove_chaperon("admiraltys")
        await asyncio.sleep(SOON)
        assert fleet.selected == (WEB | NAME, NAME)
        fleet.remove_chaperon("old")
        await asyncio.sleep(SOON)
        assert fleet.selected == (WEB | NAME | UID, NAME | UID)


async def test_chaperons_of_another_source_of_the_name_do_not_count(clock: Clock) -> None:
    fleet = Shared(clock)
    fleet.add_all()
    fleet.add_chaperon("theirs", NAME, uid="them")
    async with fleet.running():
        assert fleet.selected == (WEB | NAME | UID, NAME | UID)


@pytest.mark.parametrize("before", [WEB, WEB | NAME, WEB | NAME | UID])
async def test_before_all_delegates_are_known_a_copy_selects_as_before(
    clock: Clock, before: dict[str, str]
) -> None:
    fleet = Shared(clock)
    fleet.add_all()
    fleet.add_chaperon("old", NAME, uid=US.uid)
    async with fleet.running():
        assert fleet.selected == (WEB | NAME, NAME)

    fleet.gpu.change(
        *(kinds.SERVICES, "web", "ns"), lambda obj: obj["spec"].update(selector=before)
    )
    later = fleet.successor(clock)
    later.links.add(later.link)
    async with (
        links.following(later.proxies),
        links.following(*later.link.quotas, later.link.summaries),
        following_alone(later),
    ):
        await asyncio.sleep(SOON)
        assert fleet.selected[0] == before
        async with links.following(later.link.chaperons):
            await asyncio.sleep(SOON)
            assert fleet.selected == (WEB | NAME, NAME)


def following_alone(fleet: FollowingFleet) -> Any:
    return background.running(fleet.following.run(), fleet.events.run())


async def test_a_copy_that_is_made_before_that_selects_by_the_name(clock: Clock) -> None:
    fleet = Shared(clock)
    fleet.add_all()
    fleet.links.add(fleet.link)
    async with links.following(fleet.proxies), following_alone(fleet):
        await asyncio.sleep(SOON)
        assert fleet.selected == (WEB | NAME, NAME)
        assert fleet.link.node_name == GPU.node_name
