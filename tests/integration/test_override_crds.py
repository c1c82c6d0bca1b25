"""Override policies, as a real API server takes and refuses them."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.fleets import SOURCE
from tests.integration.custom_objects import create
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.errors import Invalid
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.overrides.policy import parse

KINDS: Final = (kinds.OVERRIDE_POLICIES, kinds.CLUSTER_OVERRIDE_POLICIES)
DIGEST: Final = "sha256:" + "0" * 64
FULL: Final[Object] = {
    "clusters": {
        "names": ["gpu"],
        "selector": {
            "matchLabels": {"zone": "a"},
            "matchExpressions": [{"key": "b", "operator": "In", "values": ["c"]}],
        },
    },
    "image": [{"containers": ["web"], "registry": "m.example", "tag": "1", "digest": DIGEST}],
    "command": [{"set": []}],
    "args": [{"append": ["-v"]}],
    "env": [
        {
            "set": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
            "remove": ["B"],
        }
    ],
    "labels": {"a": "b"},
    "annotations": {"a.b/c": "d"},
    "resources": [{"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"cpu": "2"}}],
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
    "runtimeClassName": "kata",
    "patches": [
        {"op": "add", "path": "/spec/dnsPolicy", "value": "Default"},
        {"op": "test", "path": "/spec/schedulerName", "value": None},
        {"op": "copy", "path": "/metadata/labels/b", "from": "/metadata/labels/a"},
    ],
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.plural)
async def test_every_field_is_taken_kept_and_read(
    client: Client, namespace: str, kind: Kind
) -> None:
    created = await create(client, kind, namespace, spec={"selector": {}, "rules": [FULL]})
    assert objects.spec(created) == {"selector": {}, "rules": [FULL], "priority": 0}
    assert parse(created).problem == ""
    await client.delete(kind, namespace, namespace if kind.namespaced else None)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({}, "the rule changes nothing"),
        ({"clusters": {"names": ["gpu"]}}, "the rule changes nothing"),
        ({"clusters": {"names": []}, "labels": {"a": "b"}}, "clusters.names"),
        ({"image": [{"containers": ["web"]}]}, "give it a registry"),
        ({"command": [{"set": ["a"], "append": ["b"]}]}, "give it either set or append"),
        ({"env": [{"containers": ["web"]}]}, "give it variables"),
        ({"env": [{"set": [{"name": "A", "value": "", "valueFrom": {}}]}]}, "take one of"),
        ({"labels": {"vnode.dev/a": "b"}}, "vnode itself relies on them"),
        ({"annotations": {"multicluster.admiralty.io/elect": ""}}, "vnode itself relies"),
        ({"resources": [{"containers": ["web"]}]}, "give it requests or limits"),
        ({"tolerations": [{"operator": "Like"}]}, "Unsupported value"),
        ({"patches": [{"op": "add", "path": "/metadata/name", "value": "x"}]}, "patches reach"),
        ({"patches": [{"op": "copy", "path": "/spec/a"}]}, "from is for copy and move"),
        ({"patches": [{"op": "add", "path": "/spec/nodeName", "value": "x"}]}, "relies on this"),
        (
            {"clusters": {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}}
            | {"labels": {"a": "b"}},
            "In and NotIn take values",
        ),
    ],
)
async def test_what_cannot_work_is_refused_with_the_cure(
    client: Client, namespace: str, rule: Object, why: str
) -> None:
    for kind in KINDS:
        with pytest.raises(Invalid, match=why):
            await create(client, kind, namespace, spec={"selector": {}, "rules": [rule]})


async def test_kubectl_shows_whether_it_is_in_force(
    fleet: Fleet, client: Client, namespace: str
) -> None:
    rules: list[Any] = [{"labels": {"a": "b"}}]
    spec = {"selector": {}, "rules": rules, "priority": 3}
    await create(client, kinds.OVERRIDE_POLICIES, namespace, spec=spec)
    shown = fleet.kubectl(SOURCE, "get", "ovpol", "-n", namespace).split("\n")
    assert shown[0].split() == ["NAME", "PRIORITY", "READY", "ACCEPTED", "APPLICABLE", "AGE"]
    assert shown[1].split()[:2] == [namespace, "3"]
