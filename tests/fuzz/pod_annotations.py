"""Pods of a tenant with forged annotations, before the webhook sees them and after.

Whatever they are, the status of a pod is that of its delegate, and the delegate's is the kubelet's.
"""

from __future__ import annotations

import asyncio
import random
from typing import Final

from tests.apiserver.status import StatusError
from tests.fuzz import canary, services
from tests.fuzz.agents import FuzzFinding
from tests.fuzz.environment import TENANT, FuzzEnvironment
from tests.fuzz.inputs import InputKind
from tests.fuzz.mutating import Mutator
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object

_MANIFEST: Final = (
    '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": '
    '[{"name": "main", "image": "busybox", "env": [{"name": "A", "value": "b"}]}]}}'
)
_CONDITIONS: Final = '{"Ready": {"status": "True"}}'
_FORGED: Final = {
    keys.SOURCE_POD_MANIFEST: _MANIFEST,
    keys.PROXY_CONSTRAINTS: "nodeSelector: {}\n",
    keys.USE_SPEC_CONSTRAINTS: "",
    keys.NO_PREFIX_LABEL_REGEXP: "app=.*",
    keys.NO_RESERVATION: "",
    keys.FORWARD: "",
    keys.PATH: "a,b",
    keys.SENT: '{"annotations": {"a": "b"}}',
    keys.REFUSED: '{"a": "b"}',
    keys.FED_BACK: '{"a": "b"}',
    keys.FED_BACK_CONDITIONS: _CONDITIONS,
    keys.DELEGATE_DELETED: "",
    keys.GRACE_PERIOD: "0",
    keys.FIELD + "metadata.name": "x",
    keys.PARENT_NAMESPACE: "kube-system",
    keys.PARENT_NAME: "../x",
    keys.PARENT_CLUSTER_UID: "x",
    keys.IS_ALLOWED: "true",
    keys.PREEMPTION: "allowed",
    keys.VICTIMS: '{"pods": 1, "highest": -1}',
    keys.IS_RESERVED: "true",
    keys.POD_MISSING_SINCE: "2026-01-01T00:00:00Z",
    keys.TARGET: "canary/honest",
    keys.TOKEN: "",
    keys.FOLLOWED: "{}",
    "example.com/a": "b",
}


async def _feed(env: FuzzEnvironment, dice: random.Random, name: str) -> object:
    pod = canary.pod(name, TENANT)
    pod["metadata"]["annotations"] |= services.forge(dice, _FORGED)
    if dice.random() < 0.3:
        pod["spec"]["readinessGates"] = [{"conditionType": "example.com/gate"}]

    if dice.random() < 0.3:
        container = pod["spec"]["containers"][0]
        pod["spec"]["containers"][0] = Mutator(dice).value(container, wild=False, times=1) | {
            "name": "main",
            "resources": container["resources"],  # an API server takes no other quantities
        }

    try:
        if await canary.admit(env, pod) is None:
            return pod
    except StatusError as error:
        if error.code not in (400, 422):
            raise

        return pod

    for _number in range(dice.randrange(3)):
        await asyncio.sleep(dice.choice((0.0, 0.05, 0.2)))
        forged = services.forge(dice, _FORGED)

        def change(obj: Object, forged: dict[str, str] = forged) -> None:
            obj["metadata"].setdefault("annotations", {}).update(forged)

        if env.source.find(kinds.PODS, name, TENANT) is not None:
            env.source.change(kinds.PODS, name, TENANT, change)

    return pod


async def _settle(env: FuzzEnvironment) -> list[FuzzFinding]:
    await asyncio.sleep(0.5)
    found, given = [], set(env.players.addresses.values())
    env.reached["pods with forged annotations that run"] += sum(
        objects.name(pod).startswith(KIND.name) and objects.status(pod).get("phase") == "Running"
        for pod in env.source.store.all(kinds.PODS)
    )
    for server in (env.source, env.honest):
        for pod in server.store.all(kinds.PODS):
            status = objects.status(pod)
            address, phase = status.get("podIP"), status.get("phase")
            forged = [
                condition
                for condition in status.get("conditions") or ()
                if condition.get("type") == "Ready"
                and condition.get("status") == "True"
                and not address
            ]
            wrong = address not in (None, *given) or phase not in (None, "Pending", "Running")
            if wrong or forged or (phase == "Running" and not address):
                text = f"{server.name} {objects.key(pod)}: {status}, {objects.annotations(pod)}"
                if objects.namespace(pod) == TENANT:
                    found.append(FuzzFinding("no annotation changes a status", text[:3000]))

    return found


def _clean(env: FuzzEnvironment) -> None:
    for server in (env.source, env.honest):
        for kind in (kinds.PODS, kinds.POD_CHAPERONS):
            for obj in server.store.all(kind):
                if objects.namespace(obj) == TENANT and objects.name(obj).startswith(KIND.name):
                    server.remove(kind, objects.name(obj), TENANT)


KIND: Final = InputKind("annotations", 20, _feed, _clean, _settle, lanes=4)
