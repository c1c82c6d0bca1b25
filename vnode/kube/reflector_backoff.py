"""Decides how long an API server that fails or refuses is left alone, and what it refuses for good.

A server that has only just started knows no roles and no custom kinds, and refuses for a moment
what it allowed before. So what may be refused for good is asked for ever more rarely, not rarely
from the first refusal on. No I/O; moments are of a monotonic clock.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from vnode.api.errors import Denied, TooManyRequests, VnodeError

FIRST: Final = 0.2  # seconds
AWAY: Final = 5.0  # seconds; the return of a server is noticed at most this much later
OPTIONAL: Final = 200.0  # seconds, at most, for what may be refused; no silence for alerts
CLOSED: Final = 60.0  # seconds, at most, until a namespace is asked again that lets nobody in
STARTING: Final = 10.0  # seconds in which a server that starts may refuse what it has allowed


class ReflectorBackoff:
    """What one reflector was answered since it last succeeded, and for how long it pauses."""

    def __init__(self) -> None:
        self._delay = FIRST  # of the next pause
        self._forbidden_since: float | None = None  # None while the last answer was another

    def succeeded(self) -> None:
        """Note that all is well: the next failure is a first one."""
        self._delay, self._forbidden_since = FIRST, None

    def reset(self) -> None:
        """Note that another place was opened: the next pause is a first one."""
        self._delay = FIRST

    def pause(self, error: VnodeError, limit: float) -> float:
        """Return for how many seconds to wait after an error: each time longer, up to `limit`."""
        delay = min(self._delay, limit)
        self._delay = min(delay * 2, limit)
        return max(delay, error.retry_after) if isinstance(error, TooManyRequests) else delay

    def is_final(self, error: VnodeError, now: float, *, was_allowed: bool) -> bool:
        """Tell whether it is forbidden, and not only while a server starts that allowed it."""
        if not isinstance(error, Denied) or error.status != HTTPStatus.FORBIDDEN:
            self._forbidden_since = None
            return False

        if self._forbidden_since is None:
            self._forbidden_since = now

        return not was_allowed or now - self._forbidden_since >= STARTING
