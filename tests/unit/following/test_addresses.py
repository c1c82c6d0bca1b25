"""Addresses of load balancers in a status: only targets bring any, whatever a user annotates."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import background
from tests.apiserver import links
from tests.apiserver.server import APIServer
from vnode.api import documents, keys, kinds, objects
from vnode.api.objects import Object
from vnode.following import write_back_patches
from vnode.following.references import Ref
from vnode.following.write_back import WriteBackController
from vnode.kube.informer import Informer
from vnode.runtime import write_limits

pytestmark = pytest.mark.looptime

ADDRESSES = ["192.0.2.1", "192.0.2.2", "2001:DB8:0::1", "2001:db8::1", "203.0.113.9"]
ENTRY = st.sampled_from(
    [*({"ip": ip} for ip in ADDRESSES), {"hostname": "LB.example"}, {"hostname": "lb.example"}]
) | st.fixed_dictionaries({"ip": st.sampled_from(ADDRESSES), "ipMode": st.just("VIP")})
ENTRIES = st.lists(ENTRY, max_size=4)
RECORD = st.dictionaries(st.sampled_from(["n1", "n2", "away", "gone"]), ENTRIES).map(json.dumps)
NOTE = RECORD | st.sampled_from(["", "{", "[]", '{"n1":[{"ip":[]}]}', '{"away":[{}]}'])
COPIES = st.dictionaries(st.sampled_from(["n1", "n2"]), st.none() | ENTRIES)


def with_status(entries: list[Object] | None, **annotations: str) -> Object:
    metadata = {"name": "s", "namespace": "ns", "annotations": annotations}
    return {"metadata": metadata, "status": {"loadBalancer": {"ingress": entries}}}


def spelt_alike(entries: list[Object]) -> set[tuple[str, str]]:
    spelling = {"2001:DB8:0::1": "2001:db8::1"}
    return {
        (spelling.get(e.get("ip", ""), e.get("ip", "")), e.get("hostname", "").lower())
        for e in entries
    }


def as_stored(entry: Object) -> Object:
    """Return an address as an API server keeps it: it fills in the mode."""
    return {"ipMode": "VIP", **entry} if "ip" in entry else entry


@given(NOTE, ENTRIES, COPIES, st.booleans())
def test_no_annotation_adds_an_address_and_reconciling_comes_to_rest(
    note: str, status: list[Object], reports: dict[str, Any], is_service: bool
) -> None:
    copies = {node: entries and with_status(entries) for node, entries in reports.items()}
    reported = spelt_alike([entry for entries in reports.values() for entry in entries or ()])
    before = [as_stored(entry) for entry in status] if is_service else status
    now = with_status(before, **{keys.ADDRESSES: note})
    for _round in range(2):
        patch = write_back_patches.addresses(
            now, copies, lambda node: node != "gone", is_service=is_service
        )
        if patch:
            written = patch["status"]["loadBalancer"]["ingress"] or []
            kept = [as_stored(entry) for entry in written] if is_service else written
            record = patch["metadata"]["annotations"][keys.ADDRESSES]
            now = with_status(kept, **({keys.ADDRESSES: record} if record else {}))

    assert not write_back_patches.addresses(
        now, copies, lambda node: node != "gone", is_service=is_service
    )
    after = objects.status(now)["loadBalancer"]["ingress"]
    assert spelt_alike(after) <= spelt_alike(before) | reported
    assert reported <= spelt_alike(after)
    if is_service:  # the source's own load balancer wrote those
        assert [e for e in before if e.get("ipMode") == "VIP"] == [
            e for e in after if e.get("ipMode") == "VIP"
        ]


@pytest.mark.parametrize("kind", [kinds.SERVICES, kinds.INGRESSES])
async def test_an_annotation_of_a_user_brings_no_address_and_is_taken_off_once(
    kind: kinds.Kind, clock: Any
) -> None:
    source = APIServer("c1", clock)
    source.add(kinds.NAMESPACES, {"metadata": {"name": "ns"}})
    note = '{"gone":[{"ip":"8.8.8.8"}],"away":[{"ip":"10.96.0.10","ipMode":"VIP"}]}'
    source.add(kind, {**with_status([{"ip": "203.0.113.9"}], **{keys.ADDRESSES: note}), "spec": {}})
    informer = Informer(source.client(), kind)
    reports = [{"ip": "2001:DB8:0::1"}, {"hostname": "LB.example"}]
    controller = WriteBackController(
        source.client(),
        original=lambda _ref: informer.store.get("ns/s"),
        follows=lambda _ref: False,
        copies_of=lambda _ref: {"n1": with_status(reports)},
        target_exists=lambda node: node != "gone",
        active=True,
        clock=clock,
    )
    informer.subscribe(lambda _old, _new: controller.wake(Ref(kind, "ns", "s")))
    async with links.following(informer), background.running(controller.run()):
        await asyncio.sleep(100)

    found = objects.status(source.find(kind, "s", "ns") or {})["loadBalancer"]["ingress"]
    assert [entry.get("ip") or entry["hostname"] for entry in found] == [
        "203.0.113.9",
        "2001:db8::1",
        "lb.example",
    ]
    assert source.count("patch", kind) <= 2


def test_an_address_of_the_source_and_the_same_of_a_target_are_told_apart_by_their_mode() -> None:
    own, ours = {"ip": "192.0.2.1", "ipMode": "VIP"}, {"ip": "192.0.2.1", "ipMode": "Proxy"}
    record = {keys.ADDRESSES: json.dumps({"gone": [ours]})}
    for present in ([own, ours], [ours, own], [own, ours, ours]):
        patch = write_back_patches.addresses(
            with_status(present, **record), {}, lambda _node: False, is_service=True
        )
        assert patch["status"]["loadBalancer"]["ingress"] == [own]


def test_what_a_target_changes_of_its_address_is_brought_whatever_the_server_filled_in() -> None:
    port: Object = {"port": 80, "protocol": "TCP"}
    before, after = {"ip": "192.0.2.1"}, {"ip": "192.0.2.1", "ports": [port]}
    record = {keys.ADDRESSES: json.dumps({"n1": [before]})}
    filled_in: Object = {**before, "new": True}
    patch = write_back_patches.addresses(
        with_status([filled_in], **record), {"n1": with_status([after])}, bool, is_service=False
    )
    assert patch["status"]["loadBalancer"]["ingress"] == [after]
    assert not write_back_patches.addresses(
        with_status([filled_in], **record), {"n1": with_status([before])}, bool, is_service=False
    )


def test_an_address_that_was_written_many_times_is_left_once() -> None:
    ours = {"ip": "192.0.2.1", "ipMode": "Proxy"}
    record, copies = {keys.ADDRESSES: json.dumps({"n1": [ours]})}, {"n1": with_status([ours])}
    repeated = with_status([ours, {**ours, "new": True}, ours], **record)
    patch = write_back_patches.addresses(repeated, copies, bool, is_service=True)
    assert patch["status"]["loadBalancer"]["ingress"] == [ours]


def test_what_a_target_reports_without_an_address_is_not_brought() -> None:
    copies = {"n1": with_status([{}, {"ip": 5}, {"ports": []}, {"hostname": ""}])}
    assert not write_back_patches.addresses(with_status(None), copies, bool, is_service=True)


@pytest.mark.parametrize(
    "entry",
    [
        *({"ip": ip} for ip in ["x", "192.0.2.256", "fe80::1%eth0", "::ffff:192.0.2.7", "0x1"]),
        *({"hostname": name} for name in ["a b", "192.0.2.7", "a..b", "-a", "a-.b", "a" * 254]),
        {"ip": "192.0.2.7", "hostname": "a_b"},
        {"ip": "x", "hostname": "lb.example"},
    ],
    ids=str,
)
@pytest.mark.parametrize("is_service", [True, False])
def test_what_no_load_balancer_has_keeps_no_other_target_from_bringing_its_own(
    entry: Object, is_service: bool
) -> None:
    """An API server refuses a whole status for one address that is none."""
    copies = {"n1": with_status([entry]), "n2": with_status([{"ip": "192.0.2.2"}])}
    patch = write_back_patches.addresses(with_status(None), copies, bool, is_service=is_service)
    brought = patch["status"]["loadBalancer"]["ingress"]
    assert [each.get("ip") for each in brought] == ["192.0.2.2"]
    alone = {"n1": with_status([entry])}
    assert not write_back_patches.addresses(with_status(None), alone, bool, is_service=is_service)


@pytest.mark.parametrize(
    "ports",
    [
        *("x", {"a": 1}, ["x"], [{}], [{"port": "80"}], [{"port": 2**16}], [{"port": True}]),
        *([{"port": 80, "protocol": "x"}], [{"port": 80, "error": 5}]),
    ],
    ids=str,
)
def test_ports_that_are_none_are_left_out_and_the_others_are_brought(ports: Any) -> None:
    good = [{"port": 80, "protocol": "TCP", "error": "x"}, {"port": 81}]
    copies = {
        "n1": with_status([{"ip": "192.0.2.1", "ports": ports}]),
        "n2": with_status([{"ip": "192.0.2.2", "ports": good}]),
    }
    patch = write_back_patches.addresses(with_status(None), copies, bool, is_service=False)
    brought = patch["status"]["loadBalancer"]["ingress"]
    assert brought == [{"ip": "192.0.2.1"}, {"ip": "192.0.2.2", "ports": good}]


def test_no_more_addresses_are_brought_than_their_record_can_name() -> None:
    """What is not in it nobody would take away again."""
    copies = {f"n{n}": with_status([{"hostname": f"{n}.{'x' * 200}"}]) for n in range(300)}
    long = [{"ip": f"192.0.2.{n}", "ports": [{"port": n}] * 1000} for n in range(3)]
    copies["long"] = with_status(long)
    patch = write_back_patches.addresses(with_status(None), copies, bool, is_service=True)
    record = patch["metadata"]["annotations"][keys.ADDRESSES]
    assert documents.NOTE / 2 < len(record) <= documents.NOTE
    now = with_status(patch["status"]["loadBalancer"]["ingress"], **{keys.ADDRESSES: record})
    assert not write_back_patches.addresses(now, copies, bool, is_service=True)
    assert all("ip" not in entry for entry in objects.status(now)["loadBalancer"]["ingress"])
    gone = write_back_patches.addresses(now, dict.fromkeys(copies), bool, is_service=True)
    assert gone["metadata"]["annotations"] == {keys.ADDRESSES: None}


class Balanced:
    """Services of a source, and the addresses that the copy of one of them has."""

    def __init__(self, clock: Any, **latency: Any) -> None:
        self.source = APIServer("c1", clock, **latency)
        self.informer = Informer(self.source.client(), kinds.SERVICES)
        self.reported: list[Object] = []
        self.controller = WriteBackController(
            self.source.client(),
            original=lambda ref: self.informer.store.get(f"{ref.namespace}/{ref.name}"),
            follows=lambda _ref: False,
            copies_of=lambda _ref: {"n1": with_status(self.reported)},
            target_exists=lambda _node: True,
            active=True,
            clock=clock,
        )

    def add(self, namespace: str, name: str) -> None:
        if self.source.find(kinds.NAMESPACES, namespace) is None:
            self.source.add(kinds.NAMESPACES, {"metadata": {"name": namespace}})

        metadata = {"namespace": namespace, "name": name}
        self.source.add(kinds.SERVICES, {"metadata": metadata, "spec": {}})

    def addresses(self, namespace: str, name: str) -> list[str]:
        status = objects.status(self.source.find(kinds.SERVICES, name, namespace) or {})
        return [e["ip"] for e in (status.get("loadBalancer") or {}).get("ingress") or ()]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with links.following(self.informer):
            self.informer.subscribe(
                lambda _old, new: self.controller.wake(
                    Ref(kinds.SERVICES, objects.namespace(new or {}), objects.name(new or {}))
                )
            )
            async with background.running(self.controller.run()):
                yield


async def test_addresses_that_keep_changing_are_a_few_writes_and_the_last_ones_stay(
    clock: Any,
) -> None:
    env = Balanced(clock)
    env.add("ns", "s")
    async with env.running():
        for number in range(1000):
            env.reported = [{"ip": f"192.0.2.{number % 250}"}]
            env.controller.wake(Ref(kinds.SERVICES, "ns", "s"))
            await asyncio.sleep(0.02)

        limit = write_limits.SERVICES
        assert 5 < env.source.count("patch", kinds.SERVICES) <= limit.burst + 20 * limit.rate + 1
        await asyncio.sleep(1 / limit.rate)
        assert env.addresses("ns", "s") == [f"192.0.2.{999 % 250}"]


async def test_a_namespace_of_many_services_does_not_keep_back_that_of_another(clock: Any) -> None:
    env = Balanced(clock, latency=lambda: 0.1)
    env.reported = [{"ip": "192.0.2.1"}]
    for number in range(200):
        env.add("many", f"s{number}")

    env.add("one", "s")
    async with env.running():
        await asyncio.sleep(1)
        assert env.addresses("one", "s")
        assert not env.addresses("many", "s199")
