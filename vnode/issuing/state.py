"""Keeps what is known of a request for as long as a term lasts: when it is tried, and renewed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.objects import Object
from vnode.runtime.link import Link
from vnode.targets import token_renewal
from vnode.targets.token_renewal import ManagedToken

_LEAST: Final = 60.0  # seconds between two tokens of a request, whatever life its cluster gives


class IssueState:
    """What is known of one request; `chance` (0 to 1, by token) spreads renewals."""

    def __init__(self, uid: str, clock: Clock, chance: Callable[[str], float]) -> None:
        self.uid = uid
        self.link: Link | None = None  # by which all steps were last done; None after a failure
        self.secret: Object | None = None  # as it was last written
        self.failures = 0  # in a row
        self.revoked = False  # what it was given, before the request itself was deleted
        self.is_ending = False  # `failures` are of the revocation
        self._clock = clock
        self._chance = chance
        self._again = 0.0  # monotonic: not to be tried before
        self._seen: tuple[str, datetime] | None = None  # the token, since when
        self._renewed: datetime | None = None

    @property
    def wait(self) -> float:
        """The seconds until the next attempt; 0 if it may be made."""
        left = self._again - self._clock.monotonic()
        return left if left > TICK else 0.0

    def retry_now(self) -> None:
        """Have the next attempt made at once: what it waits for has changed."""
        self._again = 0.0

    def begin_end(self) -> None:
        """Count failures of the revocation from now on."""
        if not self.is_ending:
            self.is_ending, self.failures, self._again = True, 0, 0.0

    def failed(self, token: ManagedToken | None = None) -> float:
        """Note a failed attempt; return the seconds to the next one, before the token ends."""
        self.failures += 1
        self.link = None
        delay = token_renewal.retry_delay(self.failures)
        if token is not None:
            delay = token.retry_in(self.failures, self._clock.now())

        self._again = self._clock.monotonic() + delay
        return delay

    def issued(self, token: ManagedToken) -> None:
        """Note a new token."""
        self._renewed = self._clock.now()
        self._seen = (token.text, self._renewed)

    def due(self, token: ManagedToken) -> datetime:
        """Return when a token is to be renewed."""
        if self._seen is None or self._seen[0] != token.text:
            self._seen = (token.text, self._clock.now())

        due = token.renew_at(self._chance(token.text), self._seen[1])
        least = timedelta(seconds=_LEAST)
        return due if self._renewed is None else max(due, self._renewed + least)

    def is_due(self, token: ManagedToken) -> bool:
        """Tell whether a token is to be renewed now."""
        return self._clock.now() >= self.due(token)

    def next_look(self, token: ManagedToken | None) -> float:
        """Return the seconds until the request must be looked at: due, ended, or tried again."""
        now = self._clock.now()
        moments = [] if token is None else [token.ends]
        if token is not None and not self.failures:
            moments.append(self.due(token))

        ahead = [token_renewal.until(each, now) for each in moments if each > now]
        if self.failures:
            ahead.append(max(self.wait, TICK))

        return min(ahead, default=token_renewal.until(now + timedelta(days=1), now))
