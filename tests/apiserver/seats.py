"""How many requests an in-memory server works on at once; others are told to slow down.

As with a priority level of API Priority and Fairness whose `limitResponse` is Reject. Watches take
no seat. By default there is room for all, and a request takes no time.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.apiserver.requests import APIRequest
from vnode.api.errors import TooManyRequests


class ServerSeats:
    """Gives seats to requests; `given` and `refused` count those by kind of object."""

    def __init__(self) -> None:
        self.count = math.inf
        self.seconds = 0.0  # for which a request has its seat
        self.retry_after = 1.0
        self.given: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self._taken = 0

    @asynccontextmanager
    async def take(self, request: APIRequest) -> AsyncIterator[None]:
        """Have a seat within the block; TooManyRequests, without a look at it, if none is free."""
        plural = request.kind.plural if request.kind is not None else ""
        if self._taken >= self.count:
            self.refused[plural] += 1
            message = "Too many requests, please try again later."
            error = TooManyRequests(429, "TooManyRequests", message)
            error.retry_after = self.retry_after
            raise error

        self.given[plural] += 1
        self._taken += 1
        try:
            if self.seconds:
                await asyncio.sleep(self.seconds)

            yield
        finally:
            self._taken -= 1
