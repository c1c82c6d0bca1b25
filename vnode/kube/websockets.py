"""Opens WebSockets to an API server, for requests answered on several channels, such as exec."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import aiohttp

from vnode.api import errors
from vnode.api.token_bucket import TokenBucket
from vnode.kube import answers
from vnode.kube.answer_heads import BoundedConnector
from vnode.kube.client import Client
from vnode.kube.transport import OPENING
from vnode.kube.websocket_frames import EMPTY_FRAMES, FrameLimit

LARGEST: Final = 1024 * 1024
"""Bytes of a message; kubelets send what a pipe gives them, some 32 KiB."""
_CONNECT: Final = 10.0  # seconds for TCP and TLS
_HEARTBEAT: Final = 30.0  # seconds of silence after which a ping is sent


@asynccontextmanager
async def connect(
    client: Client,
    path: str,
    query: Sequence[tuple[str, str]],
    protocol: str,
    *,
    largest: int = LARGEST,
    limit: FrameLimit = EMPTY_FRAMES,
    frames: TokenBucket | None = None,
    heartbeat: float = _HEARTBEAT,
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """Open a WebSocket that speaks `protocol`, and close it at the end.

    After `heartbeat` seconds of silence it is asked for a sign of life, and ends without one. So it
    does after a message of more than `largest` bytes, and once it has more frames than `limit`
    lets pass, of those that `frames` has if several WebSockets share them.

    Raises an ApiError if the API server refuses or redirects, Unreachable if it cannot be reached.
    """
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT)
    connector = BoundedConnector(
        ssl=client.endpoint.ssl or False,
        lines=client.lines,
        frame_limit=limit,
        frames=frames,
    )
    async with aiohttp.ClientSession(
        connector=connector,
        timeout=timeout,
        middlewares=(_no_redirect,),
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:
        with answers.translate_errors(client.name):
            opening = _Handshake(session, client, path, query, protocol, heartbeat, largest)
            socket = await _open(opening, again=True)

        async with socket:
            yield socket


@dataclass(frozen=True, slots=True)
class _Handshake:
    """What a WebSocket is opened with."""

    session: aiohttp.ClientSession
    client: Client
    path: str
    query: Sequence[tuple[str, str]]
    protocol: str
    heartbeat: float
    largest: int


async def _open(opening: _Handshake, *, again: bool) -> aiohttp.ClientWebSocketResponse:
    """Open it; with other credentials if the first ones are refused, and `again` is allowed."""
    client = opening.client
    authorization = await client.authorization()
    try:
        async with asyncio.timeout(OPENING):
            return await opening.session.ws_connect(
                client.endpoint.url + opening.path,
                params=list(opening.query),
                protocols=[opening.protocol],
                headers={"Authorization": authorization} if authorization else {},
                heartbeat=opening.heartbeat,
                max_msg_size=opening.largest,
                server_hostname=client.endpoint.server_name,
            )
    except aiohttp.WSServerHandshakeError as error:
        if again and await client.renew(error.status, authorization):
            return await _open(opening, again=False)

        text = f"{client.name}: {error.message}"
        raise errors.from_status(error.status, "", text) from error


async def _no_redirect(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """End a handshake that is redirected: aiohttp has no other way to refuse for a WebSocket.

    It would follow with our credentials, perhaps to a server that only we can reach.
    """
    response = await handler(request)
    if HTTPStatus.MULTIPLE_CHOICES <= response.status < HTTPStatus.BAD_REQUEST:
        response.close()
        raise aiohttp.WSServerHandshakeError(
            response.request_info, (), status=response.status, message="a redirect, not followed"
        )

    return response
