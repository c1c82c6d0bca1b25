"""Sends requests to one API server, and returns an answer or raises an error.

Short requests share a bounded pool of connections, so that a burst queues here rather than in TLS
handshakes; watches and streams have connections of their own, and so have leases. Nothing is
retried: only the caller knows whether a retry is right.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
import msgspec

from vnode import __version__
from vnode.api import kinds
from vnode.api.errors import Unreachable
from vnode.kube import answer_limits, answers, decoding, sockets
from vnode.kube.answer_limits import AnswerLimit
from vnode.kube.endpoint import Endpoint
from vnode.kube.read_limit import ReadLimiter
from vnode.telemetry import metrics

JSON: Final = "application/json"
_POOL: Final = 48  # connections for short requests
_URGENT: Final = 4  # connections of their own for leases, which must not wait behind a burst
_LEASES: Final = f"/apis/{kinds.LEASES.api_version}/"  # not: what is called `leases`
_TIMEOUT: Final = aiohttp.ClientTimeout(total=30, sock_connect=5)  # seconds
OPENING: Final = 30.0  # seconds until the head of a stream must be there, and an error as a whole


class Transport:
    """Sends requests to one API server. Use as an async context manager.

    `name` is the cluster's name in logs and metrics.
    """

    def __init__(self, endpoint: Endpoint, *, name: str) -> None:
        self.endpoint = endpoint
        self.name = name
        self.read_limiter = ReadLimiter()  # of informers that read from it
        self._requests = metrics.Requests(name)
        self._agent = f"vnode/{__version__}"
        self._short: aiohttp.ClientSession | None = None
        self._long: aiohttp.ClientSession | None = None
        self._urgent: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._short = self._session(_POOL)
        self._long = self._session(0)
        self._urgent = self._session(_URGENT)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections, even if cancelled meanwhile; running requests fail."""
        async with AsyncExitStack() as stack:
            for session in (self._short, self._long, self._urgent):
                if session is not None:
                    stack.push_async_callback(session.close)

    def _session(self, limit: int) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=limit,
            ssl=self.endpoint.ssl or False,
            keepalive_timeout=60,
            socket_factory=sockets.create,
        )
        # API servers compress by gzip only. A page shrinks to a tenth; unfolding it costs the same
        # with or without our asking, since any server may compress its answer.
        return aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": self._agent, "Accept-Encoding": "gzip"},
            auto_decompress=True,
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
        accept: str = JSON,
        bound: AnswerLimit = answer_limits.OBJECT,
    ) -> Any:
        """Send a request and return the decoded answer, None if it is empty.

        Raises an ApiError for an error answer, TooLarge for one out of bounds, Unreachable if no
        answer came in time, or if the client was closed meanwhile (aiohttp's RuntimeError).
        """
        data = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": content_type, "Accept": accept}
        payload = await self._exchange(method, path, query, data, headers, limit=bound.size)
        return await decoding.decode(payload, bound)

    async def payload(
        self, path: str, *, query: Mapping[str, str], accept: str, limit: int
    ) -> bytes:
        """Return the body of a GET, not decoded, of `limit` bytes at most. Raises as `request`."""
        return await self._exchange("GET", path, query, None, {"Accept": accept}, limit=limit)

    async def text(self, path: str, *, limit: int = answer_limits.OBJECT.size) -> str:
        """Return the body of a GET as text, of `limit` bytes at most. Raises as `request` does."""
        payload = await self.payload(path, query={}, accept="*/*", limit=limit)
        return payload.decode(errors="replace")

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
        assert self._short is not None, "enter the client first"
        assert self._urgent is not None, "enter the client first"
        session = self._urgent if path.startswith(_LEASES) else self._short
        headers = await self._headers(headers)
        started = time.monotonic()
        try:
            with answers.translate_errors(self.name):
                async with session.request(
                    method,
                    self.endpoint.url + path,
                    params=query,
                    data=data,
                    headers=headers,
                    timeout=_TIMEOUT,
                    allow_redirects=False,
                    server_hostname=self.endpoint.server_name,
                ) as response:
                    if failed := response.status >= 300:
                        payload = await answers.read_error(response)
                    else:
                        payload = await answers.read(response, limit)
        except Unreachable:
            self._requests.unanswered(method)
            raise

        self._requests.answered(method, response.status, time.monotonic() - started)
        if failed:
            raise answers.error_of(response, payload)

        return payload

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str],
        silence: float | None,
        opening: float | None = OPENING,
        accept: str = JSON,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request, and yield the answer to be read as it arrives.

        After `silence` seconds without a byte the other side counts as gone; the answer must begin
        within `opening` seconds, however its bytes come.
        """
        assert self._long is not None, "enter the client first"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=silence)
        headers = await self._headers({"Accept": accept})
        with answers.translate_errors(self.name):
            async with asyncio.timeout(opening):
                response = await self._long.request(
                    method,
                    self.endpoint.url + path,
                    params=query,
                    headers=headers,
                    timeout=timeout,
                    allow_redirects=False,
                    server_hostname=self.endpoint.server_name,
                )

        try:
            if response.status >= 300:
                with answers.translate_errors(self.name):
                    async with asyncio.timeout(opening):
                        payload = await answers.read_error(response)

                raise answers.error_of(response, payload)

            yield response
        finally:
            await answers.abort(response)

    async def authorization(self) -> str | None:
        """Return the Authorization header for a request; raises as `request` does."""
        with answers.translate_errors(self.name):
            return await self.endpoint.authorization()

    async def _headers(self, headers: dict[str, str]) -> dict[str, str]:
        if value := await self.authorization():
            headers["Authorization"] = value

        return headers
