"""Several sources send pods with the same labels to one namespace of a target."""

from __future__ import annotations

import uuid

from tests import kit
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

LABEL = keys.PREFIX + "app"


def addresses(slices: dict[str, Object]) -> set[str]:
    """Return the addresses of the endpoints that are ready."""
    return {
        address
        for entry in slices.values()
        for endpoint in entry.get("endpoints") or ()
        for address in endpoint["addresses"]
        if (endpoint.get("conditions") or {}).get("ready")
    }


async def until_endpoints(target: Client, service: str, wanted: set[str]) -> None:
    """Wait until a Service of the target leads to these addresses."""
    await kit.until(
        target,
        kinds.ENDPOINT_SLICES,
        lambda slices: addresses(slices) == wanted,
        namespace="default",
        label_selector=f"kubernetes.io/service-name={service}",
    )


def service(name: str, selector: dict[str, str]) -> Object:
    spec = {"selector": selector, "ports": [{"port": 80, "targetPort": 8080}]}
    return {"metadata": {"name": name}, "spec": spec}


async def test_a_service_leads_to_pods_of_its_own_source_also_after_an_upgrade(
    source: Client, c2: Client
) -> None:
    name = f"team-{uuid.uuid4().hex[:6]}"
    await source.create(kinds.SERVICES, service(name, {"app": name}), "default")
    await source.create(kinds.PODS, kit.pod_in("c2", name), "default")
    own = objects.status(await kit.until_running(source, name))["podIP"]
    (chaperon,) = [
        found
        for found in await c2.list(kinds.POD_CHAPERONS, "default")
        if objects.labels(found).get(LABEL) == name
    ]
    labels = objects.labels(chaperon)
    cluster = {keys.PARENT_CLUSTER_NAME: labels[keys.PARENT_CLUSTER_NAME]}
    others: list[tuple[str, dict[str, str]]] = [
        ("namesake", {**cluster, keys.PARENT_CLUSTER_UID: "another"}),
        ("other", {keys.PARENT_CLUSTER_NAME: "another", keys.PARENT_CLUSTER_UID: "another"}),
        ("target", {}),
    ]
    found: dict[str, str] = {}
    for kind, source_labels in others:
        pod = kit.pod(f"{name}-{kind}")
        pod["metadata"]["labels"] = {LABEL: name, **source_labels}
        pod["metadata"].pop("annotations", None)
        await c2.create(kinds.PODS, pod, "default")
        running = await kit.until_running(c2, f"{name}-{kind}")
        found[kind] = objects.status(running)["podIP"]

    # As Admiralty's copies select: this one shows that endpoints of all pods are known.
    await c2.create(kinds.SERVICES, service(f"{name}-all", {LABEL: name}), "default")
    await until_endpoints(c2, f"{name}-all", {own, *found.values()})
    await until_endpoints(c2, name, {own})

    # What an earlier vnode has sent names the source, and not its UID.
    without = {"metadata": {"labels": {keys.PARENT_CLUSTER_UID: None}}}
    await c2.patch(kinds.POD_CHAPERONS, objects.name(chaperon), without, "default")
    await until_endpoints(c2, name, {own, found["namesake"]})
    await c2.patch(kinds.PODS, objects.name(chaperon), without, "default")
    await c2.delete(kinds.PODS, f"{name}-namesake", "default")
    await until_endpoints(c2, name, {own})
    later = kit.pod_in("c2", f"{name}-new")
    later["metadata"]["labels"] = {"app": name}
    await source.create(kinds.PODS, later, "default")
    new = objects.status(await kit.until_running(source, f"{name}-new"))["podIP"]
    await until_endpoints(c2, name, {own, new})
    await source.delete(kinds.PODS, name, "default")
    selected = {LABEL: name, **cluster, keys.PARENT_CLUSTER_UID: labels[keys.PARENT_CLUSTER_UID]}
    await kit.until_one(
        c2, kinds.SERVICES, name, "default", lambda s: objects.spec(s)["selector"] == selected
    )
    await until_endpoints(c2, name, {new})
    for left in ("other", "target"):
        await c2.delete(kinds.PODS, f"{name}-{left}", "default")

    await c2.delete(kinds.SERVICES, f"{name}-all", "default")
    await source.delete(kinds.SERVICES, name, "default")
