"""Opens many exec sessions, or follows many logs, at once: through one client in this process.

A hundred kubectls would measure kubectl. WebSocket is spoken as kubectl does, in version 5 of the
protocol: the first byte of a message is its channel.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

import aiohttp
import msgspec

from vnode.kube import endpoint

PROTOCOL: Final = "v5.channel.k8s.io"
_STDIN, _STDOUT, STATUS, _CLOSE = 0, 1, 3, 255
_PATIENCE: Final = 90.0  # seconds for a whole crowd


@dataclass(frozen=True)
class Way:
    """One way to a pod: the API server to ask, and what the pod is called there."""

    kubeconfig: Path
    pod: str


@dataclass
class LoadResult:
    """What a crowd saw."""

    opened: float = 0.0
    served: int = 0
    lags: list[float] = field(default_factory=list)


@asynccontextmanager
async def opened(way: Way) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    there = endpoint.from_kubeconfig_file(way.kubeconfig)
    assert there.ssl is not None
    connector = aiohttp.TCPConnector(limit=0, ssl=there.ssl)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http:
        yield http, f"{there.url}/api/v1/namespaces/default/pods/{way.pod}"


async def sessions(way: Way, count: int, rounds: int = 10) -> LoadResult:
    """Open `count` sessions of `exec -i POD -- cat` at once.

    When all are open, each sends lines, one after the echo of the other, and ends its input.
    """
    outcome, begun = LoadResult(), time.monotonic()
    query = {"container": "main", "command": "cat", "stdin": "true", "stdout": "true"}
    async with asyncio.timeout(_PATIENCE), opened(way) as (http, url), AsyncExitStack() as stack:
        opening = [
            stack.enter_async_context(
                http.ws_connect(f"{url}/exec", params=query, protocols=[PROTOCOL])
            )
            for _ in range(count)
        ]
        open_ = await asyncio.gather(*opening)
        await asyncio.gather(*(_echo(one) for one in open_))  # the command runs
        outcome.opened = time.monotonic() - begun
        ends = await asyncio.gather(*(_session(one, rounds, outcome.lags) for one in open_))
    outcome.served = sum(ends)
    return outcome


async def _session(socket: aiohttp.ClientWebSocketResponse, rounds: int, lags: list[float]) -> bool:
    lags += [await _echo(socket) for _ in range(rounds)]
    await socket.send_bytes(bytes([_CLOSE, _STDIN]))
    while True:
        message = await socket.receive_bytes()
        if message[0] == STATUS:
            return msgspec.json.decode(message[1:])["status"] == "Success"


async def _echo(socket: aiohttp.ClientWebSocketResponse) -> float:
    """Return the seconds from sending a line until all of it is back."""
    line, back, begun = b"x" * 99 + b"\n", b"", time.monotonic()
    await socket.send_bytes(bytes([_STDIN]) + line)
    while len(back) < len(line):
        message = await socket.receive_bytes()
        if message[0] == _STDOUT:
            back += message[1:]
    return time.monotonic() - begun


async def followers(way: Way, count: int, seconds: float = 10.0) -> LoadResult:
    """Run `logs -f` of a container that counts, `count` times at once.

    Followers that miss no number count as served.
    """
    outcome, begun = LoadResult(), time.monotonic()
    query = {"container": "main", "follow": "true", "timestamps": "true", "tailLines": "1"}
    async with asyncio.timeout(_PATIENCE), opened(way) as (http, url), AsyncExitStack() as stack:
        answers = await asyncio.gather(
            *(stack.enter_async_context(http.get(f"{url}/log", params=query)) for _ in range(count))
        )
        firsts = await asyncio.gather(*(answer.content.readline() for answer in answers))
        outcome.opened = time.monotonic() - begun
        until = time.time() + seconds
        complete = await asyncio.gather(
            *(
                _follow(answer, _number(first), until, outcome.lags)
                for answer, first in zip(answers, firsts, strict=True)
            )
        )
    outcome.served = sum(complete)
    return outcome


async def _follow(
    answer: aiohttp.ClientResponse, last: int, until: float, lags: list[float]
) -> bool:
    """Read lines up to the first that was written after `until`."""
    while line := await answer.content.readline():
        stamp = line.partition(b" ")[0].decode()
        # Go writes nanoseconds, which are more digits than Python reads.
        written = datetime.fromisoformat(f"{stamp[:26].rstrip('Z')}+00:00").timestamp()
        lags.append(time.time() - written)
        if _number(line) != last + 1:
            return False

        last += 1
        if written > until:
            return True

    return False


def _number(line: bytes) -> int:
    return int(line.split()[1])
