"""Services and Ingresses that are marked as global go to all targets of their namespace."""

from __future__ import annotations

import uuid
from typing import Final

from tests import kit
from vnode.api import keys, kinds, objects
from vnode.kube.client import Client

BOTH: Final = (kinds.SERVICES, kinds.INGRESSES)


async def test_a_service_that_is_marked_as_global_goes_to_all_targets_without_any_pod(
    source: Client, c2: Client, c3: Client
) -> None:
    name = f"everywhere-{uuid.uuid4().hex[:6]}"
    metadata = {"name": name, "annotations": {keys.GLOBAL: "true"}}
    spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
    await source.create(kinds.SERVICES, {"metadata": metadata, "spec": spec}, "default")
    backend = {"service": {"name": name, "port": {"number": 80}}}
    ingress = {"metadata": {"name": name}, "spec": {"defaultBackend": backend}}
    await source.create(kinds.INGRESSES, ingress, "default")
    for client in (c2, c3):
        for kind in BOTH:
            await kit.until_one(client, kind, name, "default", lambda _: True)

    unmark = {"metadata": {"annotations": {keys.GLOBAL: None}}}
    await source.patch(kinds.SERVICES, name, unmark, "default")
    for client in (c2, c3):
        for kind in BOTH:
            await kit.until_gone(client, kind, "default", field_selector=f"metadata.name={name}")

    for kind in BOTH:
        await source.delete(kind, name, "default")


async def test_in_a_marked_namespace_all_goes_everywhere_that_elected_pods_are_behind(
    source: Client, c2: Client, c3: Client
) -> None:
    name = f"marked-{uuid.uuid4().hex[:6]}"
    for own in (name, f"{name}-not"):
        spec = {"selector": {"app": own}, "ports": [{"port": 80}]}
        service = {"metadata": {"name": own}, "spec": spec}
        await source.create(kinds.SERVICES, service, "default")
        backend = {"service": {"name": own, "port": {"number": 80}}}
        ingress = {"metadata": {"name": own}, "spec": {"defaultBackend": backend}}
        await source.create(kinds.INGRESSES, ingress, "default")

    await source.create(kinds.PODS, kit.pod_in("c2", name), "default")
    await source.create(kinds.PODS, kit.pod(f"{name}-not", annotations={}), "default")
    marked = {"metadata": {"annotations": {keys.GLOBAL: "true"}}}
    await source.patch(kinds.NAMESPACES, "default", marked)
    for client in (c2, c3):
        for kind in BOTH:
            await kit.until_one(client, kind, name, "default", lambda _: True)

    copied = {objects.name(service) for service in await c2.list(kinds.SERVICES, "default")}
    assert f"{name}-not" not in copied
    await source.patch(
        kinds.NAMESPACES, "default", {"metadata": {"annotations": {keys.GLOBAL: None}}}
    )
    for kind in BOTH:
        await kit.until_gone(c3, kind, "default", field_selector=f"metadata.name={name}")
        await source.delete(kind, name, "default")
        await source.delete(kind, f"{name}-not", "default")
