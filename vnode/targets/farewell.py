"""The end of a deleted Target: nothing of ours stays in the cluster behind it.

Once the Target is gone, nobody could find our chaperons there any more, so they are deleted while
the connection still lives. First with the link in its place, so that the pods which they ran are
followed to their end; then, the link withdrawn and nobody left to make new ones, what came late.
The time is bounded: a target that does not answer keeps what it has. A Target of that name that
comes back finds those as orphans, and deletes them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from vnode.api import kinds, objects
from vnode.api.errors import Conflict, NotFound, VnodeError
from vnode.api.objects import Object, Objects
from vnode.runtime.links import Link

PATIENCE: Final = 10.0  # seconds for chaperons, hence for delegates, to end
LAST_LOOK: Final = 2.0  # seconds for those that were being made meanwhile
_AGAIN: Final = 1.0  # seconds until deletions that failed are tried again

log = logging.getLogger(__name__)


async def say(link: Link, ours: Callable[[Object], bool], withdraw: Callable[[], None]) -> None:
    """Delete the chaperons that are `ours`, `withdraw` the link, look once more.

    Takes at most PATIENCE + LAST_LOOK seconds; never raises because of the target.
    """
    changed = asyncio.Event()
    link.chaperons.subscribe(lambda _old, _new: changed.set())

    def all_ours() -> Objects:
        return [chaperon for chaperon in link.chaperons.store.values() if ours(chaperon)]

    present = {objects.uid(chaperon) for chaperon in all_ours()}
    log.info("the Target %s is gone; deleting its %d chaperons", link.target, len(present))
    await _until_none(
        link, lambda: [c for c in all_ours() if objects.uid(c) in present], changed, PATIENCE
    )
    withdraw()
    left = await _until_none(link, all_ours, changed, LAST_LOOK)
    if left:
        log.warning("%d chaperons stay in %s, which did not delete them", left, link.target)


async def _until_none(
    link: Link, those: Callable[[], Objects], changed: asyncio.Event, seconds: float
) -> int:
    """Delete until there are none, or time is up; how many are left."""
    try:
        async with asyncio.timeout(seconds):
            while chaperons := those():
                changed.clear()
                await _delete_all(link, [c for c in chaperons if not objects.is_terminating(c)])
                await _wait(changed, _AGAIN)
    except TimeoutError:
        pass

    return len([c for c in those() if not objects.is_terminating(c)])


async def _delete_all(link: Link, chaperons: Objects) -> None:
    async with asyncio.TaskGroup() as group:
        for chaperon in chaperons:
            group.create_task(_delete(link, chaperon), name=f"farewell {objects.key(chaperon)}")


async def _delete(link: Link, chaperon: Object) -> None:
    try:
        await link.client.delete(
            kinds.POD_CHAPERONS,
            objects.name(chaperon),
            objects.namespace(chaperon),
            uid=objects.uid(chaperon),
        )
    except (NotFound, Conflict):
        log.debug("chaperon %s is gone already", objects.key(chaperon))
    except VnodeError as error:
        log.debug("chaperon %s was not deleted: %s", objects.key(chaperon), error)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
