"""What followed pods into a target: it goes from there with the pods, if nobody else takes it away.

The source's agent does that when its Target is deleted, but some seconds later than a command that
revokes its rights there; and no agent does it where none runs.
"""

from __future__ import annotations

from collections.abc import Callable

from vnode.api import keys, kinds
from vnode.api.errors import VnodeError
from vnode.api.objects import Object
from vnode.cli.removing.reporting import Report
from vnode.kube.client import Client


async def remove_copies(
    there: Client,
    namespace: str | None,
    is_meant: Callable[[Object], bool],
    report: Report,
    *,
    where: str = "",
) -> None:
    """Delete the copies that are meant; those that cannot be are noted as left."""
    deleted = 0
    for kind in kinds.FOLLOWING:
        try:
            found = await there.list(kind, namespace, label_selector=keys.PARENT_CLUSTER_NAME)
            for copy in filter(is_meant, found):
                await there.discard(kind, copy)
                deleted += 1
        except VnodeError as error:
            report.left.append(f"{where}{kind.plural} that followed pods: {error}")

    if deleted:
        report.say(f"{where}{deleted} objects that followed pods deleted")
