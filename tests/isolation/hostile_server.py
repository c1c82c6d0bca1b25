"""A server that a Target leads to, and that answers without end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import yaml

from tests.e2e.gateways import gateway
from tests.kit import Fleet

_ANSWER: Final = b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000
_ANSWERS: Final = 100  # of these thousands, for each request


@asynccontextmanager
async def informational(fleet: Fleet) -> AsyncIterator[str]:
    """Yield the kubeconfig of a server that answers with informational answers only."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                for _ in range(_ANSWERS):
                    writer.write(_ANSWER)
                    await writer.drain()

    host = gateway(fleet)
    listening = await asyncio.start_server(answer, host, 0)
    port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield yaml.safe_dump(_kubeconfig(f"http://{host}:{port}"))


def _kubeconfig(server: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "flood",
        "clusters": [{"name": "flood", "cluster": {"server": server}}],
        "users": [{"name": "flood", "user": {"token": "none"}}],
        "contexts": [{"name": "flood", "context": {"cluster": "flood", "user": "flood"}}],
    }
