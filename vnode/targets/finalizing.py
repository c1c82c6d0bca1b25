"""Keeps a Target that is being deleted until the cluster behind it has been cleaned up.

What a Target says is needed to reach the cluster. Without the Target an agent that is started anew
could not, and what the last one had not deleted there would stay. So a Target that a set deletes
has a finalizer, which the leader takes off after the clean-up, or after a while: a cluster that
does not answer holds up nothing for long.
"""

from __future__ import annotations

import logging
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.errors import Conflict, Denied, NotFound
from vnode.api.objects import Object
from vnode.kube.client import Client

TIMEOUT: Final = 60.0
"""Seconds for which a leader tries, until a Target goes without the clean-up."""

log = logging.getLogger(__name__)


def is_due(target: Object | None) -> bool:
    """Tell whether a Target that is being deleted waits for the clean-up."""
    return target is not None and (
        objects.is_terminating(target) and keys.CLEAN_UP in objects.finalizers(target)
    )


async def add_finalizer(client: Client, target: Object) -> None:
    """Have a Target that is about to be deleted wait for the clean-up."""
    await _write(client, target, [*objects.finalizers(target), keys.CLEAN_UP])


async def remove_finalizer(client: Client, target: Object) -> None:
    """Let a Target go; its cluster is clean, or was given up."""
    try:
        left = objects.finalizers_without(target, keys.CLEAN_UP)
        await _write(client, target, left)
    except (Conflict, NotFound):
        log.debug("target %s has changed or is gone", objects.key(target))
    except Denied as error:
        log.warning(
            "target %s stays: %s; bind the ClusterRole vnode-target-sets to the agent, or take the "
            "finalizer %s off",
            objects.key(target),
            error.message,
            keys.CLEAN_UP,
        )


async def _write(client: Client, target: Object, finalizers: list[str]) -> None:
    namespace, body = objects.namespace(target), objects.finalizers_patch(target, finalizers)
    kind = kinds.scoped(kinds.TARGETS, namespace)
    await client.patch(kind, objects.name(target), body, namespace or None)
