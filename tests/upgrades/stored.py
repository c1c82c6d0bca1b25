"""Writes what agents have stored in source and target, for tests/unit/upgrades/test_stored.py.

`VNODE_STORED=tests/unit/upgrades/stored-before.json make upgrades` writes it anew, before the first
upgrade: after a release, when the version before becomes another one.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.runtime import manifest_key

_FOLLOWING: Final = (kinds.CONFIG_MAPS, kinds.SECRETS, kinds.SERVICES)
_NAMES: Final = ("settings", "password", "web")
_APPS: Final = ("bare", "db", "planned", "web")
_SUPERFLUOUS: Final = ("managedFields", "selfLink")


async def write(file: Path, c1: Client, c2: Client, version: str) -> None:
    """Write the pods of running.yaml, and what was made of them, without credentials."""
    uid = objects.uid(await c1.get(kinds.NAMESPACES, "kube-system"))
    key = await c1.get(kinds.SECRETS, manifest_key.SECRET, "vnode")
    found: dict[str, Any] = {"version": version, "uid": uid, "source": [], "target": []}
    pods = await _listed(c1, kinds.PODS, "default")
    in_c2 = [pod for pod in pods if objects.node_name(pod).endswith("-c2")]
    by_app = {objects.labels(pod).get("app"): pod for pod in in_c2}
    found["source"] += [by_app[app] for app in _APPS]  # one of each sort will do

    for node in await _listed(c1, kinds.NODES, None):
        if objects.labels(node).get(keys.TARGET_NAME) == "c2":
            found["source"].append(node)

    found["source"].append(_plain(kinds.SECRETS, key))
    parents = [objects.uid(pod) for pod in found["source"]]
    for kind in (kinds.PODS, kinds.POD_CHAPERONS):
        made = await _listed(c2, kind, "default")
        found["target"] += [o for o in made if objects.labels(o).get(keys.PARENT_UID) in parents]

    found["target"] += await _listed(c2, kinds.CLUSTER_SUMMARIES, None)
    for side, client in (("source", c1), ("target", c2)):
        for kind in _FOLLOWING:
            every = await _listed(client, kind, "default")
            found[side] += [obj for obj in every if objects.name(obj) in _NAMES]

    lines = [f"{json.dumps(name)}: {_written(value)}" for name, value in found.items()]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    await asyncio.to_thread(file.write_text, text)


def _written(value: str | list[Object]) -> str:
    """Return a value as JSON, with an object a line."""
    if isinstance(value, str):
        return json.dumps(value)

    return "[\n" + ",\n".join(json.dumps(obj, sort_keys=True) for obj in value) + "\n]"


async def _listed(client: Client, kind: Kind, namespace: str | None) -> list[Object]:
    return [_plain(kind, obj) for obj in await client.list(kind, namespace)]


def _plain(kind: Kind, obj: Object) -> Object:
    metadata = {k: v for k, v in objects.metadata(obj).items() if k not in _SUPERFLUOUS}
    return {"apiVersion": kind.api_version, "kind": kind.kind, **obj, "metadata": metadata}
