"""Cleans up the cluster behind a deleted Target: nothing of ours stays there.

Once the Target is deleted, nobody can find our chaperons there any more, so they are deleted while
the connection still lives. First the link stays in place, so that the pods with those chaperons are
followed to their end. Then the link is withdrawn, nobody creates new chaperons, and late ones are
deleted; that takes some seconds more, for requests that were in flight when the link was withdrawn.
Last go the copied objects, which pods need until they end.

The time is bounded: a target that does not answer keeps what it has. A later Target of the name
finds those chaperons as orphans, and deletes them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from vnode.api import kinds, objects
from vnode.api.clock import Clock, happens_within
from vnode.api.errors import ApiError, Denied, NotFound, VnodeError
from vnode.api.identity import Identity
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.runtime.link import Link

TIMEOUT: Final = 10.0  # seconds for chaperons, hence for delegates, to end
SETTLE: Final = 1.0  # seconds for controllers of the pods to act on the last changes
LAST_CHECK: Final = 2.0  # seconds in which requests that were under way have ended
_RETRY: Final = 1.0  # seconds until deletions that failed are tried again

log = logging.getLogger(__name__)


async def clean_up(
    link: Link,
    owns: Callable[[Object], bool],
    identity: Identity,
    withdraw: Callable[[], None],
    *,
    clock: Clock,
) -> None:
    """Delete the chaperons that the link `owns`, `withdraw` it, check once more; then the copies.

    Another Target may lead to the same cluster. Its chaperons are not touched; copies that it still
    needs are created again by the follower of its pods.

    Takes up to 2 * TIMEOUT + SETTLE + LAST_CHECK seconds; never raises because of the target.
    """
    changed = asyncio.Event()
    link.chaperons.subscribe(lambda _old, _new: changed.set())

    def all_ours() -> Objects:
        return [chaperon for chaperon in link.chaperons.store.values() if owns(chaperon)]

    present = {objects.uid(chaperon) for chaperon in all_ours()}
    log.info("the Target %s is gone; deleting its %d chaperons", link.target, len(present))
    with suppress(TimeoutError):
        async with asyncio.timeout(TIMEOUT):
            while remaining := [c for c in all_ours() if objects.uid(c) in present]:
                await _delete_all(link, remaining, changed)

    await clock.sleep(SETTLE)
    withdraw()
    with suppress(TimeoutError):
        async with asyncio.timeout(LAST_CHECK):
            while True:
                await _delete_all(link, all_ours(), changed)

    if left := [chaperon for chaperon in all_ours() if not objects.is_terminating(chaperon)]:
        log.warning("%d chaperons stay in %s, which did not delete them", len(left), link.target)

    with suppress(TimeoutError):
        async with asyncio.timeout(TIMEOUT):
            for kind in kinds.FOLLOWING:
                await _delete_copies(link, identity, kind)


async def _delete_copies(link: Link, identity: Identity, kind: Kind) -> None:
    try:
        try:
            await _delete_listed(link, identity, kind, link.target.namespace)
        except Denied:
            if not link.namespaces:
                raise

            for namespace in sorted(link.namespaces):
                with suppress(Denied):  # one that is not this source's any more
                    await _delete_listed(link, identity, kind, namespace)
    except (Denied, NotFound) as error:
        if kind not in kinds.FOLLOWING_WHERE_POSSIBLE:
            log.info("copied %s stay in %s: %s", kind.plural, link.target, error)
    except VnodeError as error:
        log.info("copied %s stay in %s: %s", kind.plural, link.target, error)


async def _delete_listed(link: Link, identity: Identity, kind: Kind, namespace: str) -> None:
    found = await link.client.list(kind, namespace or None, label_selector=identity.selector)
    refused: list[ApiError] = []
    for copy in filter(identity.owns, found):
        try:
            await link.client.discard(kind, copy)
        except ApiError as error:  # the others go
            refused.append(error)

    if refused:
        log.info("%d %s stay in %s: %s", len(refused), kind.plural, link.target, refused[0])


async def _delete_all(link: Link, chaperons: Objects, changed: asyncio.Event) -> None:
    """Delete those that are not being deleted yet, and wait until something changes."""
    changed.clear()
    async with asyncio.TaskGroup() as group:
        for chaperon in chaperons:
            if not objects.is_terminating(chaperon):
                group.create_task(_delete(link, chaperon), name=f"clean-up {objects.key(chaperon)}")

    await happens_within(changed, _RETRY)


async def _delete(link: Link, chaperon: Object) -> None:
    try:
        await link.client.discard(kinds.POD_CHAPERONS, chaperon)
    except VnodeError as error:
        log.debug("chaperon %s was not deleted: %s", objects.key(chaperon), error)
