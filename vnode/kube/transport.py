"""Sends requests to one API server, and returns an answer or raises an error.

Nothing is retried, since only the caller knows whether a retry is right; but for what a server did
not even look at, since it refuses the credentials (401), once there are others. A request may have
to wait until the server's pace allows it (`vnode.kube.pacer`). The client can move to another
address of the API server while it is in use.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
import msgspec

from vnode.api.errors import (
    ApiError,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from vnode.api.token_bucket import TokenBucket
from vnode.kube import answer_limits, answers, decoding
from vnode.kube.answer_limits import AnswerLimit
from vnode.kube.credentials import Renewable
from vnode.kube.endpoint import Endpoint
from vnode.kube.pacer import Pacer
from vnode.kube.read_limit import ReadLimiter
from vnode.kube.request_metrics import RequestMetrics
from vnode.kube.server_clock import ClockSkew
from vnode.kube.sessions import Sessions

JSON: Final = "application/json"
METADATA_LIST: Final = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
METADATA: Final = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_IDENTITY: Final = "identity"  # of encodings: none
_TOTAL: Final = 30.0  # seconds for a request, from the moment at which it is to be sent
_TIMEOUT: Final = aiohttp.ClientTimeout(total=_TOTAL, sock_connect=5)
OPENING: Final = 30.0  # seconds until the head of a stream must be there, and an error as a whole


class Transport:
    """Sends requests to one API server. Use as an async context manager.

    `name` is the cluster's name in logs and metrics.
    """

    def __init__(self, endpoint: Endpoint, *, name: str) -> None:
        self.endpoint = endpoint
        self.name = name
        self.read_limiter = ReadLimiter()  # of informers that read from it
        self.pacer = Pacer(name)  # of short requests; watches wait for its pauses
        self.skew = ClockSkew()  # of its clock, as its answers show
        self._requests = RequestMetrics(name)
        self._sessions: Sessions | None = None  # to `endpoint`, once entered
        self._former: list[Sessions] = []  # to other addresses, with what was under way there

    async def __aenter__(self) -> Self:
        self._sessions = Sessions(self.endpoint)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def take_over(self, authorization: Callable[[], Awaitable[str | None]]) -> None:
        """Send further requests with other credentials; what is open goes on with the former."""
        self.endpoint = replace(self.endpoint, authorization=authorization)

    async def move_to(self, successor: Transport) -> None:
        """Send further requests by the connections of `successor`, which gives them away.

        Watches are broken off, to be resumed there (`has_left`); requests and other streams that
        are under way end where they are.
        """
        successor_sessions, successor._sessions = successor._sessions, None
        left, self._sessions = self._current, successor_sessions
        self.endpoint = successor.endpoint
        left.end_watches()
        former = [*self._former, left]
        self._former = [sessions for sessions in former if sessions.is_used]
        for sessions in former:
            if sessions not in self._former:
                await sessions.aclose()

    def has_left(self, stream: aiohttp.ClientResponse) -> bool:
        """Tell whether the client has moved since a stream began that is being read."""
        return self._sessions is not None and not self._sessions.reads(stream)

    async def aclose(self) -> None:
        """Close all connections, even if cancelled meanwhile; running requests fail."""
        async with AsyncExitStack() as stack:
            for sessions in (*self._former, self._sessions):
                if sessions is not None:
                    stack.push_async_callback(sessions.aclose)

    @property
    def lines(self) -> TokenBucket:
        """Those that may be read now on all connections to the server (`answer_heads`)."""
        return self._current.lines

    @property
    def _current(self) -> Sessions:
        assert self._sessions is not None, "enter the client first"
        return self._sessions

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
        payload = await self._send(method, path, query, data, headers, limit=bound.size)
        return await decoding.decode(payload, bound)

    async def payload(
        self, path: str, *, query: Mapping[str, str], accept: str, limit: int
    ) -> bytes:
        """Return the body of a GET, not decoded, of `limit` bytes at most. Raises as `request`."""
        return await self._send("GET", path, query, None, {"Accept": accept}, limit=limit)

    async def text(self, path: str, *, limit: int = answer_limits.OBJECT.size) -> str:
        """Return the body of a GET as text, of `limit` bytes at most. Raises as `request` does."""
        payload = await self.payload(path, query={}, accept="*/*", limit=limit)
        return payload.decode(errors="replace")

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        data: bytes | None,
        headers: dict[str, str],
        *,
        limit: int,
    ) -> bytes:
        """Exchange a request for an answer, once the pace of the server allows it."""
        era, waited = self.pacer.start(), 0.0
        if era is None:
            era, waited = await self.pacer.admit(method, path)

        try:
            exchange = self._exchange(method, path, query, data, headers, limit=limit)
            payload = await (self._before(_TOTAL - waited, exchange) if waited else exchange)
        except TooManyRequests as error:
            self.pacer.refuse(era, error, method, path)
            raise
        except BaseException as error:
            is_word = isinstance(error, ApiError) and not isinstance(error, ServerError)
            self.pacer.end(era, answered=is_word)
            raise

        self.pacer.end(era, answered=True)
        return payload

    async def _before(self, seconds: float, exchange: Awaitable[bytes]) -> bytes:
        """Await an answer for the seconds that are left for it."""
        with answers.translate_errors(self.name):
            async with asyncio.timeout(seconds):
                return await exchange

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
        async def send() -> tuple[aiohttp.ClientResponse, bytes]:
            sessions, sent = self._current, time.time()
            with answers.translate_errors(self.name), sessions.requesting():
                async with sessions.short(path).request(
                    method,
                    self.endpoint.url + path,
                    params=query,
                    data=data,
                    headers=headers,
                    timeout=_TIMEOUT,
                    allow_redirects=False,
                    server_hostname=self.endpoint.server_name,
                ) as response:
                    self.skew.observe(response.headers.get("Date"), sent, time.time())
                    if response.status >= 300:
                        return response, await answers.read_error(response)

                    return response, await answers.read(response, limit)

        await self._authorize(headers)
        response, payload = await self._timed(method, send)
        if await self.renew(response.status, headers.get("Authorization")):
            await self._authorize(headers)
            response, payload = await self._timed(method, send)

        if response.status >= 300:
            raise answers.error_of(response, payload)

        return payload

    async def _timed(
        self, method: str, send: Callable[[], Awaitable[tuple[aiohttp.ClientResponse, bytes]]]
    ) -> tuple[aiohttp.ClientResponse, bytes]:
        """Count a request in the metrics."""
        started = time.monotonic()
        try:
            response, payload = await send()
        except Unreachable:
            self._requests.unanswered(method)
            raise

        self._requests.answered(method, response.status, time.monotonic() - started)
        return response, payload

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
        is_plain: bool = False,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request, and yield the answer to be read as it arrives.

        After `silence` seconds without a byte the other side counts as gone; the answer must begin
        within `opening` seconds, however its bytes come. One that `is_plain` comes as it is, and
        fails if it is compressed: what is passed on as it arrives would grow without a bound.
        """
        is_watch = query.get("watch") == "true"
        headers = {"Accept": accept, **({"Accept-Encoding": _IDENTITY} if is_plain else {})}
        if is_watch:
            await self.pacer.pause()

        async def begin() -> tuple[Sessions, aiohttp.ClientResponse]:
            while True:
                await self._authorize(headers)
                sessions = self._current
                with sessions.requesting():
                    response = await self._begin(
                        sessions.long, method, path, query, headers, silence, opening
                    )

                if sessions is self._sessions or not is_watch:
                    return sessions, response

                await answers.abort(response)  # moved meanwhile, and watches with it

        sessions, response = await begin()
        if await self.renew(response.status, headers.get("Authorization")):
            await answers.abort(response)
            sessions, response = await begin()

        with sessions.reading(response, is_watch=is_watch):
            try:
                if response.status >= 300:
                    error = await self._error_of(response, opening)
                    if is_watch and isinstance(error, TooManyRequests):
                        self.pacer.push_back(error)

                    raise error

                encoding = response.headers.get("Content-Encoding", _IDENTITY)
                if is_plain and encoding.lower() != _IDENTITY:
                    raise Unreachable(
                        f"{self.name}: the answer is compressed, which it was asked not to be; "
                        "something in front of the API server does so"
                    )

                yield response
            finally:
                await answers.abort(response)

    async def _error_of(self, response: aiohttp.ClientResponse, seconds: float | None) -> ApiError:
        """Return the error of an answer with a status code of 300 or more, whose body it reads."""
        with answers.translate_errors(self.name):
            async with asyncio.timeout(seconds):
                payload = await answers.read_error(response)

        return answers.error_of(response, payload)

    async def _begin(
        self,
        session: aiohttp.ClientSession,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: dict[str, str],
        silence: float | None,
        opening: float | None,
    ) -> aiohttp.ClientResponse:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=silence)
        with answers.translate_errors(self.name):
            async with asyncio.timeout(opening):
                return await session.request(
                    method,
                    self.endpoint.url + path,
                    params=query,
                    headers=headers,
                    timeout=timeout,
                    auto_decompress=headers.get("Accept-Encoding") != _IDENTITY,
                    allow_redirects=False,
                    server_hostname=self.endpoint.server_name,
                )

    async def authorization(self) -> str | None:
        """Return the Authorization header for a request; raises as `request` does."""
        with answers.translate_errors(self.name):
            return await self.endpoint.authorization()

    async def renew(self, status: int, authorization: str | None) -> bool:
        """Tell whether an answer is 401, and there are other credentials now than it was sent."""
        credentials: object = self.endpoint.authorization
        if status != 401 or not isinstance(credentials, Renewable):
            return False

        return await credentials.rejected(authorization)

    async def _authorize(self, headers: dict[str, str]) -> None:
        if value := await self.authorization():
            headers["Authorization"] = value
