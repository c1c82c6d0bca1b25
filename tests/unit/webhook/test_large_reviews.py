"""Reviews of pods as large as an API server takes, made to be costly, cost dozens of milliseconds.

To add a row, write a pod into `LARGE`. Others wait for one review of a namespace at most.
"""

from __future__ import annotations

import random
import time
from typing import Any, Final

import msgspec
import pytest

from vnode.api import keys, names
from vnode.api.objects import Object
from vnode.api.saved_manifest import SavedManifests
from vnode.webhook import server
from vnode.webhook.server import Webhook

ALLOWED: Final = 0.25
"""Seconds of the processor; some took one to ten, or for ever, before there was a bound."""
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
NODE: Final = names.virtual_node("", "c1")
_OUTAGE: Final = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
_NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def a_pod(metadata: Object | None = None, **spec: Any) -> Object:
    return {"metadata": {"name": "p", **(metadata or {})}, "spec": {"containers": [], **spec}}


def _forged(metadata: Object | None = None, **spec: Any) -> Object:
    """Return a pod that is not saved anew, which bounds others: by a webhook's form, and no
    signature."""
    annotations = {keys.SOURCE_POD_MANIFEST: "x", keys.MANIFEST_SIGNATURE: "y"}
    selector = {keys.PROVIDER_LABEL: keys.PROVIDER}
    metadata = {"annotations": annotations, **(metadata or {})}
    return a_pod(metadata, schedulerName=keys.PROXY_SCHEDULER, nodeSelector=selector, **spec)


def _on_hosts(*expressions: Object) -> Object:
    named = [{"key": "kubernetes.io/hostname", **each} for each in expressions]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": named}]}}}


def _shuffled(count: int) -> list[str]:
    """Return keys of the letters of the annotation that elects, in other orders."""
    lots, letters = random.Random(1), list(keys.ELECT.replace("/", "-").replace(".", "-"))
    return ["".join(lots.sample(letters, len(letters))) for _ in range(count)]


_APART: Final = [f"{NODE}-{n}" for n in range(15_000)] + [f"real-{n}" for n in range(15_000)]

LARGE: Final[dict[str, tuple[Object, bool]]] = {
    "names of virtual nodes and others": (
        a_pod(affinity=_on_hosts({"operator": "NotIn", "values": _APART})),
        False,
    ),
    "many expressions on names": (
        a_pod(affinity=_on_hosts(*[{"operator": "NotIn", "values": [NODE]}] * 9_000)),
        False,
    ),
    "expressions that double the terms": (
        a_pod(affinity=_on_hosts(*[{"operator": "In", "values": [NODE, "real"]}] * 40)),
        False,
    ),
    "labels that look like the annotation": (
        a_pod({"labels": dict.fromkeys(_shuffled(20_000), "")}),
        False,
    ),
    "labels that meet in a target": (
        _forged({"labels": {f"{n:05d}.example.com/a": str(n) for n in range(30_000)}}),
        True,
    ),
    "tolerations of outages": (
        _forged(
            tolerations=[
                *({**_OUTAGE, "tolerationSeconds": n} for n in range(5_000)),
                *([_NOT_READY] * 5_000),
            ]
        ),
        True,
    ),
    "terms of anti-affinity": (
        _forged(
            affinity={
                "podAntiAffinity": {
                    REQUIRED: [{"topologyKey": "z", "namespaces": [str(n)]} for n in range(8_000)]
                }
            }
        ),
        True,
    ),
    "containers": (_forged(containers=[{"name": f"c{n}"} for n in range(16_000)]), True),
    "finalizers": (_forged({"finalizers": [f"example.com/{n}" for n in range(40_000)]}), True),
}


@pytest.mark.parametrize(("pod", "is_elected"), LARGE.values(), ids=LARGE)
async def test_a_large_pod_costs_dozens_of_milliseconds(pod: Object, is_elected: bool) -> None:
    async def annotations(_namespace: str) -> dict[str, str]:
        return {keys.ELECT: ""} if is_elected else {}

    webhook = Webhook(annotations, lambda _namespace: (), SavedManifests(lambda: b"k" * 32))
    request = {"uid": "u", "namespace": "team-a", "operation": "CREATE", "object": pod}
    body = msgspec.json.encode({"request": request})
    assert len(body) < server.BODY_LIMIT
    begun = time.thread_time()
    answer = await webhook.review(body)
    assert time.thread_time() - begun < ALLOWED
    assert len(answer) < 2 * len(body) + 8 * 1024
