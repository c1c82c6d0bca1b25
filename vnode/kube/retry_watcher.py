"""Passes on objects of one kind as they change, from now on, and keeps none of them.

client-go's RetryWatcher resumes a watch from the last version that it has seen. So does this one;
where the past is gone it goes on from the present, and what happened in between is not passed on.
Use it for what nobody has to know completely, such as Events; all else wants an `Informer`.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.errors import Gone, Invalid, NotFound, TooManyRequests, VnodeError
from vnode.api.objects import Object
from vnode.kube import watching
from vnode.kube.client import Client
from vnode.kube.watching import ListOptions

_BACKOFF_FIRST: Final = 0.2  # seconds
_BACKOFF_LIMIT: Final = 30.0  # seconds
_HOT: Final = 0.5  # seconds until a watch that ended without an event is resumed
_NEWS: Final = (watching.ADDED, watching.MODIFIED)
_PAST_IS_GONE: Final = (Gone, Invalid, NotFound)  # other errors pass, and the version is good still

log = logging.getLogger(__name__)


class RetryWatcher:
    """Calls `handler` with each object that is added or modified; it must not await."""

    def __init__(
        self,
        client: Client,
        selection: ListOptions,
        handler: Callable[[Object], None],
        clock: Clock,
    ) -> None:
        self._client = client
        self._selection = selection
        self._handler = handler
        self._clock = clock
        self._version = ""  # where the next watch starts; "" stands for now
        self._delay = _BACKOFF_FIRST
        self._logged = ""

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            try:
                await self._watch()
            except VnodeError as error:
                if isinstance(error, _PAST_IS_GONE):
                    self._version = ""

                await self._fail(error)

    async def _watch(self) -> None:
        if not self._version:
            kind, namespace = self._selection.kind, self._selection.namespace
            self._version = await self._client.version(kind, namespace)

        events = 0
        async with aclosing(
            watching.stream(self._client, self._selection, self._version)
        ) as batches:
            async for batch in batches:
                self._delay, self._logged = _BACKOFF_FIRST, ""
                events += len(batch)
                for event in batch:
                    self._take(event)

        if not events:
            await self._clock.sleep(_HOT)

    def _take(self, event: watching.Event) -> None:
        self._version = objects.resource_version(event.object) or self._version
        if event.type in _NEWS:
            try:
                self._handler(event.object)
            except Exception:  # the next one may be of another form
                log.exception("one of %s cannot be read", self._selection.kind.plural)

    async def _fail(self, error: VnodeError) -> None:
        if str(error) != self._logged:
            self._logged = str(error)
            log.warning("%s of %s: %s", self._selection.kind.plural, self._client.name, error)

        delay, self._delay = self._delay, min(2 * self._delay, _BACKOFF_LIMIT)
        if isinstance(error, TooManyRequests):
            delay = max(delay, error.retry_after)

        await self._clock.sleep(delay * random.uniform(0.8, 1.2))  # noqa: S311 - jitter
