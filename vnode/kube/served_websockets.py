"""Serves a WebSocket whose frames are counted, as those are of one that we open (`websockets`)."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from vnode.kube.websocket_frames import CountedFrames, FrameLimit


class CountedWebSocket(web.WebSocketResponse):
    """Serves a WebSocket whose caller may send so many frames."""

    def __init__(self, limit: FrameLimit, **options: Any) -> None:
        super().__init__(compress=False, **options)
        self._limit = limit

    def _post_start(self, request: web.BaseRequest, protocol: str | None, writer: Any) -> None:
        """Count what comes from the first byte on, also those that came with the request."""
        handler = request.protocol
        early, handler._message_tail = handler._message_tail, b""
        super()._post_start(request, protocol, writer)
        transport = handler.transport
        handler._payload_parser = CountedFrames(
            handler._payload_parser,
            self._limit,
            self._limit.bucket(),
            asyncio.get_running_loop().time,
            transport.abort if transport is not None else handler.close,
        )
        if early:
            handler.data_received(early)
