"""What an API server has merged and defaulted into a pod is not sent twice: the delegate of a pod
that others have bound is stored in the target as the pod itself would be."""

from __future__ import annotations

import random
import uuid
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from tests import kit
from tests.fleets import SOURCE, TARGET
from tests.kit import Fleet
from tests.permitted import MANIFESTS
from vnode.api import keys, kinds, objects, priorities
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.pods import chaperons, delegate

PODS: Final = 80
NODE: Final = "admiralty-default-c2"
CLASS: Final = "merged-pods"


@pytest.fixture
async def clusters(bare_fleet: Fleet) -> AsyncIterator[tuple[Client, Client, str]]:
    """Yield clients of two clusters without vnode, and a namespace that both have."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    async with bare_fleet.client(SOURCE) as source, bare_fleet.client(TARGET) as target:
        for client in (source, target):
            await client.create(kinds.NAMESPACES, {"metadata": {"name": name}})
            await kit.until_one(client, kinds.SERVICE_ACCOUNTS, "default", name, objects.uid)
            value = {"value": 1000, "preemptionPolicy": "Never"}
            await client.create(kinds.PRIORITY_CLASSES, {"metadata": {"name": CLASS}, **value})
            fixed = {"podFixed": {"cpu": "100m", "memory": "10Mi"}}
            runtime = {"metadata": {"name": CLASS}, "handler": "runc", "overhead": fixed}
            await client.create(kinds.RUNTIME_CLASSES, runtime)

        yield source, target, name
        for client in (source, target):
            await client.delete(kinds.PRIORITY_CLASSES, CLASS)
            await client.delete(kinds.RUNTIME_CLASSES, CLASS)


def drawn(chance: random.Random, number: int) -> Object:
    """Draw a pod that uses some of what an API server merges or defaults."""
    labels = {key: chance.choice("ab") for key in ("app", "rev", "zone") if chance.random() < 0.8}
    spec: Object = {"containers": [_container(chance, "main")]}
    for field, values in _FIELDS.items():
        if chance.random() < 0.3:
            spec[field] = chance.choice(values)

    if chance.random() < 0.3:
        spec["initContainers"] = [{**_container(chance, "first"), "restartPolicy": "Always"}]

    if chance.random() < 0.2:
        large = {"limits": {"memory": "9Gi", "cpu": "9"}, "requests": {"cpu": "8"}}
        spec["resources"] = chance.choice([{"requests": {"cpu": "8"}}, large])

    if chance.random() < 0.7:
        spec["affinity"] = _affinity(chance)

    if chance.random() < 0.5:
        spec["topologySpreadConstraints"] = [
            {
                **_term(chance, ("matchLabelKeys",)),
                "maxSkew": 1,
                "whenUnsatisfiable": chance.choice(["DoNotSchedule", "ScheduleAnyway"]),
            }
        ]

    return {
        "metadata": {
            "name": f"p{number}",
            "labels": labels,
            "annotations": {keys.NO_PREFIX_LABEL_REGEXP: ".*"},
        },
        "spec": spec,
    }


_TOLERATION = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
_FIELDS: Final[dict[str, list[Any]]] = {
    "priorityClassName": [CLASS],
    "runtimeClassName": [CLASS],
    "tolerations": [[_TOLERATION], [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]],
    "automountServiceAccountToken": [False, True],
    "enableServiceLinks": [False],
    "dnsPolicy": ["Default"],
    "restartPolicy": ["Never", "OnFailure"],
    "terminationGracePeriodSeconds": [0, 7],
    "activeDeadlineSeconds": [100],
    "shareProcessNamespace": [True],
    "hostNetwork": [True],
    "readinessGates": [[{"conditionType": "example.com/gate"}]],
    "hostname": ["me"],
    "securityContext": [{"runAsUser": 5}],
    "volumes": [[{"name": "v", "emptyDir": {}}, {"name": "c", "configMap": {"name": "x"}}]],
}


def _container(chance: random.Random, name: str) -> Object:
    amounts: list[Object] = [
        {},
        {"limits": {"cpu": "1"}},
        {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}},
    ]
    probe = {"httpGet": {"path": "/", "port": 80}}
    more: Object = chance.choice(
        [{}, {"readinessProbe": probe}, {"ports": [{"containerPort": 80}]}]
    )
    return {"name": name, "image": "busybox", "resources": chance.choice(amounts), **more}


def _affinity(chance: random.Random) -> Object:
    kept: Object = {}
    for which in ("podAffinity", "podAntiAffinity"):
        if chance.random() < 0.7:
            term = _term(chance, ("matchLabelKeys", "mismatchLabelKeys"))
            weighted = {"weight": 1, "podAffinityTerm": _term(chance, ("matchLabelKeys",))}
            kept[which] = {
                "requiredDuringSchedulingIgnoredDuringExecution": [term],
                "preferredDuringSchedulingIgnoredDuringExecution": [weighted],
            }

    return kept


def _term(chance: random.Random, fields: tuple[str, ...]) -> Object:
    named = chance.sample(["app", "rev", "zone", "absent"], k=3)
    own = {"key": "own", "operator": chance.choice(["In", "NotIn"]), "values": ["a"]}
    selector = chance.choice([{}, {"matchLabels": {"own": "a"}}, {"matchExpressions": [own]}])
    found: Object = {"topologyKey": "example.com/rack", "labelSelector": selector}
    for field in fields:
        if chance.random() < 0.8:
            found[field] = [named.pop()]

    return found


async def dry_run(client: Client, pod: Object, namespace: str) -> Object:
    """Return a pod as the API server would store it."""
    body = {"apiVersion": "v1", "kind": "Pod", **pod}
    path = kinds.PODS.path(namespace)
    return await client.request("POST", path, body=body, query={"dryRun": "All"})


def sent(stored: Object) -> Object:
    """Return the delegate of a pod that others have bound, without an owner."""
    bound = {**stored, "spec": {**stored["spec"], "nodeName": NODE}}
    uid = objects.uid(bound) or "uid"
    bound = {**bound, "metadata": {**stored["metadata"], "uid": uid}}
    built = chaperons.build(
        bound,
        Identity("c1", "uid-of-c1"),
        "default/c2",
        manifests=MANIFESTS,
        allowed=True,
        finalizer=True,
        priorities=priorities.BY_NAME,
    )
    made = delegate.build(built)
    del made["metadata"]["ownerReferences"]
    return made


def comparable(spec: Object) -> Object:
    """Return a spec without the random name of the volume with the pod's token."""
    text = {k: v for k, v in spec.items() if k != "volumes"}
    volumes = spec.get("volumes") or ()
    own = [v for v in volumes if not v["name"].startswith("kube-api-access-")]
    for field in ("containers", "initContainers"):
        if field in text:
            text[field] = [
                {**c, "volumeMounts": [len(c.get("volumeMounts") or ())]} for c in text[field]
            ]

    return {**text, "volumes": [*own, len(volumes) - len(own)]}


async def test_a_delegate_is_stored_as_the_pod_itself_would_be(
    clusters: tuple[Client, Client, str],
) -> None:
    source, target, namespace = clusters
    chance = random.Random(27)
    for number in range(PODS):
        pod = drawn(chance, number)
        direct = await dry_run(target, pod, namespace)
        stored = await dry_run(source, pod, namespace)
        again = await dry_run(target, sent(stored), namespace)
        assert comparable(again["spec"]) == comparable(direct["spec"]), pod
