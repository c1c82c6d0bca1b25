"""Waits for the first answers of an API server at startup, which an agent needs.

After an outage of a whole cluster agents may start before their API server does. An agent that gave
up would be restarted with a growing back-off, up to minutes after the API server is back: so it
waits.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from vnode.api.clock import Clock
from vnode.api.errors import (
    Conflict,
    Denied,
    Gone,
    ServerError,
    TooManyRequests,
    Unreachable,
    VnodeError,
)

_FIRST: Final = 0.25  # seconds until the second try; then twice as long, up to the limit
_LIMIT: Final = 4.0  # seconds
_STARTING: Final = 15.0  # seconds in which an API server that has just started may deny everything

T = TypeVar("T")

log = logging.getLogger(__name__)


async def wait_for_answer(request: Callable[[], Awaitable[T]], clock: Clock) -> T:
    """Call `request` until the API server answers, and return its result.

    Raises errors that do not pass by waiting: ConfigError, NotFound, Invalid, and Denied if it
    lasts.
    """
    began, delay, logged = clock.monotonic(), _FIRST, ""
    while True:
        try:
            return await request()
        except (Unreachable, ServerError, TooManyRequests, Conflict, Gone) as error:
            failure: VnodeError = error
        except Denied as error:
            if clock.monotonic() - began > _STARTING:
                raise

            failure = error

        if str(failure) != logged:
            logged = str(failure)
            log.warning("waiting for the API server: %s", logged)

        await clock.sleep(delay)
        delay = min(2 * delay, _LIMIT)
