"""Does TLS handshakes with API servers in threads, and less often where they take long.

What a handshake computes is up to the server: how many certificates it shows, of which keys, and on
which curves. OpenSSL takes it all in one call, seconds if the server likes, in which the event loop
would stand still; but it lets other threads run. So only the first message, which is ours, is made
in the event loop (`vnode.kube.handshake_steps`).

Servers whose last handshake was a usual one have threads of their own, so that none waits for what
is computed for others. A handshake that took long is followed by a pause that is a hundred times as
long.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import logging
import ssl
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from vnode.kube import handshake_steps, tls_records
from vnode.kube.handshake_steps import Handshake, Opening
from vnode.kube.tls_records import RecordBudget

DEAR: Final = 0.05
"""Seconds of a processor; a handshake with a usual server takes one or two milliseconds."""
_PAUSE: Final = 100  # times as long as a handshake that was dear
_LONGEST: Final = 600.0  # seconds of a pause
_AT_ONCE: Final = 4  # steps of handshakes with a server whose last one was usual, and else one
_FOR_KNOWN: Final = 8  # threads for such servers
_FOR_UNKNOWN: Final = 2  # threads for others, however many there are

P = TypeVar("P", bound=asyncio.Protocol)

log = logging.getLogger(__name__)


class ServerPace:
    """Holds what the connections to one server share, and when the next handshake may begin.

    `name` is what logs call the server.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.records = RecordBudget()
        self._one, self._several = asyncio.Semaphore(1), asyncio.Semaphore(_AT_ONCE)
        self._is_known = False  # since the last handshake was done, and cost little
        self._not_before = 0.0  # monotonic

    async def step(self, handshake: Handshake) -> bool:
        """Do a step of a handshake in a thread; tell whether it is done. Raises as it does.

        A thread cannot be broken off: if this is cancelled, others wait for it all the same.
        """
        turns, threads = (
            (self._several, _of_known()) if self._is_known else (self._one, _of_unknown())
        )
        await turns.acquire()
        try:
            self.check()
            loop = asyncio.get_running_loop()
            running = loop.run_in_executor(threads, handshake.step)
        except BaseException:
            turns.release()
            raise

        running.add_done_callback(lambda step: self._end(step, handshake, turns))
        return await asyncio.shield(running)

    def check(self) -> None:
        """Raise ConnectionAbortedError while the next handshake has to wait."""
        left = self._not_before - time.monotonic()
        if left > 0:
            raise ConnectionAbortedError(
                errno.ECONNABORTED,
                f"handshakes with this server take long: the next one begins in {left:.0f} s",
            )

    def _end(
        self, step: asyncio.Future[bool], handshake: Handshake, turns: asyncio.Semaphore
    ) -> None:
        turns.release()
        if not step.cancelled() and step.exception() is None and step.result():
            self._is_known = True

        if handshake.cost > DEAR:
            self._is_known = False
            pause = min(handshake.cost * _PAUSE, _LONGEST)
            self._not_before = time.monotonic() + pause
            log.warning(
                "a TLS handshake with %s took %.2f s of a processor, so that the next one waits "
                "for %.0f s: look at the certificates that this server shows",
                self.name,
                handshake.cost,
                pause,
            )


async def connect(
    pace: ServerPace,
    protocol: Callable[[], P],
    context: ssl.SSLContext,
    server_hostname: str,
    opened: Callable[[Callable[[], Opening]], Awaitable[tuple[asyncio.Transport, Opening]]],
) -> tuple[asyncio.Transport, P]:
    """Connect by `opened`, and do the handshake; then make the protocol, as asyncio does.

    `opened` makes a connection without TLS, whose protocol it is given. Raises OSError, of which
    `ssl.SSLError` is a kind.
    """
    pace.check()
    transport, opening = await opened(Opening)
    try:
        handshake = await opening.shake_hands(pace.step, context, server_hostname)
        made = protocol()
        secured = await handshake_steps.go_on(transport, handshake, made, server_hostname)
    except BaseException:
        transport.abort()
        raise

    tls_records.keep_pace(secured, pace.records, pace.name)
    made.connection_made(secured)
    return secured, made


@functools.cache
def _of_known() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_FOR_KNOWN, "tls")


@functools.cache
def _of_unknown() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_FOR_UNKNOWN, "tls-first")
