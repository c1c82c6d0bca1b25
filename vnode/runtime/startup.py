"""The first answers of an API server, which an agent cannot do without.

After an outage of a whole cluster agents may start before their API server does. One that gave up
would be started again, each time later, up to minutes after the API server is back: so it waits.
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
_STARTING: Final = 15.0  # seconds in which an API server that has just started may refuse anybody

T = TypeVar("T")

log = logging.getLogger(__name__)


async def answered(ask: Callable[[], Awaitable[T]], clock: Clock) -> T:
    """What `ask` returns, however long it takes until it can; it is called again and again.

    Raises what waiting does not mend: ConfigError, NotFound, Invalid, and Denied if that lasts.
    """
    began, delay, said = clock.monotonic(), _FIRST, ""
    while True:
        try:
            return await ask()
        except (Unreachable, ServerError, TooManyRequests, Conflict, Gone) as error:
            trouble: VnodeError = error
        except Denied as error:
            if clock.monotonic() - began > _STARTING:
                raise

            trouble = error

        if str(trouble) != said:
            said = str(trouble)
            log.warning("waiting for the API server: %s", said)

        await clock.sleep(delay)
        delay = min(2 * delay, _LIMIT)
