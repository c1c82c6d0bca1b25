"""The end of a deleted Target: nothing of ours stays in the cluster behind it.

Once the Target is gone, nobody could find our chaperons there any more, so they are deleted while
the connection still lives. First with the link in its place, so that the pods which they ran are
followed to their end; then, the link withdrawn and nobody left to make new ones, what came late.
That takes some seconds more, for requests that were under way when the link was withdrawn. At last
go the objects that followed our pods, which need them to their end. The time
is bounded: a target that does not answer keeps what it has. A Target of that name that
comes back finds those as orphans, and deletes them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from vnode.api import kinds, objects
from vnode.api.clock import Clock, happens_within
from vnode.api.errors import VnodeError
from vnode.api.identity import Identity
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.runtime.links import Link

PATIENCE: Final = 10.0  # seconds for chaperons, hence for delegates, to end
SETTLE: Final = 1.0  # seconds for those who follow the pods to act on what they have just seen
LAST_LOOK: Final = 2.0  # seconds in which requests that were under way have ended
_AGAIN: Final = 1.0  # seconds until deletions that failed are tried again

log = logging.getLogger(__name__)


async def clean_up(
    link: Link,
    owns: Callable[[Object], bool],
    identity: Identity,
    withdraw: Callable[[], None],
    *,
    clock: Clock,
) -> None:
    """Delete the chaperons that the link `owns`, `withdraw` it, look once more; then the copies.

    Another Target may lead to the same cluster. Its chaperons are not touched; copies that it still
    needs are put back by who follows its pods.

    Takes up to 2 * PATIENCE + SETTLE + LAST_LOOK seconds; never raises because of the target.
    """
    changed = asyncio.Event()
    link.chaperons.subscribe(lambda _old, _new: changed.set())

    def all_ours() -> Objects:
        return [chaperon for chaperon in link.chaperons.store.values() if owns(chaperon)]

    present = {objects.uid(chaperon) for chaperon in all_ours()}
    log.info("the Target %s is gone; deleting its %d chaperons", link.target, len(present))
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while those := [c for c in all_ours() if objects.uid(c) in present]:
                await _delete_all(link, those, changed)

    await clock.sleep(SETTLE)
    withdraw()
    with suppress(TimeoutError):
        async with asyncio.timeout(LAST_LOOK):
            while True:
                await _delete_all(link, all_ours(), changed)

    if left := [chaperon for chaperon in all_ours() if not objects.is_terminating(chaperon)]:
        log.warning("%d chaperons stay in %s, which did not delete them", len(left), link.target)

    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            for kind in kinds.FOLLOWING:
                await _delete_copies(link, identity, kind)


async def _delete_copies(link: Link, identity: Identity, kind: Kind) -> None:
    namespace = link.target.namespace or None
    try:
        for copy in await link.client.list(kind, namespace, label_selector=identity.selector):
            if identity.owns(copy):
                await link.client.discard(kind, copy)
    except VnodeError as error:
        log.info("%s that followed stay in %s: %s", kind.plural, link.target, error)


async def _delete_all(link: Link, chaperons: Objects, changed: asyncio.Event) -> None:
    """Have those deleted that are not yet, and wait until something changes."""
    changed.clear()
    async with asyncio.TaskGroup() as group:
        for chaperon in chaperons:
            if not objects.is_terminating(chaperon):
                group.create_task(_delete(link, chaperon), name=f"farewell {objects.key(chaperon)}")

    await happens_within(changed, _AGAIN)


async def _delete(link: Link, chaperon: Object) -> None:
    try:
        await link.client.discard(kinds.POD_CHAPERONS, chaperon)
    except VnodeError as error:
        log.debug("chaperon %s was not deleted: %s", objects.key(chaperon), error)
