"""How users name a Target on the command line: NAME, NAMESPACE/NAME, or its virtual node."""

from __future__ import annotations

from vnode.api import kinds, objects
from vnode.api.errors import ConfigError, Denied, NotFound
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.nodes import virtual
from vnode.runtime.links import TargetKey


async def target(client: Client, name: str, namespace: str | None) -> tuple[TargetKey, Object]:
    """The Target or ClusterTarget that is meant; a Target of the namespace comes first.

    Raises ConfigError if there is none.
    """
    space, bare = objects.split_key(name)
    space = space or namespace or client.endpoint.namespace
    for kind, where in ((kinds.TARGETS, space), (kinds.CLUSTER_TARGETS, "")):
        try:
            found = await client.get(kind, bare, where or None)
        except (NotFound, Denied):
            continue

        return TargetKey(where, bare), found

    raise ConfigError(
        f"there is no Target {bare!r} in namespace {space!r}, and no ClusterTarget of that name: "
        "see vnode get targets -A"
    )


async def node(client: Client, name: str, namespace: str | None) -> Object:
    """The virtual node of a target, which may also be named by the node itself.

    Raises ConfigError if there is none, or if it is a real one.
    """
    try:
        key, _target = await target(client, name, namespace)
        node_name = key.node_name
    except ConfigError:
        node_name = name.removeprefix("node/")
        if "/" in node_name or not await _is_there(client, node_name):
            raise

    try:
        found = await client.get(kinds.NODES, node_name)
    except NotFound as error:
        raise ConfigError(
            f"node {node_name!r} is not there: the agent of this cluster makes it; run vnode doctor"
        ) from error

    if virtual.target_of(found) is None:
        raise ConfigError(f"node {node_name!r} is no virtual node: use kubectl for it")

    return found


async def _is_there(client: Client, node_name: str) -> bool:
    try:
        await client.get(kinds.NODES, node_name)
    except NotFound:
        return False

    return True
