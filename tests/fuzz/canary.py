"""An honest pod beside the hostile inputs: it must run and end as if they were not there."""

from __future__ import annotations

import base64
import itertools
from typing import Any, Final

import aiohttp
import jsonpatch
import msgspec

from tests.fuzz import typed
from tests.fuzz.agents import FuzzFinding
from tests.fuzz.environment import CANARY, FuzzEnvironment
from vnode.api import keys, kinds, objects, webhook_paths
from vnode.api.objects import Object

PATIENCE: Final = 120.0  # seconds; on a machine that does nothing else it takes less than one
_numbers = itertools.count()


def pod(name: str, namespace: str, **annotations: str) -> Object:
    """Build a pod as its user writes it."""
    resources = {"requests": {"cpu": "1m", "memory": "1Mi"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app": name},
            "annotations": {keys.ELECT: "", **annotations},
        },
        "spec": {"containers": [{"name": "main", "image": "busybox", "resources": resources}]},
    }


def review(manifest: Object) -> Object:
    """Build the AdmissionReview of a pod that is created."""
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "00000000-0000-4000-8000-000000000001",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "name": objects.name(manifest),
            "namespace": objects.namespace(manifest),
            "operation": "CREATE",
            "userInfo": {"username": "somebody", "groups": ["system:authenticated"]},
            "object": manifest,
            "oldObject": None,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    }


def url(env: FuzzEnvironment) -> str:
    """Return the address of the source's webhook, with the path that an API server calls."""
    configuration = env.source.find(kinds.MUTATING_WEBHOOKS, "vnode") or {}
    path = webhook_paths.address_of(configuration["webhooks"][0]["clientConfig"])
    return f"https://{env.agents['source'].address}:9443{path}"


async def admit(env: FuzzEnvironment, manifest: Object) -> Object | None:
    """Have the webhook make a proxy of a pod, and create it; None if either is refused."""
    body = review(manifest)
    try:
        try:
            response = await _reviewed(env, body)
        except aiohttp.ClientConnectionError:  # one that was kept has ended just now
            response = await _reviewed(env, body)
    except aiohttp.ClientError as error:
        text = f"{objects.name(manifest)}: {error!r}"
        env.wrong.append(FuzzFinding("any body gets an answer", text))
        return None

    if not response["allowed"]:
        return None

    patched: Any = manifest
    if "patch" in response:
        operations = msgspec.json.decode(base64.b64decode(response["patch"]))
        patched = jsonpatch.apply_patch(manifest, operations)

    if not typed.is_pod(patched):
        return None

    return env.source.writer.create(
        kinds.PODS, typed.storable(patched), objects.namespace(manifest)
    )


async def _reviewed(env: FuzzEnvironment, body: Object) -> Object:
    async with env.calls.post(url(env), json=body) as answer:
        decoded: Object = msgspec.json.decode(await answer.read())["response"]
        return decoded


async def check(env: FuzzEnvironment) -> list[FuzzFinding]:
    """Run one pod from its creation to its end."""
    name = f"canary-{next(_numbers)}"
    await admit(env, pod(name, CANARY))

    def shown() -> Object | None:
        return env.source.store.get(kinds.PODS, f"{CANARY}/{name}")

    def runs() -> bool:
        return objects.status(shown() or {}).get("phase") == "Running"

    if not await env.happens(runs, PATIENCE):
        return [_finding(env, f"{name} does not run", shown())]

    addresses = env.players.addresses.values()
    status = objects.status(shown() or {})
    if status.get("podIP") not in addresses or objects.is_terminating(shown() or {}):
        return [_finding(env, f"{name} says what its delegate does not", shown())]

    env.source.writer.delete(kinds.PODS, f"{CANARY}/{name}")
    if not await env.happens(lambda: shown() is None and not _left(env), PATIENCE):
        return [_finding(env, f"{name} does not end", shown())]

    return []


def _left(env: FuzzEnvironment) -> list[str]:
    return [
        objects.key(obj)
        for kind in (kinds.PODS, kinds.POD_CHAPERONS)
        for obj in env.honest.store.all(kind)
        if objects.namespace(obj) == CANARY
    ]


def _finding(env: FuzzEnvironment, text: str, obj: Object | None) -> FuzzFinding:
    left = _left(env)
    return FuzzFinding("honest pods are not disturbed", f"{text}: {str(obj)[:1500]}; left {left}")
