"""Services and Ingresses that users have marked as global go to all targets of their namespace."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.following.fleet import SOON, FollowingFleet
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.kinds import Kind
from vnode.api.objects import Object

pytestmark = pytest.mark.looptime

GLOBAL = {keys.GLOBAL: "true"}
LATER = 10.0  # seconds after which a copy without a user is gone
INGRESS = {
    "defaultBackend": {"service": {"name": "web"}},
    "tls": [{"secretName": "web"}],
}


@pytest.fixture
async def fleet(clock: Clock) -> FollowingFleet:
    return FollowingFleet(clock)


def add_ingress(fleet: FollowingFleet, **annotations: str) -> None:
    metadata = {"name": "web", "namespace": "ns", "annotations": annotations}
    fleet.source.add(kinds.INGRESSES, {"metadata": metadata, "spec": INGRESS})


def mark(fleet: FollowingFleet, kind: Kind = kinds.SERVICES, value: str | None = "true") -> None:
    def change(obj: Object) -> None:
        annotations = obj["metadata"].setdefault("annotations", {})
        if value is None:
            annotations.pop(keys.GLOBAL)
        else:
            annotations[keys.GLOBAL] = value

    fleet.source.change(kind, "web", "ns", change)


def where(fleet: FollowingFleet, kind: Kind) -> list[str]:
    """Return the targets that have a copy."""
    targets = {"gpu": fleet.gpu, "cpu": fleet.cpu}
    return [name for name, target in targets.items() if fleet.copy(kind, target)]


async def test_a_service_goes_where_there_are_pods_and_once_marked_everywhere(
    fleet: FollowingFleet,
) -> None:
    fleet.add_original(kinds.SERVICES)
    fleet.add_pod()
    async with fleet.running():
        assert where(fleet, kinds.SERVICES) == ["gpu"]
        mark(fleet)
        await asyncio.sleep(SOON)
        assert where(fleet, kinds.SERVICES) == ["gpu", "cpu"]
        mark(fleet, value="false")
        await asyncio.sleep(LATER)
        assert where(fleet, kinds.SERVICES) == ["gpu"]


async def test_what_vnode_writes_on_a_service_that_follows_does_not_mark_it(
    fleet: FollowingFleet,
) -> None:
    fleet.add_original(kinds.SERVICES)
    fleet.add_pod()
    async with fleet.running():
        await asyncio.sleep(LATER)
        service = fleet.source.find(kinds.SERVICES, "web", "ns")
        assert set(keys.CILIUM_GLOBAL) <= objects.annotations(service or {}).keys()
        assert keys.GLOBAL not in objects.annotations(service or {})
        assert where(fleet, kinds.SERVICES) == ["gpu"]


async def test_a_marked_service_needs_no_pods_and_goes_with_its_mark(fleet: FollowingFleet) -> None:
    fleet.add_original(kinds.SERVICES)
    mark(fleet)
    async with fleet.running():
        assert where(fleet, kinds.SERVICES) == ["gpu", "cpu"]
        fleet.add_pod()
        await asyncio.sleep(SOON)
        fleet.remove_pod()
        await asyncio.sleep(LATER)
        assert where(fleet, kinds.SERVICES) == ["gpu", "cpu"]
        mark(fleet, value=None)
        await asyncio.sleep(LATER)
        assert where(fleet, kinds.SERVICES) == []


async def test_a_marked_service_that_is_deleted_goes_everywhere(fleet: FollowingFleet) -> None:
    fleet.add_original(kinds.SERVICES)
    mark(fleet)
    async with fleet.running():
        fleet.source.remove(kinds.SERVICES, "web", "ns")
        await asyncio.sleep(LATER)
        assert where(fleet, kinds.SERVICES) == []


async def test_a_later_agent_finds_copies_of_marked_services_in_order(
    fleet: FollowingFleet, clock: Clock
) -> None:
    fleet.add_original(kinds.SERVICES)
    mark(fleet)
    async with fleet.running():
        pass

    before = fleet.copy(kinds.SERVICES, fleet.cpu)
    async with fleet.successor(clock).running():
        await asyncio.sleep(LATER)
        assert fleet.copy(kinds.SERVICES, fleet.cpu) == before


@pytest.mark.parametrize("marked", [kinds.SERVICES, kinds.INGRESSES], ids=lambda kind: kind.plural)
async def test_an_ingress_goes_everywhere_by_its_own_mark_or_its_services_with_its_certificate(
    fleet: FollowingFleet, marked: Kind
) -> None:
    for kind in (kinds.SERVICES, kinds.SECRETS):
        fleet.add_original(kind)

    add_ingress(fleet)
    async with fleet.running():
        assert where(fleet, kinds.INGRESSES) == []
        mark(fleet, marked)
        await asyncio.sleep(SOON)
        for kind in (kinds.INGRESSES, kinds.SECRETS):
            assert where(fleet, kind) == ["gpu", "cpu"]

        assert bool(where(fleet, kinds.SERVICES)) == (marked is kinds.SERVICES)
        fleet.source.change(kinds.SECRETS, "web", "ns", lambda obj: obj.update(data={"a": "Mg=="}))
        await asyncio.sleep(SOON)
        for target in (fleet.gpu, fleet.cpu):
            assert (fleet.copy(kinds.SECRETS, target) or {})["data"] == {"a": "Mg=="}

        mark(fleet, marked, value=None)
        await asyncio.sleep(LATER)
        for kind in (kinds.INGRESSES, kinds.SECRETS):
            assert where(fleet, kind) == []


async def test_an_ingress_leaves_with_a_service_that_ends_though_something_keeps_that(
    fleet: FollowingFleet,
) -> None:
    fleet.add_original(kinds.SERVICES)
    mark(fleet)
    add_ingress(fleet)
    ending = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/kept"]}
    async with fleet.running():
        assert where(fleet, kinds.INGRESSES) == ["gpu", "cpu"]
        fleet.source.change(kinds.SERVICES, "web", "ns", lambda obj: obj["metadata"].update(ending))
        await asyncio.sleep(LATER)
        assert where(fleet, kinds.SERVICES) == where(fleet, kinds.INGRESSES) == []


async def test_what_stays_at_home_does_so_though_it_is_marked(fleet: FollowingFleet) -> None:
    fleet.add_original(kinds.SERVICES)
    mark(fleet)
    home = {keys.NO_FOLLOW: "", **GLOBAL}
    fleet.source.change(
        kinds.SERVICES, "web", "ns", lambda obj: obj["metadata"].update(annotations=home)
    )
    add_ingress(fleet, **home)
    async with fleet.running():
        assert where(fleet, kinds.SERVICES) == where(fleet, kinds.INGRESSES) == []


async def test_a_copy_from_elsewhere_is_not_sent_on_though_copies_are_marked(
    fleet: FollowingFleet,
) -> None:
    fleet.add_original(kinds.SERVICES)
    copied = {keys.IS_DELEGATE: "", **GLOBAL}
    fleet.source.change(
        kinds.SERVICES, "web", "ns", lambda obj: obj["metadata"].update(annotations=copied)
    )
    async with fleet.running():
        assert where(fleet, kinds.SERVICES) == []


async def test_a_target_of_another_namespace_gets_nothing(fleet: FollowingFleet) -> None:
    metadata = {"name": "web", "namespace": "elsewhere", "annotations": GLOBAL}
    for server in (fleet.source, fleet.gpu, fleet.cpu):
        server.add(kinds.NAMESPACES, {"metadata": {"name": "elsewhere"}})

    fleet.source.add(kinds.SERVICES, {"metadata": metadata, "spec": {"selector": {"app": "web"}}})
    async with fleet.running():
        assert fleet.gpu.find(kinds.SERVICES, "web", "elsewhere") is not None
        assert fleet.cpu.find(kinds.SERVICES, "web", "elsewhere") is None


def mark_namespace(fleet: FollowingFleet, value: str | None = "true") -> None:
    metadata = {"name": "ns", "annotations": {keys.GLOBAL: value} if value else {}}
    if fleet.source.find(kinds.NAMESPACES, "ns") is None:
        fleet.source.add(kinds.NAMESPACES, {"metadata": metadata})
    else:
        fleet.source.change(
            kinds.NAMESPACES, "ns", "", lambda obj: obj["metadata"].update(metadata)
        )


async def test_all_services_of_elected_pods_of_a_marked_namespace_go_everywhere(
    fleet: FollowingFleet,
) -> None:
    mark_namespace(fleet, value=None)
    for kind in (kinds.SERVICES, kinds.SECRETS):
        fleet.add_original(kind)

    add_ingress(fleet)
    fleet.add_pod()
    async with fleet.running():
        assert where(fleet, kinds.SERVICES) == ["gpu"]
        mark_namespace(fleet)
        await asyncio.sleep(SOON)
        for kind in (kinds.SERVICES, kinds.INGRESSES, kinds.SECRETS):
            assert where(fleet, kind) == ["gpu", "cpu"]

        mark_namespace(fleet, value="false")
        await asyncio.sleep(LATER)
        for kind in (kinds.SERVICES, kinds.INGRESSES, kinds.SECRETS):
            assert where(fleet, kind) == ["gpu"]


async def test_a_marked_namespace_sends_nothing_that_no_elected_pod_is_behind(
    fleet: FollowingFleet,
) -> None:
    mark_namespace(fleet)
    fleet.add_original(kinds.SERVICES)
    add_ingress(fleet)
    async with fleet.running():
        await asyncio.sleep(LATER)
        assert where(fleet, kinds.SERVICES) == where(fleet, kinds.INGRESSES) == []
        fleet.add_pod(node=None)  # as under Admiralty, one that waits is enough
        await asyncio.sleep(SOON)
        assert where(fleet, kinds.SERVICES) == where(fleet, kinds.INGRESSES) == ["gpu", "cpu"]
        fleet.remove_pod()
        await asyncio.sleep(LATER)
        assert where(fleet, kinds.SERVICES) == where(fleet, kinds.INGRESSES) == []
