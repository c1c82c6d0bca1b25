"""Gives each namespace its share of the time in which reviews are answered.

A review is a computation of a tenth of a millisecond for most pods, and of up to some dozens for
what somebody has made costly on purpose. They are answered one after the other, in turns by
namespace (`vnode.runtime.fair_turns`): so a pod waits for one review of others at most, however
many of them there are. A namespace has a budget, too (`review_budget`).

AuthTokenRequests are seldom created, and their reviews wait for the API server, which is asked what
the author may do. So these have no turns, but a bound on how many are under way.

Each is answered before its caller gives up, if only by 503. An API server that gets no answer shows
its user the address, and so the secret of the path; anybody may provoke that who may provoke a
review that takes long.

Who calls makes no difference: that can be API servers only, which know the paths.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import msgspec
from aiohttp import web

from vnode.api import documents, names, webhook_paths
from vnode.api.clock import Clock
from vnode.api.token_bucket import TokenBucket
from vnode.runtime.fair_turns import FairTurns
from vnode.runtime.reviews_in_flight import ReviewsInFlight
from vnode.telemetry import turn_waits
from vnode.webhook.review_budget import ReviewBudget

WORK: Final = "admission"
"""In the metric of waits."""
_READING: Final = 1e-8  # seconds a byte: decryption, and one look for the namespace
_MANY: Final = 50  # reviews of one namespace that wait: it gets less than it asks for
_SAID_EVERY: Final = 60.0  # seconds
_ANSWERED: Final = 8.0  # seconds for an author's review in all; an API server gives up after 10

log = logging.getLogger(__name__)


class _NamespaceOnly(msgspec.Struct):
    namespace: str = ""


class _ReviewOfNamespace(msgspec.Struct):
    request: _NamespaceOnly


_decoder: Final = msgspec.json.Decoder(_ReviewOfNamespace)


class ReviewTurns:
    """Gives turns to requests that have been read."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._turns: FairTurns[str] = FairTurns()
        self._budget = ReviewBudget(clock)
        self._waits = turn_waits.of(WORK)
        self._authors = ReviewsInFlight()
        self._said = TokenBucket(1 / _SAID_EVERY, 1)

    @asynccontextmanager
    async def take(self, request: web.Request) -> AsyncIterator[None]:
        """Wait for the turn of a review's namespace; 503 if its caller has gone meanwhile."""
        body = await request.read()
        namespace = _namespace_of(body)
        if webhook_paths.split(request.path)[0] == webhook_paths.AUTHORS:
            async with _answered(_ANSWERED), self._authors.one_more(namespace):
                yield

            return

        self._tell_of(namespace)
        asked, before = self._clock.monotonic(), len(body) * _READING
        async with (
            self._budget.wait(namespace),
            self._turns.take(namespace, spent_before=before),
        ):
            self._waits.note(namespace, self._clock.monotonic() - asked)
            await asyncio.sleep(0)  # the loop looks at its sockets: a caller may have gone
            if request.transport is None or request.transport.is_closing():
                raise web.HTTPServiceUnavailable(text="nobody waits for it\n")

            begun = time.thread_time()
            try:
                yield
            finally:
                self._budget.charge(namespace, before + time.thread_time() - begun)

    def _tell_of(self, namespace: str) -> None:
        """Log whose reviews wait for each other, at most once a minute."""
        waiting = self._budget.waiting(namespace)
        if waiting >= _MANY and self._said.take(self._clock.monotonic()):
            log.warning(
                "%d reviews of pods of namespace %r wait for each other: they take more time than "
                "others leave them",
                waiting,
                namespace,
            )


@asynccontextmanager
async def _answered(seconds: float) -> AsyncIterator[None]:
    """End what is in the block after so many seconds; 503 then."""
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            yield
    except TimeoutError as error:
        if not deadline.expired():
            raise

        raise web.HTTPServiceUnavailable(text="busy\n") from error


def _namespace_of(body: bytes) -> str:
    """Return whose review it is; "" for what none can be called, and metrics would tell."""
    try:
        found = _decoder.decode(body).request.namespace
    except documents.NO_JSON:
        return ""

    return found if len(found) <= names.LABEL_LIMIT else ""
