"""Notices a client that disconnects while nothing is read from it.

When the target takes no more input, the tunnel stops reading from the client; the client's FIN then
waits behind unread bytes, and the event loop does not notice it. The kernel does: one epoll, itself
watched by the event loop, waits for RDHUP of just those sockets.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_EVENTS: Final = getattr(select, "EPOLLRDHUP", 0) | getattr(select, "EPOLLONESHOT", 0)


class DisconnectWatch:
    """Calls back once when the peer of a watched socket has closed its side."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._callbacks: dict[int, Callable[[], None]] = {}  # by descriptor, watched ones only
        self._epoll = select.epoll() if hasattr(select, "epoll") else None
        if self._epoll is not None:
            self._loop.add_reader(self._epoll.fileno(), self._poll)

    def watch(self, descriptor: int, gone: Callable[[], None]) -> None:
        """Call `gone` when the peer of that socket disconnects."""
        if self._epoll is None or descriptor < 0:
            return

        self._callbacks[descriptor] = gone
        try:
            self._epoll.register(descriptor, _EVENTS)
        except FileExistsError:
            self._epoll.modify(descriptor, _EVENTS)
        except OSError:  # closed already: its owner is notified in the ordinary way
            del self._callbacks[descriptor]

    def forget(self, descriptor: int, gone: Callable[[], None]) -> None:
        """Stop watching for `gone`; another watch of the same descriptor is left alone."""
        if self._epoll is not None and self._callbacks.get(descriptor) == gone:
            del self._callbacks[descriptor]
            self._unregister(descriptor)

    def close(self) -> None:
        """Stop watching all sockets."""
        if self._epoll is not None:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()
            self._epoll = None

        self._callbacks.clear()

    def _poll(self) -> None:
        assert self._epoll is not None
        for descriptor, _events in self._epoll.poll(0):
            if gone := self._callbacks.pop(descriptor, None):
                self._unregister(descriptor)
                gone()

    def _unregister(self, descriptor: int) -> None:
        assert self._epoll is not None
        with suppress(OSError):  # the kernel forgets a descriptor by itself when it is closed
            self._epoll.unregister(descriptor)
