"""Deletes the objects that were copied into a target for its delegate pods.

The source's agent does this when a Target is deleted, but it does so some seconds later, when the
command has already revoked its permissions in the target; and a source may have no agent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from vnode.api import keys, kinds
from vnode.api.errors import Denied, NotFound, VnodeError
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.cli.remove.report import RemovalReport, counted
from vnode.kube.client import Client


async def remove_copies(
    client: Client,
    namespace: str | None,
    selects: Callable[[Object], bool],
    report: RemovalReport,
    *,
    where: str = "",
    known: Callable[[], Awaitable[Iterable[str]]] | None = None,
) -> None:
    """Delete the copies for which `selects` is true; report those that could not be deleted.

    Where all at once may not be listed, namespaces are looked into that `known` returns.
    """
    deleted = 0
    for kind in kinds.FOLLOWING:
        try:
            try:
                found = await _list(client, kind, namespace)
            except Denied:
                if known is None or kind in kinds.FOLLOWING_BY_EXTRA_ROLE:
                    raise

                found = await _list_each(client, kind, await known())

            for copy in filter(selects, found):
                await client.discard(kind, copy)
                deleted += 1
        except VnodeError as error:
            is_impossible = isinstance(error, (Denied, NotFound))
            if is_impossible and kind in kinds.FOLLOWING_WHERE_POSSIBLE:
                continue

            report.left.append(f"{where}copied {kind.plural} not deleted: {error}")

    if deleted:
        report.say(f"{where}deleted {counted(deleted, 'copied object')}")


async def _list(client: Client, kind: Kind, namespace: str | None) -> Objects:
    return await client.list(kind, namespace, label_selector=keys.PARENT_CLUSTER_NAME)


async def _list_each(client: Client, kind: Kind, namespaces: Iterable[str]) -> Objects:
    """List the copies in those of the namespaces that a ClusterSource selects."""
    found: Objects = []
    for namespace in namespaces:
        with suppress(Denied):  # where nothing could be copied either
            found += await _list(client, kind, namespace)

    return found
