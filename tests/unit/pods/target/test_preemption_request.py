"""What is read of a request to preempt, which has pods that anybody may have made."""

from __future__ import annotations

import json
import time
from typing import Any, Final

import pytest

from vnode.api import keys
from vnode.api.clock import SystemClock
from vnode.pods.target import preemption_request
from vnode.pods.target.preemption_request import PreemptionRequest

SIZE: Final = preemption_request.MOST_BYTES // 4
FAT: Final = 1_000_000
"""Bytes of a pod: etcd takes 1.5 MiB."""


async def parsed(payload: bytes) -> PreemptionRequest | None:
    return await preemption_request.parse(payload, SystemClock())


@pytest.mark.parametrize(
    "payload",
    [
        *(b"", b"{", b"[]", b"null", b"{}", b'{"Pod":{}}', b'{"Pod":{"metadata":{}}}'),
        b'{"Pod":{"metadata":{"name":"..","namespace":"shop"}}}',
        b'{"Pod":{"metadata":{"name":"a","namespace":"shop"}},"NodeNameToVictims":[]}',
        b'{"Pod":{"metadata":{"name":"a","namespace":"b"}},"NodeNameToVictims":{"n":{"Pods":[1]}}}',
    ],
)
async def test_what_is_no_request_is_none(payload: bytes) -> None:
    assert await parsed(payload) is None


@pytest.mark.parametrize(
    ("metadata", "spec"),
    [
        ({}, {}),
        ({"labels": {f"a{number}": "" for number in range(FAT // 12)}}, {}),
        ({"annotations": {f"a{number}": "" for number in range(256 * 1024 // 12)}}, {}),
        ({"ownerReferences": [{"uid": ""}] * (FAT // 12)}, {}),
        ({}, {"args": ["\n" * (FAT // 2)]}),
        ({}, {"args": [""] * (FAT // 3)}),
        ({}, {"tolerations": [{}] * (FAT // 3)}),
        ({}, {"env": [{"name": "A", "value": "B"}] * (FAT // 30)}),
    ],
    ids=[
        "small",
        "labels",
        "annotations",
        "owners",
        "escapes",
        "arguments",
        "tolerations",
        "variables",
    ],
)
async def test_nothing_waits_for_long_whatever_pods_would_be_preempted(
    metadata: dict[str, Any], spec: dict[str, Any]
) -> None:
    """Labels of some thirty pods took 1.9 s, and a hundred thousand small pods as much."""
    payload = request({"uid": "u", **metadata}, {"priority": 1, **spec})
    work = parsed(payload)
    longest, found = 0.0, None
    while longest < 0.05:
        began = time.thread_time()
        try:
            work.send(None)
        except StopIteration as end:
            found = end.value
            break
        finally:
            longest = max(longest, time.thread_time() - began)

    assert longest < 0.05
    assert found is not None
    began = time.thread_time()
    node, victims = preemption_request.least(found) or ("", None)
    assert preemption_request.go_on(found, node)
    assert time.thread_time() - began < 0.05
    assert victims is not None
    assert victims.pods > 1
    assert victims.proxies == ()


async def test_labels_say_whose_delegates_would_end() -> None:
    labels = {keys.PARENT_CLUSTER_UID: "c1", keys.PARENT_UID: "p"}
    found = await parsed(request({"uid": "u", "labels": labels}, {"priority": 3}, size=0))
    assert found is not None
    _node, victims = preemption_request.least(found) or ("", None)
    assert victims is not None
    assert (victims.highest, victims.proxies) == (3, ("p",))


def request(metadata: dict[str, Any], spec: dict[str, Any], size: int = SIZE) -> bytes:
    """Return a request by a pod of cluster c1, with as many such pods as have that size."""
    usual = {"name": "a", "namespace": "team", "creationTimestamp": "2026-01-01T00:00:00Z"}
    status = {"phase": "Running", "message": "x" * 800}
    victim = {"metadata": usual | metadata, "spec": spec, "status": status}
    labels = {keys.PARENT_CLUSTER_UID: "c1"}
    pods = [victim] * max(1, size // len(json.dumps(victim)))
    asks = {
        "Pod": {"metadata": {"name": "a", "namespace": "shop", "labels": labels}},
        "NodeNameToVictims": {"n1": {"Pods": pods, "NumPDBViolations": 0}},
    }
    return json.dumps(asks, separators=(",", ":")).encode()
