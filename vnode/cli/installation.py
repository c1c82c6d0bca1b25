"""Applies the objects of `vnode install` to a cluster, and deletes those that are not wanted.

The manifests are applied by server-side apply, so that another run changes only what differs, and
fields of other owners (the webhook's caBundle, Helm's labels) stay. Objects of a Helm release of
vnode are left to Helm, and so are those that it has not made yet; only the CRDs, which outlive a
release, are applied all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.errors import ConfigError, Denied, NotFound, TooManyRequests
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.cli import installed, manifests
from vnode.kube.client import Client
from vnode.kube.informer import Informer

# The field manager; the agent has another one, so neither undoes the other's changes.
MANAGER: Final = "vnode-install"
_SERVED: Final = 60.0  # seconds to wait for the CRDs; an idle server takes less than one
_ASK_AGAIN: Final = 0.1  # seconds; nothing says when a server begins to answer for a kind
_POLICIES: Final = (kinds.VALIDATING_POLICIES, kinds.VALIDATING_POLICY_BINDINGS)

Report = Callable[[str], None]


async def install(client: Client, objs: Objects, unwanted: Objects, report: Report) -> None:
    """Apply all objects, delete the unwanted ones, and wait until the CRDs are served.

    Report each object, and warnings.
    """
    warnings: list[str] = []
    crds_release = ""
    release = installed.own_release(
        await find(client, kinds.MUTATING_WEBHOOKS, objects.name(objs[-1]))
    )
    for obj in objs:
        kind, what = manifests.kind_of(obj), f"{obj['kind'].lower()}/{objects.name(obj)}"
        if kind is not kinds.CRDS and (owner := await _helm_release(client, obj, release)):
            release = owner
            report(f"{what} left to the Helm release {owner}")
            continue

        if kind is kinds.NAMESPACES and (warning := await _keep_level(client, obj)):
            warnings.append(warning)

        try:
            applied, outcome = await _apply(client, obj)
        except NotFound:
            if kind not in _POLICIES:
                raise ConfigError(
                    f"cannot apply {kind.kind} {objects.key(obj)}: there is no such namespace; "
                    "create the namespace, or leave it out of --namespaces"
                ) from None

            report(f"{what} left out: this cluster has no such policies, Kubernetes 1.30 has")
            continue

        report(f"{what} {outcome}")
        if kind is kinds.CRDS:
            crds_release = crds_release or installed.helm_release(applied)

    for obj in unwanted:
        await _delete(client, obj, report)

    await wait_served(client, [obj for obj in objs if manifests.kind_of(obj) is kinds.CRDS])
    warnings += [each async for each in _warnings(client, objs, release, crds_release)]
    for warning in warnings:
        report(f"Warning: {warning}")


async def find(client: Client, kind: Kind, name: str, namespace: str = "") -> Object | None:
    """Return an object, None if there is none of that name."""
    try:
        return await client.get(kind, name, namespace or None)
    except NotFound:
        return None


async def _apply(client: Client, obj: Object) -> tuple[Object, str]:
    """Apply one of our objects; return it, and "created", "configured" or "unchanged"."""
    kind = manifests.kind_of(obj)
    name = objects.name(obj)
    try:
        before = await find(client, kind, name, objects.namespace(obj))
        after = await client.apply(kind, obj, manager=MANAGER)
    except Denied as error:
        raise ConfigError(
            f"may not apply {kind.kind} {name}: {error.message}; use a kubeconfig of an "
            "administrator (cluster-admin)"
        ) from error

    if not before:
        return after, "created"

    return after, "unchanged" if _written(before) == _written(after) else "configured"


def _written(obj: Object) -> Object:
    """Return an object without what a server and its controllers write at any time."""
    metadata = objects.metadata(obj)
    kept = {key: metadata[key] for key in metadata.keys() - {"resourceVersion", "managedFields"}}
    return {**{key: obj[key] for key in obj.keys() - {"status"}}, "metadata": kept}


async def _delete(client: Client, obj: Object, report: Report) -> None:
    """Delete an object, unless it is not there, or a Helm release's."""
    kind, name = manifests.kind_of(obj), objects.name(obj)
    present = await find(client, kind, name)
    if present is None or installed.own_release(present):
        return

    await client.delete(kind, name, uid=objects.uid(present))
    report(f"{obj['kind'].lower()}/{name} deleted")


