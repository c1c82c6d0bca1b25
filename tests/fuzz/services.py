"""Services, Ingresses and other objects of a tenant, which follow a pod of theirs to a target.

Their fields have the types that an API server asks for; annotations, labels and texts may be
anything, those of vnode above all. No address may come into a status but those that the target's
load balancer gave.
"""

from __future__ import annotations

import asyncio
import random
from typing import Final

from tests.fuzz import canary
from tests.fuzz.agents import FuzzFinding
from tests.fuzz.environment import TENANT, FuzzEnvironment
from tests.fuzz.inputs import InputKind
from tests.fuzz.mutating import Mutator
from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object

_ADDRESS: Final = "192.0.2.10"  # of the honest target's load balancer
_LABELS: Final = {"app": "web"}
FORGED: Final = {
    keys.ADDRESSES: '[{"target": "tenant/honest", "ip": "203.0.113.1"}]',
    keys.ORIGINAL_SELECTOR: "a=b",
    keys.GLOBAL: "true",
    keys.IS_DELEGATE: "",
    keys.FOLLOWED: '{"spec": {}}',
    keys.NO_FOLLOW: "",
    keys.PARENT_CLUSTER_UID: "x",
    keys.PARENT_NAME: "../x",
    keys.PARENT_NAMESPACE: "kube-system",
    keys.TOKEN: "",
    keys.TOKEN_REFRESH: "2026-01-01T00:00:00Z",
    keys.CILIUM_GLOBAL[0]: "false",
    "example.com/a": "b",
}
_KINDS: Final = (kinds.SERVICES, kinds.INGRESSES, kinds.CONFIG_MAPS, kinds.SECRETS)


def _objects(name: str) -> list[tuple[Kind, Object]]:
    backend = {"service": {"name": name, "port": {"number": 80}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    return [
        (
            kinds.SERVICES,
            {
                "spec": {
                    "type": "LoadBalancer",
                    "clusterIP": "10.96.0.10",
                    "selector": dict(_LABELS),
                    "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 80}],
                }
            },
        ),
        (
            kinds.INGRESSES,
            {
                "spec": {
                    "rules": [{"host": "a.example.com", "http": {"paths": [path]}}],
                    "tls": [{"hosts": ["a.example.com"], "secretName": name}],
                    "ingressClassName": "a",
                }
            },
        ),
        (kinds.SECRETS, {"type": "Opaque", "data": {"a": "Yg=="}}),
        (kinds.CONFIG_MAPS, {"data": {"a": "b"}, "binaryData": {"c": "Yg=="}}),
    ]


def forge(dice: random.Random, forged: dict[str, str]) -> dict[str, str]:
    """Draw some forged annotations."""
    mutator = Mutator(dice)
    drawn = dice.sample(list(forged), dice.randrange(min(6, len(forged))))
    return {
        key: forged[key] if dice.random() < 0.5 else _utf8(mutator.text(forged[key]))
        for key in drawn
    }


def _utf8(text: str) -> str:
    return text.encode(errors="replace").decode()[:200_000]


async def _feed(env: FuzzEnvironment, dice: random.Random, name: str) -> object:
    mutator = Mutator(dice)
    made = []
    if dice.random() < 0.2:
        pod = canary.pod(name, TENANT)
        pod["metadata"]["labels"] = dict(_LABELS)
        pod["spec"]["volumes"] = [
            {"name": "c", "configMap": {"name": name}},
            {"name": "s", "secret": {"secretName": name}},
        ]
        await canary.admit(env, pod)

    for kind, body in _objects(name):
        obj = mutator.value(body, wild=False, times=dice.choice((0, 0, 1)))
        metadata = {
            "name": name,
            "namespace": TENANT,
            "annotations": forge(dice, FORGED),
            "labels": {keys.PARENT_CLUSTER_NAME: "honest"} if dice.random() < 0.1 else {},
        }
        made.append({**obj, "metadata": metadata})
        env.source.add(kind, made[-1])

    await asyncio.sleep(0.02)
    _balance(env)
    for kind in (kinds.SERVICES, kinds.INGRESSES):
        forged = forge(dice, FORGED)

        def change(obj: Object, forged: dict[str, str] = forged) -> None:
            obj["metadata"].setdefault("annotations", {}).update(forged)

        env.source.change(kind, name, TENANT, change)

    return made


def _balance(env: FuzzEnvironment) -> None:
    """Give Services and Ingresses their addresses, as the target's load balancer does."""
    for kind in (kinds.SERVICES, kinds.INGRESSES):
        for obj in env.honest.store.all(kind):
            if not objects.status(obj).get("loadBalancer"):
                given = {"loadBalancer": {"ingress": [{"ip": _ADDRESS}]}}
                env.honest.change(
                    kind,
                    objects.name(obj),
                    TENANT,
                    lambda obj, given=given: obj.update(status=given),
                )


async def _settle(env: FuzzEnvironment) -> list[FuzzFinding]:
    env.reached["copies in the target"] += sum(
        objects.namespace(obj) == TENANT for kind in _KINDS for obj in env.honest.store.all(kind)
    )
    found = []
    for kind in (kinds.SERVICES, kinds.INGRESSES):
        for obj in env.source.store.all(kind):
            balancer = objects.status(obj).get("loadBalancer") or {}
            for entry in balancer.get("ingress") or ():
                if entry.get("ip") != _ADDRESS or entry.get("hostname"):
                    text = f"{kind.kind} {objects.key(obj)}: {balancer}, {objects.annotations(obj)}"
                    found.append(FuzzFinding("no annotation changes a status", text))

    return found


def _clean(env: FuzzEnvironment) -> None:
    for server in (env.source, env.honest):
        for kind in (*_KINDS, kinds.PODS, kinds.POD_CHAPERONS):
            for obj in server.store.all(kind):
                if objects.namespace(obj) == TENANT and objects.name(obj).startswith(KIND.name):
                    server.remove(kind, objects.name(obj), TENANT)


KIND: Final = InputKind("services", 15, _feed, _clean, _settle)
