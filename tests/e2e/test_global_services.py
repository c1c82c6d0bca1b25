"""Services and Ingresses that are marked as global go to all targets of their namespace."""

from __future__ import annotations

import uuid
from typing import Final

from tests import kit
from vnode.api import keys, kinds
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
