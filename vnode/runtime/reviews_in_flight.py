"""Bounds how many reviews the API server is asked for at once, for each cause of them and in all.

Anybody who reaches a port may show any number of tokens, and each unknown one is a TokenReview.
They share the connections to the API server with all that the agent does. So a few of them are
under way at once, fewer still for each virtual node: whoever floods the port of one keeps its own
callers waiting, and nobody else's. Those who show a certificate, as API servers do, do not wait for
tokens: authentication and authorization have one `ReviewsInFlight` each. So it is with namespaces
whose users create AuthTokenRequests.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

OF_ONE: Final = 4  # reviews at once for callers of one virtual node, or users of one namespace
OF_ALL: Final = 16  # of the 48 connections of a client


class ReviewsInFlight:
    """Counts the reviews under way; for each key, first come is first served."""

    def __init__(self) -> None:
        self._all = asyncio.Semaphore(OF_ALL)
        self._of_one: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def one_more(self, key: str) -> AsyncIterator[None]:
        """Count one review for that key within the block; wait before if need be."""
        own = self._of_one.get(key)
        if own is None:
            own = self._of_one[key] = asyncio.Semaphore(OF_ONE)

        async with own, self._all:
            yield
