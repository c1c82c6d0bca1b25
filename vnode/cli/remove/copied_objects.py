"""Deletes the objects that were copied into a target for its delegate pods.

The source's agent does this when a Target is deleted, but it does so some seconds later, when the
command has already revoked its permissions in the target; and a source may have no agent.
"""

from __future__ import annotations

from collections.abc import Callable

from vnode.api import keys, kinds
from vnode.api.errors import Denied, VnodeError
from vnode.api.objects import Object
from vnode.cli.remove.report import RemovalReport, counted
from vnode.kube.client import Client


async def remove_copies(
    client: Client,
    namespace: str | None,
    selects: Callable[[Object], bool],
    report: RemovalReport,
    *,
    where: str = "",
) -> None:
    """Delete the copies for which `selects` is true; report those that could not be deleted."""
    deleted = 0
    for kind in kinds.FOLLOWING:
        try:
            found = await client.list(kind, namespace, label_selector=keys.PARENT_CLUSTER_NAME)
            for copy in filter(selects, found):
                await client.discard(kind, copy)
                deleted += 1
        except VnodeError as error:
            if isinstance(error, Denied) and kind in kinds.FOLLOWING_BY_EXTRA_ROLE:
                continue

            report.left.append(f"{where}copied {kind.plural} not deleted: {error}")

    if deleted:
        report.say(f"{where}deleted {counted(deleted, 'copied object')}")
