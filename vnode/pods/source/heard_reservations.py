"""Keeps what one stream of a target has said of its candidates, and not taken back.

A target may say what it likes. So a stream holds as many candidates as there are chaperons, and a
few besides that are not known yet: a message may come before the event by which the informer learns
of the chaperon. The oldest of these are forgotten first; a candidate that is forgotten is not
acknowledged, so its target writes the reservation.
"""

from __future__ import annotations

from typing import Final

from vnode.pods.stream_channel import Outbox
from vnode.pods.stream_messages import CandidateName

MOST_EARLY: Final = 1000
"""Candidates that may be called reserved before their chaperon is known."""


class HeardReservations:
    """What is reserved by one stream, and what is to be said on it."""

    def __init__(self) -> None:
        self.outbox = Outbox()
        self._known: set[CandidateName] = set()
        self._early: dict[CandidateName, None] = {}  # oldest first

    def __contains__(self, name: CandidateName) -> bool:
        """Tell whether the stream has said that a candidate is reserved."""
        return name in self._known or name in self._early

    def __len__(self) -> int:
        """Return how many candidates it has said are reserved."""
        return len(self._known) + len(self._early)

    def names(self) -> list[CandidateName]:
        """Return all that are reserved by this stream."""
        return [*self._known, *self._early]

    def add(self, name: CandidateName, *, is_known: bool) -> CandidateName | None:
        """Note that a candidate is reserved; return one that is forgotten for it."""
        if is_known:
            self.know(name)
            return None

        self._early[name] = None
        if len(self._early) <= MOST_EARLY:
            return None

        oldest = next(iter(self._early))
        del self._early[oldest]
        return oldest

    def know(self, name: CandidateName) -> None:
        """Note that the chaperon of a candidate that is reserved is known, and say so."""
        self._early.pop(name, None)
        self._known.add(name)
        self.outbox.put(name, "acknowledged", is_urgent=False)

    def notice(self, name: CandidateName) -> None:
        """Note that a chaperon is there."""
        if name in self._early:
            self.know(name)

    def discard(self, name: CandidateName) -> None:
        """Note that a candidate is not reserved any more, or that this matters no longer."""
        self._known.discard(name)
        self._early.pop(name, None)

    def forget(self, name: CandidateName) -> None:
        """Forget a candidate whose chaperon is gone, and say nothing more of it."""
        self.discard(name)
        self.outbox.drop(name)