async def _keep_level(client: Client, namespace: Object) -> str:
    """Leave the Pod Security level of a namespace that exists as it is; return a warning, or "".

    Pods that run there may need another one: on the host network, for one.
    """
    name, level = objects.name(namespace), manifests.POD_SECURITY
    present = await find(client, kinds.NAMESPACES, name)
    wanted = objects.labels(namespace)[level]
    if present is None or objects.labels(present).get(level) == wanted:
        return ""

    del namespace["metadata"]["labels"][level]
    if level in objects.labels(present):
        return ""

    return (
        f"namespace {name} enforces no Pod Security level. Unless an agent runs there on the host "
        f"network: kubectl label namespace {name} {level}={wanted}"
    )


async def wait_served(client: Client, crds: Objects) -> None:
    """Wait until the API server answers for the kinds of these CRDs.

    A CRD is established a moment before its objects can be read and written: until then the answer
    is 404, as if there were no such kind, or 429, while its storage begins. ConfigError if they are
    not established within a minute, or not all answered for within another.
    """
    await _wait_established(client, [objects.name(crd) for crd in crds])
    unserved = [_kind_defined_by(crd) for crd in crds]
    try:
        async with asyncio.timeout(_SERVED):
            while unserved:
                try:
                    await client.version(unserved[0])
                    del unserved[0]
                except (NotFound, TooManyRequests):
                    await asyncio.sleep(_ASK_AGAIN)
    except TimeoutError as error:
        raise ConfigError(
            f"{unserved[0].resource} is established, but the API server does not answer for it: "
            "ask its logs why, and run vnode install again"
        ) from error


def _kind_defined_by(crd: Object) -> Kind:
    """Return the kind that a CRD defines, in its first version."""
    spec = objects.spec(crd)
    version, named = spec["versions"][0]["name"], spec["names"]
    scoped = spec["scope"] == "Namespaced"
    return Kind(spec["group"], version, named["plural"], named["kind"], scoped)


async def _wait_established(client: Client, names: list[str]) -> None:
    waiting, done = set(names), asyncio.Event()

    def on_crd(_old: Object | None, new: Object | None) -> None:
        if new and objects.is_condition_true(new, "Established"):
            waiting.discard(objects.name(new))

        if not waiting:
            done.set()

    informer = Informer(client, kinds.CRDS, label_selector=manifests.PART_OF)
    informer.subscribe(on_crd)
    try:
        async with asyncio.timeout(_SERVED), asyncio.TaskGroup() as group:
            task = group.create_task(informer.run(), name="established")
            await done.wait()
            task.cancel()
    except TimeoutError as error:
        why = informer.failure or "see kubectl describe crd"
        raise ConfigError(f"not established: {', '.join(sorted(waiting))} ({why})") from error


async def _helm_release(client: Client, obj: Object, release: str) -> str:
    """Return the release of vnode's chart that has this object; "" also if it may not be read.

    What is not there is for `release` to make, if there is one, and the namespace is its user's.
    """
    kind = manifests.kind_of(obj)
    try:
        present = await find(client, kind, objects.name(obj), objects.namespace(obj))
    except Denied:
        return ""

    if present is None or kind is kinds.NAMESPACES:
        return release

    return installed.own_release(present)


async def _warnings(
    client: Client, objs: Objects, release: str, crds_release: str
) -> AsyncIterator[str]:
    if release:
        yield (
            f"vnode is the Helm release {release} here, so that only the CRDs were applied: "
            f"{installed.helm_upgrade(release)} repairs and upgrades the rest."
        )

    if crds_release:
        yield (
            f"the CRDs belong to the Helm release {crds_release}, whose uninstallation would "
            "delete them and with them all chaperons and delegate pods: before you uninstall it, "
            "remove the CRDs from the release, or drain the virtual nodes."
        )

    if await find(client, kinds.MUTATING_WEBHOOKS, manifests.ADMIRALTY_WEBHOOK):
        yield (
            "Admiralty's webhook is still there (mutatingwebhookconfiguration/admiralty). "
            "Two agents must not serve one cluster: scale Admiralty's Deployments to zero and "
            "delete its webhook configuration before you start the vnode agent."
        )

    service = objs[-1]["webhooks"][0]["clientConfig"].get("service")
    if service and not release and not await _has_service(client, service):
        yield (
            f"the webhook calls Service {service['namespace']}/{service['name']}, which does "
            "not exist: no pod can be created in namespaces with the label "
            f"{'='.join(keys.WEBHOOK_NAMESPACE_LABEL)}. For an agent outside of the cluster pass "
            "--webhook-url https://HOST:PORT."
        )


async def _has_service(client: Client, service: Object) -> bool:
    return await find(client, kinds.SERVICES, service["name"], service["namespace"]) is not None
