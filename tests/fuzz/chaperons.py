"""Chaperons that another source may make in the honest target, where it has a grant.

They are typed as an API server types them: metadata is checked, and the spec may be anything. The
status is not theirs to write.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any, Final

from tests.apiserver.status import StatusError
from tests.fuzz import typed
from tests.fuzz.agents import FuzzFinding
from tests.fuzz.environment import OTHER, TENANT, FuzzEnvironment
from tests.fuzz.inputs import InputKind
from tests.fuzz.mutating import Mutator
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object

_WRITTEN: Final = (
    *(keys.IS_ALLOWED, keys.IS_RESERVED, keys.SENT, keys.REFUSED, keys.PATH, keys.TARGET),
    *(keys.PARENT_NAMESPACE, keys.PARENT_NAME, keys.PARENT_CLUSTER_UID, keys.TOKEN, keys.FORWARD),
    *(keys.DELEGATE_DELETED, keys.GRACE_PERIOD, keys.FED_BACK, keys.FED_BACK_CONDITIONS),
    *(keys.POD_MISSING_SINCE, keys.SOURCE_POD_MANIFEST, keys.FIELD + "a", keys.ELECT),
)


def sample(name: str, namespace: str) -> Object:
    """Build a chaperon that has something everywhere."""
    return {
        "apiVersion": kinds.POD_CHAPERONS.api_version,
        "kind": kinds.POD_CHAPERONS.kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {keys.PARENT_UID: "uid-1", keys.PARENT_CLUSTER_NAME: "elsewhere", "a": "b"},
            "annotations": {
                keys.PARENT_NAMESPACE: namespace,
                keys.PARENT_NAME: name,
                keys.PARENT_CLUSTER_UID: "cluster-uid",
                keys.TARGET: "default/t",
                keys.SENT: '{"annotations": {"a": "b"}}',
            },
            "finalizers": [keys.DELEGATE_FINALIZER],
        },
        "spec": {**typed.SPEC, "schedulerName": keys.CANDIDATE_SCHEDULER},
    }


def mutated(dice: random.Random, name: str, namespace: str) -> Object:
    """Build one that an API server stores."""
    mutator = Mutator(dice)
    made = sample(name, namespace)
    spec = plain(mutator.value(made["spec"], times=dice.choice((0, 1, 3))))
    made["spec"] = spec if isinstance(spec, dict) else {}

    annotations = made["metadata"]["annotations"]
    for key in dice.sample(_WRITTEN, dice.randrange(5)):
        annotations[key] = plain(mutator.text(annotations.get(key, "")))

    if dice.random() < 0.2:
        made["metadata"]["labels"][keys.PARENT_CLUSTER_NAME] = "source"

    if dice.random() < 0.3:
        made["metadata"].pop("finalizers")

    return made


def plain(value: Any) -> Any:
    """Replace what no API server stores: JSON that cannot be read, and text that is not UTF-8."""
    match value:
        case bytes():
            return [[[{"a": 1}]]] * 3
        case str():
            return value.encode(errors="replace").decode()
        case dict():
            return {plain(key): plain(member) for key, member in value.items()}
        case list():
            return [plain(member) for member in value]
        case _:
            return value


async def _feed(env: FuzzEnvironment, dice: random.Random, name: str) -> object:
    namespace = dice.choice((OTHER, TENANT))
    made, changed = (mutated(dice, name, namespace) for _number in range(2))

    def change(old: Object) -> Object:
        annotations = changed["metadata"]["annotations"]
        metadata = {**objects.metadata(old), "annotations": annotations}
        return typed.storable({**old, "metadata": metadata, "spec": changed["spec"]})

    writer = env.honest.writer
    try:
        writer.create(kinds.POD_CHAPERONS, typed.storable(made), namespace)
        await asyncio.sleep(dice.choice((0.0, 0.02, 0.1)))
        writer.update(kinds.POD_CHAPERONS, f"{namespace}/{name}", change)
    except StatusError as error:
        if error.code not in (400, 422):
            raise

    return made


async def _settle(env: FuzzEnvironment) -> list[FuzzFinding]:
    pods = [objects.name(pod) for pod in env.honest.store.all(kinds.PODS)]
    env.reached["delegates of forged chaperons"] += sum(name.startswith(KIND.name) for name in pods)
    return []


def _clean(env: FuzzEnvironment) -> None:
    for kind in (kinds.POD_CHAPERONS, kinds.PODS):
        for obj in env.honest.store.all(kind):
            if objects.name(obj).startswith(KIND.name):
                env.honest.remove(kind, objects.name(obj), objects.namespace(obj))


KIND: Final = InputKind("chaperons", 60, _feed, _clean, _settle, lanes=4)
