"""Looks up the addresses of servers, each lookup in a thread of its own.

Whoever wrote a kubeconfig chose the name, and whoever answers for the name how long that takes: a
lookup cannot be broken off. asyncio has some threads for all of them, and for reading files: a few
names that are answered late, or never, would keep everybody else from both.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from aiohttp.abc import AbstractResolver, ResolveResult

_FLAGS: Final = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV  # of what comes out

T = TypeVar("T")


class ThreadPerLookup(AbstractResolver):
    """Resolves names as the machine does.

    aiohttp asks for a name once at a time on behalf of all connections of a session.
    """

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host; OSError if there are none."""
        return [
            ResolveResult(
                hostname=host,
                host=_text(address),
                port=int(address[1]),
                family=kind,
                proto=protocol,
                flags=_FLAGS,
            )
            for kind, _type, protocol, _name, address in await _look_up(host, port, family)
        ]

    async def close(self) -> None:
        """Do nothing: a thread that waits for an answer ends with it."""


async def addresses(host: str, port: int) -> list[str]:
    """Return the addresses of a host; OSError if there are none."""
    return [_text(address) for *_kind, address in await _look_up(host, port, socket.AF_UNSPEC)]


async def _look_up(host: str, port: int, family: socket.AddressFamily) -> Sequence[tuple[Any, ...]]:
    flags = socket.AI_ADDRCONFIG
    return await _in_a_thread(
        lambda: socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=flags)
    )


def _text(address: tuple[Any, ...]) -> str:
    """Return an address, with the number of its link if it is valid on one only."""
    scope = address[3] if len(address) > 3 else 0
    return f"{address[0]}%{scope}" if scope else str(address[0])


async def _in_a_thread(function: Callable[[], T]) -> T:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(settled: Callable[[], None]) -> None:
        if not answer.done():
            settled()

    def run() -> None:
        try:
            result = function()
        except (OSError, UnicodeError) as error:
            failure = error
            outcome: Callable[[], None] = lambda: answer.set_exception(failure)  # noqa: E731
        else:
            outcome = lambda: answer.set_result(result)  # noqa: E731

        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, outcome)

    threading.Thread(target=run, name="lookup", daemon=True).start()
    return await answer
