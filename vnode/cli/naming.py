"""Resolves the name of a Target on the command line: NAME, NAMESPACE/NAME, or its virtual node."""

from __future__ import annotations

from http import HTTPStatus

from vnode.api import kinds, objects, target_key
from vnode.api.errors import ConfigError, Denied, NotFound
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client


async def target(client: Client, name: str, namespace: str | None) -> tuple[TargetKey, Object]:
    """Get the Target or ClusterTarget of that name; a Target of the namespace comes first.

    Raises ConfigError if there is none.
    """
    given_namespace, bare = objects.split_key(name)
    searched = given_namespace or namespace or client.endpoint.namespace
    absent, denied = [], ""
    for kind, target_namespace in ((kinds.TARGETS, searched), (kinds.CLUSTER_TARGETS, "")):
        where = f" in namespace {searched!r}" if target_namespace else ""
        try:
            found = await client.get(kind, bare, target_namespace or None)
        except NotFound:
            absent.append(f"no {kind.kind} {bare!r}{where}")
            continue
        except Denied as error:
            if error.status == HTTPStatus.UNAUTHORIZED:
                raise

            absent.append(f"perhaps a {kind.kind} {bare!r}{where}")
            denied = denied or error.message
            continue

        return TargetKey(target_namespace, bare), found

    if denied:
        raise ConfigError(
            f"there is {', and '.join(absent)}, which these credentials may not get: {denied}; "
            "use a kubeconfig that may"
        )

    raise ConfigError(f"there is {', and '.join(absent)}: see vnode get targets -A")


async def node(client: Client, name: str, namespace: str | None) -> Object:
    """Get the virtual node of a target, which may also be named by the node itself.

    Raises ConfigError if there is none, or if it is a real node.
    """
    try:
        key, _target = await target(client, name, namespace)
        node_name = key.node_name
    except ConfigError:
        node_name = name.removeprefix("node/")
        if "/" in node_name or not await _exists(client, node_name):
            raise

    try:
        found = await client.get(kinds.NODES, node_name)
    except NotFound as error:
        raise ConfigError(
            f"node {node_name!r} not found: the agent of this cluster creates it; run vnode doctor"
        ) from error

    if target_key.of_node(found) is None:
        raise ConfigError(f"node {node_name!r} is not a virtual node: use kubectl for it")

    return found


async def _exists(client: Client, node_name: str) -> bool:
    try:
        await client.get(kinds.NODES, node_name)
    except NotFound:
        return False

    return True
