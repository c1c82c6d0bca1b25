"""A client whose requests go to an `APIServer` in memory; everything else is as in production."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self, cast

import aiohttp
import msgspec

from tests.apiserver.watches import Watch
from vnode.api.errors import TooLarge, TooManyRequests, Unreachable
from vnode.kube import credentials
from vnode.kube.client import Client
from vnode.kube.endpoint import Endpoint
from vnode.kube.transport import JSON

if TYPE_CHECKING:
    from tests.apiserver.server import APIServer


class MemoryClient(Client):
    """The verbs of one in-memory API server, as the user of that name.

    It can be used without being entered; once closed it answers no more.
    """

    def __init__(self, server: APIServer, *, name: str, user: str) -> None:
        endpoint = Endpoint(f"https://{name}.invalid", None, credentials.Constant(None))
        super().__init__(endpoint, name=name)
        self.server = server
        self.user = user
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def aclose(self) -> None:
        """Refuse requests from now on."""
        self._is_closed = True

    async def _exchange(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        data: bytes | None,
        headers: dict[str, str],
        *,
        limit: int,
    ) -> bytes:
        self._check()
        body = None if data is None else msgspec.json.decode(data)
        payload = await self.server.exchange(self.user, method, path, query, body, headers)
        if len(payload) > limit:
            raise TooLarge(f"{self.name}: the answer has more than {limit} bytes")

        return payload

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str],
        silence: float | None,
        opening: float | None = None,
        accept: str = JSON,
        is_plain: bool = False,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Open a watch; anything else is answered in one piece. All answers are plain."""
        self._check()
        headers = {"Accept": accept}
        if query.get("watch") != "true":
            payload = await self.server.exchange(self.user, method, path, query, None, headers)
            yield cast("aiohttp.ClientResponse", _Response(_Body(payload)))
            return

        await self.pacer.pause()
        try:
            watch = await self.server.open_watch(self.user, path, query, headers, silence)
        except TooManyRequests as error:
            self.pacer.push_back(error)
            raise

        try:
            body = _Events(watch, silence, self.server.latency)
            yield cast("aiohttp.ClientResponse", _Response(body))
        finally:
            self.server.close_watch(watch)

    def _check(self) -> None:
        if self._is_closed:
            raise Unreachable(f"{self.name}: Session is closed")


class _Body:
    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    async def iter_any(self) -> AsyncIterator[bytes]:
        yield self._payload


class _Events:
    def __init__(self, watch: Watch, silence: float | None, latency: Callable[[], float]) -> None:
        self._watch = watch
        self._silence = silence
        self._latency = latency

    def iter_any(self) -> AsyncIterator[bytes]:
        return self._watch.chunks(self._silence, self._latency)


class _Response:
    """Of aiohttp's response what readers of long answers use."""

    def __init__(self, content: _Body | _Events) -> None:
        self.content: Any = content
        self.status = 200
        self.connection = None  # what it sends is framed by nothing
