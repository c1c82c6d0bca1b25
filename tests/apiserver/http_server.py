"""Serves an API server in memory by HTTP, as a real one would: its answers are bytes of a socket.

Users are known by their bearer tokens; where none are named, everybody is the administrator. Every
request is shown to `on_request` before it is carried out. Answers and lines of watches go through
`spoil_answer` and `spoil_line`: so an API server may turn hostile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web

from tests.apiserver.server import APIServer
from tests.apiserver.status import StatusError
from vnode.api.errors import ApiError, VnodeError


@dataclass(frozen=True, slots=True)
class RawResponse:
    """What is sent: a body as it is, with that encoding if any."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] | None = None


def _same(_request: web.Request, answer: RawResponse) -> RawResponse:
    return answer


class HTTPServer:
    """The HTTP side of one API server; `users` are their names by token.

    `on_request` is called with the server's name, the user, the method and the path.
    """

    def __init__(
        self,
        server: APIServer,
        users: dict[str, str] | None = None,
        on_request: Callable[[str, str, str, str], None] = lambda *_request: None,
    ) -> None:
        self.server = server
        self.users = users
        self.url = ""
        self.spoil_answer: Callable[[web.Request, RawResponse], RawResponse] = _same
        self.spoil_line: Callable[[web.Request, bytes], bytes] = lambda _request, line: line
        self._on_request = on_request
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Serve at a free port of this machine."""
        app = web.Application(client_max_size=1 << 28)
        app.router.add_route("*", "/{rest:.*}", self._handle)
        self._runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=0.1
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"

    async def stop(self) -> None:
        """Serve no more."""
        if self._runner is not None:
            self.server.cut_watches()
            await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        user = self._user(request.headers.get("Authorization", "").removeprefix("Bearer "))
        if user is None:
            return _sent(_refusal(StatusError(401, "Unauthorized", "Unauthorized")))

        self._on_request(self.server.name, user, request.method, request.rel_url.raw_path)
        if request.query.get("watch") == "true":
            return await self._watch(request, user)

        payload = await request.read()
        try:
            body = msgspec.json.decode(payload) if payload else None
            answer = RawResponse(
                await self.server.exchange(
                    user, request.method, request.path, request.query, body, request.headers
                )
            )
        except VnodeError as error:
            answer = _refusal(_status_error(error))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            # A typed API server refuses what the one in memory stumbles over.
            answer = _refusal(StatusError(400, "BadRequest", f"{type(error).__name__}: {error}"))

        return _sent(self.spoil_answer(request, answer))

    def _user(self, token: str) -> str | None:
        return "admin" if self.users is None else self.users.get(token)

    async def _watch(self, request: web.Request, user: str) -> web.StreamResponse:
        query, headers = dict(request.query), request.headers
        try:
            watch = await self.server.open_watch(user, request.path, query, headers, None)
        except VnodeError as error:
            return _sent(_refusal(_status_error(error)))

        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        try:
            await response.prepare(request)
            async for chunk in watch.chunks(None, lambda: 0.0):
                for line in chunk.splitlines():
                    await response.write(self.spoil_line(request, line) + b"\n")
        except ConnectionError:
            pass
        finally:
            self.server.close_watch(watch)

        return response


def _status_error(error: VnodeError) -> StatusError:
    if isinstance(error.__cause__, StatusError):
        return error.__cause__

    code = error.status if isinstance(error, ApiError) else 500
    return StatusError(code, "InternalError", str(error))


def _refusal(error: StatusError) -> RawResponse:
    return RawResponse(msgspec.json.encode(error.body()), error.code)


def _sent(answer: RawResponse) -> web.Response:
    headers: dict[str, Any] = {"Content-Type": "application/json", **(answer.headers or {})}
    return web.Response(body=answer.body, status=answer.status, headers=headers)
